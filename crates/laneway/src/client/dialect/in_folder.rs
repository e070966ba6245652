//! [`InFolder`], a store whose objects are the files of a folder.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File, Metadata};
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use crc_fast::{CrcAlgorithm, Digest};
use laneway_store::{
    Body, Capabilities, Checksums, Condition, Dialect, Error, ErrorKind, Get, GetSink, Got, List, Multipart,
    NotAScheme, ObjectId, ObjectMeta, Operation, Page, Part, PartChecksums, Provider, PutOptions, ReadAs,
    Route, Segment, StoredPart, Timings, Unless, Version,
};
use rustix::fs::OFlags;

use crate::content::encoding;
use crate::engine::files::FileThreads;
use crate::engine::fork::PerProcess;
use crate::local::folder::{CommitOptions, Folder, StagedFile, is_temporary_name};
use crate::location::relative::RelativePath;

/// The maximum number of entries on a page of a listing.
const PAGE_MAX: u32 = 1000;
/// The number of bytes that are read or written at a time.
const CHUNK: usize = 256 << 10;
/// The directory, in a bucket's folder, for the parts of unfinished uploads. Listings leave it out.
const UPLOADS: &str = ".laneway-uploads";
/// The maximum number of threads that read and write the files.
const FILE_THREADS_MAX: usize = 8;

/// A store whose buckets are folders of this machine and whose objects are the files in them. Use it in programs that
/// run with a cloud's store in production and with a folder on a developer's machine.
///
/// A key is the path of a file below the bucket's folder, so keys with an empty, `.` or `..` component are refused. Only
/// a slash at the beginning is ignored, so that absolute paths work in the root folder. A file is replaced as a whole,
/// and the directories above it are created when needed. Reads follow symbolic links. Writes and deletes don't. Listings
/// contain links to files, but not the files in linked directories.
///
/// The folder keeps no versions, no metadata and no checksums. A write with metadata, tags or similar options fails.
/// The content type is guessed from the name. The ETag changes with the file's size, time and inode. The only condition
/// that a write supports is that the object doesn't exist.
///
/// ```
/// use std::sync::Arc;
/// use laneway::Client;
/// use laneway::dialect::InFolder;
///
/// # let folder = std::env::temp_dir().join(format!("laneway-in-folder-{}", std::process::id()));
/// let store = InFolder::new("disk")?.bucket("lake", &folder);
/// let client = Client::builder().dialect(Arc::new(store)).build()?;
/// let lake = client.bucket("disk://lake")?;
/// lake.put("logs/a", "bytes").call()?;
/// assert_eq!(std::fs::read(folder.join("logs/a"))?, b"bytes");
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct InFolder {
    provider: Provider,
    capabilities: Capabilities,
    buckets: BTreeMap<String, PathBuf>,
    removes_empty_folders: bool,
    threads: PerProcess<FolderThreads>,
}

struct FolderThreads(FileThreads);

impl Default for FolderThreads {
    fn default() -> Self {
        Self(FileThreads::new(FILE_THREADS_MAX))
    }
}

impl Drop for FolderThreads {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl fmt::Debug for InFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InFolder").field("provider", &self.provider).field("buckets", &self.buckets).finish()
    }
}

impl InFolder {
    /// Returns a store without buckets. Its URLs have the scheme `scheme`. For URLs such as `disk://bucket/key`, pass
    /// `disk`.
    ///
    /// # Errors
    /// For a text that can't be the scheme of a dialect: see [`Provider::other`].
    pub fn new(scheme: &str) -> Result<Self, NotAScheme> {
        let capabilities = Capabilities { copies: true, ..Capabilities::default() };
        let (provider, buckets) = (Provider::other(scheme)?, BTreeMap::new());
        Ok(Self { provider, capabilities, buckets, removes_empty_folders: false, threads: PerProcess::new() })
    }

    /// Adds a bucket, whose objects are the files below `folder`. The first write creates a missing folder.
    #[must_use]
    pub fn bucket(mut self, name: &str, folder: impl Into<PathBuf>) -> Self {
        self.buckets.insert(name.to_owned(), folder.into());
        self
    }

    /// Sets whether a delete also removes the directories that it leaves empty. The default is false.
    #[must_use]
    pub fn remove_empty_folders(mut self, removes: bool) -> Self {
        self.removes_empty_folders = removes;
        self
    }

    /// Runs `task` on a thread for files, and adds the object to its error.
    async fn run<T: Send + 'static>(
        &self,
        operation: Operation,
        id: &ObjectId,
        task: impl FnOnce() -> Result<T, FileError> + Send + 'static,
    ) -> Result<T, Error> {
        let done = match self.threads.get().0.run(task).await {
            Ok(done) => done,
            Err(error) => Err(FileError(ErrorKind::Server, error.to_string())),
        };
        done.map_err(|FileError(kind, why)| self.error(kind, operation, id, &why))
    }

    fn error(&self, kind: ErrorKind, operation: Operation, id: &ObjectId, why: &str) -> Error {
        Error::new(kind, operation, why).on_object(self.provider, id).after(1, Duration::ZERO)
    }

    fn folder(&self, operation: Operation, id: &ObjectId) -> Result<PathBuf, Error> {
        let missing = || self.error(ErrorKind::NotFound, operation, id, "the bucket does not exist");
        self.buckets.get(&id.bucket).cloned().ok_or_else(missing)
    }

    fn place(&self, operation: Operation, id: &ObjectId) -> Result<ObjectPlace, Error> {
        let folder = self.folder(operation, id)?;
        if id.version.is_some() {
            return Err(self.error(ErrorKind::NotFound, operation, id, "a folder keeps no versions"));
        }
        let name = RelativePath::new(id.key.strip_prefix('/').unwrap_or(&id.key).to_owned())
            .map_err(|why| self.error(ErrorKind::Invalid, operation, id, &why.to_string()))?;
        let first = name.as_str().split('/').next();
        if first == Some(UPLOADS) || name.as_str().split('/').any(is_temporary_name) {
            let why = "Laneway uses such names for temporary files";
            return Err(self.error(ErrorKind::Invalid, operation, id, why));
        }
        Ok(ObjectPlace { folder, name, id: id.clone() })
    }

    /// Returns the directory of an upload's parts.
    fn parts(&self, operation: Operation, upload: &Multipart) -> Result<PathBuf, Error> {
        let place = self.place(operation, &upload.id)?;
        if !is_upload_id(&upload.upload_id, &upload.id.key) {
            return Err(self.error(ErrorKind::NotFound, operation, &upload.id, "there is no such upload"));
        }
        Ok(place.folder.join(UPLOADS).join(&upload.upload_id))
    }

    /// Returns an error if the options have properties or conditions that a folder can't keep.
    fn check_kept(&self, operation: Operation, id: &ObjectId, options: &PutOptions) -> Result<(), Error> {
        let guessed = encoding::content_type(&id.key);
        let is_kept = options.metadata.is_empty()
            && options.content_type.as_deref().is_none_or(|set| Some(set) == guessed)
            && options.content_encoding.is_none()
            && options.cache_control.is_none()
            && options.content_disposition.is_none()
            && options.content_language.is_none()
            && options.custom_time.is_none()
            && options.storage_class.is_none()
            && options.tags.is_empty()
            && options.retention.is_none()
            && !options.legal_hold
            && options.acl.is_none()
            && options.kms_key.is_none();
        let why = match is_kept {
            false => "a folder keeps only bytes: no attributes, metadata, tags or access control",
            true if !self.keeps(operation, &options.condition) => {
                "a folder supports only one precondition for writes: that the object doesn't exist"
            }
            true => return Ok(()),
        };
        Err(self.error(ErrorKind::Unsupported, operation, id, why))
    }
}

#[async_trait]
impl Dialect for InFolder {
    fn provider(&self) -> Provider {
        self.provider
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn endpoint(&self) -> String {
        format!("{}://", self.provider.scheme())
    }

    fn keeps(&self, _operation: Operation, condition: &Condition) -> bool {
        matches!(condition, Condition::None | Condition::Absent)
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
        let (place, version) = (self.place(Operation::Head, id)?, version.cloned());
        self.run(Operation::Head, id, move || Ok(place.open(version.as_ref())?.1)).await
    }

    async fn get(&self, get: &Get<'_>, _read: ReadAs) -> Result<Got, Error> {
        let (place, version) = (self.place(Operation::Get, get.id)?, get.version.cloned());
        let (unless, asked) = (get.unless.cloned(), get.range.clone());
        let sink = get.sink.map(|maker| maker());
        let read = move || {
            let (file, meta) = place.open(version.as_ref())?;
            if unless.is_some_and(|unless| unless.is_met(&meta)) {
                return Err(FileError(ErrorKind::NotModified, "the object hasn't changed".to_owned()));
            }
            let range = asked.as_ref().map_or(0..meta.size, |range| range.within(meta.size));
            if range.is_empty() && asked.is_some() {
                let why = "the range begins at or beyond the object's end";
                return Err(FileError(ErrorKind::InvalidRange, why.to_owned()));
            }
            let (mut body, mut sunk, mut stopped) = (Bytes::new(), 0, false);
            match sink {
                Some(sink) => (sunk, stopped) = pour(&file, &meta, range.clone(), sink)?,
                None => {
                    let mut bytes = vec![0; (range.end - range.start) as usize];
                    file.read_exact_at(&mut bytes, range.start)?;
                    body = bytes.into();
                }
            }
            Ok(Got {
                meta,
                range,
                body,
                checked: false,
                sunk,
                stopped,
                attempts: 1,
                timings: Timings::default(),
            })
        };
        self.run(Operation::Get, get.id, read).await
    }

    async fn put(
        &self,
        id: &ObjectId,
        body: Body,
        sums: &Checksums,
        options: &PutOptions,
    ) -> Result<ObjectMeta, Error> {
        self.check_kept(Operation::Put, id, options)?;
        let (place, known) = (self.place(Operation::Put, id)?, sums.crc32c);
        let only_absent = matches!(options.condition, Condition::Absent);
        self.run(Operation::Put, id, move || place.write(&body, known, only_absent)).await
    }

    async fn delete(&self, id: &ObjectId, condition: &Condition) -> Result<(), Error> {
        let place = self.place(Operation::Delete, id)?;
        let version = match condition {
            Condition::None => None,
            Condition::Matches(version) => Some(version.clone()),
            _ => {
                let why = "a folder supports only one precondition for deletes: the object's version";
                return Err(self.error(ErrorKind::Unsupported, Operation::Delete, id, why));
            }
        };
        let and_empty_folders = self.removes_empty_folders;
        let remove = move || {
            let (_, _) = place.open(version.as_ref())?;
            Ok(Folder::new(&place.folder).remove(place.name.as_str(), and_empty_folders)?)
        };
        self.run(Operation::Delete, id, remove).await
    }

    async fn list(
        &self,
        list: &List,
        _arrived: &mut (dyn FnMut(Vec<ObjectMeta>) + Send),
    ) -> Result<Page, Error> {
        let id = ObjectId::new(&list.bucket, &list.prefix);
        let folder = self.folder(Operation::List, &id)?;
        let refused = |why| self.error(ErrorKind::Unsupported, Operation::List, &id, why);
        if list.versions {
            return Err(refused("a folder keeps no versions"));
        }
        if list.delimiter.as_deref().is_some_and(|delimiter| delimiter != "/") {
            return Err(refused("the only delimiter of a folder's listing is a slash"));
        }
        let list = list.clone();
        let walk = move || {
            let mut walk = PageWalk::new(&list);
            walk.enter(&folder, "")?;
            Ok(walk.page)
        };
        self.run(Operation::List, &id, walk).await
    }

    async fn copy(
        &self,
        from: &ObjectId,
        _known: Option<&ObjectMeta>,
        to: &ObjectId,
        options: &PutOptions,
        condition: &Condition,
    ) -> Result<ObjectMeta, Error> {
        let (source, target) = (self.place(Operation::Copy, from)?, self.place(Operation::Copy, to)?);
        // The content type of the source can differ from the guess for the new name, and isn't kept.
        let mut kept = options.clone();
        kept.content_type = None;
        self.check_kept(Operation::Copy, to, &kept)?;
        let version = match condition {
            Condition::Matches(version) => Some(version.clone()),
            _ => None,
        };
        let only_absent = matches!(options.condition, Condition::Absent);
        let copy = move || {
            let (file, meta) = source.open(version.as_ref())?;
            target.write(&Body::file(Arc::new(file), 0, meta.size), None, only_absent)
        };
        self.run(Operation::Copy, to, copy).await
    }

    async fn begin(&self, id: &ObjectId, options: &PutOptions) -> Result<Multipart, Error> {
        let unconditional = options.clone().condition(Condition::None);
        self.check_kept(Operation::Begin, id, &unconditional)?;
        let place = self.place(Operation::Begin, id)?;
        let begin = move || {
            let uploads = place.folder.join(UPLOADS);
            fs::create_dir_all(&uploads)?;
            if fs::symlink_metadata(&uploads)?.is_symlink() {
                let why = format!("{} is a symbolic link", uploads.display());
                return Err(FileError(ErrorKind::Permission, why));
            }
            let upload_id = upload_id(&place.id.key);
            fs::DirBuilder::new().mode(0o700).create(uploads.join(&upload_id))?;
            Ok(upload_id)
        };
        let upload_id = self.run(Operation::Begin, id, begin).await?;
        Ok(Multipart { id: id.clone(), upload_id, checksums: PartChecksums::FullObject })
    }

    async fn part(&self, upload: &Multipart, number: u32, body: Body, crc32c: u32) -> Result<Part, Error> {
        let parts = self.parts(Operation::Part, upload)?;
        let write = move || {
            let file = File::create(parts.join(number.to_string()))?;
            let known = feed(&body, |bytes, offset| Ok(file.write_all_at(bytes, offset)?))?;
            check(Some(crc32c), known)?;
            Ok(Part {
                number,
                etag: format!("{known:08x}"),
                size: body.len(),
                crc32c: Some(known),
                md5: None,
            })
        };
        self.run(Operation::Part, &upload.id, write).await
    }

    async fn list_parts(&self, upload: &Multipart) -> Result<Vec<StoredPart>, Error> {
        let parts = self.parts(Operation::ListParts, upload)?;
        let read = move || {
            let mut stored = Vec::new();
            for entry in fs::read_dir(parts)? {
                let entry = entry?;
                let Some(number) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                    continue;
                };
                let (file, size) = (Arc::new(File::open(entry.path())?), entry.metadata()?.len());
                let crc32c = feed(&Body::file(file, 0, size), |_, _| Ok(()))?;
                stored.push(StoredPart { number, etag: format!("{crc32c:08x}"), size, crc32c: Some(crc32c) });
            }
            stored.sort_by_key(|part| part.number);
            Ok(stored)
        };
        self.run(Operation::ListParts, &upload.id, read).await
    }

    async fn complete(
        &self,
        upload: &Multipart,
        parts: &[Part],
        whole: &Checksums,
        condition: &Condition,
    ) -> Result<ObjectMeta, Error> {
        let unconditional = PutOptions::default().condition(condition.clone());
        self.check_kept(Operation::Complete, &upload.id, &unconditional)?;
        let place = self.place(Operation::Complete, &upload.id)?;
        let stored = self.parts(Operation::Complete, upload)?;
        let mut parts: Vec<_> = parts.iter().map(|part| (part.number, part.size, part.crc32c)).collect();
        parts.sort_unstable();
        let (known, only_absent) = (whole.crc32c, matches!(condition, Condition::Absent));
        let join = move || {
            let staged = place.stage(parts.iter().map(|(_, size, _)| size).sum())?;
            let (mut digest, mut at) = (Digest::new(CrcAlgorithm::Crc32Iscsi), 0);
            for (number, size, crc32c) in parts {
                // Open one part at a time, because there may be more parts than the process can have open files.
                let file = File::open(stored.join(number.to_string()))?;
                if file.metadata()?.len() != size {
                    let why = format!("part {number} doesn't have the expected size of {size} bytes");
                    return Err(FileError(ErrorKind::Integrity, why));
                }
                let kept = feed(&Body::file(Arc::new(file), 0, size), |bytes, _| {
                    digest.update(bytes);
                    staged.write_at(bytes, at)?;
                    at += bytes.len() as u64;
                    Ok(())
                })?;
                check(crc32c, kept)?;
            }
            let meta = place.commit(&staged, digest.finalize() as u32, known, only_absent)?;
            // The object is complete, so leftover parts are no reason to report a failure.
            if let Err(error) = forget(&stored) {
                tracing::warn!(%error, parts = %stored.display(), "the parts of a completed upload could not be removed");
            }
            Ok(meta)
        };
        self.run(Operation::Complete, &upload.id, join).await
    }

    async fn abort(&self, upload: &Multipart) -> Result<(), Error> {
        let parts = self.parts(Operation::Abort, upload)?;
        self.run(Operation::Abort, &upload.id, move || Ok(forget(&parts)?)).await
    }

    async fn buckets(&self) -> Result<Vec<String>, Error> {
        Ok(self.buckets.keys().cloned().collect())
    }
}

/// Returns a new id for an upload of `key`: a checksum of the key and 128 random bits. The id is a directory's name. A
/// process and its forked child have the same random state, so the bits also depend on the process and the time.
fn upload_id(key: &str) -> String {
    let random = || RandomState::new().hash_one((std::process::id(), SystemTime::now()));
    format!("{:08x}{:016x}{:016x}", crc32c(key.as_bytes()), random(), random())
}

/// Returns whether [`upload_id`] can have made this id for `key`.
fn is_upload_id(id: &str, key: &str) -> bool {
    id.len() == 40
        && id.bytes().all(|byte| byte.is_ascii_hexdigit())
        && id.starts_with(&format!("{:08x}", crc32c(key.as_bytes())))
}

fn crc32c(bytes: &[u8]) -> u32 {
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    digest.update(bytes);
    digest.finalize() as u32
}

/// A failure that doesn't name its object yet: its kind and the reason.
#[derive(Debug)]
struct FileError(ErrorKind, String);

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        let kind = match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::IsADirectory => {
                ErrorKind::NotFound
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => ErrorKind::Permission,
            _ => ErrorKind::Server,
        };
        Self(kind, error.to_string())
    }
}

impl From<crate::Error> for FileError {
    fn from(error: crate::Error) -> Self {
        let cause = std::error::Error::source(&error).and_then(|cause| cause.downcast_ref::<io::Error>());
        let kind = match error.kind() {
            crate::ErrorKind::AlreadyExists | crate::ErrorKind::Precondition => ErrorKind::Precondition,
            crate::ErrorKind::Refused => ErrorKind::Invalid,
            _ => cause.map_or(ErrorKind::Server, |cause| Self::from(io::Error::from(cause.kind())).0),
        };
        Self(kind, error.to_string())
    }
}

/// The file of an object.
struct ObjectPlace {
    folder: PathBuf,
    name: RelativePath,
    id: ObjectId,
}

impl ObjectPlace {
    fn path(&self) -> PathBuf {
        self.folder.join(self.name.as_str())
    }

    /// Opens the file. It must be a regular file. If `version` is given, the file must have this version.
    fn open(&self, version: Option<&Version>) -> Result<(File, ObjectMeta), FileError> {
        // Without this flag, opening a pipe would block until another process opens its other end.
        let no_waiting = OFlags::NONBLOCK.bits() as i32;
        let file = fs::OpenOptions::new().read(true).custom_flags(no_waiting).open(self.path())?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(FileError(ErrorKind::NotFound, "there is no such object".to_owned()));
        }
        let meta = object_meta(self.id.clone(), &metadata);
        match version.is_some_and(|version| meta.version.as_ref() != Some(version)) {
            true => {
                let why = "the object isn't in the required state";
                Err(FileError(ErrorKind::Precondition, why.to_owned()))
            }
            false => Ok((file, meta)),
        }
    }

    fn stage(&self, size: u64) -> Result<StagedFile, FileError> {
        Ok(Folder::new(&self.folder).place(&self.name).stage(size)?)
    }

    fn write(&self, body: &Body, known: Option<u32>, only_absent: bool) -> Result<ObjectMeta, FileError> {
        let staged = self.stage(body.len())?;
        let crc32c = feed(body, |bytes, offset| Ok(staged.write_at(bytes, offset)?))?;
        self.commit(&staged, crc32c, known, only_absent)
    }

    /// Puts a staged file in place, unless its checksum differs from the caller's.
    fn commit(
        &self,
        staged: &StagedFile,
        crc32c: u32,
        known: Option<u32>,
        only_absent: bool,
    ) -> Result<ObjectMeta, FileError> {
        check(known, crc32c)?;
        // Read the metadata before the rename, which doesn't change it. After the rename, another writer could
        // replace the file.
        let metadata = staged.metadata()?;
        staged.commit(CommitOptions { only_absent, ..CommitOptions::default() })?;
        let mut meta = object_meta(self.id.clone(), &metadata);
        meta.checksums = Checksums::crc32c(crc32c);
        Ok(meta)
    }
}

fn object_meta(id: ObjectId, file: &Metadata) -> ObjectMeta {
    let mut meta = ObjectMeta::new(id, file.len());
    // object_store forms the ETags of local files from the same three numbers.
    let changed_ns = i128::from(file.mtime()) * 1_000_000_000 + i128::from(file.mtime_nsec());
    let etag = format!("{:x}-{changed_ns:x}-{:x}", file.ino(), file.len());
    meta.version = Some(Version::ETag(etag.clone()));
    meta.etag = Some(etag);
    meta.content_type = encoding::content_type(&meta.id.key).map(str::to_owned);
    meta.metadata = Some(BTreeMap::new());
    meta.updated = file.modified().ok();
    meta.created = file.created().ok();
    meta
}

/// Passes a body to `write` in chunks, each with its offset, and returns the body's CRC32C.
fn feed(body: &Body, mut write: impl FnMut(&[u8], u64) -> Result<(), FileError>) -> Result<u32, FileError> {
    let (mut digest, mut at) = (Digest::new(CrcAlgorithm::Crc32Iscsi), 0);
    let mut pass = |bytes: &[u8]| {
        digest.update(bytes);
        write(bytes, at)?;
        at += bytes.len() as u64;
        Ok::<_, FileError>(())
    };
    let mut chunk = Vec::new();
    for segment in body.segments() {
        match segment {
            Segment::Memory(memory) => pass(memory)?,
            Segment::File { file, offset, len } => {
                let (mut offset, end) = (*offset, offset + len);
                while offset < end {
                    chunk.resize(CHUNK.min((end - offset) as usize), 0);
                    let read = file.read_exact_at(&mut chunk, offset);
                    read.map_err(|error| FileError(ErrorKind::Source, error.to_string()))?;
                    pass(&chunk)?;
                    offset += chunk.len() as u64;
                }
            }
        }
    }
    Ok(digest.finalize() as u32)
}

fn check(known: Option<u32>, crc32c: u32) -> Result<(), FileError> {
    match known.is_some_and(|known| known != crc32c) {
        true => {
            let why = "the bytes don't have the expected checksum";
            Err(FileError(ErrorKind::Integrity, why.to_owned()))
        }
        false => Ok(()),
    }
}

/// Passes a range of a file to a sink. Returns the number of bytes that the sink accepted, and whether it ended the
/// body early.
fn pour(
    file: &File,
    meta: &ObjectMeta,
    range: std::ops::Range<u64>,
    mut sink: Box<dyn GetSink>,
) -> Result<(u64, bool), FileError> {
    let failed = |error: laneway_store::SinkError| FileError(ErrorKind::Sink, error.to_string());
    let (mut sunk, mut chunk) = (0, Vec::new());
    let mut stopped = sink.begin(meta, range.clone()).map_err(failed)? == Route::Stop;
    while !stopped && range.start + sunk < range.end {
        chunk.resize(CHUNK.min((range.end - range.start - sunk) as usize), 0);
        file.read_exact_at(&mut chunk, range.start + sunk)?;
        stopped = sink.write(&chunk).map_err(failed)? == Route::Stop;
        sunk += chunk.len() as u64;
    }
    Ok((sunk, stopped))
}

/// Removes the parts of an upload, and the directory for uploads if it is empty then.
fn forget(parts: &Path) -> io::Result<()> {
    fs::remove_dir_all(parts)?;
    if let Some(uploads) = parts.parent() {
        // Another upload may still use the directory.
        let _ = fs::remove_dir(uploads);
    }
    Ok(())
}

/// Collects one page of a listing in the order of the keys.
struct PageWalk<'a> {
    list: &'a List,
    max: usize,
    page: Page,
    last: Option<String>,
    is_full: bool,
}

impl<'a> PageWalk<'a> {
    fn new(list: &'a List) -> Self {
        let max = list.max.unwrap_or(PAGE_MAX).clamp(1, PAGE_MAX) as usize;
        Self { list, max, page: Page::default(), last: None, is_full: false }
    }

    /// Visits the entries of a directory, whose keys begin with `base`.
    fn enter(&mut self, directory: &Path, base: &str) -> Result<(), FileError> {
        let entries = match fs::read_dir(directory) {
            Ok(entries) => entries,
            // A missing bucket folder is an empty bucket, and another program may remove a directory at any time.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let mut keys = Vec::new();
        for entry in entries {
            let entry = entry?;
            // Keys are UTF-8, so a file with any other name isn't an object.
            let Ok(name) = entry.file_name().into_string() else { continue };
            let is_own = (base.is_empty() && name == UPLOADS) || is_temporary_name(&name);
            let Ok(kind) = entry.file_type() else { continue };
            match () {
                () if is_own => {}
                // Don't enter a link to a directory, because it could lead back to a directory above it.
                () if kind.is_dir() => keys.push(format!("{base}{name}/")),
                () if kind.is_file() || kind.is_symlink() => keys.push(format!("{base}{name}")),
                () => {}
            }
        }
        keys.sort_unstable();
        for key in keys {
            if self.is_full || self.list.end_before.as_ref().is_some_and(|end| key >= *end) {
                break;
            }
            let path = directory.join(&key[base.len()..]);
            match key.ends_with('/') {
                false => self.file(key, &path),
                true => self.directory(&path, key)?,
            }
        }
        Ok(())
    }

    fn file(&mut self, key: String, path: &Path) {
        let is_after = |after: &Option<String>| after.as_ref().is_none_or(|after| key > *after);
        if !key.starts_with(&self.list.prefix)
            || !is_after(&self.list.start_after)
            || !is_after(&self.list.token)
        {
            return;
        }
        // The file may be gone by now, and a link may lead to a directory or to nothing.
        let Some(metadata) = fs::metadata(path).ok().filter(Metadata::is_file) else { return };
        if self.has_room(&key) {
            let id = ObjectId::new(&self.list.bucket, &key);
            self.page.objects.push(object_meta(id, &metadata));
        }
    }

    fn directory(&mut self, path: &Path, key: String) -> Result<(), FileError> {
        let List { prefix, start_after, token, .. } = self.list;
        let is_over = |after: &Option<String>| {
            after.as_ref().is_some_and(|after| *after >= key && !after.starts_with(&key))
        };
        let is_related = key.starts_with(prefix) || prefix.starts_with(&key);
        if !is_related || is_over(start_after) || is_over(token) {
            return Ok(());
        }
        if self.list.delimiter.is_none() || key.len() <= prefix.len() {
            return self.enter(path, &key);
        }
        // The previous page may have ended with this prefix.
        let is_repeated = token.as_ref().is_some_and(|token| token.starts_with(&key));
        let first = List { delimiter: None, max: Some(1), ..self.list.clone() };
        let mut within = PageWalk::new(&first);
        if !is_repeated {
            within.enter(path, &key)?;
        }
        if !within.page.objects.is_empty() && self.has_room(&key) {
            self.page.prefixes.push(key);
        }
        Ok(())
    }

    /// Returns whether the page has room for a further entry. If the page is full, ends it after its last entry.
    fn has_room(&mut self, key: &str) -> bool {
        self.is_full = self.page.objects.len() + self.page.prefixes.len() == self.max;
        match self.is_full {
            true => self.page.next = self.last.take(),
            false => self.last = Some(key.to_owned()),
        }
        !self.is_full
    }
}
