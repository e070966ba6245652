//! Metadata of objects, trees, and several commands at once.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::{Actor, BUCKET, NAMES, Outcome, SIZE_STEP, SMALL_SIZES, stored};
use crate::clients::{COLOUR, Command};
use crate::model::{Content, somethings};

/// Keys of the concurrent commands. Each key belongs to one command.
const COPIED: [&str; 2] = ["run/copied-0", "run/copied-1"];
const MOVED: &str = "run/moved";
const PUT: &str = "run/put";
const REMOVED: &str = "run/removed";
const DESCRIBED: &str = "run/described";

impl Actor<'_> {
    /// Sets an object's colour. Its bytes must not change.
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

    /// Runs several commands concurrently. Each must have the same effect as if it ran alone.
    pub(super) fn run(&mut self, what: &str) -> Outcome {
        let [put, removed, described, moved] = [PUT, REMOVED, DESCRIBED, MOVED].map(|name| self.named(name));
        let turn = self.random.below(COPIED.len());
        // In each run, one of these keys is the destination of a copy, and the other is the source of a move.
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

    /// Records a copy of an existing object.
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

    /// Returns an object's colour in the store.
    fn colour(&self, key: &str) -> Option<String> {
        self.server.store().object(BUCKET, key)?.attributes.metadata.get(COLOUR).cloned()
    }

    /// Panics unless an object has one of these colours and possible bytes.
    fn is_coloured(&self, what: &str, key: &str, allowed: &[Option<String>]) {
        let colour = self.colour(key);
        assert!(allowed.contains(&colour), "{what}: {key} is {colour:?} instead of one of {allowed:?}");
        self.model.allows(what, key, stored(self.server.store(), key).as_deref());
    }
}

/// Names in trees. Some siblings of a folder sort before the folder's content, and others after it.
const TREE: [&str; 9] = ["a-b", "a/b", "a/c/d", "a0", "b/x/y", "b/z", "c", "é/ü", "z"];

impl Actor<'_> {
    /// Returns some names of a tree, with contents.
    fn leaves(&mut self) -> BTreeMap<&'static str, Content> {
        let mut leaves = BTreeMap::new();
        for name in TREE {
            if self.random.below(3) > 0 {
                leaves.insert(name, self.small());
            }
        }
        leaves
    }

    pub(super) fn upload_tree(&mut self) -> Outcome {
        let leaves = self.leaves();
        if leaves.is_empty() {
            return Outcome::Idle;
        }
        clear(&self.folder.join("up"));
        for (name, content) in &leaves {
            self.file(&format!("up/{name}"), *content);
        }
        let outcome = self.client.upload_tree(&self.folder.join("up"), &self.named("tree/"));
        for (name, content) in leaves {
            self.written(&self.named(&format!("tree/{name}")), Some(content), outcome.clone());
        }
        outcome.into()
    }

    pub(super) fn download_tree(&mut self, what: &str) -> Outcome {
        let prefix = self.named("tree/");
        if !self.model.holds_something(&prefix) {
            return Outcome::Idle;
        }
        let folder = self.folder.join("down");
        let _ = fs::remove_dir_all(&folder);
        let outcome = self.client.download_tree(&prefix, &folder);
        let came = files(&folder, &prefix);
        match outcome {
            Ok(()) => self.model.allows_all(what, &prefix, &came),
            // Each file that arrived is complete.
            Err(_) => came.iter().for_each(|(key, bytes)| self.model.allows(what, key, Some(bytes))),
        }
        outcome.into()
    }

    /// Changes some files of a folder, and syncs it to the store.
    pub(super) fn sync_up(&mut self) -> Outcome {
        let (folder, prefix) = (self.folder.join("sync-up"), self.named("sync/"));
        for (name, content) in self.leaves() {
            match self.random.below(3) {
                0 => drop(fs::remove_file(folder.join(name))),
                _ => drop(self.file(&format!("sync-up/{name}"), content)),
            }
        }
        let source = files(&folder, &prefix);
        let outcome = self.client.sync_up(&folder, &prefix);
        let now = |key: &str| source.get(key).map(|bytes| self.model_of(key, bytes));
        let all: Vec<String> = self.model.below(&prefix).into_iter().chain(source.keys().cloned()).collect();
        let left: Vec<_> = all.iter().map(|key| (key.clone(), now(key))).collect();
        for (key, content) in left {
            self.written(&key, content, outcome.clone());
        }
        outcome.into()
    }

    /// Compares the synced prefix with its folder.
    pub(super) fn verify(&mut self, what: &str) -> Outcome {
        let (folder, prefix) = (self.folder.join("sync-up"), self.named("sync/"));
        if !self.model.holds_something(&prefix) {
            return Outcome::Idle;
        }
        let there = files(&folder, &prefix).into_iter().map(|(key, bytes)| (key, bytes.len())).collect();
        let Ok(differ) = self.client.verify(&folder, &prefix) else { return Outcome::Failed };
        self.model.allows_differences(what, &prefix, &there, &differ);
        Outcome::Done
    }

    /// Returns the recorded content that has these bytes.
    pub(super) fn model_of(&self, key: &str, bytes: &[u8]) -> Content {
        // The sizes of recent contents are unique.
        let made = (1..=self.made).rev().take(SMALL_SIZES);
        let mut made = made
            .map(|n| Content::new((self.number as u64) << 48 | n as u64, (n - 1) * SIZE_STEP % SMALL_SIZES));
        made.find(|content| content.is(bytes)).unwrap_or_else(|| panic!("{key}: no client wrote these bytes"))
    }

    pub(super) fn sync_down(&mut self, what: &str) -> Outcome {
        let (folder, prefix) = (self.folder.join("sync-down"), self.named("sync/"));
        if !self.model.holds_something(&prefix) {
            return Outcome::Idle;
        }
        let before = files(&folder, &prefix);
        let outcome = self.client.sync_down(&prefix, &folder);
        let now = files(&folder, &prefix);
        if outcome.is_ok() {
            self.model.allows_all(what, &prefix, &now);
            return Outcome::Done;
        }
        // Each file is old or new.
        for (key, bytes) in now.iter().filter(|(key, bytes)| before.get(*key) != Some(bytes)) {
            self.model.allows(what, key, Some(bytes));
        }
        Outcome::Failed
    }
}

fn clear(folder: &Path) {
    // The folder may not exist yet.
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).expect("made");
}

/// Returns all files below a folder by their keys, hidden ones too.
fn files(folder: &Path, prefix: &str) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).into_iter().flatten().map(|entry| entry.expect("an entry")) {
        let name = format!("{prefix}{}", entry.file_name().to_str().expect("a name of letters"));
        match entry.path().is_dir() {
            true => found.extend(files(&entry.path(), &format!("{name}/"))),
            false => drop(found.insert(name, fs::read(entry.path()).expect("read"))),
        }
    }
    found
}
