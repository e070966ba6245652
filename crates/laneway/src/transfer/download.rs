//! Downloads, from a store to this machine.

mod buffered;
mod composite;
pub(crate) mod in_order;
mod object;
mod opening;
mod search;
mod sliced;

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use laneway_store::{Composite, Get, Got, ObjectId, ObjectMeta, Provider, Store, Version};

use crate::content::checksum::{ChecksumSet, Crc, RangeChecksums};
use crate::content::encoding::ContentEncoding;
use crate::event::Verified;
use crate::job::CancelFlag;
use crate::job::running::{ActiveItem, JobState, ResultObject, TransferOutcome};
use crate::local::folder::{CommitOptions, FilePlace, StagedFile};
use crate::local::preserve::{PosixAttributes, Preserve};
use crate::location::url;
use crate::transfer::composite::one_part;
use crate::transfer::upload::verify::name_plain_crc32;
use crate::transfer::{log_second_try, moved};
use crate::{CopyRequest, Error, Op};
pub(crate) use search::{DownloadSearch, is_asked, one};
use sliced::LargeDownload;

/// The result of an item's download.
pub(crate) struct DownloadOutcome {
    pub(crate) moved: TransferOutcome,
    pub(crate) version: Option<Version>,
}

/// An object, and the file into which it is downloaded.
#[derive(Debug)]
pub(crate) struct DownloadItem {
    id: ObjectId,
    meta: Option<Box<ObjectMeta>>,
    /// True if a listing found the item. False if the user named it.
    is_listed: bool,
    place: FilePlace,
    /// If a list of names contained the object, the line of the list, as `FILE:LINE`. Errors mention it.
    line: Option<Box<str>>,
}

impl DownloadItem {
    pub(crate) fn listed(meta: Box<ObjectMeta>, place: FilePlace) -> Self {
        Self { id: meta.id.clone(), meta: Some(meta), is_listed: true, place, line: None }
    }

    pub(crate) fn begin(&self, job: &JobState, store: &Store) -> ActiveItem {
        let destination = self.place.path().display().to_string();
        let state = self.meta.as_ref().and_then(|meta| job.state_of(meta.version.as_ref(), meta.size));
        let line = self.line.clone();
        ActiveItem {
            state,
            line,
            ..job.begin(Op::Download, url(store.provider(), &self.id), Some(destination))
        }
    }
}

/// Settings for the move of a downloaded file to its final path.
#[derive(Debug)]
pub(crate) struct FileCommit {
    options: CommitOptions,
    /// The encoding that Laneway decodes before it moves the file.
    decode: Option<ContentEncoding>,
    cancel: CancelFlag,
}

impl FileCommit {
    /// Decodes the file if that was requested, and moves it to its final path. Blocks the thread.
    pub(crate) fn commit(&self, staged: &StagedFile) -> Result<(), Error> {
        match self.decode {
            Some(encoding) => staged.commit_decoded(encoding, self.options, &|| self.cancel.is_set()),
            None => staged.commit(self.options),
        }
    }
}

impl CopyRequest {
    /// Returns whether objects are known only from an inventory, which has no metadata, although the request
    /// needs the metadata.
    fn is_undescribed(&self) -> bool {
        self.inventory.is_some() && (self.decompress || self.preserve)
    }

    /// Returns how to move the downloaded file to its final path, and which attributes to give it. The
    /// attributes come from the first of the `described` objects that has metadata.
    fn placing(&self, job: &JobState, preserve: Preserve, described: [Option<&ObjectMeta>; 2]) -> FileCommit {
        let metadata = described.into_iter().flatten().find_map(|meta| meta.metadata.as_ref());
        let attributes = metadata.map(PosixAttributes::of_object).unwrap_or_default();
        let encoding = described.into_iter().flatten().find_map(|meta| meta.content_encoding.as_deref());
        let decode = encoding.filter(|_| self.decompress).and_then(ContentEncoding::named);
        let options = CommitOptions {
            durable: self.durable,
            only_absent: self.no_clobber,
            attributes: attributes.to_be_set(preserve),
        };
        FileCommit { options, decode, cancel: job.cancel.clone() }
    }
}

/// Downloads one object into a file.
async fn fetch_one(
    job: Arc<JobState>,
    request: Arc<CopyRequest>,
    store: Store,
    item: DownloadItem,
    collect_max: u64,
) {
    let begun = item.begin(&job, &store);
    let (meta, place) = (item.meta.clone(), item.place.clone());
    let result = object::fetch(&job, &request, &store, &item.id, meta, place, collect_max).await;
    finish(&job, &request, &store, item, begun, result).await;
}

/// Reports an item's result. In a move, first removes the source, and reports an error if the removal fails.
async fn finish(
    job: &JobState,
    request: &CopyRequest,
    store: &Store,
    item: DownloadItem,
    begun: ActiveItem,
    result: Result<DownloadOutcome, Error>,
) {
    let size = item.meta.as_ref().map_or(0, |meta| meta.size);
    let result = match result {
        Ok(mut fetched) => {
            fetched.moved.made.source = fetched.version.clone();
            remove_moved(request, store, &item.id, fetched).await
        }
        Err(error) => Err(error),
    };
    match item.is_listed {
        true => job.end_listed(begun, size, result).await,
        false => job.end(begun, size, result).await,
    }
}

async fn remove_moved(
    request: &CopyRequest,
    store: &Store,
    id: &ObjectId,
    fetched: DownloadOutcome,
) -> Result<TransferOutcome, Error> {
    if request.remove_source {
        let is_enough = request.is_enough(fetched.moved.verified);
        moved::remove_object(store, id, fetched.version.as_ref(), is_enough).await?;
    }
    Ok(fetched.moved)
}

/// Returns the store's composite checksum if the object's file must be compared with it. This is the case if
/// the checksums of the received bytes can't be combined into another checksum of the store's.
fn composite_of(large: &LargeDownload) -> Option<Composite> {
    let stored = &large.meta.checksums;
    stored.parts.filter(|_| Crc::given_in(stored).is_none() && !large.wanted.md5)
}

/// Compares a complete file with the store's checksum. For this, combines the checksums of the file's `runs`.
/// If they can't be combined into a checksum of the store's kind, awaits `composite` (the comparison with the
/// digest of the uploaded parts), or reads the file back.
///
/// # Errors
/// `ErrorKind::Integrity` if bytes are missing or differ.
async fn verify_file(
    job: &JobState,
    store: &Store,
    large: &LargeDownload,
    runs: &BTreeMap<u64, RangeChecksums>,
    is_move: bool,
    composite: impl Future<Output = Result<Option<Verified>, Error>>,
) -> Result<Verified, Error> {
    let (source, meta) = (url(store.provider(), &large.meta.id), &large.meta);
    let verified = verify(&source, meta, runs, large.wanted)?;
    if verified != Verified::Unverified {
        return Ok(verified);
    }
    match composite.await? {
        Some(verified) => Ok(verified),
        // A move must compare a checksum before it removes the source. Several streams fetched this object,
        // so read the file back to compute its MD5.
        None if large.wanted.md5 || (is_move && meta.checksums.md5.is_some()) => {
            read_back(job, source, large).await
        }
        None => Ok(verified),
    }
}

/// Reads a file back and compares its MD5. This is needed if no single stream brought the whole file.
async fn read_back(job: &JobState, source: String, large: &LargeDownload) -> Result<Verified, Error> {
    let (staged, meta) = (Arc::clone(&large.staged), Arc::clone(&large.meta));
    let wanted = ChecksumSet::to_compare_with(&meta.checksums, true);
    let cancel = job.cancel.clone();
    let compare = move || {
        let run = staged.read_back(0..meta.size, wanted, &|| cancel.is_set())?;
        run.verify(&meta.checksums).map_err(|difference| Error::mismatch(source, difference))
    };
    job.engine.files.run(compare).await?
}

/// Compares the received bytes with the store's checksum of the whole object.
fn verify(
    source: &str,
    meta: &ObjectMeta,
    runs: &BTreeMap<u64, RangeChecksums>,
    wanted: ChecksumSet,
) -> Result<Verified, Error> {
    let mut whole = RangeChecksums::of(b"", wanted);
    for (start, run) in runs {
        if *start != whole.len {
            return Err(Error::integrity(source, format!("bytes from {} to {start} are missing", whole.len)));
        }
        whole = whole.then(*run);
    }
    if whole.len != meta.size {
        return Err(Error::integrity(source, format!("{} of {} bytes arrived", whole.len, meta.size)));
    }
    whole.verify(&meta.checksums).map_err(|difference| Error::mismatch(source, difference))
}

/// Compares a small object with the store's checksum, and writes it to its file. `is_checked` is true if checksums that
/// the store sent with the bytes have confirmed them. Blocks the thread.
pub(crate) fn store_small(
    store: &Store,
    meta: &ObjectMeta,
    bytes: &[u8],
    is_checked: bool,
    place: &FilePlace,
    placing: &FileCommit,
) -> Result<TransferOutcome, Error> {
    let mut runs = BTreeMap::new();
    let wanted = ChecksumSet::to_compare_with(&meta.checksums, true);
    if !bytes.is_empty() {
        runs.insert(0, RangeChecksums::of(bytes, wanted).checked(is_checked));
    }
    let verified = verify(&url(store.provider(), &meta.id), meta, &runs, wanted)
        .map_err(|error| name_plain_crc32(error, meta, bytes))?;
    let verified = match verified {
        Verified::Unverified => one_part(store, meta, bytes)?,
        verified => verified,
    };
    let staged = place.stage(0)?;
    staged.write_at(bytes, 0)?;
    placing.commit(&staged)?;
    Ok(TransferOutcome { bytes: meta.size, verified, atomic: true, made: ResultObject::of(meta) })
}

/// Downloads a group of objects of at most [`SMALL_DOWNLOAD_MAX`](crate::plan::SMALL_DOWNLOAD_MAX) bytes
/// each, for which the caller has reserved memory. An object that was replaced since the listing is
/// downloaded in its new version. This is safe, because one answer brings all its bytes and their checksum.
/// All requests run concurrently, and file threads write the files in groups. If an answer breaks off,
/// Laneway requests the whole object again, so that an object that was replaced meanwhile is downloaded in
/// its new version.
pub(crate) async fn fetch_group(
    job: Arc<JobState>,
    request: Arc<CopyRequest>,
    store: Store,
    items: Vec<DownloadItem>,
) {
    let mut gets: FuturesUnordered<_> = items
        .into_iter()
        .map(|item| {
            let begun = item.begin(&job, &store);
            get(&store, item, begun, 1)
        })
        .collect();
    let mut writes = FuturesUnordered::new();
    // In a move, each source is removed by its own request, and these requests run concurrently.
    let mut endings = FuturesUnordered::new();
    loop {
        tokio::select! {
            biased;
            Some(written) = writes.next(), if !writes.is_empty() => {
                for WrittenFile { asked: RequestedObject { item, begun, tries }, result } in written {
                    match result {
                        Err(error) if error.is_mismatch() && tries == 1 => {
                            log_second_try(&error);
                            gets.push(get(&store, item, begun, 2));
                        }
                        result => endings.push(finish(&job, &request, &store, item, begun, result)),
                    }
                }
            }
            Some(()) = endings.next(), if !endings.is_empty() => {}
            Some(first) = gets.next(), if !gets.is_empty() => {
                // Hand all objects that have arrived to a file thread together.
                let mut ready = vec![first];
                while let Some(Some(next)) = gets.next().now_or_never() {
                    ready.push(next);
                }
                writes.push(write(&job, &request, &store, ready));
            }
            else => return,
        }
    }
}

struct RequestedObject {
    item: DownloadItem,
    begun: ActiveItem,
    /// The number of tries. A second try follows if the first brought wrong bytes. Each try may take several
    /// attempts.
    tries: u32,
}

struct ObjectAnswer {
    asked: RequestedObject,
    got: Result<Got, laneway_store::Error>,
}

struct WrittenFile {
    asked: RequestedObject,
    result: Result<DownloadOutcome, Error>,
}

async fn get(store: &Store, item: DownloadItem, mut begun: ActiveItem, tries: u32) -> ObjectAnswer {
    let id: &ObjectId = &item.id;
    let expected = item.meta.as_ref().map(|meta| meta.size);
    let got = store.get(Get { expected, size: expected, ..Get::new(id) }).await;
    begun.attempts = got.as_ref().map_or(0, |got| got.attempts + tries - 1);
    ObjectAnswer { asked: RequestedObject { item, begun, tries }, got }
}

async fn write(
    job: &Arc<JobState>,
    request: &Arc<CopyRequest>,
    store: &Store,
    answers: Vec<ObjectAnswer>,
) -> Vec<WrittenFile> {
    let (provider, inside, from) = (store.provider(), Arc::clone(job), store.clone());
    let preserve = request.preserves(store.capabilities());
    let (asked, got): (Vec<_>, Vec<_>) = answers.into_iter().map(|answer| (answer.asked, answer.got)).unzip();
    let (permit, asked) = (job.writing().await, Arc::new(asked));
    let (read, request) = (Arc::clone(&asked), Arc::clone(request));
    let written = job.engine.files.run(move || {
        let _permit = permit;
        let store_one = |(asked, got): (&RequestedObject, Result<Got, laneway_store::Error>)| {
            let (item, got) = (&asked.item, got?);
            let placing = request.placing(&inside, preserve, [Some(&got.meta), item.meta.as_deref()]);
            let moved = store_small(&from, &got.meta, &got.body, got.checked, &item.place, &placing)?;
            inside.progress.moved(moved.bytes);
            Ok(DownloadOutcome { moved, version: got.meta.version })
        };
        read.iter().zip(got).map(store_one).collect::<Vec<_>>()
    });
    let written = written.await;
    // The file thread has dropped its reference to the objects, even if it failed, so this reference is the
    // only one.
    let asked = Arc::into_inner(asked).unwrap_or_default();
    let results = written.unwrap_or_else(|error| for_each(provider, &asked, &error));
    asked.into_iter().zip(results).map(|(asked, result)| WrittenFile { asked, result }).collect()
}

/// Returns the failure of a whole group as the error of each of its objects.
fn for_each<T>(provider: Provider, asked: &[RequestedObject], error: &Error) -> Vec<Result<T, Error>> {
    asked.iter().map(|asked| Err(error.again(url(provider, &asked.item.id)))).collect()
}
