//! The items that earlier runs have done, in a few dozen bytes each.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash, Hasher as _, RandomState};
use std::sync::LazyLock;

use laneway_store::Version;

use super::line::{self, PastItem};

/// The hash function's keys. The keys are random in each process, so an attacker can't choose names with
/// colliding hashes. No hash is written to a file.
static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The hash of a text. With 128 bits, collisions are too rare to matter.
pub(super) type TextHash = (u64, u64);

/// The owner of items: a command of a run, or `None` for a job with its own manifest.
pub(super) type Scope = Option<TextHash>;

/// Items that were done. Each item is identified by the hash of its scope and source.
#[derive(Default, Debug)]
pub(super) struct DoneItems(HashMap<TextHash, DoneItem>);

#[derive(Clone, Copy, Debug)]
struct DoneItem {
    /// The hash of destination, source state and size; `None` if the state was unknown.
    item: Option<u64>,
    /// The hash of the version that was written.
    made: Option<u64>,
}

impl DoneItems {
    pub(super) fn add(&mut self, scope: Scope, item: &PastItem) {
        if item.outcome != line::DONE {
            return;
        }
        let destination = item.destination.as_deref();
        let done = DoneItem {
            item: item.state.as_ref().map(|state| hash(0, &(destination, state, item.source_size))),
            made: item.made().map(|made| hash(0, &made)),
        };
        self.0.insert(key(&(scope, &item.source)), done);
    }

    /// Returns whether an earlier run has done this item while its source was in this state.
    pub(super) fn has_done(
        &self,
        scope: Scope,
        (source, destination): (&str, Option<&str>),
        (state, size): (&str, u64),
    ) -> bool {
        let done = self.0.get(&key(&(scope, source))).and_then(|done| done.item);
        done == Some(hash(0, &(destination, state, size)))
    }

    /// Returns whether an earlier run has done this item and wrote this version of the destination.
    pub(super) fn has_made(
        &self,
        scope: Scope,
        (source, destination): (&str, Option<&str>),
        (state, size): (&str, u64),
        version: &Version,
    ) -> bool {
        let made = self.0.get(&key(&(scope, source))).and_then(|done| done.made);
        made == Some(hash(0, &line::of_version(version)))
            && self.has_done(scope, (source, destination), (state, size))
    }

    pub(super) fn has(&self, scope: Scope, source: &str) -> bool {
        self.0.contains_key(&key(&(scope, source)))
    }
}

pub(super) fn key(value: &(impl Hash + ?Sized)) -> TextHash {
    (hash(1, value), hash(2, value))
}

fn hash(seed: u8, value: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = KEYS.build_hasher();
    seed.hash(&mut hasher);
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(scope: Scope, line: &str) -> DoneItems {
        let mut known = DoneItems::default();
        known.add(scope, &line::read_item(line.as_bytes()).unwrap());
        known
    }

    #[test]
    fn an_item_is_known_by_source_destination_state_and_size() {
        let line = r#"{"kind":"item","op":"upload","source":"d/a","destination":"s3://b/a","key":"a","size":5,"state":"ETag x","source_size":5,"etag":"made","attempts":1,"seconds":0.1,"outcome":"done"}"#;
        let known = known(None, line);
        let to = Some("s3://b/a");
        let has_done = |source, to, state, size| known.has_done(None, (source, to), (state, size));
        assert!(known.has(None, "d/a") && has_done("d/a", to, "ETag x", 5));
        assert!(!has_done("d/a", to, "ETag y", 5) && !has_done("d/a", to, "ETag x", 6));
        assert!(!has_done("d/a", Some("s3://b/b"), "ETag x", 5) && !known.has(None, "d/b"));
        let made = |etag: &str| {
            let version = Version::ETag(etag.to_owned());
            known.has_made(None, ("d/a", to), ("ETag x", 5), &version)
        };
        assert!(made("made") && !made("other"));
    }

    #[test]
    fn what_a_command_has_done_no_other_has() {
        let line = r#"{"kind":"item","command":1,"op":"upload","source":"a","size":5,"source_size":5,"state":"s","outcome":"done"}"#;
        let (one, other) = (Some(key("cp a gs://b")), Some(key("cp a gs://c")));
        let known = known(one, line);
        assert!(known.has(one, "a") && known.has_done(one, ("a", None), ("s", 5)));
        assert!(!known.has(other, "a") && !known.has(None, "a"));
    }

    #[test]
    fn what_failed_or_was_skipped_is_not_done() {
        for outcome in ["failed", "skipped"] {
            let line = format!(
                r#"{{"kind":"item","op":"upload","source":"a","size":5,"source_size":5,"outcome":"{outcome}"}}"#
            );
            assert!(!known(None, &line).has(None, "a"));
        }
    }
}
