//! Uploads, from this machine to a store.

#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod input;
mod journal;
mod large;
mod parts;
mod search;
mod session;
mod small;
mod source;
mod unfinished;
pub(crate) mod verify;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use laneway_store::{ObjectId, Store};

use crate::job::existing;
use crate::job::running::{ActiveItem, JobState, TransferOutcome};
use crate::location::identity::FileIdentity;
use crate::location::url;
use crate::transfer::moved;
use crate::{CopyRequest, Error, Op};

pub(crate) use journal::StoreUpload;
pub(crate) use large::file;
pub(crate) use parts::{CONFLICTS_MAX, Input, PartsUpload, PutOutcome, ReadyPart, wanted};
pub(crate) use search::{UploadSearch, WaitingUploads, one};
pub(crate) use source::{hashed as hashed_file, hashed_parts_while, hashed_while as hashed_file_while};
pub(crate) use unfinished::begun;
pub(crate) use verify::{ExpectedChecksum, put as put_verified, verify};

#[derive(Debug)]
pub(crate) struct UploadItem {
    path: PathBuf,
    size: u64,
    /// The file's modification time when it was found.
    modified: Option<SystemTime>,
    id: ObjectId,
}

impl UploadItem {
    pub(crate) fn new(path: PathBuf, (size, modified): (u64, Option<SystemTime>), id: ObjectId) -> Self {
        Self { path, size, modified, id }
    }

    pub(crate) fn begin(&self, job: &JobState, store: &Store) -> ActiveItem {
        let source = self.path.display().to_string();
        let state = job.state_of_file(self.modified, self.size);
        ActiveItem { state, ..job.begin(Op::Upload, source, Some(url(store.provider(), &self.id))) }
    }
}

async fn upload_large(job: Arc<JobState>, request: Arc<CopyRequest>, store: Store, item: UploadItem) {
    let begun = item.begin(&job, &store);
    let result = large::upload(&job, &request, &store, &item).await;
    let result = remove_moved(&job, &request, item.path, result).await;
    existing::end(&job, &request, (begun, item.size), result, (&store, &item.id)).await;
}

/// In a move, removes the source file once its copy is verified. A file that has changed since it was copied
/// stays.
async fn remove_moved(
    job: &JobState,
    request: &CopyRequest,
    path: PathBuf,
    result: Result<(TransferOutcome, FileIdentity), Error>,
) -> Result<TransferOutcome, Error> {
    let (moved, copied) = result?;
    if !request.remove_source {
        return Ok(moved);
    }
    if !request.is_enough(moved.verified) {
        return Err(Error::unverified(path.display().to_string()));
    }
    job.engine.files.run(move || moved::remove_file(&path, copied)).await??;
    Ok(moved)
}
