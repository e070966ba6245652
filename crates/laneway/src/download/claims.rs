//! The checksums of one stream of bytes, MiB by MiB, each claimed in the file's journal as soon as it is written.

use crate::checksum::{Hashing, Run, Wanted};
use crate::folder::Staged;
use crate::plan::slices::CLAIM_LEN;

/// A stream under way.
#[derive(Debug)]
pub(crate) struct Claims {
    wanted: Wanted,
    /// All claimed ranges together.
    ended: Run,
    /// Where the next claim begins.
    start: u64,
    under_way: Hashing,
}

impl Claims {
    /// A stream whose first byte is the object's byte `start`.
    pub(crate) fn new(start: u64, wanted: Wanted) -> Self {
        Self { wanted, ended: Run::of(b"", wanted), start, under_way: Hashing::new(wanted) }
    }

    /// The next bytes. They have been written where there is a file.
    pub(crate) fn update(&mut self, mut bytes: &[u8], staged: Option<&Staged>) {
        let Some(staged) = staged.filter(|staged| staged.is_journaled()) else {
            return self.under_way.update(bytes);
        };
        while !bytes.is_empty() {
            let at = self.start + self.under_way.len();
            let room = (CLAIM_LEN - at % CLAIM_LEN) as usize;
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.under_way.update(now);
            if now.len() == room {
                self.claim(Some(staged));
            }
            bytes = later;
        }
    }

    /// The stream's end: the checksums of all of it.
    pub(crate) fn finish(&mut self, staged: Option<&Staged>) -> Run {
        self.claim(staged);
        std::mem::replace(&mut self.ended, Run::of(b"", self.wanted))
    }

    fn claim(&mut self, staged: Option<&Staged>) {
        let run = std::mem::replace(&mut self.under_way, Hashing::new(self.wanted)).finish();
        if let Some(staged) = staged {
            staged.claim(self.start, &run);
        }
        self.start += run.len;
        self.ended = self.ended.then(run);
    }
}
