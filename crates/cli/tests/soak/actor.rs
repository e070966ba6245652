//! A client at work. No other client writes to its part of the bucket.

mod commands;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::{fmt, fs};

use laneway_server::{Objects, Server};
use laneway_testkit::Endpoint;

use crate::clients::{Client, Failure};
use crate::model::{Content, Model, Operation, Possible, Random, somethings};
use crate::weather::Log;

const BUCKET: &str = Endpoint::BUCKET;
/// Top-level names. The `checked` ones are read as whole objects only, because faults may corrupt
/// their bytes.
const NAMES: [&str; 8] =
    ["plain-1", "plain-2", "plain-3", "plain é", "checked-1", "checked-2", "checked-3", "checked%2F+"];
const RANGED: usize = 4;
/// Number of objects in one concurrent upload.
const MANY: usize = 12;
const LARGE: &str = "large";
/// A size that needs several requests, and several slices.
const LARGE_BYTES: usize = 17 << 20;
/// Number of distinct small sizes. After this many contents, the sizes repeat.
const SMALL_SIZES: usize = 60_000;
/// Coprime to `SMALL_SIZES`.
const SIZE_STEP: usize = 613;

pub(crate) struct Actor<'a> {
    client: Box<dyn Client>,
    server: &'a Server,
    number: usize,
    /// The prefix of the actor's keys.
    own: String,
    folder: PathBuf,
    model: Model,
    random: Random,
    /// Number of contents made so far. Each content has a different size, so that no sync mistakes
    /// one for another.
    made: usize,
    counts: BTreeMap<Operation, OutcomeCount>,
    log: Log,
}

/// The outcome of an operation.
enum Outcome {
    Done,
    Failed,
    /// Nothing to do: the operation needs an object that doesn't exist.
    Idle,
}

impl From<Result<(), Failure>> for Outcome {
    fn from(outcome: Result<(), Failure>) -> Self {
        outcome.map_or(Self::Failed, |()| Self::Done)
    }
}

impl<'a> Actor<'a> {
    pub(crate) fn new(
        client: Box<dyn Client>,
        number: usize,
        seed: u64,
        endpoint: &'a Endpoint,
        log: Log,
    ) -> Self {
        let folder = endpoint.folder().join(format!("actor-{number}"));
        for name in ["", "sync-up", "sync-down"] {
            fs::create_dir_all(folder.join(name)).expect("a folder is made");
        }
        Self {
            client,
            server: endpoint.server(),
            number,
            own: format!("actor-{number}/"),
            folder,
            model: Model::default(),
            random: Random::new(seed.wrapping_mul(1000) + number as u64),
            made: 0,
            counts: BTreeMap::new(),
            log,
        }
    }

    /// Works in rounds while `goes_on` allows another one.
    pub(crate) fn work(mut self, goes_on: impl Fn(u64) -> bool) -> ActorOutcome {
        let mut rounds = 0;
        while goes_on(rounds) {
            for op in Operation::round(rounds, &mut self.random) {
                // Sending can't fail, because the receiver lives longer than the actors.
                let _ = self.log.send((self.number, format!("{}: {op:?}", self.client.name())));
                let outcome = self.carry_out(op);
                let count = self.counts.entry(op).or_default();
                match outcome {
                    Outcome::Done => count.done += 1,
                    Outcome::Failed => count.failed += 1,
                    Outcome::Idle => count.idle += 1,
                }
            }
            rounds += 1;
        }
        ActorOutcome { name: self.client.name(), own: self.own, model: self.model, counts: self.counts }
    }

    fn carry_out(&mut self, op: Operation) -> Outcome {
        let what = format!("{}, {op:?}", self.client.name());
        match op {
            Operation::Put => {
                let (key, content) = (self.key(&NAMES), self.small());
                self.put(&key, content)
            }
            Operation::PutLarge => {
                let content = self.content(LARGE_BYTES + self.made * SIZE_STEP % SMALL_SIZES);
                self.put(&self.named(LARGE), content)
            }
            Operation::PutStream => {
                let (key, content) = (self.key(&NAMES[..RANGED]), self.small());
                let outcome = self.client.put_stream(&content.bytes(), &key);
                self.written(&key, Some(content), outcome)
            }
            Operation::PutMany => self.put_many(),
            Operation::Get => {
                let key = self.key(&NAMES);
                self.get(&what, &key)
            }
            Operation::GetFile => {
                let key = self.key(&NAMES);
                self.get_file(&what, &key, "download")
            }
            Operation::GetLarge => self.get_file(&what, &self.named(LARGE), "large-download"),
            Operation::GetRanges => self.get_ranges(&what),
            Operation::List => self.list(&what),
            Operation::Remove => {
                let key = self.key(&NAMES);
                match self.client.remove(&key) {
                    Ok(was_there) => {
                        if !was_there {
                            self.model.allows(&what, &key, None);
                        }
                        self.model.is(&key, [None].into());
                        Outcome::Done
                    }
                    Err(_) => self.written(&key, None, Err(Failure::new())),
                }
            }
            Operation::RemoveTree => self.remove_tree(),
            Operation::Copy | Operation::Move => self.copy(&what, op == Operation::Move),
            Operation::UploadTree => self.upload_tree(),
            Operation::DownloadTree => self.download_tree(&what),
            Operation::SyncUp => self.sync_up(),
            Operation::SyncDown => self.sync_down(&what),
            Operation::Verify => self.verify(&what),
            Operation::Du => self.du(&what),
            Operation::SetMeta => {
                let key = self.key(&NAMES);
                self.set_colour(&what, &key)
            }
            Operation::Run => self.run(&what),
        }
    }

    fn named(&self, name: &str) -> String {
        format!("{}{name}", self.own)
    }

    fn key(&mut self, names: &[&str]) -> String {
        let name = self.random.one_of(names);
        self.named(name)
    }

    fn content(&mut self, len: usize) -> Content {
        self.made += 1;
        Content::new((self.number as u64) << 48 | self.made as u64, len)
    }

    fn small(&mut self) -> Content {
        self.content(self.made * SIZE_STEP % SMALL_SIZES)
    }

    /// Writes a file with this content.
    fn file(&self, name: &str, content: Content) -> PathBuf {
        let path = self.folder.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(&path, content.bytes()).expect("written");
        path
    }

    /// Records a write's effect in the model.
    fn written(&mut self, key: &str, content: Option<Content>, outcome: Result<(), Failure>) -> Outcome {
        match &outcome {
            Ok(()) => self.model.is(key, [content].into()),
            Err(_) => self.model.may_be(key, [content]),
        }
        outcome.into()
    }

    fn put(&mut self, key: &str, content: Content) -> Outcome {
        let file = self.file("upload", content);
        let outcome = self.client.put(&file, key);
        self.written(key, Some(content), outcome)
    }

    fn put_many(&mut self) -> Outcome {
        let files: Vec<_> = (0..MANY)
            .map(|n| {
                let content = self.small();
                (self.file(&format!("many-{n}"), content), self.named(&format!("many/{n}")), content)
            })
            .collect();
        let pairs: Vec<_> = files.iter().map(|(file, key, _)| (file.clone(), key.clone())).collect();
        let outcome = self.client.put_many(&pairs);
        for (_, key, content) in files {
            self.written(&key, Some(content), outcome.clone());
        }
        outcome.into()
    }

    fn get(&mut self, what: &str, key: &str) -> Outcome {
        let Ok(came) = self.client.get(key) else { return Outcome::Failed };
        self.model.allows(what, key, came.as_deref());
        Outcome::Done
    }

    fn get_file(&mut self, what: &str, key: &str, name: &str) -> Outcome {
        let file = self.folder.join(name);
        let before = fs::read(&file).ok();
        let outcome = self.client.get_file(key, &file);
        let now = fs::read(&file).ok();
        match outcome {
            Ok(true) => self.model.allows(what, key, now.as_deref()),
            Ok(false) => self.model.allows(what, key, None),
            Err(_) => {}
        }
        if !matches!(outcome, Ok(true)) {
            assert!(now == before, "{what}: {key} failed, but its destination has changed");
        }
        outcome.map(drop).into()
    }

    fn get_ranges(&mut self, what: &str) -> Outcome {
        // Keys that certainly exist, with their minimal size.
        let long = |key: &String| {
            let possible = self.model.possible(key);
            let size = possible.iter().map(|content| content.map_or(0, |content| content.len)).min();
            Some((key.clone(), size.filter(|size| *size > 1)?))
        };
        let there: Vec<_> =
            NAMES[..RANGED].iter().map(|name| self.named(name)).filter_map(|key| long(&key)).collect();
        if there.is_empty() {
            return Outcome::Idle;
        }
        let (key, size) = self.random.one_of(&there);
        let possible = self.model.possible(&key);
        let ranges: Vec<_> = (0..1 + self.random.below(5))
            .map(|_| {
                let start = self.random.below(size - 1);
                start as u64..(start + 1 + self.random.below(size - start)) as u64
            })
            .collect();
        let Ok(came) = self.client.get_ranges(&key, &ranges) else { return Outcome::Failed };
        let cut = |content: &Content| {
            let bytes = content.bytes();
            let cut = ranges.iter().map(|range| &bytes[range.start as usize..range.end as usize]);
            cut.collect::<Vec<_>>().concat()
        };
        let is_so = possible.iter().flatten().any(|content| came.as_ref() == Some(&cut(content)));
        assert!(
            is_so,
            "{what}: {key} {ranges:?} gave {:?} bytes of {possible:?}",
            came.map(|bytes| bytes.len())
        );
        Outcome::Done
    }

    fn list(&mut self, what: &str) -> Outcome {
        let own = self.own.clone();
        if !self.model.holds_something(&own) {
            return Outcome::Idle;
        }
        let Ok(listed) = self.client.list(&own) else { return Outcome::Failed };
        self.model.allows_sizes(what, &own, &listed);
        Outcome::Done
    }

    fn du(&mut self, what: &str) -> Outcome {
        let own = self.own.clone();
        if !self.model.holds_something(&own) {
            return Outcome::Idle;
        }
        let Ok((objects, bytes)) = self.client.du(&own) else { return Outcome::Failed };
        self.model.allows_sums(what, &own, objects, bytes);
        Outcome::Done
    }

    fn remove_tree(&mut self) -> Outcome {
        let tree = self.random.one_of(&["many/", "tree/", "sync/"]);
        let prefix = self.named(tree);
        if !self.model.holds_something(&prefix) {
            return Outcome::Idle;
        }
        let outcome = self.client.remove_tree(&prefix);
        for key in self.model.below(&prefix) {
            self.written(&key, None, outcome.clone());
        }
        outcome.into()
    }

    fn copy(&mut self, what: &str, moves: bool) -> Outcome {
        let from = self.random.below(NAMES.len());
        let to = (from + 1 + self.random.below(NAMES.len() - 1)) % NAMES.len();
        let (from, to) = (self.named(NAMES[from]), self.named(NAMES[to]));
        let (source, before) = (self.model.possible(&from), self.model.possible(&to));
        let outcome = match moves {
            true => self.client.rename(&from, &to),
            false => self.client.copy(&from, &to),
        };
        match outcome {
            Ok(true) => {
                self.model.is(&to, somethings(&source));
                if moves {
                    self.model.is(&from, [None].into());
                }
                Outcome::Done
            }
            Ok(false) => {
                assert!(source.contains(&None), "{what}: {from} is reported as missing: {source:?}");
                Outcome::Done
            }
            Err(_) => {
                self.model.is(&to, before.union(&somethings(&source)).copied().collect::<Possible>());
                if moves {
                    self.model.may_be(&from, [None]);
                    self.is_kept(what, &source, [&from, &to]);
                }
                Outcome::Failed
            }
        }
    }

    /// Panics if the object of a failed move is neither at its source nor at its destination.
    fn is_kept(&self, what: &str, source: &Possible, ends: [&str; 2]) {
        let only = source.iter().next().filter(|_| source.len() == 1);
        let Some(Some(content)) = only else { return };
        let is_there =
            ends.iter().any(|key| stored(self.server.store(), key).is_some_and(|bytes| content.is(&bytes)));
        assert!(is_there, "{what}: the object is at neither of {ends:?}");
    }
}

fn stored(store: &Objects, key: &str) -> Option<Vec<u8>> {
    store.object(BUCKET, key)?;
    store.read(BUCKET, key).ok()
}

/// Outcomes of one kind of operation.
#[derive(Clone, Copy, Default, Debug)]
struct OutcomeCount {
    done: u64,
    failed: u64,
    /// Skipped, because the operation needs an object that doesn't exist.
    idle: u64,
}

/// An actor's result.
pub(crate) struct ActorOutcome {
    name: String,
    own: String,
    model: Model,
    counts: BTreeMap<Operation, OutcomeCount>,
}

impl ActorOutcome {
    /// Panics unless the store's content is possible and more operations succeeded than failed.
    pub(crate) fn check(&self, store: &Objects) {
        let keys = store.keys(BUCKET).into_iter().filter(|key| key.starts_with(&self.own));
        let held = keys.map(|key| (key.clone(), stored(store, &key).expect("it is there"))).collect();
        self.model.allows_all(&self.name, &self.own, &held);
        let sum = |of: fn(&OutcomeCount) -> u64| self.counts.values().map(of).sum::<u64>();
        assert!(sum(|count| count.done) > sum(|count| count.failed), "{self}");
    }
}

impl fmt::Display for ActorOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.name)?;
        for (op, OutcomeCount { done, failed, idle }) in &self.counts {
            write!(f, " {op:?} {done}")?;
            if *failed > 0 {
                write!(f, " (failed {failed})")?;
            }
            if *idle > 0 {
                write!(f, " (idle {idle})")?;
            }
        }
        Ok(())
    }
}
