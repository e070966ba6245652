//! What earlier runs have done, in a few dozen bytes an item.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use laneway_store::Version;

use super::line;

/// Items that were done, by their sources. Of texts their hashes are held: of the sources 128 bits, so that no two of any number of them
/// meet.
#[derive(Default, Debug)]
pub(crate) struct Known(HashMap<(u64, u64), Done>);

#[derive(Clone, Copy, Debug)]
struct Done {
    /// Of destination, the source's state, and its size; `None` where the state wasn't known.
    item: Option<u64>,
    /// Of the version that was made.
    made: Option<u64>,
}

impl Known {
    /// Takes up a line of a manifest.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn read(&mut self, line: &[u8]) -> Result<(), String> {
        let item = line::read_item(line)?;
        if item.outcome != line::DONE {
            return Ok(());
        }
        let destination = item.destination.as_deref();
        let done = Done {
            item: item.state.as_ref().map(|state| hash(0, &(destination, state, item.source_size))),
            made: item.made().map(|made| hash(0, &made)),
        };
        self.0.insert(key(&item.source), done);
        Ok(())
    }

    /// Whether this item was done, with its source in this state.
    pub(crate) fn has_done(&self, source: &str, destination: Option<&str>, state: &str, size: u64) -> bool {
        let done = self.0.get(&key(source)).and_then(|done| done.item);
        done == Some(hash(0, &(destination, state, size)))
    }

    /// The same, where the destination still is what was made.
    pub(crate) fn has_made(
        &self,
        (source, destination): (&str, Option<&str>),
        (state, size): (&str, u64),
        version: &Version,
    ) -> bool {
        let made = self.0.get(&key(source)).and_then(|done| done.made);
        made == Some(hash(0, &line::of_version(version))) && self.has_done(source, destination, state, size)
    }

    /// Whether something was done with this source.
    pub(crate) fn has(&self, source: &str) -> bool {
        self.0.contains_key(&key(source))
    }
}

fn key(source: &str) -> (u64, u64) {
    (hash(1, &source), hash(2, &source))
}

fn hash(seed: u8, value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    seed.hash(&mut hasher);
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_known_by_source_destination_state_and_size() {
        let mut known = Known::default();
        let line = br#"{"kind":"item","op":"upload","source":"d/a","destination":"s3://b/a","key":"a","size":5,"state":"ETag x","source_size":5,"etag":"made","attempts":1,"seconds":0.1,"outcome":"done"}"#;
        known.read(line).unwrap();
        let to = Some("s3://b/a");
        assert!(known.has("d/a") && known.has_done("d/a", to, "ETag x", 5));
        assert!(!known.has_done("d/a", to, "ETag y", 5) && !known.has_done("d/a", to, "ETag x", 6));
        assert!(!known.has_done("d/a", Some("s3://b/b"), "ETag x", 5) && !known.has("d/b"));
        let made = |etag: &str| {
            let version = Version::ETag(etag.to_owned());
            known.has_made(("d/a", to), ("ETag x", 5), &version)
        };
        assert!(made("made") && !made("other"));
    }

    #[test]
    fn what_failed_or_was_skipped_is_not_done() {
        let mut known = Known::default();
        for outcome in ["failed", "skipped"] {
            let line = format!(
                r#"{{"kind":"item","op":"upload","source":"a","size":5,"source_size":5,"outcome":"{outcome}"}}"#
            );
            known.read(line.as_bytes()).unwrap();
        }
        assert!(!known.has("a"));
    }
}
