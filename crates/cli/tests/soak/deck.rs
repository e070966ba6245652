//! What is done, in which order: each operation once, shuffled, and again.

use laneway_testkit::random_bytes;

/// Numbers that look random and aren't.
#[derive(Debug)]
pub(crate) struct Random {
    seed: u64,
    drawn: u64,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, drawn: 0 }
    }

    /// Below `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.drawn += 1;
        let bytes = random_bytes(self.seed ^ self.drawn.wrapping_mul(0xd134_2543_de82_ef95), 8);
        let number = bytes.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        (number % n as u64) as usize
    }

    /// One of these.
    pub(crate) fn one_of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Op {
    Put,
    PutStream,
    PutMany,
    PutLarge,
    Get,
    GetFile,
    GetLarge,
    GetRanges,
    List,
    Remove,
    RemoveTree,
    Copy,
    Move,
    UploadTree,
    DownloadTree,
    SyncUp,
    SyncDown,
    Verify,
    Du,
    SetMeta,
    Run,
}

impl Op {
    /// The order of the first round, in which each finds what it needs.
    pub(crate) const ALL: [Self; 21] = [
        Self::Put,
        Self::PutStream,
        Self::PutMany,
        Self::PutLarge,
        Self::Get,
        Self::GetFile,
        Self::GetLarge,
        Self::GetRanges,
        Self::Copy,
        Self::Move,
        Self::UploadTree,
        Self::SyncUp,
        Self::DownloadTree,
        Self::SyncDown,
        Self::List,
        Self::Verify,
        Self::Du,
        Self::SetMeta,
        Self::Run,
        Self::Remove,
        Self::RemoveTree,
    ];

    /// The round of this number.
    pub(crate) fn round(number: u64, random: &mut Random) -> Vec<Self> {
        let mut round = Self::ALL.to_vec();
        if number > 0 {
            for last in (1..round.len()).rev() {
                round.swap(last, random.below(last + 1));
            }
        }
        round
    }
}
