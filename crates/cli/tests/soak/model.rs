//! A model of the store's possible content.

use std::collections::{BTreeMap, BTreeSet};

use laneway_testkit::random_bytes;

/// The recipe of an object's bytes. It takes almost no memory, so the model can describe gigabytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Content {
    seed: u64,
    pub(crate) len: usize,
}

impl Content {
    pub(crate) fn new(seed: u64, len: usize) -> Self {
        Self { seed, len }
    }

    pub(crate) fn bytes(self) -> Vec<u8> {
        random_bytes(self.seed, self.len)
    }

    pub(crate) fn is(self, bytes: &[u8]) -> bool {
        self.len == bytes.len() && self.bytes() == bytes
    }
}

/// The possible contents of a key. `None` means that it doesn't exist. After a successful operation there is only one. A failed
/// operation may leave the old content or the new.
pub(crate) type Possible = BTreeSet<Option<Content>>;

/// The possible contents of one client's keys. No other client writes to them.
#[derive(Debug, Default)]
pub(crate) struct Model(BTreeMap<String, Possible>);

impl Model {
    /// Returns the possible contents of a key.
    pub(crate) fn possible(&self, key: &str) -> Possible {
        self.0.get(key).cloned().unwrap_or_else(|| [None].into())
    }

    /// Returns the keys below a prefix that may exist.
    pub(crate) fn below(&self, prefix: &str) -> Vec<String> {
        let below = self.0.range(prefix.to_owned()..).take_while(|(key, _)| key.starts_with(prefix));
        below.map(|(key, _)| key.clone()).collect()
    }

    /// Returns true if an object certainly exists below a prefix.
    pub(crate) fn holds_something(&self, prefix: &str) -> bool {
        self.below(prefix).iter().any(|key| !self.possible(key).contains(&None))
    }

    /// Sets a key's possible contents after a successful operation.
    pub(crate) fn is(&mut self, key: &str, possible: Possible) {
        self.0.insert(key.to_owned(), possible);
        if self.possible(key) == [None].into() {
            self.0.remove(key);
        }
    }

    /// Adds possible contents after a failed operation.
    pub(crate) fn may_be(&mut self, key: &str, also: impl IntoIterator<Item = Option<Content>>) {
        let mut possible = self.possible(key);
        possible.extend(also);
        self.is(key, possible);
    }

    /// Panics unless the key can have the found bytes.
    #[track_caller]
    pub(crate) fn allows(&self, what: &str, key: &str, found: Option<&[u8]>) {
        let possible = self.possible(key);
        let is_so = |content: &Option<Content>| match (content, found) {
            (None, None) => true,
            (Some(content), Some(bytes)) => content.is(bytes),
            _ => false,
        };
        assert!(
            possible.iter().any(is_so),
            "{what}: {key} holds {:?} bytes, and what it may hold is {possible:?}",
            found.map(<[u8]>::len)
        );
    }

    /// Checks all keys below a prefix. A key that isn't among the found ones counts as missing.
    #[track_caller]
    pub(crate) fn allows_all(&self, what: &str, prefix: &str, found: &BTreeMap<String, Vec<u8>>) {
        for (key, bytes) in found {
            self.allows(what, key, Some(bytes));
        }
        for key in self.below(prefix).iter().filter(|key| !found.contains_key(*key)) {
            self.allows(what, key, None);
        }
    }

    /// Checks all keys below a prefix by their sizes.
    #[track_caller]
    pub(crate) fn allows_sizes(&self, what: &str, prefix: &str, found: &BTreeMap<String, u64>) {
        for (key, size) in found {
            let possible = self.possible(key);
            let is_so = possible.iter().flatten().any(|content| content.len as u64 == *size);
            assert!(is_so, "{what}: {key} has {size} bytes instead of one of {possible:?}");
        }
        for key in self.below(prefix).iter().filter(|key| !found.contains_key(*key)) {
            self.allows(what, key, None);
        }
    }

    /// Checks the number of objects below a prefix, and the sum of their sizes. Each must lie between the smallest and
    /// the largest possible value.
    #[track_caller]
    pub(crate) fn allows_sums(&self, what: &str, prefix: &str, objects: u64, bytes: u64) {
        let (mut least, mut most) = ((0, 0), (0, 0));
        for key in self.below(prefix) {
            let possible = self.possible(&key);
            let sums =
                || possible.iter().map(|content| content.map_or((0, 0), |content| (1, content.len as u64)));
            let add = |sum: &mut (u64, u64), one: (Option<u64>, Option<u64>)| {
                *sum = (sum.0 + one.0.unwrap_or(0), sum.1 + one.1.unwrap_or(0));
            };
            add(&mut least, (sums().map(|sum| sum.0).min(), sums().map(|sum| sum.1).min()));
            add(&mut most, (sums().map(|sum| sum.0).max(), sums().map(|sum| sum.1).max()));
        }
        assert!(
            (least.0..=most.0).contains(&objects) && (least.1..=most.1).contains(&bytes),
            "{what}: {objects} objects of {bytes} bytes, and there are {least:?} to {most:?}"
        );
    }

    /// Checks a comparison of a prefix with the sizes in `there`, in which the names in `differ` had other sizes. Panics unless this
    /// result is possible.
    #[track_caller]
    pub(crate) fn allows_differences(
        &self,
        what: &str,
        prefix: &str,
        there: &BTreeMap<String, usize>,
        differ: &BTreeSet<String>,
    ) {
        let differ: BTreeSet<String> = differ.iter().map(|name| format!("{prefix}{name}")).collect();
        let all: BTreeSet<String> = self
            .below(prefix)
            .into_iter()
            .chain(there.keys().cloned())
            .chain(differ.iter().cloned())
            .collect();
        for key in all {
            let (possible, found) = (self.possible(&key), differ.contains(&key));
            let is_other =
                |content: &Option<Content>| content.map(|content| content.len) != there.get(&key).copied();
            assert!(
                possible.iter().any(|content| is_other(content) == found),
                "{what}: {key} is said to differ: {found}; it has {:?} bytes here, and what it may hold is {possible:?}",
                there.get(&key)
            );
        }
    }
}

/// Returns the possible contents, without the missing object.
pub(crate) fn somethings(possible: &Possible) -> Possible {
    possible.iter().filter(|content| content.is_some()).copied().collect()
}

#[test]
fn after_an_acknowledgement_it_is_one_thing_and_after_a_failure_either() {
    let (a, b) = (Content::new(1, 10), Content::new(2, 20));
    let mut model = Model::default();
    model.is("p/k", [Some(a)].into());
    model.allows("read", "p/k", Some(&a.bytes()));
    assert!(model.holds_something("p/") && !model.holds_something("q/"));
    model.may_be("p/k", [None, Some(b)]);
    for found in [Some(a), Some(b), None] {
        model.allows("read", "p/k", found.map(Content::bytes).as_deref());
    }
    assert!(!model.holds_something("p/"));
    assert_eq!(somethings(&model.possible("p/k")).len(), 2);
    let wrong = std::panic::catch_unwind(|| model.allows("read", "p/k", Some(&Content::new(3, 10).bytes())));
    assert!(wrong.is_err(), "other bytes of the same size");
    model.is("p/l", [Some(a)].into());
    for (objects, bytes) in [(1, 10), (2, 20), (2, 30)] {
        model.allows_sums("count", "p/", objects, bytes);
    }
    assert!(std::panic::catch_unwind(|| model.allows_sums("count", "p/", 0, 10)).is_err());
    assert!(std::panic::catch_unwind(|| model.allows_sums("count", "p/", 2, 31)).is_err());
    let there = [("p/l".to_owned(), 10), ("p/m".to_owned(), 1)].into();
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    model.allows_differences("compare", "p/", &there, &names(&["m"]));
    model.allows_differences("compare", "p/", &there, &names(&["k", "m"]));
    for wrong in [names(&[]), names(&["k"]), names(&["l", "m"]), names(&["m", "n"])] {
        let compare = || model.allows_differences("compare", "p/", &there, &wrong);
        assert!(std::panic::catch_unwind(compare).is_err(), "{wrong:?}");
    }
    model.is("p/l", [None].into());
    model.is("p/k", [None].into());
    assert!(model.below("").is_empty());
    assert!(std::panic::catch_unwind(|| model.allows("read", "p/k", Some(b"x"))).is_err());
}

/// A source of deterministic pseudo-random numbers.
#[derive(Debug)]
pub(crate) struct Random {
    seed: u64,
    drawn: u64,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, drawn: 0 }
    }

    /// Returns a number below `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.drawn += 1;
        let bytes = random_bytes(self.seed ^ self.drawn.wrapping_mul(0xd134_2543_de82_ef95), 8);
        let number = bytes.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        (number % n as u64) as usize
    }

    /// Returns one of the choices.
    pub(crate) fn one_of<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Operation {
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

impl Operation {
    /// The operations in the order of the first round, in which each operation finds the objects that it needs.
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

    /// Returns the operations of a round.
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
