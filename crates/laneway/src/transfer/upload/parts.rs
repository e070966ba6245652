//! Sends an object in parts. Usually this is a multipart upload with parallel parts. Laneway uses a resumable
//! session if the store has no multipart uploads, or if these don't support a requested precondition. A
//! session takes one chunk after the other.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use laneway_lanes::Reservation;
use laneway_store::{
    Body, Checksums, Composite, Condition, Multipart, ObjectId, ObjectMeta, Operation, Part, PartChecksums,
    PartsDigest, PutOptions, Store,
};

use super::journal::StoreUpload;
use super::unfinished::{UnfinishedUpload, UploadState, abort, begun};
use super::verify;
use crate::Error;
use crate::content::checksum::{ChecksumSet, RangeChecksums, composite_crc32c};
use crate::event::Verified;
use crate::job::pump::ready;
use crate::job::running::{JobState, ResultObject, TransferOutcome};
use crate::location::url;
use crate::plan::requests_at_once;

pub(crate) trait Input: Send + Sync {
    /// A part that [`next`](Self::next) returned and that must still be prepared.
    type Begun: Send;

    /// Returns the next part, or `None` at the end. Callers never make two calls at once. All parts but the
    /// last are multiples of 256 KiB, as resumable sessions require, and have at least 5 MiB, as multipart
    /// uploads require.
    fn next(&self) -> impl Future<Output = Result<Option<Self::Begun>, Error>> + Send;

    /// Prepares a part for sending, and computes at least the `wanted` checksums. Several parts may be
    /// prepared at once.
    fn prepare(
        &self,
        begun: Self::Begun,
        wanted: ChecksumSet,
    ) -> impl Future<Output = Result<ReadyPart, Error>> + Send;

    /// Checks, before the upload is completed, that all parts are from the same state of the source. For
    /// example, a file must not have changed. `whole` has the checksums of all bytes.
    fn check(&self, whole: &RangeChecksums) -> impl Future<Output = Result<(), Error>> + Send;

    /// Goes back to the first part. If the source can't be read again, returns false.
    fn rewind(&self) -> bool;

    /// Returns how many parts may be under way at once on this many cores. The default is small, for parts
    /// that hold their bytes in memory.
    fn at_once(&self, cores: usize) -> usize {
        requests_at_once(cores)
    }
}

/// The maximum number of times that an upload starts again because its completion conflicted with another
/// write of the object.
pub(crate) const CONFLICTS_MAX: u32 = 3;

/// The maximum number of times that an upload starts again because the store has lost it. A store can lose an
/// upload because it restarts, or because a lifecycle rule aborts old uploads.
const LOSSES_MAX: u32 = 2;

pub(crate) struct ReadyPart {
    pub(crate) body: Body,
    pub(crate) run: RangeChecksums,
    /// True if the part is known to be the last one. If a stream ends exactly at the end of a part, Laneway
    /// may learn only later that this part was the last one.
    pub(crate) is_last: bool,
    pub(crate) held: Option<Arc<Reservation>>,
}

#[derive(Debug)]
pub(crate) struct PutOutcome {
    pub(crate) moved: TransferOutcome,
    pub(crate) meta: ObjectMeta,
}

/// An object that is uploaded in parts.
pub(crate) struct PartsUpload<'a> {
    pub(crate) job: &'a JobState,
    pub(crate) store: &'a Store,
    pub(crate) id: &'a ObjectId,
    pub(crate) options: &'a PutOptions,
    /// The journal for a later run, with the state that an earlier run left.
    pub(crate) unfinished: Option<&'a UnfinishedUpload>,
    /// The bytes of this upload that the job's progress counts as moved. If the upload starts again, Laneway
    /// subtracts them.
    done: AtomicU64,
}

impl<'a> PartsUpload<'a> {
    pub(crate) fn new(
        job: &'a JobState,
        store: &'a Store,
        id: &'a ObjectId,
        options: &'a PutOptions,
        unfinished: Option<&'a UnfinishedUpload>,
    ) -> Self {
        Self { job, store, id, options, unfinished, done: AtomicU64::new(0) }
    }
}

impl PartsUpload<'_> {
    /// Sends an object, then compares the stored object with the bytes that were sent. `size` is the object's
    /// length in bytes, if it is known.
    ///
    /// # Errors
    /// The store's or the input's error. After an error, nothing of the upload is left in the store, unless
    /// the error says so.
    pub(crate) async fn send<I: Input>(&self, size: Option<u64>, input: &I) -> Result<PutOutcome, Error> {
        let mut sent = match self.unfinished.and_then(|unfinished| unfinished.there.as_ref()) {
            Some(UploadState::Parts(upload, parts)) => self.multipart(upload, parts, input).await,
            Some(UploadState::Session(session, offset)) => self.session(session, *offset, input).await,
            // The caller has compared the finished object with the file, and the two differ. So send the file
            // again.
            Some(UploadState::Finished(_)) | None => self.send_anew(size, input).await,
        };
        let (mut conflicts, mut losses) = (0, 0);
        while let Err(error) = &sent {
            let (count, max) = match begins_anew(error) {
                false => break,
                true if error.is_conflict() => (&mut conflicts, CONFLICTS_MAX),
                true => (&mut losses, LOSSES_MAX),
            };
            *count += 1;
            if *count > max || !input.rewind() {
                break;
            }
            tracing::info!(object = %self.id, %error, "Laneway starts the upload again from its beginning");
            self.job.progress.taken_back(self.done.swap(0, Ordering::Relaxed));
            self.unfinished.inspect(|unfinished| unfinished.starts_over(self.job));
            sent = self.send_anew(size, input).await;
        }
        if let Some(unfinished) = self.unfinished
            && sent.as_ref().is_err_and(begins_anew)
        {
            unfinished.forget(self.job).await;
        }
        sent
    }

    async fn send_anew<I: Input>(&self, size: Option<u64>, input: &I) -> Result<PutOutcome, Error> {
        let is_conditional =
            !self.store.capabilities().multipart_takes_condition && !self.options.condition.is_none();
        if is_conditional || !self.store.supports_multipart() {
            return self.new_session(size, input).await;
        }
        let begun =
            begun(self.job, self.store, self.store.begin(self.id, self.options), StoreUpload::Multipart)
                .await?;
        match begun {
            Ok(upload) => {
                self.begun(StoreUpload::Multipart(upload.clone())).await;
                self.multipart(&upload, &BTreeMap::new(), input).await
            }
            Err(e) if e.is_unsupported() => self.new_session(size, input).await,
            Err(e) => Err(e.into()),
        }
    }

    /// Writes the store's name for the upload to the journal, before any part is sent.
    pub(super) async fn begun(&self, upload: StoreUpload) {
        if let Some(unfinished) = self.unfinished {
            unfinished.begun(self.job, upload).await;
        }
    }

    /// Cleans up after an upload that is complete or failed. Aborts a failed upload, unless a later run can
    /// continue it.
    pub(super) async fn settle<T>(&self, upload: &StoreUpload, result: Result<T, Error>) -> Result<T, Error> {
        let error = match result {
            Ok(done) => {
                if let Some(unfinished) = self.unfinished {
                    unfinished.forget(self.job).await;
                }
                return Ok(done);
            }
            Err(error) => error,
        };
        if begins_anew(&error) {
            abort(self.store, upload).await;
            self.unfinished.inspect(|unfinished| unfinished.void());
            return Err(error);
        }
        if let Some(kept) = self.unfinished.and_then(|unfinished| unfinished.kept_after(&error)) {
            self.job.kept(kept);
            return Err(error.keeping(kept));
        }
        if abort(self.store, upload).await
            && let Some(unfinished) = self.unfinished
        {
            unfinished.forget(self.job).await;
        }
        Err(error)
    }

    async fn multipart<I: Input>(
        &self,
        upload: &Multipart,
        there: &BTreeMap<u32, Part>,
        input: &I,
    ) -> Result<PutOutcome, Error> {
        let result = self.all_parts(upload, there, input).await;
        self.settle(&StoreUpload::Multipart(upload.clone()), result).await
    }

    async fn all_parts<I: Input>(
        &self,
        upload: &Multipart,
        there: &BTreeMap<u32, Part>,
        input: &I,
    ) -> Result<PutOutcome, Error> {
        let at_once = input.at_once(self.job.engine.cores);
        let mut next: Option<BoxFuture<'_, Result<Option<I::Begun>, Error>>> = None;
        let mut running = FuturesUnordered::new();
        let mut parts: Vec<(Part, RangeChecksums)> = Vec::new();
        let (mut number, mut is_ended) = (0, false);
        let mut cancelled = std::pin::pin!(self.job.cancel.wait());
        loop {
            if !is_ended && next.is_none() && running.len() < at_once {
                next = Some(Box::pin(input.next()));
            }
            if next.is_none() && running.is_empty() {
                break;
            }
            tokio::select! {
                biased;
                () = &mut cancelled => return Err(self.cancelled()),
                taken = ready(&mut next), if next.is_some() => {
                    next = None;
                    match taken? {
                        Some(_) if u64::from(number) >= self.store.capabilities().parts.count_max => {
                            return Err(self.wrong("has more parts than a multipart upload may have"));
                        }
                        Some(begun) => {
                            number += 1;
                            running.push(self.part(upload, number, there.get(&number), input, begun));
                        }
                        None => is_ended = true,
                    }
                }
                Some(part) = running.next(), if !running.is_empty() => parts.push(part?),
            }
        }
        drop((next, running));
        parts.sort_by_key(|(part, _)| part.number);
        input.check(&whole(&parts)).await?;
        self.complete(upload, parts).await
    }

    /// Completes the object from its parts, then compares the stored object with them. The parts must be in
    /// the order of their numbers.
    ///
    /// # Errors
    /// The store's error, or an error if the stored object differs.
    pub(crate) async fn complete(
        &self,
        upload: &Multipart,
        parts: Vec<(Part, RangeChecksums)>,
    ) -> Result<PutOutcome, Error> {
        let whole = whole(&parts);
        let crcs: Option<Vec<u32>> = parts.iter().map(|(_, run)| run.crc32c).collect();
        let composite = crcs.map(|crcs| {
            let parts = u32::try_from(crcs.len()).unwrap_or(u32::MAX);
            Composite { digest: PartsDigest::Crc32c(composite_crc32c(crcs)), parts }
        });
        let parts: Vec<Part> = parts.into_iter().map(|(part, _)| part).collect();
        let known = whole.checksums();
        let mut sums = known.clone();
        sums.parts = composite;
        let completed = self.store.complete(upload, &parts, &known, &self.options.condition).await;
        let meta =
            completed.map_err(|error| match error.is_integrity() && self.options.condition.is_none() {
                true => Error::from(error).for_now(),
                false => error.into(),
            })?;
        let mut sent = self.compare(meta, whole.len, &sums).await?;
        sent.moved.verified = verified_by(sent.moved.verified, &parts);
        Ok(sent)
    }

    /// Sends a part. Skips a part that an earlier run has sent, if the file still has the same bytes at the
    /// part's offset.
    async fn part<I: Input>(
        &self,
        upload: &Multipart,
        number: u32,
        there: Option<&Part>,
        input: &I,
        begun: I::Begun,
    ) -> Result<(Part, RangeChecksums), Error> {
        let prepared = input.prepare(begun, wanted(upload)).await?;
        let run = prepared.run;
        let crc32c = run.crc32c.unwrap_or_default();
        let part = match there.filter(|part| (part.size, part.crc32c) == (run.len, Some(crc32c))) {
            Some(part) => {
                self.resumed(run.len);
                part.clone()
            }
            None => {
                let part = self.store.part(upload, number, prepared.body, crc32c).await?;
                if let Some(unfinished) = self.unfinished {
                    unfinished.sent(self.job, part.clone()).await?;
                }
                self.moved(run.len);
                part
            }
        };
        drop(prepared.held);
        Ok((part, run))
    }

    pub(super) fn moved(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
        self.job.progress.moved(bytes);
    }

    /// Counts bytes that an earlier run has sent.
    pub(super) fn resumed(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
        self.unfinished.inspect(|unfinished| unfinished.resumed(self.job, bytes));
    }

    /// Compares the stored object with the bytes that were sent. Removes an object that differs.
    pub(super) async fn compare(
        &self,
        meta: ObjectMeta,
        size: u64,
        sums: &Checksums,
    ) -> Result<PutOutcome, Error> {
        let tells = |meta: &ObjectMeta| {
            let stored = &meta.checksums;
            stored.crc32c.is_some() || stored.parts.is_some() || stored.crc64nvme.is_some()
        };
        let meta = match tells(&meta) {
            true => meta,
            // Not every store returns a checksum when it completes an upload. If there is none, request the
            // object's metadata.
            false => match self.store.head(self.id, meta.version.as_ref()).await {
                // The caller may be permitted to write objects but not to read them. The object then counts
                // as unverified.
                Err(error) if error.is_permission() => meta,
                described => described?,
            },
        };
        match verify(self.store, &meta, size, sums) {
            Ok(verified) => {
                let atomic = self.store.keeps(Operation::Complete, &self.options.condition);
                Ok(PutOutcome {
                    moved: TransferOutcome { bytes: size, verified, atomic, made: ResultObject::of(&meta) },
                    meta,
                })
            }
            Err(error) => {
                let is_gone = withdraw(self.store, &meta).await;
                // If there is a condition and the wrong object could not be removed, don't try again. The
                // wrong object would make the condition fail.
                let may_try_again = is_gone || self.options.condition.is_none();
                Err(if may_try_again { error } else { error.for_good() })
            }
        }
    }

    pub(super) fn wrong(&self, what: &str) -> Error {
        Error::integrity(url(self.store.provider(), self.id), format!("the upload {what}"))
    }

    fn cancelled(&self) -> Error {
        Error::cancelled(url(self.store.provider(), self.id))
    }
}

/// Returns whether this error means that the upload is lost, so that a new upload can succeed.
fn begins_anew(error: &Error) -> bool {
    error.is_conflict() || error.is_upload_gone()
}

/// Returns the kinds of checksums to compute for each part. CRC32C is always needed, because a later run
/// recognises a part by it. If the parts are sent without checksums, the store may report only a CRC64/NVME
/// of the whole object, as S3 does.
pub(crate) fn wanted(upload: &Multipart) -> ChecksumSet {
    ChecksumSet { crc64nvme: upload.checksums == PartChecksums::None, ..ChecksumSet::CRC32C }
}

/// Returns the checksums of all parts together.
fn whole(parts: &[(Part, RangeChecksums)]) -> RangeChecksums {
    parts.iter().fold(RangeChecksums::of(b"", ChecksumSet::CRC32C), |whole, (_, run)| whole.then(*run))
}

/// Returns how an object of these parts was verified. If the store reports no checksum of the whole object,
/// the object counts as verified by MD5, provided that all its parts have MD5s. The store has compared each
/// MD5 when the part was sent, and the completion listed them all.
fn verified_by(whole: Verified, parts: &[Part]) -> Verified {
    match whole {
        Verified::Unverified if !parts.is_empty() && parts.iter().all(|part| part.md5.is_some()) => {
            Verified::Md5
        }
        whole => whole,
    }
}

/// Removes an object that turned out to be wrong, unless another writer has replaced it. Returns whether the
/// wrong object is gone.
pub(super) async fn withdraw(store: &Store, meta: &ObjectMeta) -> bool {
    let condition = match (&meta.version, store.capabilities().delete_keeps_condition) {
        (Some(version), true) => Condition::Matches(version.clone()),
        // Without a condition, the delete could remove another writer's object.
        _ => return false,
    };
    let removed = store.delete(&meta.id, &condition).await;
    if let Err(e) = &removed {
        tracing::warn!(error = %e, "an object with the wrong checksum could not be removed");
    }
    removed.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_verify_a_whole_of_which_nothing_is_told_where_each_was_compared() {
        let part = |number, md5| Part { number, etag: String::new(), size: 1, crc32c: Some(1), md5 };
        let (compared, not) = (part(1, Some([1; 16])), part(2, None));
        assert_eq!(verified_by(Verified::Unverified, std::slice::from_ref(&compared)), Verified::Md5);
        assert_eq!(verified_by(Verified::Unverified, &[compared.clone(), not]), Verified::Unverified);
        assert_eq!(verified_by(Verified::Unverified, &[]), Verified::Unverified);
        assert_eq!(verified_by(Verified::Crc64nvme, &[compared]), Verified::Crc64nvme);
    }
}
