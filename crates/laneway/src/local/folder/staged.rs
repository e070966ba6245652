//! A file that Laneway writes under a temporary name in its destination's directory.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufReader, Read, Write};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt, fchown};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::{AtFlags, Mode, OFlags, fstat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::journal::{Claim, DownloadJournal};
use super::partial::{self, PartialNames};
use super::place::FilePlace;
use crate::Error;
use crate::content::checksum::{ChecksumSet, RangeChecksums};
use crate::content::encoding::ContentEncoding;
use crate::local::platform::rename_where_absent;
use crate::local::preserve::PosixAttributes;
use crate::location::relative::NAME_MAX;
use crate::plan::slices::settled_claims;

/// The maximum number of further temporary names that Laneway tries if a file with the first name exists.
const NAMES_TRIED_MAX: u32 = 16;

/// The reason why a file can't replace a directory.
pub(super) const IS_A_DIRECTORY: &str = "is a directory, but a file of that name is needed";

/// The reason why a download doesn't replace a destination that was created while it ran.
const EXISTS_BY_NOW: &str = "was created during the download, and is left unchanged";

/// Settings for [`StagedFile::commit`].
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct CommitOptions {
    /// Flushes the file to disk before it is reported as done.
    pub(crate) durable: bool,
    /// Fails if the destination exists, instead of replacing it.
    pub(crate) only_absent: bool,
    /// The owner, mode and times to set on the file.
    pub(crate) attributes: PosixAttributes,
}

/// The number of bytes that are read at a time for decoding.
const DECODE: usize = 256 << 10;
/// The kind of a temporary file with decoded bytes.
const DECODED: &str = "decoded";

/// Reads a file from its beginning. Doesn't use or change the position that all users of the open file share.
struct PositionedReader<'a> {
    file: &'a File,
    at: u64,
}

impl Read for PositionedReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// Writes decoded bytes to a file in order.
struct DecodedFile<'a> {
    staged: &'a StagedFile,
    len: u64,
    is_cancelled: &'a dyn Fn() -> bool,
    /// The file system's error, or the cancellation. The decoder returns only the text of this error.
    failure: Option<Error>,
}

impl Write for DecodedFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match (self.is_cancelled)() {
            true => Err(Error::cancelled(self.staged.path.display().to_string())),
            false => self.staged.write_at(bytes, self.len),
        };
        match written {
            Ok(()) => {
                self.len += bytes.len() as u64;
                Ok(bytes.len())
            }
            Err(error) => {
                let text = error.to_string();
                self.failure = Some(error);
                Err(io::Error::other(text))
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A file under a temporary name in its destination's directory. If it is dropped without
/// [`commit`](Self::commit) or [`keep`](Self::keep), the file is removed.
#[derive(Debug)]
pub(crate) struct StagedFile {
    file: File,
    directory: Arc<OwnedFd>,
    temporary: OsString,
    place: FilePlace,
    path: PathBuf,
    /// The journal and its name, if a later run can resume the file.
    journal: Option<(DownloadJournal, OsString)>,
    /// False once the file is renamed, removed or left to a later run. A sink of an abandoned download may
    /// still run then, but must not write to the file. Each thread holds the lock while it writes. Without
    /// the lock, Linux would still let only one thread at a time write to the file, but the other threads
    /// would spin. In a download over two lanes, the spinning took a tenth of the CPU time.
    is_open: Mutex<bool>,
    /// Sends the range of each new claim.
    watcher: Mutex<Option<UnboundedSender<Range<u64>>>>,
}

impl StagedFile {
    /// Creates a temporary file for a destination. If a destination has several temporary files, they have
    /// different values of `kind`.
    pub(super) fn create(
        place: &FilePlace,
        directory: Arc<OwnedFd>,
        size: u64,
        kind: &str,
    ) -> Result<Self, Error> {
        let path = place.path();
        let begun = begin(&directory, &place.name, kind, &place.folder.no_locks);
        let (file, temporary) = begun.map_err(|e| Error::local(&path, "can't be created", e))?;
        let staged = Self {
            file,
            directory,
            temporary,
            place: place.clone(),
            path,
            journal: None,
            is_open: Mutex::new(true),
            watcher: Mutex::default(),
        };
        staged.set_len(size)?;
        Ok(staged)
    }

    /// Returns the partial file of an earlier run, to be continued.
    pub(super) fn resumed(
        place: &FilePlace,
        directory: Arc<OwnedFd>,
        names: PartialNames,
        (file, journal): (File, DownloadJournal),
    ) -> Self {
        let journal = Some((journal, names.journal));
        let (temporary, path) = (names.part, place.path());
        let (place, is_open) = (place.clone(), Mutex::new(true));
        Self { file, directory, temporary, place, path, journal, is_open, watcher: Mutex::default() }
    }

    /// Sets the file's size before any bytes are written. Doesn't reserve blocks with `fallocate`, which
    /// takes 0.1 s per GiB on memory-backed file systems. On others it doesn't make the download faster.
    fn set_len(&self, size: u64) -> Result<(), Error> {
        if size == 0 {
            return Ok(());
        }
        self.file.set_len(size).map_err(|e| Error::local(&self.path, "its size can't be set", e))
    }

    /// Writes at an offset. Several threads may call this at the same time.
    ///
    /// # Errors
    /// The file system's error, such as a full disk; `ErrorKind::Cancelled` once the file was renamed,
    /// removed or kept.
    pub(crate) fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), Error> {
        // Hold the lock while writing, so that `settle` waits for the end of the write.
        let is_open = self.is_open.lock().unwrap_or_else(PoisonError::into_inner);
        if !*is_open {
            return Err(Error::cancelled(self.path.display().to_string()));
        }
        self.file.write_all_at(bytes, offset).map_err(|e| Error::local(&self.path, "can't be written", e))
    }

    /// Returns whether the file has a journal, so that a later run can continue it.
    pub(crate) fn is_journaled(&self) -> bool {
        self.journal.is_some()
    }

    /// Records in the journal that a range of bytes was written at `start`. Does nothing for a file without a
    /// journal.
    pub(crate) fn claim(&self, start: u64, run: &RangeChecksums) {
        let is_open = self.is_open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((journal, _)) = self.journal.as_ref().filter(|_| *is_open && run.len > 0) {
            journal.claim(start, run);
            let watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(watcher) = watcher.as_ref() {
                // Ignore the error: the receiver may not need further ranges.
                let _ = watcher.send(start..start + run.len);
            }
        }
    }

    /// Returns a channel of the ranges that are claimed from now on. [`end_watch`](Self::end_watch) closes
    /// it.
    pub(crate) fn watch(&self) -> UnboundedReceiver<Range<u64>> {
        let (watcher, ranges) = unbounded_channel();
        *self.watcher.lock().unwrap_or_else(PoisonError::into_inner) = Some(watcher);
        ranges
    }

    /// Closes the channel that [`watch`](Self::watch) returned.
    pub(crate) fn end_watch(&self) {
        *self.watcher.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Returns the journal's claims in order, or none if the file has no journal.
    pub(crate) fn claims(&self) -> Vec<Claim> {
        let claims = self.journal.as_ref().and_then(|(journal, _)| journal.claims().ok());
        let len = self.file.metadata().map_or(0, |metadata| metadata.len());
        settled_claims(claims.unwrap_or_default(), len, Claim::range)
    }

    /// Reads a range of the file and returns its checksums. Stops when `is_cancelled` returns true. Blocks
    /// the thread.
    ///
    /// # Errors
    /// The file system's error; `ErrorKind::Cancelled`.
    pub(crate) fn read_back(
        &self,
        range: Range<u64>,
        wanted: ChecksumSet,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<RangeChecksums, Error> {
        match partial::read_back(&self.file, range, wanted, is_cancelled) {
            Ok(Some(run)) => Ok(run),
            Ok(None) => Err(Error::cancelled(self.path.display().to_string())),
            Err(e) => Err(Error::local(&self.path, "can't be read back", e)),
        }
    }

    /// Reads a range of the file and passes its bytes to `take` in order. Stops when `is_cancelled` returns
    /// true. Blocks the thread.
    ///
    /// # Errors
    /// The file system's error; `ErrorKind::Cancelled`.
    pub(crate) fn read_through(
        &self,
        range: Range<u64>,
        is_cancelled: &dyn Fn() -> bool,
        take: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Error> {
        match partial::read_through(&self.file, range, is_cancelled, take) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::cancelled(self.path.display().to_string())),
            Err(e) => Err(Error::local(&self.path, "can't be read back", e)),
        }
    }

    /// Returns the metadata of the file. The metadata stays the same when the file gets its final name.
    ///
    /// # Errors
    /// The file system's error.
    pub(crate) fn metadata(&self) -> std::io::Result<std::fs::Metadata> {
        self.file.metadata()
    }

    /// Renames the file to its destination. Replaces an existing file, unless `placing` forbids that.
    ///
    /// # Errors
    /// The file system's error, or an error for a destination that must not be replaced. After an error the
    /// destination is unchanged, unless only the flush of its directory failed.
    pub(crate) fn commit(&self, placing: CommitOptions) -> Result<(), Error> {
        self.set(placing.attributes).map_err(|e| Error::local(&self.path, "its times can't be set", e))?;
        if placing.durable {
            self.file.sync_all().map_err(|e| Error::local(&self.path, "can't be flushed", e))?;
        }
        self.check_name()?;
        if let Some((_, journal)) = &self.journal {
            // Remove the journal before the rename. If the program were killed between the rename and a later
            // removal, the journal would stay forever. Later runs find the complete file and don't look for a
            // journal.
            let _ = unlinkat(&*self.directory, &**journal, AtFlags::empty());
        }
        let name = &*self.place.name;
        let renamed = match placing.only_absent {
            true => rename_where_absent(&self.directory, &self.temporary, name),
            false => renameat(&*self.directory, &*self.temporary, &*self.directory, name),
        };
        renamed.map_err(|e| match e {
            Errno::EXIST => Error::exists(self.path.display().to_string(), EXISTS_BY_NOW),
            // Another download has meanwhile created a directory with this name, for an object whose key
            // begins with this key and a slash.
            Errno::ISDIR => Error::refused(self.path.display().to_string(), IS_A_DIRECTORY),
            e => Error::local(&self.path, "its temporary file can't be renamed to this name", e),
        })?;
        self.settle();
        if placing.durable {
            self.place
                .flush(&self.directory)
                .map_err(|e| Error::local(&self.path, "its directory can't be flushed", e))?;
        }
        Ok(())
    }

    /// Decodes the file into another temporary one, and puts that one in place. Stops when `is_cancelled`
    /// returns true. Blocks the thread.
    ///
    /// # Errors
    /// The errors of [`commit`](Self::commit), an error if the bytes aren't in this encoding, and
    /// `ErrorKind::Cancelled`. In the last two cases, the destination is unchanged.
    pub(crate) fn commit_decoded(
        &self,
        encoding: ContentEncoding,
        placing: CommitOptions,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        let plain = Self::create(&self.place, Arc::clone(&self.directory), 0, DECODED)?;
        let mut to = DecodedFile { staged: &plain, len: 0, is_cancelled, failure: None };
        let from = BufReader::with_capacity(DECODE, PositionedReader { file: &self.file, at: 0 });
        if let Err(error) = encoding.decode(from, &mut to) {
            let why = format!("can't be decompressed as its Content-Encoding says: {error}");
            let path = self.path.display().to_string();
            return Err(to.failure.unwrap_or_else(|| Error::source(path, why)));
        }
        plain.commit(placing)?;
        self.abandon();
        Ok(())
    }

    /// Sets the file's owner, mode and modification time, as far as they are known. If the system doesn't
    /// permit changing the owner, the current user remains the owner.
    fn set(&self, attributes: PosixAttributes) -> io::Result<()> {
        let PosixAttributes { mtime, mode, uid, gid } = attributes;
        if (uid, gid) != (None, None) {
            match fchown(&self.file, uid, gid) {
                Err(e) if e.kind() != io::ErrorKind::PermissionDenied => return Err(e),
                _ => {}
            }
        }
        if let Some(mode) = mode {
            self.file.set_permissions(Permissions::from_mode(mode))?;
        }
        let time = mtime.and_then(|(s, ns)| {
            let whole = Duration::from_secs(s.unsigned_abs());
            let time = if s < 0 { UNIX_EPOCH.checked_sub(whole) } else { UNIX_EPOCH.checked_add(whole) };
            time?.checked_add(Duration::from_nanos(ns.into()))
        });
        match time {
            Some(time) => self.file.set_modified(time),
            None => Ok(()),
        }
    }

    /// Checks that the temporary name still refers to this file. Otherwise the rename would put another file
    /// in the destination. For example, the temporary file's name can be the key of an object whose download
    /// has replaced the file.
    fn check_name(&self) -> Result<(), Error> {
        if self.journal.is_none() {
            return Ok(());
        }
        let failed = |e| Error::local(&self.path, "its attributes can't be read", e);
        let held = fstat(&self.file).map_err(failed)?;
        let what = match statat(&*self.directory, &*self.temporary, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if (stat.st_ino, stat.st_dev) == (held.st_ino, held.st_dev) => return Ok(()),
            Ok(_) => "replaced",
            Err(Errno::NOENT) => "removed",
            Err(e) => return Err(failed(e)),
        };
        // The temporary name now belongs to another file. End the writes, so that `Drop` doesn't remove that
        // file.
        self.settle();
        let why = format!("its temporary file {} was {what} during the download", self.temporary.display());
        Err(Error::refused(self.path.display().to_string(), why))
    }

    /// Keeps the file for a later run, and returns how many bytes that run need not fetch. If the journal
    /// claims no bytes, removes the file and returns `None`.
    pub(crate) fn keep(&self) -> Option<u64> {
        if !self.settle() {
            return None;
        }
        // Count only now: after `settle`, no thread can add claims.
        let claimed = self.journal.as_ref().map_or(0, |(journal, _)| journal.claimed());
        if claimed == 0 {
            self.remove();
            return None;
        }
        partial::release(&self.file);
        Some(claimed)
    }

    /// Removes the file unless it was committed or kept. `Drop` does the same, but only when the last owner
    /// drops this value.
    pub(crate) fn abandon(&self) {
        if self.settle() {
            self.remove();
        }
    }

    fn remove(&self) {
        // Ignore errors, because the files may already be gone. Remove the journal first: a process that
        // finds only the file starts from the beginning, which is safe.
        if let Some((_, journal)) = &self.journal {
            let _ = unlinkat(&*self.directory, &**journal, AtFlags::empty());
        }
        let _ = unlinkat(&*self.directory, &*self.temporary, AtFlags::empty());
    }

    /// Waits until a running write has ended, and refuses further writes. Returns whether writes were still
    /// possible before this call.
    fn settle(&self) -> bool {
        std::mem::replace(&mut *self.is_open.lock().unwrap_or_else(PoisonError::into_inner), false)
    }
}

impl Drop for StagedFile {
    fn drop(&mut self) {
        self.abandon();
    }
}

/// Creates a new temporary file, and returns it with its name. First tries a name that depends only on the
/// destination and on `kind`, so that the new file replaces one that a killed run left. If that name can't be
/// used, for example because another process has locked such a file, takes a random name.
fn begin(
    directory: &OwnedFd,
    name: &OsStr,
    kind: &str,
    no_locks: &AtomicBool,
) -> io::Result<(File, OsString)> {
    let own = PartialNames::of(name, kind).part;
    if let Some(file) = partial::make(directory, &own, no_locks)? {
        return Ok((file, own));
    }
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut attempt = 0;
    loop {
        let random = format!("{:08x}", RandomState::new().hash_one(attempt) as u32);
        let temporary = temporary_name(name, &random, "part");
        // The kernel removes the umask's bits from this mode.
        match openat(directory, &*temporary, flags, Mode::from_raw_mode(0o666)) {
            Ok(fd) => return Ok((File::from(fd), temporary)),
            Err(Errno::EXIST) if attempt < NAMES_TRIED_MAX => attempt += 1,
            Err(e) => return Err(e.into()),
        }
    }
}

/// Returns `.NAME.laneway-MARK.KIND`. NAME is shortened so that the result fits into a directory entry.
pub(super) fn temporary_name(name: &OsStr, mark: &str, kind: &str) -> OsString {
    let suffix = format!(".laneway-{mark}.{kind}");
    let room = NAME_MAX - 1 - suffix.len();
    let bytes = name.as_bytes();
    let mut end = bytes.len().min(room);
    // Don't cut inside a UTF-8 character, because some file systems refuse such a name.
    while end < bytes.len() && end > 0 && bytes[end] & 0xc0 == 0x80 {
        end -= 1;
    }
    let mut temporary = OsString::from(".");
    temporary.push(OsStr::from_bytes(&bytes[..end]));
    temporary.push(suffix);
    temporary
}

/// Returns whether [`temporary_name`] could have made this name. MARK has 8 hexadecimal digits if it is
/// random, and 16 if it is derived from the destination. Files with other names are the user's, and Laneway
/// doesn't remove them.
pub(crate) fn is_temporary_name(name: &str) -> bool {
    let Some((rest, kind)) = name.rsplit_once('.') else { return false };
    let Some((named, mark)) = rest.rsplit_once(".laneway-") else { return false };
    let is_hex = mark.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let is_kind = matches!((kind, mark.len()), ("part", 8 | 16) | ("journal", 16));
    named.len() > 1 && named.starts_with('.') && is_hex && is_kind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_are_given_to_temporary_files_are_theirs() {
        for (name, mark, kind) in [
            ("k.txt", "0000beef", "part"),
            ("k", "0123456789abcdef", "part"),
            (".laneway-0123456789abcdef.part", "0123456789abcdef", "journal"),
            (&"ü".repeat(127), "0123456789abcdef", "journal"),
        ] {
            let temporary = temporary_name(OsStr::new(name), mark, kind);
            assert!(is_temporary_name(temporary.to_str().unwrap()), "{temporary:?}");
        }
        for own in [
            "",
            "k.txt",
            ".laneway-0123456789abcdef.part",
            "..laneway-0123456789abcdef.part.",
            "k.laneway-0123456789abcdef.part",
            ".k.laneway-0123456789abcdef.parts",
            ".k.laneway-0123456789abcdef.part.gz",
            ".k.laneway-0123456789ABCDEF.part",
            ".k.laneway-0123456789abcdeg.part",
            ".k.laneway-0123456789abcde.part",
            ".k.laneway-.part",
            ".k.laneway-0000beef.journal",
            ".k-laneway-0000beef.part",
            ".part",
        ] {
            assert!(!is_temporary_name(own), "{own}");
        }
    }

    #[test]
    fn temporary_names_are_hidden_and_fit_a_directory_entry() {
        assert_eq!(temporary_name(OsStr::new("k.txt"), "0000beef", "part"), ".k.txt.laneway-0000beef.part");
        let long = temporary_name(OsStr::new(&"ü".repeat(127)), "0123456789abcdef", "journal");
        assert!(long.len() <= NAME_MAX && long.to_str().is_some());
    }
}
