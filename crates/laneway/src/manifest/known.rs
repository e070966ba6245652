//! The items and commands that earlier runs have done. An item takes a few dozen bytes.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash, Hasher as _, RandomState};
use std::sync::LazyLock;

use laneway_store::Version;

use super::line::{self, Command, DONE, PastItem};

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

/// The commands of earlier runs. Each command is identified by the hash of its line's text.
#[derive(Default, Debug)]
pub(super) struct Commands {
    /// For each line number, the command that last had this number. A command's number may differ between
    /// two runs, because the user adds and removes lines.
    numbers: HashMap<u64, TextHash>,
    /// For each command, the number of earlier successes, minus those that commands of this run have used up.
    done: HashMap<TextHash, u32>,
}

impl Commands {
    /// Adds a command from its line in a manifest.
    ///
    /// # Errors
    /// A message that says what is wrong with the line.
    pub(super) fn add(&mut self, command: &Command) -> Result<(), String> {
        let text =
            command.text().ok_or("this line of the manifest is broken (its `bytes` aren't hexadecimal)")?;
        let at = key(&text[..]);
        self.numbers.insert(command.number, at);
        if command.outcome == DONE {
            *self.done.entry(at).or_default() += 1;
        }
        Ok(())
    }

    /// Returns the command that an item belongs to.
    ///
    /// # Errors
    /// If no earlier line of the manifest begins a command with this number.
    pub(super) fn scope_of(&self, item: &PastItem) -> Result<Scope, String> {
        let at = item.command.and_then(|number| self.numbers.get(&number)).copied();
        at.map(Some).ok_or_else(|| {
            "this line of the manifest is broken (no earlier line begins its command)".to_owned()
        })
    }

    /// Returns whether an earlier run has done a command, and uses up one success. If several commands
    /// of this run have the same text, each earlier success counts for only one of them.
    pub(super) fn takes(&mut self, at: TextHash) -> bool {
        match self.done.get_mut(&at) {
            Some(count) if *count > 0 => {
                *count -= 1;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::line::read_item;

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

    #[test]
    fn a_line_counts_as_done_as_often_as_it_was() {
        let mut commands = Commands::default();
        let lines: [(&[u8], bool); 4] =
            [(b"rm a", true), (b"rm a", true), (b"rm b", false), (b"rm \xff", true)];
        for (number, (line, is_done)) in (1..).zip(lines) {
            commands.add(&Command::begun(number, line)).unwrap();
            commands.add(&Command::ended(number, line, is_done, 0.5)).unwrap();
        }
        let mut takes = |line: &[u8]| commands.takes(key(line));
        assert!(takes(b"rm a") && takes(b"rm a") && !takes(b"rm a"));
        assert!(!takes(b"rm b") && takes(b"rm \xff") && !takes(b"rm \xfe"));
    }

    #[test]
    fn an_item_is_that_of_the_line_which_its_number_stood_for_last() {
        let mut commands = Commands::default();
        let item = read_item(
            br#"{"kind":"item","command":1,"op":"remove","source":"gs://b/a","size":0,"source_size":0,"outcome":"done"}"#,
        );
        let item = item.unwrap();
        assert!(commands.scope_of(&item).unwrap_err().contains("no earlier line begins"));
        for line in [b"rm a", b"rm b"] {
            commands.add(&Command::begun(1, line)).unwrap();
            assert_eq!(commands.scope_of(&item), Ok(Some(key(&line[..]))));
        }
    }
}
