//! Removes items that the source doesn't have.

use std::sync::Arc;

use laneway_lanes::attempts::counted;
use laneway_store::{Deletion, Store};

use super::removals::{Removal, Removals};
use crate::event::Verified;
use crate::job::pump::{ITEM_COST, Units};
use crate::job::running::{JobState, ResultObject, TransferOutcome};
use crate::listing::folder_prefix;
use crate::local::folder::Folder;
use crate::transfer::remove::{self, KEY_COST};
use crate::{Error, Location, Op, SyncRequest};

/// The number of files that a file thread removes in one task.
const FILES_AT_ONCE: usize = 256;

/// Starts all removals. In a dry run, only reports them.
///
/// # Errors
/// If the list of removals can't be read, or the store can't be used.
pub(super) async fn all(
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
            Self::Folder(folder) => files(&job, folder, some, dry_run).await,
        }
    }
}

async fn files(job: &JobState, folder: Arc<Folder>, some: Vec<Removal>, dry_run: bool) {
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
