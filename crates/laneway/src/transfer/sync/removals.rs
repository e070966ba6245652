//! Removes the items at the destination that the source doesn't have. Removals wait until every copy is done,
//! some in memory and the rest in a temporary file.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, Write};
use std::sync::Arc;

use laneway_lanes::attempts::counted;
use laneway_store::{Deletion, Store, Version};
use serde::{Deserialize, Serialize};

use crate::event::Verified;
use crate::job::pump::{ITEM_COST, Units};
use crate::job::running::{JobState, ResultObject, TransferOutcome};
use crate::listing::folder_prefix;
use crate::local::folder::Folder;
use crate::transfer::remove::{self, KEY_COST};
use crate::{Error, Location, Op, SyncRequest};

/// The maximum number of removals in memory, which takes about 10 MiB.
const MEMORY_MAX: usize = 1 << 16;

#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Removal {
    /// The path relative to the destination's folder or prefix.
    pub(super) name: String,
    pub(super) size: u64,
    pub(super) version: Option<Version>,
}

/// The names to remove, in the order in which they were added.
#[derive(Debug)]
pub(super) struct Removals {
    memory: Vec<Removal>,
    memory_max: usize,
    spool: Option<File>,
    pub(super) count: u64,
    pub(super) bytes: u64,
}

impl Default for Removals {
    fn default() -> Self {
        Self { memory: Vec::new(), memory_max: MEMORY_MAX, spool: None, count: 0, bytes: 0 }
    }
}

impl Removals {
    /// Adds a removal. Blocks now and then, to write many removals to a temporary file.
    ///
    /// # Errors
    /// The file system's error.
    pub(super) fn add(&mut self, removal: Removal) -> io::Result<()> {
        self.count += 1;
        self.bytes += removal.size;
        self.memory.push(removal);
        if self.memory.len() < self.memory_max {
            return Ok(());
        }
        let mut lines = Vec::new();
        for removal in self.memory.drain(..) {
            serde_json::to_writer(&mut lines, &removal)?;
            lines.push(b'\n');
        }
        let spool = match self.spool.take() {
            Some(file) => file,
            None => tempfile::tempfile()?,
        };
        self.spool.insert(spool).write_all(&lines)
    }

    /// Keeps only the removals that `keeps` accepts.
    ///
    /// # Errors
    /// The file system's error.
    pub(super) fn keep(&mut self, keeps: impl Fn(&str) -> bool) -> io::Result<()> {
        let memory_max = self.memory_max;
        let mut reading = std::mem::take(self).read()?;
        self.memory_max = memory_max;
        loop {
            let some = reading.next(MEMORY_MAX)?;
            if some.is_empty() {
                return Ok(());
            }
            some.into_iter()
                .filter(|removal| keeps(&removal.name))
                .try_for_each(|removal| self.add(removal))?;
        }
    }

    /// Begins to read the removals.
    ///
    /// # Errors
    /// The file system's error.
    pub(super) fn read(self) -> io::Result<RemovalReader> {
        let spool = match self.spool {
            Some(mut file) => {
                file.rewind()?;
                Some(BufReader::new(file))
            }
            None => None,
        };
        Ok(RemovalReader { spool, memory: self.memory.into_iter() })
    }
}

/// Reads the removals in their order.
#[derive(Debug)]
pub(super) struct RemovalReader {
    spool: Option<BufReader<File>>,
    memory: std::vec::IntoIter<Removal>,
}

impl RemovalReader {
    /// Returns the next removals, at most `max`. Returns an empty list at the end.
    ///
    /// # Errors
    /// The file system's error.
    pub(super) fn next(&mut self, max: usize) -> io::Result<Vec<Removal>> {
        let mut some = Vec::new();
        while let Some(spool) = self.spool.as_mut().filter(|_| some.len() < max) {
            let mut line = Vec::new();
            match spool.read_until(b'\n', &mut line)? {
                0 => self.spool = None,
                _ => some.push(serde_json::from_slice(&line)?),
            }
        }
        some.extend(self.memory.by_ref().take(max - some.len()));
        Ok(some)
    }
}

/// The number of files that a file thread removes in one task.
const FILES_AT_ONCE: usize = 256;

/// Starts all removals. In a dry run, only reports them.
///
/// # Errors
/// If the list of removals can't be read, or the store can't be used.
pub(super) async fn remove_all(
    job: &Arc<JobState>,
    request: &SyncRequest,
    removals: Removals,
    units: Units,
) -> Result<(), Error> {
    let mut reading = removals.read().map_err(super::spool)?;
    let target = RemovalTarget::of(job, &request.destination)?;
    loop {
        let some = reading.next(target.at_once()).map_err(super::spool)?;
        if some.is_empty() {
            return Ok(());
        }
        let cost = ITEM_COST + some.len() * KEY_COST;
        let run = target.clone().remove(Arc::clone(job), some, request.dry_run);
        // An error here only means that the job was cancelled.
        if units.small(cost, counted(run)).await.is_err() {
            return Ok(());
        }
    }
}

#[derive(Clone)]
enum RemovalTarget {
    Folder(Arc<Folder>),
    Prefix { store: Store, bucket: String, prefix: String },
}

impl RemovalTarget {
    fn of(job: &JobState, destination: &Location) -> Result<Self, Error> {
        Ok(match destination {
            Location::Object { provider, bucket, key } => Self::Prefix {
                store: job.store(*provider)?.clone(),
                bucket: bucket.clone(),
                prefix: folder_prefix(key),
            },
            Location::Local(path) => Self::Folder(Folder::new(path)),
            Location::Version { .. } | Location::Standard => {
                return Err(Error::usage("-", "nothing can be removed from a stream"));
            }
        })
    }

    fn at_once(&self) -> usize {
        match self {
            Self::Folder(_) => FILES_AT_ONCE,
            Self::Prefix { store, .. } => store.delete_many_max(),
        }
    }

    async fn remove(self, job: Arc<JobState>, some: Vec<Removal>, dry_run: bool) {
        match self {
            Self::Prefix { store, bucket, prefix } => {
                let deletion = |removal: Removal| {
                    let version = removal.version.filter(|_| store.capabilities().delete_keeps_condition);
                    (Deletion { version, ..Deletion::any(format!("{prefix}{}", removal.name)) }, removal.size)
                };
                let objects = some.into_iter().map(deletion).collect();
                remove::batch(&job, &store, &bucket, objects, dry_run).await;
            }
            Self::Folder(folder) => remove_files(&job, folder, some, dry_run).await,
        }
    }
}

async fn remove_files(job: &JobState, folder: Arc<Folder>, some: Vec<Removal>, dry_run: bool) {
    let begin = |removal: &Removal| job.begin(Op::Remove, folder.path_of(&removal.name), None);
    let begun: Vec<_> = some.iter().map(|removal| (begin(removal), removal.size)).collect();
    if dry_run {
        for (begun, size) in begun {
            job.planned(begun, size).await;
        }
        return;
    }
    let names: Vec<String> = some.into_iter().map(|removal| removal.name).collect();
    let cancel = job.cancel.clone();
    let remove = move || {
        let one = |name: &String| match cancel.is_set() {
            true => Err(Error::cancelled(folder.path_of(name))),
            false => folder.remove(name, true),
        };
        names.iter().map(one).collect::<Vec<_>>()
    };
    match job.engine.files.run(remove).await {
        Ok(results) => {
            for ((begun, size), result) in begun.into_iter().zip(results) {
                let moved = TransferOutcome {
                    bytes: size,
                    verified: Verified::NotApplicable,
                    atomic: true,
                    made: ResultObject::default(),
                };
                job.end(begun, size, result.map(|()| moved)).await;
            }
        }
        Err(error) => {
            for (begun, size) in begun {
                let error = error.again(&begun.source);
                job.end(begun, size, Err(error)).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_of_them_are_forgotten() {
        let mut removals = Removals { memory_max: 4, ..Removals::default() };
        for i in 0..30 {
            removals.add(Removal { name: i.to_string(), size: 1, version: None }).unwrap();
        }
        removals.keep(|name| name.ends_with('7')).unwrap();
        assert_eq!((removals.count, removals.bytes), (3, 3));
        let names: Vec<_> = removals.read().unwrap().next(9).unwrap().into_iter().map(|r| r.name).collect();
        assert_eq!(names, ["7", "17", "27"]);
    }

    #[test]
    fn however_many_there_are_they_come_back_in_their_order() {
        let removal = |i: u64| Removal {
            name: format!("a\n/{i}"),
            size: i,
            version: i.is_multiple_of(2).then_some(Version::Generation(i)),
        };
        for count in [0, 1, 9, 10, 11, 35] {
            let mut removals = Removals { memory_max: 10, ..Removals::default() };
            (0..count).for_each(|i| removals.add(removal(i)).unwrap());
            assert_eq!((removals.count, removals.bytes), (count, (0..count).sum()));
            assert!(removals.memory.len() < 10 && removals.spool.is_some() == (count >= 10));
            let mut reading = removals.read().unwrap();
            let mut found = Vec::new();
            loop {
                let some = reading.next(4).unwrap();
                if some.is_empty() {
                    break;
                }
                assert!(some.len() <= 4);
                found.extend(some);
            }
            assert_eq!(found, (0..count).map(removal).collect::<Vec<_>>(), "{count}");
        }
    }
}
