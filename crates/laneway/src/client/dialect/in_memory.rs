//! [`InMemory`], a store in the memory of the process.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::os::unix::fs::FileExt as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use crc_fast::CrcAlgorithm;
use laneway_store::{
    Body, Capabilities, Checksums, Condition, Dialect, Error, ErrorKind, Get, GetRange, Got, List,
    MetaChange, Multipart, NewBucket, NotAScheme, ObjectId, ObjectMeta, Operation, Page, Part, PartChecksums,
    Provider, PutOptions, ReadAs, Route, Segment, StoredPart, Timings, Unless, Version, VersionNames,
};

/// The maximum number of entries on a page of a listing.
const PAGE_MAX: u32 = 1000;
/// The number of bytes that a sink receives at a time.
const CHUNK: usize = 256 << 10;

/// A store in the memory of the process, for tests of programs that use Laneway and as an example of a [`Dialect`].
///
/// It has buckets, conditions, checksums, metadata, copies, multipart uploads and listings. It keeps no
/// versions, no tags and no access control. Dropping the store drops its objects.
///
/// ```
/// use std::sync::Arc;
/// use laneway::Client;
/// use laneway::dialect::InMemory;
///
/// let store = InMemory::new("mem")?.bucket("lake");
/// let client = Client::builder().dialect(Arc::new(store)).build()?;
/// let lake = client.bucket("mem://lake")?;
/// lake.put("a", "bytes").call()?;
/// assert_eq!(lake.get("a").call()?.bytes_blocking()?, "bytes".as_bytes());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct InMemory {
    provider: Provider,
    capabilities: Capabilities,
    state: Mutex<StoreState>,
}

#[derive(Debug, Default)]
struct StoreState {
    buckets: BTreeMap<String, Contents>,
    /// Counts writes and started multipart uploads. A write's count becomes the new object's generation, and
    /// an upload's count becomes part of its id.
    writes: u64,
}

#[derive(Debug, Default)]
struct Contents {
    objects: BTreeMap<String, StoredObject>,
    uploads: BTreeMap<String, UploadSession>,
}

#[derive(Clone, Debug)]
struct StoredObject {
    meta: ObjectMeta,
    bytes: Bytes,
}

#[derive(Debug)]
struct UploadSession {
    key: String,
    options: PutOptions,
    parts: BTreeMap<u32, Bytes>,
}

impl InMemory {
    /// Returns an empty store. Its URLs have the scheme `scheme`. For URLs such as `mem://bucket/key`, pass
    /// `mem`.
    ///
    /// # Errors
    /// For a text that can't be the scheme of a dialect: see [`Provider::other`].
    pub fn new(scheme: &str) -> Result<Self, NotAScheme> {
        let capabilities = Capabilities {
            versions: VersionNames::Generation,
            copies: true,
            delete_keeps_condition: true,
            ..Capabilities::default()
        };
        Ok(Self { provider: Provider::other(scheme)?, capabilities, state: Mutex::default() })
    }

    /// Adds a bucket.
    #[must_use]
    pub fn bucket(self, name: &str) -> Self {
        self.lock().buckets.entry(name.to_owned()).or_default();
        self
    }

    fn lock(&self) -> MutexGuard<'_, StoreState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn error(&self, kind: ErrorKind, operation: Operation, id: &ObjectId, why: &str) -> Error {
        Error::new(kind, operation, why).on_object(self.provider, id).after(1, Duration::ZERO)
    }

    fn contents<'a>(
        &self,
        state: &'a mut StoreState,
        operation: Operation,
        id: &ObjectId,
    ) -> Result<&'a mut Contents, Error> {
        let missing = || self.error(ErrorKind::NotFound, operation, id, "the bucket does not exist");
        state.buckets.get_mut(&id.bucket).ok_or_else(missing)
    }

    /// Returns the object. If `id` or `version` names a version, the object must have it.
    fn found(
        &self,
        state: &mut StoreState,
        operation: Operation,
        id: &ObjectId,
        version: Option<&Version>,
    ) -> Result<StoredObject, Error> {
        let missing = || self.error(ErrorKind::NotFound, operation, id, "there is no such object");
        let object =
            self.contents(state, operation, id)?.objects.get(&id.key).cloned().ok_or_else(missing)?;
        let generation = object.meta.version.as_ref().map(ToString::to_string);
        // The bucket keeps only the current version, so any other version that `id` names doesn't exist.
        if id.version.as_deref().is_some_and(|named| generation != Some(format!("generation {named}"))) {
            return Err(missing());
        }
        if version.is_some_and(|version| object.meta.version.as_ref() != Some(version)) {
            return Err(self.error(
                ErrorKind::Precondition,
                operation,
                id,
                "the object isn't in the required state",
            ));
        }
        Ok(object)
    }

    /// Returns an error if the options have properties that this store can't keep, such as tags.
    fn check_kept(&self, operation: Operation, id: &ObjectId, options: &PutOptions) -> Result<(), Error> {
        let is_kept = options.tags.is_empty()
            && options.retention.is_none()
            && !options.legal_hold
            && options.acl.is_none()
            && options.kms_key.is_none();
        let refused = || {
            let why = "a store in memory keeps no tags, retention, holds, access control or keys";
            self.error(ErrorKind::Unsupported, operation, id, why)
        };
        is_kept.then_some(()).ok_or_else(refused)
    }

    /// Writes an object, if the condition holds.
    fn store(
        &self,
        state: &mut StoreState,
        operation: Operation,
        id: &ObjectId,
        bytes: Bytes,
        options: &PutOptions,
    ) -> Result<ObjectMeta, Error> {
        self.check_kept(operation, id, options)?;
        state.writes += 1;
        let generation = state.writes;
        let contents = self.contents(state, operation, id)?;
        self.check(operation, id, contents.objects.get(&id.key), &options.condition)?;
        let now = SystemTime::now();
        let mut meta = ObjectMeta::new(ObjectId::new(&id.bucket, &id.key), bytes.len() as u64);
        meta.version = Some(Version::Generation(generation));
        meta.etag = Some(format!("{generation:x}"));
        meta.checksums = Checksums::crc32c(crc32c(&bytes));
        meta.content_type.clone_from(&options.content_type);
        meta.content_encoding.clone_from(&options.content_encoding);
        meta.cache_control.clone_from(&options.cache_control);
        meta.content_disposition.clone_from(&options.content_disposition);
        meta.content_language.clone_from(&options.content_language);
        meta.custom_time = options.custom_time;
        meta.storage_class.clone_from(&options.storage_class);
        meta.metadata = Some(options.metadata.clone());
        (meta.updated, meta.created) = (Some(now), Some(now));
        contents.objects.insert(id.key.clone(), StoredObject { meta: meta.clone(), bytes });
        Ok(meta)
    }

    fn check(
        &self,
        operation: Operation,
        id: &ObjectId,
        object: Option<&StoredObject>,
        condition: &Condition,
    ) -> Result<(), Error> {
        let holds = match condition {
            Condition::Absent => object.is_none(),
            Condition::Matches(version) => {
                object.is_some_and(|object| object.meta.version.as_ref() == Some(version))
            }
            _ => true,
        };
        let fails =
            || self.error(ErrorKind::Precondition, operation, id, "the object isn't in the required state");
        holds.then_some(()).ok_or_else(fails)
    }

    /// Returns the bytes of a body. Returns an error if their CRC32C differs from `known`, the caller's
    /// checksum.
    fn read(
        &self,
        operation: Operation,
        id: &ObjectId,
        body: &Body,
        known: Option<u32>,
    ) -> Result<Bytes, Error> {
        let bytes = bytes_of(body).map_err(|error| {
            self.error(ErrorKind::Source, operation, id, &error.to_string()).because(error)
        })?;
        match known.is_some_and(|known| known != crc32c(&bytes)) {
            true => Err(self.error(
                ErrorKind::Integrity,
                operation,
                id,
                "the bytes don't have the expected checksum",
            )),
            false => Ok(bytes),
        }
    }

    fn upload<'a>(
        &self,
        state: &'a mut StoreState,
        operation: Operation,
        upload: &Multipart,
    ) -> Result<&'a mut UploadSession, Error> {
        let contents = self.contents(state, operation, &upload.id)?;
        let found = contents.uploads.get_mut(&upload.upload_id).filter(|found| found.key == upload.id.key);
        let gone = || self.error(ErrorKind::NotFound, operation, &upload.id, "there is no such upload");
        found.ok_or_else(gone)
    }
}

#[async_trait]
impl Dialect for InMemory {
    fn provider(&self) -> Provider {
        self.provider
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn endpoint(&self) -> String {
        format!("{}://", self.provider.scheme())
    }

    fn keeps(&self, _operation: Operation, _condition: &Condition) -> bool {
        true
    }

    fn supports_multipart(&self) -> bool {
        true
    }

    async fn head(
        &self,
        id: &ObjectId,
        version: Option<&Version>,
        _unless: Option<&Unless>,
        _read: ReadAs,
    ) -> Result<ObjectMeta, Error> {
        Ok(self.found(&mut self.lock(), Operation::Head, id, version)?.meta)
    }

    async fn get(&self, get: &Get<'_>, _read: ReadAs) -> Result<Got, Error> {
        let error = |kind, why: &str| self.error(kind, Operation::Get, get.id, why);
        let StoredObject { meta, bytes } =
            self.found(&mut self.lock(), Operation::Get, get.id, get.version)?;
        if get.unless.is_some_and(|unless| unless.is_met(&meta)) {
            return Err(error(
                ErrorKind::NotModified,
                "the object hasn't changed since the version or time that the request named",
            ));
        }
        let range = get.range.as_ref().map_or(0..meta.size, |range| range.within(meta.size));
        if range.is_empty() && get.range.is_some() {
            return Err(error(ErrorKind::InvalidRange, "the range begins at or beyond the object's end"));
        }
        // The object is in memory, so its offsets fit into `usize`.
        let asked = bytes.slice(range.start as usize..range.end as usize);
        let (mut body, mut sunk, mut stopped) = (Bytes::new(), 0, false);
        if let Some(maker) = get.sink {
            let mut sink = maker();
            let failed = |e: laneway_store::SinkError| error(ErrorKind::Sink, &e.to_string()).because(e);
            stopped = sink.begin(&meta, range.clone()).map_err(failed)? == Route::Stop;
            for chunk in asked.chunks(CHUNK) {
                if stopped {
                    break;
                }
                stopped = sink.write(chunk).map_err(failed)? == Route::Stop;
                sunk += chunk.len() as u64;
            }
        } else {
            body = asked;
        }
        Ok(Got { meta, range, body, checked: false, sunk, stopped, attempts: 1, timings: Timings::default() })
    }

    async fn put(
        &self,
        id: &ObjectId,
        body: Body,
        sums: &Checksums,
        options: &PutOptions,
    ) -> Result<ObjectMeta, Error> {
        let bytes = self.read(Operation::Put, id, &body, sums.crc32c)?;
        self.store(&mut self.lock(), Operation::Put, id, bytes, options)
    }

    async fn delete(&self, id: &ObjectId, condition: &Condition) -> Result<(), Error> {
        let state = &mut *self.lock();
        let found = self.found(state, Operation::Delete, id, None)?;
        self.check(Operation::Delete, id, Some(&found), condition)?;
        self.contents(state, Operation::Delete, id)?.objects.remove(&id.key);
        Ok(())
    }

    async fn list(
        &self,
        list: &List,
        _arrived: &mut (dyn FnMut(Vec<ObjectMeta>) + Send),
    ) -> Result<Page, Error> {
        let mut state = self.lock();
        let id = ObjectId::new(&list.bucket, &list.prefix);
        if list.versions {
            let why = "a store in memory keeps no versions";
            return Err(self.error(ErrorKind::Unsupported, Operation::List, &id, why));
        }
        let objects = &self.contents(&mut state, Operation::List, &id)?.objects;
        let max = list.max.unwrap_or(PAGE_MAX).clamp(1, PAGE_MAX) as usize;
        let after = list.token.as_deref().max(list.start_after.as_deref());
        let after = after.filter(|after| *after >= list.prefix.as_str());
        let from = after.map_or(Bound::Included(list.prefix.as_str()), Bound::Excluded);
        let mut page = Page::default();
        let mut last: Option<String> = None;
        for (key, object) in objects.range::<str, _>((from, Bound::Unbounded)) {
            let Some(rest) = key.strip_prefix(list.prefix.as_str()) else { break };
            if list.end_before.as_ref().is_some_and(|end| key >= end) {
                break;
            }
            let folder = list.delimiter.as_deref().and_then(|delimiter| {
                let at = rest.find(delimiter)? + delimiter.len();
                Some(format!("{}{}", list.prefix, &rest[..at]))
            });
            // A listing reports each folder only once, and the previous page may already have reported this
            // folder.
            let is_repeated = folder.as_deref().is_some_and(|folder| {
                page.prefixes.last().is_some_and(|last| last == folder)
                    || list.token.as_deref().is_some_and(|token| token.starts_with(folder))
            });
            if !is_repeated && page.objects.len() + page.prefixes.len() == max {
                page.next = last;
                break;
            }
            match folder {
                Some(folder) if !is_repeated => page.prefixes.push(folder),
                Some(_) => {}
                None => page.objects.push(object.meta.clone()),
            }
            last = Some(key.clone());
        }
        Ok(page)
    }

    async fn copy(
        &self,
        from: &ObjectId,
        _known: Option<&ObjectMeta>,
        to: &ObjectId,
        options: &PutOptions,
        condition: &Condition,
    ) -> Result<ObjectMeta, Error> {
        let state = &mut *self.lock();
        let source = self.found(state, Operation::Copy, from, None)?;
        self.check(Operation::Copy, from, Some(&source), condition)?;
        self.store(state, Operation::Copy, to, source.bytes, &options.described_like(&source.meta))
    }

    async fn set_meta(&self, id: &ObjectId, change: &MetaChange) -> Result<ObjectMeta, Error> {
        let state = &mut *self.lock();
        let StoredObject { meta, bytes } = self.found(state, Operation::SetMeta, id, None)?;
        self.store(state, Operation::SetMeta, id, bytes, &change.applied(&meta))
    }

    async fn begin(&self, id: &ObjectId, options: &PutOptions) -> Result<Multipart, Error> {
        self.check_kept(Operation::Begin, id, options)?;
        let mut state = self.lock();
        state.writes += 1;
        let upload_id = format!("upload-{}", state.writes);
        let upload = UploadSession { key: id.key.clone(), options: options.clone(), parts: BTreeMap::new() };
        self.contents(&mut state, Operation::Begin, id)?.uploads.insert(upload_id.clone(), upload);
        Ok(Multipart { id: id.clone(), upload_id, checksums: PartChecksums::FullObject })
    }

    async fn part(&self, upload: &Multipart, number: u32, body: Body, crc32c: u32) -> Result<Part, Error> {
        let bytes = self.read(Operation::Part, &upload.id, &body, Some(crc32c))?;
        let part = part(number, &bytes);
        self.upload(&mut self.lock(), Operation::Part, upload)?.parts.insert(number, bytes);
        Ok(part)
    }

    async fn part_copy(
        &self,
        upload: &Multipart,
        number: u32,
        from: &ObjectId,
        version: Option<&Version>,
        range: std::ops::Range<u64>,
    ) -> Result<Part, Error> {
        let state = &mut *self.lock();
        let source = self.found(state, Operation::Part, from, version)?;
        let range = GetRange::from(range).within(source.meta.size);
        let bytes = source.bytes.slice(range.start as usize..range.end as usize);
        let part = part(number, &bytes);
        self.upload(state, Operation::Part, upload)?.parts.insert(number, bytes);
        Ok(part)
    }

    async fn list_parts(&self, upload: &Multipart) -> Result<Vec<StoredPart>, Error> {
        let stored = |(number, bytes): (&u32, &Bytes)| {
            let Part { number, etag, size, crc32c, .. } = part(*number, bytes);
            StoredPart { number, etag, size, crc32c }
        };
        Ok(self.upload(&mut self.lock(), Operation::ListParts, upload)?.parts.iter().map(stored).collect())
    }

    async fn list_uploads(&self, bucket: &str, prefix: &str) -> Result<Vec<Multipart>, Error> {
        let mut state = self.lock();
        let contents = self.contents(&mut state, Operation::ListUploads, &ObjectId::new(bucket, prefix))?;
        let of_prefix = contents.uploads.iter().filter(|(_, upload)| upload.key.starts_with(prefix));
        let mut uploads: Vec<_> = of_prefix
            .map(|(upload_id, upload)| Multipart {
                id: ObjectId::new(bucket, &upload.key),
                upload_id: upload_id.clone(),
                checksums: PartChecksums::FullObject,
            })
            .collect();
        uploads.sort_by(|a, b| a.id.key.cmp(&b.id.key));
        Ok(uploads)
    }

    async fn complete(
        &self,
        upload: &Multipart,
        parts: &[Part],
        whole: &Checksums,
        condition: &Condition,
    ) -> Result<ObjectMeta, Error> {
        let error = |kind, why: &str| self.error(kind, Operation::Complete, &upload.id, why);
        let state = &mut *self.lock();
        let found = self.upload(state, Operation::Complete, upload)?;
        let parts: BTreeMap<u32, &Part> = parts.iter().map(|part| (part.number, part)).collect();
        if parts.is_empty() {
            return Err(error(ErrorKind::Invalid, "the list of parts is empty"));
        }
        let mut joined = BytesMut::new();
        for (number, known) in parts {
            let bytes = found.parts.get(&number).filter(|bytes| part(number, bytes).etag == known.etag);
            let missing = || error(ErrorKind::Invalid, "a part in the list doesn't exist");
            joined.extend_from_slice(bytes.ok_or_else(missing)?);
        }
        let (options, joined) = (found.options.clone().condition(condition.clone()), joined.freeze());
        if whole.crc32c.is_some_and(|known| known != crc32c(&joined)) {
            return Err(error(ErrorKind::Integrity, "the object wouldn't have the expected checksum"));
        }
        let meta = self.store(state, Operation::Complete, &upload.id, joined, &options)?;
        self.contents(state, Operation::Complete, &upload.id)?.uploads.remove(&upload.upload_id);
        Ok(meta)
    }

    async fn abort(&self, upload: &Multipart) -> Result<(), Error> {
        let state = &mut *self.lock();
        self.upload(state, Operation::Abort, upload)?;
        self.contents(state, Operation::Abort, &upload.id)?.uploads.remove(&upload.upload_id);
        Ok(())
    }

    async fn buckets(&self) -> Result<Vec<String>, Error> {
        Ok(self.lock().buckets.keys().cloned().collect())
    }

    async fn create_bucket(&self, bucket: &str, _new: &NewBucket) -> Result<(), Error> {
        let mut state = self.lock();
        if state.buckets.contains_key(bucket) {
            let id = ObjectId::new(bucket, "");
            return Err(self.error(
                ErrorKind::AlreadyExists,
                Operation::CreateBucket,
                &id,
                "the bucket exists",
            ));
        }
        state.buckets.insert(bucket.to_owned(), Contents::default());
        Ok(())
    }

    async fn delete_bucket(&self, bucket: &str) -> Result<(), Error> {
        let (mut state, id) = (self.lock(), ObjectId::new(bucket, ""));
        if !self.contents(&mut state, Operation::DeleteBucket, &id)?.objects.is_empty() {
            return Err(self.error(
                ErrorKind::Invalid,
                Operation::DeleteBucket,
                &id,
                "the bucket isn't empty",
            ));
        }
        state.buckets.remove(bucket);
        Ok(())
    }
}

fn part(number: u32, bytes: &Bytes) -> Part {
    let crc32c = crc32c(bytes);
    Part { number, etag: format!("{crc32c:08x}"), size: bytes.len() as u64, crc32c: Some(crc32c), md5: None }
}

fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

fn bytes_of(body: &Body) -> std::io::Result<Bytes> {
    let mut bytes = BytesMut::with_capacity(body.len() as usize);
    for segment in body.segments() {
        match segment {
            Segment::Memory(memory) => bytes.extend_from_slice(memory),
            Segment::File { file, offset, len } => {
                let begin = bytes.len();
                bytes.resize(begin + *len as usize, 0);
                file.read_exact_at(&mut bytes[begin..], *offset)?;
            }
        }
    }
    Ok(bytes.freeze())
}
