//! Reads files that may change, grow or vanish while they are read.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use laneway_store::{PartsAlgorithm, PartsDigest};
use rustix::io::Errno;

use crate::Error;
use crate::content::checksum::{ChecksumHasher, ChecksumSet, RangeChecksums};
use crate::local::preserve::PosixAttributes;
use crate::location::FileIdentity;

/// The number of bytes of a file that are read at a time for a checksum.
const READ: usize = 256 << 10;

const CHANGED: &str = "changed while it was read, so nothing was written to the destination";

/// The unit of `st_blocks` in bytes. This unit doesn't depend on the file system's block size.
const BLOCK: u64 = 512;
/// A file whose holes have fewer bytes in total causes no warning.
const HOLES_MIN: u64 = 1 << 20;

/// A file as it was when it was opened.
#[derive(Debug)]
pub(crate) struct FileSource {
    pub(crate) file: Arc<File>,
    path: PathBuf,
    as_opened: FileFacts,
    identity: FileIdentity,
    attributes: PosixAttributes,
}

/// The size and modification time of a file. If either differs, the file has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct FileFacts {
    size: u64,
    modified: (i64, i64),
}

impl FileFacts {
    fn of(metadata: &Metadata) -> Self {
        Self { size: metadata.len(), modified: (metadata.mtime(), metadata.mtime_nsec()) }
    }
}

impl FileSource {
    /// Opens a regular file. Blocks the thread.
    ///
    /// # Errors
    /// If the file has vanished, can't be read, or isn't a regular file any more.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        // Open the file with `O_NONBLOCK`. If a pipe has taken the file's place, opening it would otherwise
        // block the thread.
        let file = std::fs::OpenOptions::new()
            .read(true)
            .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
            .open(path)
            .map_err(|e| match e.kind() {
                io::ErrorKind::NotFound => Error::source(path.display().to_string(), "the file has vanished")
                    .with_system_code(Errno::NOENT.raw_os_error()),
                _ => Error::local(path, "can't be opened", e),
            })?;
        let metadata = file.metadata().map_err(|e| Error::local(path, "its attributes can't be read", e))?;
        if !metadata.is_file() {
            let error = Error::source(path.display().to_string(), "is not a regular file");
            return Err(if metadata.is_dir() {
                error.with_system_code(Errno::ISDIR.raw_os_error())
            } else {
                error
            });
        }
        let (as_opened, identity) = (FileFacts::of(&metadata), FileIdentity::of(&metadata));
        let attributes = PosixAttributes::of_file(&metadata);
        Ok(Self { file: Arc::new(file), path: path.to_owned(), as_opened, identity, attributes })
    }

    /// Returns the file's size when it was opened.
    pub(crate) fn size(&self) -> u64 {
        self.as_opened.size
    }

    /// Returns the file's identity when it was opened. The identity of any other file differs from it, and so
    /// does the identity of this file after a change.
    pub(crate) fn identity(&self) -> FileIdentity {
        self.identity
    }

    /// Returns the file's attributes (times, mode, owner) when it was opened.
    pub(crate) fn attributes(&self) -> PosixAttributes {
        self.attributes
    }

    /// Returns how many of the file's bytes are holes, if there are enough for a warning. A low number of
    /// blocks alone doesn't prove holes, because a file on a compressing file system also takes fewer blocks.
    /// Blocks the thread.
    pub(crate) fn holes(&self) -> Option<u64> {
        let size = self.as_opened.size;
        let stored = self.file.metadata().ok()?.blocks().saturating_mul(BLOCK);
        let missing = size.checked_sub(stored).filter(|missing| *missing >= HOLES_MIN)?;
        let hole = rustix::fs::seek(&*self.file, rustix::fs::SeekFrom::Hole(0)).ok()?;
        // The search for a hole has moved the file's position. Move it back to the start, where
        // [`read`](Self::read) begins.
        rustix::fs::seek(&*self.file, rustix::fs::SeekFrom::Start(0)).ok()?;
        (hole < size).then_some(missing)
    }

    /// Checks that the file hasn't changed since it was opened. Blocks the thread.
    ///
    /// # Errors
    /// If the file's size or modification time differs.
    pub(crate) fn check_unchanged(&self) -> Result<(), Error> {
        let now =
            self.file.metadata().map_err(|e| Error::local(&self.path, "its attributes can't be read", e))?;
        if FileFacts::of(&now) == self.as_opened { Ok(()) } else { Err(self.changed()) }
    }

    /// Reads the whole file. Blocks the thread.
    ///
    /// # Errors
    /// If the file changes meanwhile, or can't be read.
    pub(crate) fn read(&self) -> Result<Vec<u8>, Error> {
        // Ask for one byte more than the file's size, to notice if the file has grown. The spare capacity
        // also lets `read_to_end` see the end without enlarging the vector.
        let size = self.as_opened.size as usize;
        let mut bytes = Vec::with_capacity(size + 1);
        let mut file = Read::take(&*self.file, size as u64 + 1);
        file.read_to_end(&mut bytes).map_err(|e| Error::local(&self.path, "can't be read", e))?;
        if bytes.len() != size {
            return Err(self.lacks_size().unwrap_or_else(|| self.changed()));
        }
        self.check_unchanged()?;
        Ok(bytes)
    }

    /// Reads the whole file as a stream. The stream ends with an error if the file has changed meanwhile.
    pub(crate) fn stream(self) -> FileStream {
        FileStream { source: self, at: 0 }
    }

    /// Returns the checksums of a range. Blocks the thread.
    ///
    /// # Errors
    /// If the file has become shorter, or can't be read.
    pub(crate) fn hash(&self, offset: u64, len: u64, wanted: ChecksumSet) -> Result<RangeChecksums, Error> {
        self.hash_while(offset, len, wanted, |_| Ok(()))
    }

    fn hash_while(
        &self,
        offset: u64,
        len: u64,
        wanted: ChecksumSet,
        goes_on: impl Fn(u64) -> Result<(), Error>,
    ) -> Result<RangeChecksums, Error> {
        let mut hashing = ChecksumHasher::new(wanted);
        self.read_through(offset, len, |bytes| {
            hashing.update(bytes);
            goes_on(bytes.len() as u64)
        })?;
        Ok(hashing.finish())
    }

    /// Reads a range, and passes its bytes to `take` in order.
    fn read_through(
        &self,
        offset: u64,
        len: u64,
        mut take: impl FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut buffer = vec![0; READ.min(len as usize)];
        let mut done = 0;
        while done < len {
            let want = READ.min((len - done) as usize);
            match self.file.read_at(&mut buffer[..want], offset + done) {
                Ok(0) => return Err(self.changed()),
                Ok(n) => {
                    take(&buffer[..n])?;
                    done += n as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Error::local(&self.path, "can't be read", e)),
            }
        }
        Ok(())
    }

    fn changed(&self) -> Error {
        Error::source(self.path.display().to_string(), CHANGED)
    }

    /// Returns the error for a file that reports size 0 but has content, such as files in `/proc`.
    fn lacks_size(&self) -> Option<Error> {
        let is_empty = self.as_opened.size == 0 && self.file.metadata().is_ok_and(|now| now.len() == 0);
        let why = "its size is unknown; pipe it, as in cat FILE | laneway cp - URL";
        is_empty.then(|| Error::source(self.path.display().to_string(), why))
    }
}

/// A stream of a file's bytes from start to end. Its I/O errors wrap Laneway's own errors, which
/// [`unwrapped`] takes out again.
#[derive(Debug)]
pub(crate) struct FileStream {
    source: FileSource,
    at: u64,
}

impl Read for FileStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        let is_over = read == 0 && !buffer.is_empty();
        if self.at > self.source.size() || (is_over && self.at < self.source.size()) {
            return Err(io::Error::other(self.source.changed()));
        }
        if is_over {
            self.source.check_unchanged().map_err(io::Error::other)?;
        }
        Ok(read)
    }
}

/// Returns the checksums of a file's current content. Blocks the thread.
///
/// # Errors
/// If the file can't be read, or changes meanwhile.
pub(crate) fn hashed(path: &Path, wanted: ChecksumSet) -> Result<RangeChecksums, Error> {
    hashed_while(path, wanted, |_| Ok(()))
}

/// Does the same as [`hashed`], and calls `goes_on` after each read with the number of bytes. An error of
/// `goes_on` ends the reading. Blocks the thread.
///
/// # Errors
/// The errors of [`hashed`], and of `goes_on`.
pub(crate) fn hashed_while(
    path: &Path,
    wanted: ChecksumSet,
    goes_on: impl Fn(u64) -> Result<(), Error>,
) -> Result<RangeChecksums, Error> {
    let source = FileSource::open(path)?;
    let run = source.hash_while(0, source.size(), wanted, goes_on)?;
    source.check_unchanged()?;
    Ok(run)
}

/// Returns the composite digest of a file that is divided into `parts`. Calls `goes_on` after each read with
/// the number of bytes. An error of `goes_on` ends the reading. Blocks the thread.
///
/// # Errors
/// The errors of [`hashed`], and of `goes_on`.
pub(crate) fn hashed_parts_while(
    path: &Path,
    (parts, algorithm): (&[Range<u64>], PartsAlgorithm),
    goes_on: impl Fn(u64) -> Result<(), Error>,
) -> Result<Option<PartsDigest>, Error> {
    let source = FileSource::open(path)?;
    let mut digests = Vec::new();
    for part in parts {
        let mut hasher = algorithm.part();
        source.read_through(part.start, part.end - part.start, |bytes| {
            hasher.update(bytes);
            goes_on(bytes.len() as u64)
        })?;
        digests.extend(hasher.finish());
    }
    source.check_unchanged()?;
    Ok(algorithm.over(&digests))
}

/// Converts an I/O error that occurred while `path` was read. If the I/O error contains one of Laneway's own
/// errors, returns that error. Errors of [`FileStream`] contain one.
pub(crate) fn unwrapped(path: impl AsRef<Path>, error: io::Error) -> Error {
    match error.downcast::<Error>() {
        Ok(ours) => ours,
        Err(error) => Error::local(path, "can't be read", error),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_file_that_grows_or_shrinks_while_it_is_read_is_an_error() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"0123456789").unwrap();
        let source = FileSource::open(file.path()).unwrap();
        assert_eq!(source.read().unwrap(), b"0123456789");
        file.write_all(b"x").unwrap();
        let source = FileSource { file: Arc::new(File::open(file.path()).unwrap()), ..source };
        assert!(source.read().unwrap_err().to_string().contains("changed"));
        file.as_file().set_len(3).unwrap();
        assert!(source.hash(0, 10, ChecksumSet::CRC32C).unwrap_err().to_string().contains("changed"));
        assert!(source.check_unchanged().unwrap_err().to_string().contains("changed"));
    }

    #[test]
    fn a_stream_of_a_file_that_changes_ends_in_an_error_that_names_it() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&vec![7; 3 * READ]).unwrap();
        let stream = || FileSource::open(file.path()).unwrap().stream();
        let mut all = Vec::new();
        stream().read_to_end(&mut all).unwrap();
        assert_eq!(all, vec![7; 3 * READ]);
        for len in [2 * READ, 4 * READ] {
            let mut stream = stream();
            stream.read_exact(&mut [0; 10]).unwrap();
            file.as_file().set_len(len as u64).unwrap();
            let error = unwrapped(file.path(), stream.read_to_end(&mut Vec::new()).unwrap_err());
            assert_eq!(error.kind(), crate::ErrorKind::Source);
            assert!(error.to_string().contains("changed"), "{error}");
        }
    }

    #[test]
    fn a_file_that_vanished_is_named() {
        let error = FileSource::open(Path::new("/nonexistent/x")).unwrap_err();
        assert_eq!(error.to_string(), "/nonexistent/x: the file has vanished");
        assert_eq!(error.kind(), crate::ErrorKind::Source);
        let system = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<io::Error>());
        assert_eq!(system.and_then(io::Error::raw_os_error), Some(libc::ENOENT));
    }

    #[test]
    fn ranges_are_hashed_alone() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let bytes: Vec<u8> = (0..3 * READ + 5).map(|i| (i % 251) as u8).collect();
        file.write_all(&bytes).unwrap();
        let source = FileSource::open(file.path()).unwrap();
        let (at, len) = (100, 2 * READ + 7);
        assert_eq!(
            source.hash(at as u64, len as u64, ChecksumSet::CRC32C).unwrap(),
            RangeChecksums::of(&bytes[at..at + len], ChecksumSet::CRC32C)
        );
    }
}
