//! Finds uploads that an earlier run left unfinished, and continues or aborts them.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use laneway_store::{Appended, Multipart, ObjectMeta, Part, Resumable, Store};

use super::journal::{JournalContent, StoreUpload, UploadJournal, abandoned};
use super::parts::withdraw;
use crate::Error;
use crate::job::running::JobState;
use crate::plan::parts::{IDLE_MAX, UnfinishedAction, UploadSubject, believed, worth};

/// The maximum number of abandoned uploads that a run aborts. So even a folder full of old journals costs
/// only a few requests.
const ABANDONED_MAX: usize = 16;

/// If a job is cancelled while an upload begins, the maximum time to wait for the upload's name. Without the
/// name, Laneway can't abort the upload.
const BEGIN_GRACE: Duration = Duration::from_secs(5);

/// The journal of an upload, and the upload's state in the store.
pub(crate) struct UnfinishedUpload {
    pub(crate) journal: Arc<UploadJournal>,
    pub(crate) subject: UploadSubject,
    pub(crate) there: Option<UploadState>,
    /// True if a cancelled job leaves the upload in the store, so that a later run can continue it.
    pub(crate) keep_partial: bool,
    /// Bytes that this run didn't send because the store had them.
    resumed: AtomicU64,
}

pub(crate) enum UploadState {
    /// A multipart upload with these parts.
    Parts(Multipart, BTreeMap<u32, Part>),
    /// A session. The store has the object's bytes below this offset.
    Session(Resumable, u64),
    /// The object that a session had completed, although the earlier run got no answer.
    Finished(Box<ObjectMeta>),
}

impl UploadState {
    fn bytes(&self) -> u64 {
        match self {
            Self::Parts(_, parts) => parts.values().map(|part| part.size).sum(),
            Self::Session(_, offset) => *offset,
            Self::Finished(meta) => meta.size,
        }
    }
}

impl UnfinishedUpload {
    /// Empties the journal, and writes the store's name for the new upload to it.
    pub(crate) async fn begun(&self, job: &JobState, upload: StoreUpload) {
        let (journal, subject) = (Arc::clone(&self.journal), self.subject.clone());
        let written = job.engine.files.run(move || journal.begin(&subject, &upload)).await;
        if !matches!(written, Ok(Ok(()))) {
            tracing::debug!("the journal of an upload can't be written, so the upload can't be resumed");
        }
    }

    /// Records a stored part.
    ///
    /// # Errors
    /// If file operations can't run any more.
    pub(crate) async fn sent(&self, job: &JobState, part: Part) -> Result<(), Error> {
        let journal = Arc::clone(&self.journal);
        job.engine.files.run(move || journal.part(&part)).await
    }

    /// Counts bytes that the store has and that need not be sent.
    pub(crate) fn resumed(&self, job: &JobState, bytes: u64) {
        self.resumed.fetch_add(bytes, Ordering::Relaxed);
        job.progress.there(bytes);
    }

    /// Records that all bytes are sent again after all, so no byte counts as resumed.
    pub(crate) fn starts_over(&self, job: &JobState) {
        job.progress.not_there(self.resumed.swap(0, Ordering::Relaxed));
    }

    /// Records that the store has the first `offset` bytes of a session's object.
    pub(crate) fn stands_at(&self, offset: u64) {
        self.journal.stands_at(offset);
    }

    /// Returns how many bytes the store keeps for a later run after this error. A later run can use them only
    /// if the file is unchanged and the upload has the same object and options.
    pub(crate) fn kept_after(&self, error: &Error) -> Option<u64> {
        let is_kept = error.is_passing() || (error.is_cancelled() && self.keep_partial);
        Some(self.journal.kept()).filter(|kept| is_kept && *kept > 0)
    }

    /// Makes the journal invalid, because its upload can't be continued.
    pub(crate) fn void(&self) {
        self.journal.void();
    }

    /// Removes the journal of an upload that has ended.
    pub(crate) async fn forget(&self, job: &JobState) {
        let journal = Arc::clone(&self.journal);
        if let Err(e) = job.engine.files.run(move || journal.remove()).await {
            tracing::debug!(error = %e, "the journal of an upload could not be removed");
        }
    }
}

/// Opens the journal of an upload, and requests the state of the upload that an earlier run left. Returns
/// `None` if there can't be a journal. The upload then runs without a journal.
///
/// # Errors
/// If the store can't be reached to request the upload's state. In this case, no part could be sent either.
pub(crate) async fn take_up(
    job: &JobState,
    store: &Store,
    subject: UploadSubject,
    keep_partial: bool,
) -> Result<Option<UnfinishedUpload>, Error> {
    let Some(folder) = job.engine.upload_journals.clone() else { return Ok(None) };
    if job.engine.is_first_upload(store.provider()) {
        abort_abandoned(job, store, folder.clone()).await?;
    }
    let opened = {
        let subject = subject.clone();
        job.engine.files.run(move || UploadJournal::open(&folder, &subject)).await?
    };
    let Some((journal, left)) = usable(opened) else { return Ok(None) };
    let there = match left {
        Some(left) => there(store, &journal, left, &subject).await?,
        None => None,
    };
    let kept = there.as_ref().map_or(0, UploadState::bytes);
    if there.is_none() {
        journal.void();
    }
    let journal = Arc::new(journal);
    let going_on = Arc::clone(&journal);
    if let Err(e) = job.engine.files.run(move || going_on.go_on(kept)).await? {
        tracing::debug!(error = %e, "the journal of an upload can't be written");
    }
    Ok(Some(UnfinishedUpload { journal, subject, there, keep_partial, resumed: AtomicU64::new(0) }))
}

fn usable<T>(opened: io::Result<Option<T>>) -> Option<T> {
    match opened {
        Ok(Some(opened)) => Some(opened),
        Ok(None) => {
            tracing::debug!(
                "another process has locked the journal of this upload, or a newer version of Laneway wrote it, so the upload can't be resumed"
            );
            None
        }
        Err(e) => {
            tracing::debug!(error = %e, "the journal of this upload can't be opened, so the upload can't be resumed");
            None
        }
    }
}

/// Returns the state of an upload that can be continued. Aborts an upload that can't be continued.
async fn there(
    store: &Store,
    journal: &UploadJournal,
    left: JournalContent,
    subject: &UploadSubject,
) -> Result<Option<UploadState>, Error> {
    match worth(&left.subject, subject, journal.idle()) {
        UnfinishedAction::Nothing => return Ok(None),
        UnfinishedAction::Abort => {
            abort(store, &left.upload).await;
            return Ok(None);
        }
        UnfinishedAction::GoOn => {}
    }
    let asked = match &left.upload {
        StoreUpload::Multipart(upload) => store.list_parts(upload).await.map(|listed| {
            let parts = believed(&left.parts, &listed, subject.file.size, subject.part_len);
            Ok(UploadState::Parts(upload.clone(), parts))
        }),
        StoreUpload::Session(session) => store.resumable_status(session).await.map(|stands| match stands {
            Appended::Continue { next_offset } => Ok(UploadState::Session(session.clone(), next_offset)),
            Appended::Finished(meta) => Err(Some(meta)),
            Appended::Ended => Err(None),
        }),
    };
    match asked {
        Ok(Ok(there)) => Ok(Some(there)),
        // If Laneway requests a session's offset, fake-gcs-server 1.56 completes the object with the bytes
        // that it has. Remove such a partial object.
        Ok(Err(Some(meta))) if meta.size < subject.file.size => {
            withdraw(store, &meta).await;
            Ok(None)
        }
        Ok(Err(Some(meta))) if meta.size == subject.file.size => Ok(Some(UploadState::Finished(meta))),
        // The session has ended. Don't use its object, which may have changed since then.
        Ok(Err(_)) => Ok(None),
        Err(error) if error.is_not_found() => Ok(None),
        // Don't fail if the caller may not list parts, because the caller may still be permitted to send
        // parts.
        Err(error) if !error.is_permission() && Error::is_passing_of(&error) => Err(error.into()),
        Err(error) => {
            tracing::debug!(%error, "an upload of an earlier run can't be continued");
            abort(store, &left.upload).await;
            Ok(None)
        }
    }
}

/// Waits for an upload to begin. If the job is cancelled after the request was sent, the store may have begun
/// an upload whose name hasn't arrived yet. So this waits up to [`BEGIN_GRACE`] for the name, and aborts the
/// upload.
pub(crate) async fn begun<T>(
    job: &JobState,
    store: &Store,
    begin: impl Future<Output = Result<T, laneway_store::Error>>,
    upload: impl FnOnce(T) -> StoreUpload,
) -> Result<Result<T, laneway_store::Error>, Error> {
    let mut begin = std::pin::pin!(begin);
    match job.unless_cancelled(&mut begin).await {
        Err(cancelled) => {
            if let Ok(Ok(begun)) = tokio::time::timeout(BEGIN_GRACE, begin).await {
                abort(store, &upload(begun)).await;
            }
            Err(cancelled)
        }
        begun => begun,
    }
}

/// Aborts an upload, so that nothing of it stays in the store. Returns whether it succeeded.
pub(crate) async fn abort(store: &Store, upload: &StoreUpload) -> bool {
    let aborted = aborted(store, upload).await;
    if let Err(error) = &aborted {
        tracing::warn!(%error, "a failed upload could not be aborted and stays in the store");
    }
    aborted.is_ok()
}

async fn aborted(store: &Store, upload: &StoreUpload) -> Result<(), laneway_store::Error> {
    let aborted = match upload {
        StoreUpload::Multipart(upload) => store.abort(upload).await,
        StoreUpload::Session(session) => store.resumable_cancel(session).await,
    };
    aborted.or_else(|error| if error.is_not_found() { Ok(()) } else { Err(error) })
}

/// Aborts uploads to this store whose journals show that they were abandoned long ago, by any run and for any
/// file.
async fn abort_abandoned(job: &JobState, store: &Store, folder: PathBuf) -> Result<(), Error> {
    let (scheme, endpoint) = (format!("{}://", store.scheme()), store.endpoint());
    let is_ours = move |left: &JournalContent| {
        left.subject.url.starts_with(&scheme) && left.subject.endpoint == endpoint
    };
    let look = move || abandoned(&folder, IDLE_MAX, ABANDONED_MAX, is_ours);
    let found = job.engine.files.run(look).await?;
    let end = |(journal, left): (UploadJournal, Option<JournalContent>)| async move {
        let is_settled = match left {
            Some(left) => is_settled(aborted(store, &left.upload).await),
            None => true,
        };
        if is_settled {
            journal.remove();
        }
    };
    join_all(found.into_iter().map(end)).await;
    Ok(())
}

/// Returns whether the journal of an abandoned upload can be removed. The journal can be removed if the
/// upload is gone, or if the store will always refuse to abort the upload. The refusal is logged once.
fn is_settled(aborted: Result<(), laneway_store::Error>) -> bool {
    match aborted {
        Ok(()) => true,
        Err(error) if error.is_permission() || !Error::is_passing_of(&error) => {
            tracing::warn!(%error, "an abandoned upload stays in the store, which refuses to abort it");
            true
        }
        Err(error) => {
            tracing::warn!(%error, "an abandoned upload can't be aborted now; a later run tries again");
            false
        }
    }
}
