//! Colours of objects, and several commands at once.

use super::{Actor, BUCKET, NAMES, Outcome, stored};
use crate::clients::{COLOUR, Command};
use crate::model::somethings;

/// What commands are about that are carried out at once: each key is one command's.
const COPIED: [&str; 2] = ["run/copied-0", "run/copied-1"];
const MOVED: &str = "run/moved";
const PUT: &str = "run/put";
const REMOVED: &str = "run/removed";
const DESCRIBED: &str = "run/described";

impl Actor<'_> {
    /// Describes an object, whose bytes stay.
    pub(super) fn set_colour(&mut self, what: &str, key: &str) -> Outcome {
        let (before, colour) = (self.colour(key), self.new_colour());
        let outcome = self.client.set_colour(key, &colour);
        match outcome {
            Ok(true) => self.is_coloured(what, key, &[Some(colour)]),
            Ok(false) => self.model.allows(what, key, None),
            Err(_) => self.is_coloured(what, key, &[Some(colour), before]),
        }
        outcome.map(drop).into()
    }

    /// Several commands side by side, of which each does what it does alone.
    pub(super) fn run(&mut self, what: &str) -> Outcome {
        let [put, removed, described, moved] = [PUT, REMOVED, DESCRIBED, MOVED].map(|name| self.named(name));
        let turn = self.random.below(COPIED.len());
        // What is copied in one run is moved in another.
        let [copied, source] = [turn, 1 - turn].map(|turn| self.named(COPIED[turn]));
        let mut commands = vec![self.put_of(&put)];
        commands.push(match self.is_there(&removed) {
            true => Command::Remove(removed),
            false => self.put_of(&removed),
        });
        commands.push(match self.is_there(&described) {
            true => Command::Describe(described.clone(), self.new_colour()),
            false => self.put_of(&described),
        });
        let there: Vec<_> =
            NAMES.iter().map(|name| self.named(name)).filter(|key| self.is_there(key)).collect();
        if !there.is_empty() {
            commands.push(Command::Copy(self.random.one_of(&there), copied));
        }
        if self.is_there(&source) {
            commands.push(Command::Move(source, moved));
        }
        let colour = self.colour(&described);
        let outcome = self.client.run_all(&commands);
        for command in commands {
            match command {
                Command::Put(file, key) => {
                    let bytes = std::fs::read(file).expect("the file is there");
                    let content = self.model_of(&key, &bytes);
                    self.written(&key, Some(content), outcome.clone());
                }
                Command::Remove(key) => drop(self.written(&key, None, outcome.clone())),
                Command::Copy(from, to) => self.came(&from, &to, outcome.is_ok()),
                Command::Move(from, to) => {
                    let source = self.model.possible(&from);
                    self.came(&from, &to, outcome.is_ok());
                    self.written(&from, None, outcome.clone());
                    self.is_kept(what, &source, [&from, &to]);
                }
                Command::Describe(key, new) => {
                    let old = outcome.as_ref().err().map(|_| colour.clone());
                    let allowed: Vec<_> = [Some(new)].into_iter().chain(old).collect();
                    self.is_coloured(what, &key, &allowed);
                }
            }
        }
        outcome.into()
    }

    fn put_of(&mut self, key: &str) -> Command {
        let content = self.small();
        Command::Put(self.file(key, content), key.to_owned())
    }

    fn is_there(&self, key: &str) -> bool {
        !self.model.possible(key).contains(&None)
    }

    /// Notes a copy of what is there.
    fn came(&mut self, from: &str, to: &str, is_done: bool) {
        let source = somethings(&self.model.possible(from));
        match is_done {
            true => self.model.is(to, source),
            false => self.model.may_be(to, source),
        }
    }

    fn new_colour(&mut self) -> String {
        format!("{:x}", self.random.below(1 << 24))
    }

    /// The colour that an object has in the store.
    fn colour(&self, key: &str) -> Option<String> {
        self.server.store().object(BUCKET, key)?.attributes.metadata.get(COLOUR).cloned()
    }

    /// Panics unless an object has one of these colours, and the bytes that it may have.
    fn is_coloured(&self, what: &str, key: &str, allowed: &[Option<String>]) {
        let colour = self.colour(key);
        assert!(allowed.contains(&colour), "{what}: {key} is {colour:?}, and what it may be is {allowed:?}");
        self.model.allows(what, key, stored(self.server.store(), key).as_deref());
    }
}
