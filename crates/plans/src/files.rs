//! The files of a plan, in a folder of this machine or below a prefix of a bucket.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use laneway::{Bucket, Client, Error, Location, ObjectMeta, Payload, PutOptions, Version};

use crate::format::{local, usage};

/// The maximum time of a replacement. Only leases are replaced, and a lease that is renewed late has expired.
const REPLACE_MAX: Duration = Duration::from_secs(15);

/// A small file that was read.
#[derive(Clone, Debug)]
pub(crate) struct FileState {
    pub(crate) bytes: Vec<u8>,
    pub(crate) version: Version,
    /// The time of the last change by the clock of the store or of the file system.
    pub(crate) changed: SystemTime,
}

/// The operations on the files of a plan. Names are relative to the plan's folder. Tests use files in memory.
pub(crate) trait PlanFiles: Send + Sync {
    /// Returns a small file, or `None` if it doesn't exist.
    fn read(&self, name: &str) -> Result<Option<FileState>, Error>;
    /// Creates a small file. Returns `None` if it exists already.
    fn create(&self, name: &str, bytes: &[u8]) -> Result<Option<Version>, Error>;
    /// Replaces a version of a small file. Returns `None` if the file has another version now.
    fn replace(&self, name: &str, bytes: &[u8], version: &Version) -> Result<Option<Version>, Error>;
    /// Writes a small file, whether or not it exists.
    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), Error>;
    /// Writes a file from a file of this machine.
    fn put_file(&self, name: &str, from: &Path) -> Result<(), Error>;
    /// Writes the content of a file to `to`. Returns false if the file doesn't exist.
    fn fetch(&self, name: &str, to: &mut File) -> Result<bool, Error>;
    /// Returns the names that begin with a prefix, in order.
    fn list(&self, prefix: &str) -> Result<Vec<String>, Error>;
    /// Removes a file, if it exists.
    fn remove(&self, name: &str) -> Result<(), Error>;
    /// Returns the URL or path of a file, for messages.
    fn shown(&self, name: &str) -> String;
}

/// Returns the files of the plan in a folder.
///
/// # Errors
/// `ErrorKind::Usage` if the location can't be a folder.
pub(crate) fn files_at(client: &Client, at: &Location) -> Result<Box<dyn PlanFiles>, Error> {
    match at {
        Location::Local(path) => Ok(Box::new(LocalFiles(path.clone()))),
        Location::Object { provider, bucket, key } if !bucket.is_empty() => {
            let folder = if key.is_empty() || key.ends_with('/') { key.clone() } else { format!("{key}/") };
            let at = Location::object(*provider, bucket, folder).to_string();
            Ok(Box::new(BucketFiles(client.bucket(&at)?)))
        }
        _ => Err(usage(at.to_string(), "a plan's folder must be a folder or a prefix of a bucket")),
    }
}

#[derive(Debug)]
struct BucketFiles(Bucket);

impl BucketFiles {
    fn version(&self, name: &str, version: Option<Version>) -> Result<Version, Error> {
        version.ok_or_else(|| usage(self.shown(name), "the store returned no ETag, so it can't hold a plan"))
    }
}

impl PlanFiles for BucketFiles {
    fn read(&self, name: &str) -> Result<Option<FileState>, Error> {
        let download = match self.0.get(name).call() {
            Ok(download) => download,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error),
        };
        let ObjectMeta { version, updated, .. } = download.meta().clone();
        let changed =
            updated.ok_or_else(|| usage(self.shown(name), "the store returned no time of change"))?;
        let version = self.version(name, version)?;
        Ok(Some(FileState { bytes: download.bytes_blocking()?.to_vec(), version, changed }))
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<Option<Version>, Error> {
        match self.0.put(name, bytes.to_vec()).if_absent().call() {
            Ok(written) => self.version(name, written.version).map(Some),
            // The answer to an earlier attempt of this request may have been lost.
            Err(error) if error.is_precondition() => {
                Ok(self.read(name)?.filter(|there| there.bytes == bytes).map(|there| there.version))
            }
            Err(error) => Err(error),
        }
    }

    fn replace(&self, name: &str, bytes: &[u8], version: &Version) -> Result<Option<Version>, Error> {
        match self.0.put(name, bytes.to_vec()).if_version(version).deadline(REPLACE_MAX).call() {
            Ok(written) => self.version(name, written.version).map(Some),
            Err(error) if error.is_precondition() => {
                Ok(self.read(name)?.filter(|there| there.bytes == bytes).map(|there| there.version))
            }
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        self.0.put(name, bytes.to_vec()).call().map(drop)
    }

    fn put_file(&self, name: &str, from: &Path) -> Result<(), Error> {
        let options = PutOptions::default().content_type("application/zstd");
        self.0.put(name, Payload::file(from)).options(options).call().map(drop)
    }

    fn fetch(&self, name: &str, to: &mut File) -> Result<bool, Error> {
        let mut download = match self.0.get(name).call() {
            Ok(download) => download,
            Err(error) if error.is_not_found() => return Ok(false),
            Err(error) => return Err(error),
        };
        while let Some(chunk) = download.chunk_blocking()? {
            to.write_all(&chunk).map_err(|e| local("a temporary file", format!("can't be written: {e}")))?;
        }
        Ok(true)
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>, Error> {
        let mut listing = self.0.list(prefix);
        let mut names = Vec::new();
        while let Some(meta) = listing.next_blocking() {
            names.push(meta?.id.key);
        }
        names.sort_unstable();
        Ok(names)
    }

    fn remove(&self, name: &str) -> Result<(), Error> {
        match self.0.delete(name).call() {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }

    fn shown(&self, name: &str) -> String {
        format!("{}{name}", self.0.url())
    }
}

#[derive(Debug)]
struct LocalFiles(PathBuf);

impl LocalFiles {
    fn failed(&self, name: &str, what: &str) -> impl FnOnce(io::Error) -> Error + use<> {
        let (shown, what) = (self.shown(name), what.to_owned());
        move |e| local(shown, format!("can't be {what}: {e}"))
    }

    /// Writes a temporary file beside the final one.
    fn staged(
        &self,
        name: &str,
        fill: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<tempfile::NamedTempFile, Error> {
        let path = self.0.join(name);
        let folder = path.parent().unwrap_or(&self.0);
        let stage = || {
            fs::create_dir_all(folder)?;
            let mut file = tempfile::Builder::new().prefix(".").suffix(".unfinished").tempfile_in(folder)?;
            fill(file.as_file_mut())?;
            file.as_file().sync_all()?;
            Ok(file)
        };
        stage().map_err(self.failed(name, "written"))
    }
}

/// Returns the version of a file's content. The contents of claims are unique, so a checksum tells them apart.
fn version_of(bytes: &[u8]) -> Version {
    let crc = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Nvme, bytes);
    Version::ETag(format!("{crc:016x}-{}", bytes.len()))
}

impl PlanFiles for LocalFiles {
    fn read(&self, name: &str) -> Result<Option<FileState>, Error> {
        let read = || {
            let mut file = File::open(self.0.join(name))?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            io::Result::Ok((bytes, file.metadata()?.modified()?))
        };
        match read() {
            Ok((bytes, changed)) => Ok(Some(FileState { version: version_of(&bytes), bytes, changed })),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(self.failed(name, "read")(e)),
        }
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<Option<Version>, Error> {
        let file = self.staged(name, |file| file.write_all(bytes))?;
        match file.persist_noclobber(self.0.join(name)) {
            Ok(_) => Ok(Some(version_of(bytes))),
            Err(e) if e.error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
            Err(e) => Err(self.failed(name, "written")(e.error)),
        }
    }

    fn replace(&self, name: &str, bytes: &[u8], version: &Version) -> Result<Option<Version>, Error> {
        // A file system has no conditional replacement, so a lock makes the comparison and the replacement one.
        let lock = File::create(self.0.join(".lock")).map_err(self.failed(".lock", "opened"))?;
        lock.lock().map_err(self.failed(".lock", "locked"))?;
        if self.read(name)?.is_none_or(|there| there.version != *version) {
            return Ok(None);
        }
        self.put(name, bytes)?;
        Ok(Some(version_of(bytes)))
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let file = self.staged(name, |file| file.write_all(bytes))?;
        file.persist(self.0.join(name)).map(drop).map_err(|e| self.failed(name, "written")(e.error))
    }

    fn put_file(&self, name: &str, from: &Path) -> Result<(), Error> {
        let file = self.staged(name, |file| io::copy(&mut File::open(from)?, file).map(drop))?;
        file.persist(self.0.join(name)).map(drop).map_err(|e| self.failed(name, "written")(e.error))
    }

    fn fetch(&self, name: &str, to: &mut File) -> Result<bool, Error> {
        match File::open(self.0.join(name)).and_then(|mut file| io::copy(&mut file, to)) {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(self.failed(name, "read")(e)),
        }
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>, Error> {
        let (folder, start) = prefix.rsplit_once('/').unwrap_or(("", prefix));
        let entries = match fs::read_dir(self.0.join(folder)) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(self.failed(folder, "listed")(e)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(self.failed(folder, "listed"))?;
            let name = entry.file_name();
            let Some(name) = name.to_str().filter(|name| name.starts_with(start) && !name.starts_with('.'))
            else {
                continue;
            };
            if entry.file_type().is_ok_and(|kind| kind.is_file()) {
                names.push(if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") });
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn remove(&self, name: &str) -> Result<(), Error> {
        match fs::remove_file(self.0.join(name)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(self.failed(name, "removed")(e)),
            _ => Ok(()),
        }
    }

    fn shown(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}
