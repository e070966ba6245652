//! The outcomes of commands in earlier runs, as a shared manifest records them.

use std::collections::HashMap;

use super::known::{Scope, TextHash, key};
use super::line::{Command, DONE, PastItem};

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
