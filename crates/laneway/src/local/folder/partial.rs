//! Partial files: temporary files of downloads that a later run can resume. Their names are derived from the
//! destination's name and the source's URL, so that the later run finds them. A lock ensures that only one
//! process uses such a file at a time.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::atomic::{AtomicBool, Ordering};

use crc_fast::CrcAlgorithm;
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, flock, fstat, openat, statat, unlinkat};
use rustix::io::Errno;

use super::journal::{Claim, DownloadJournal, DownloadSubject, read};
use super::staged::temporary_name;
use crate::content::checksum::{ChecksumHasher, ChecksumSet, RangeChecksums};
use crate::plan::slices::settled_claims;

/// The maximum number of attempts to open and then lock a file. Between the two steps, another process can
/// rename or remove the file.
const RACES_MAX: u32 = 16;
/// The usual mode of files. The system removes the bits of the umask from it.
const SHARED: Mode = Mode::from_raw_mode(0o666);
const READ: usize = 256 << 10;

pub(super) struct PartialNames {
    pub(super) part: OsString,
    pub(super) journal: OsString,
}

impl PartialNames {
    /// Returns the names of the partial file and the journal for the destination `name` and the source `url`.
    /// The same input always gives the same names.
    pub(super) fn of(name: &OsStr, url: &str) -> Self {
        let mut hash = crc_fast::Digest::new(CrcAlgorithm::Crc64Nvme);
        hash.update(url.as_bytes());
        // URLs and names contain no NUL, so different pairs of URL and name give different bytes.
        hash.update(b"\0");
        hash.update(name.as_bytes());
        let hash = format!("{:016x}", hash.finalize());
        Self { part: temporary_name(name, &hash, "part"), journal: temporary_name(name, &hash, "journal") }
    }
}

/// A partial file that this process has locked, its journal, and the ranges of bytes that the file already
/// has, each with its offset.
pub(super) struct PartialFile {
    pub(super) file: File,
    pub(super) journal: DownloadJournal,
    pub(super) done: Vec<(u64, RangeChecksums)>,
}

/// The arguments for opening a partial file.
pub(crate) struct PartialRequest<'a> {
    pub(crate) subject: &'a DownloadSubject,
    /// True if the download starts from the beginning and ignores existing content.
    pub(crate) fresh: bool,
    /// Identifies the machine's current boot; see [`crate::local::platform`].
    pub(crate) boot: u64,
    /// Laneway calls this function before it reads each buffer back from the file. If the function returns
    /// true, reading ends.
    pub(crate) is_cancelled: &'a dyn Fn() -> bool,
}

/// Opens the partial file of a destination. Begins a new file if there is none, or if the existing one
/// belongs to another object or version.
///
/// Returns `None` if another process has locked the file, if it belongs to another user, or if the file
/// system has no locks. In these cases the caller uses a file with a random name, which can't be resumed.
pub(super) fn take_up(
    directory: &OwnedFd,
    names: &PartialNames,
    how: &PartialRequest<'_>,
) -> io::Result<Option<PartialFile>> {
    let Some(file) = hold(directory, &names.part, OFlags::CREATE, SHARED)? else { return Ok(None) };
    // Lock the file before opening the journal. Only the process that holds the lock may use the journal.
    let journal = match open_own(directory, &names.journal, OFlags::CREATE, SHARED) {
        Ok(Some(journal)) => journal,
        none => {
            // `Ok(None)` means that the journal belongs to another user. So remove the journal only after an
            // error.
            if none.is_err() {
                remove_new(directory, &names.journal);
            }
            remove_new(directory, &names.part);
            return none.map(|_| None);
        }
    };
    match go_on(&file, journal, how) {
        Ok((journal, done)) => Ok(Some(PartialFile { file, journal, done })),
        Err(e) => {
            // Remove the file, because the caller uses another one instead.
            remove(directory, names);
            Err(e)
        }
    }
}

/// Continues a partial file that this process has locked, or begins it again if its content can't be used.
fn go_on(
    file: &File,
    journal: File,
    how: &PartialRequest<'_>,
) -> io::Result<(DownloadJournal, Vec<(u64, RangeChecksums)>)> {
    let PartialRequest { subject, fresh, boot, .. } = *how;
    let claims = match !fresh && file.metadata()?.len() == subject.size {
        // If the journal can't be read, the download starts from the beginning.
        true => read_journal(&journal, subject).ok().flatten(),
        false => None,
    };
    let Some(claims) = claims else {
        return Ok((begin(file, journal, subject, boot)?, Vec::new()));
    };
    let (certain, doubtful): (Vec<_>, Vec<_>) =
        claims.into_iter().partition(|claim| boot != 0 && claim.boot == boot);
    let mut certain = settled_claims(certain, subject.size, Claim::range);
    // Ignore claims of an earlier boot that overlap claims of the current boot. Laneway has overwritten
    // their bytes in the current boot.
    let candidates = doubtful.iter().copied().filter(|claim| !overlaps(&certain, claim)).collect();
    let read_back = confirmed(file, settled_claims(candidates, subject.size, Claim::range), how);
    let claimed = match (how.is_cancelled)() {
        // The cancelled job has not read all claims back, so keep all of them for a later run.
        true => doubtful.iter().chain(&certain).map(|claim| u64::from(claim.len)).sum(),
        false => certain.iter().chain(&read_back).map(|claim| u64::from(claim.len)).sum(),
    };
    let journal = DownloadJournal::new(journal, subject, boot, Some(claimed))?;
    for claim in &read_back {
        journal.record(claim.start, &claim.run(subject.crc));
    }
    certain.extend(read_back);
    certain.sort_by_key(|claim| claim.start);
    Ok((journal, joined(&certain, subject)))
}

/// Begins an empty journal. Empties the file, and then extends it to the object's size.
fn begin(file: &File, journal: File, subject: &DownloadSubject, boot: u64) -> io::Result<DownloadJournal> {
    // Empty the journal first, so that it never claims bytes that the file has lost.
    let journal = DownloadJournal::new(journal, subject, boot, None)?;
    file.set_len(0)?;
    file.set_len(subject.size)?;
    Ok(journal)
}

/// Returns whether a claim overlaps one of the `sorted` claims, which are in order and don't overlap each
/// other.
fn overlaps(sorted: &[Claim], claim: &Claim) -> bool {
    let range = claim.range();
    let next = sorted.partition_point(|other| other.range().end <= range.start);
    sorted.get(next).is_some_and(|other| other.start < range.end)
}

/// Reads the claimed ranges, and returns the claims whose checksums match the file's bytes. Leaves out ranges
/// that can't be read.
fn confirmed(file: &File, claims: Vec<Claim>, how: &PartialRequest<'_>) -> Vec<Claim> {
    let crc = how.subject.crc;
    let mut good = Vec::new();
    for claim in claims {
        match read_back(file, claim.range(), crc.wanted(), how.is_cancelled) {
            Ok(Some(run)) if run.value(crc) == Some(claim.sum) => good.push(claim),
            Ok(Some(_)) | Err(_) => {}
            Ok(None) => break,
        }
    }
    good
}

/// Reads a range of a file and returns its checksums. Returns `None` if `is_cancelled` returned true.
pub(super) fn read_back(
    file: &File,
    range: Range<u64>,
    wanted: ChecksumSet,
    is_cancelled: &dyn Fn() -> bool,
) -> io::Result<Option<RangeChecksums>> {
    let mut hashing = ChecksumHasher::new(wanted);
    let is_read = read_through(file, range, is_cancelled, &mut |bytes| hashing.update(bytes))?;
    Ok(is_read.then(|| hashing.finish()))
}

/// Reads a range of a file and passes its bytes to `take` in order. Returns false if `is_cancelled` returned
/// true.
pub(super) fn read_through(
    file: &File,
    range: Range<u64>,
    is_cancelled: &dyn Fn() -> bool,
    take: &mut dyn FnMut(&[u8]),
) -> io::Result<bool> {
    let mut buffer = vec![0; READ.min((range.end - range.start) as usize)];
    let mut at = range.start;
    while at < range.end {
        if is_cancelled() {
            return Ok(false);
        }
        let want = READ.min((range.end - at) as usize);
        file.read_exact_at(&mut buffer[..want], at)?;
        take(&buffer[..want]);
        at += want as u64;
    }
    Ok(true)
}

/// Joins adjacent claims, and returns the resulting ranges with their offsets.
fn joined(claims: &[Claim], subject: &DownloadSubject) -> Vec<(u64, RangeChecksums)> {
    let mut runs: Vec<(u64, RangeChecksums)> = Vec::new();
    for claim in claims {
        let run = claim.run(subject.crc);
        match runs.last_mut() {
            Some((start, before)) if *start + before.len == claim.start => *before = before.then(run),
            _ => runs.push((claim.start, run)),
        }
    }
    runs
}

fn read_journal(journal: &File, subject: &DownloadSubject) -> io::Result<Option<Vec<Claim>>> {
    let len = journal.metadata()?.len();
    if len > subject.journal_max() {
        return Ok(None);
    }
    let mut bytes = vec![0; len as usize];
    match journal.read_exact_at(&mut bytes, 0) {
        Ok(()) => Ok(read(&bytes, &subject.header())),
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(e) => Err(e),
    }
}

/// Returns whether both the partial file and its journal exist.
pub(super) fn exists(directory: &OwnedFd, names: &PartialNames) -> bool {
    let is_there = |name: &OsStr| statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
    is_there(&names.part) && is_there(&names.journal)
}

/// Removes a partial file and its journal, unless another process has locked the file.
pub(super) fn discard(directory: &OwnedFd, names: &PartialNames) {
    if let Ok(Some(_held)) = hold(directory, &names.part, OFlags::empty(), SHARED) {
        remove(directory, names);
    }
}

/// Removes a partial file that this process has locked, and its journal.
pub(super) fn remove(directory: &OwnedFd, names: &PartialNames) {
    // Ignore errors, because the files may already be gone. Remove the journal first: a process that finds
    // only the file starts from the beginning, which is safe.
    let _ = unlinkat(directory, &*names.journal, AtFlags::empty());
    let _ = unlinkat(directory, &*names.part, AtFlags::empty());
}

/// Opens a file and locks it. Returns `None` if this process must not use the file, because another process
/// has locked it, it belongs to another user, or the file system has no locks. A new file gets `mode` without
/// the bits of the umask.
pub(crate) fn hold(
    directory: &OwnedFd,
    name: &OsStr,
    create: OFlags,
    mode: Mode,
) -> io::Result<Option<File>> {
    let is_lacking = |e: Errno| matches!(e, Errno::OPNOTSUPP | Errno::NOLCK | Errno::NOSYS);
    match held(directory, name, create, mode) {
        Ok(held) => Ok(held),
        Err(e) => {
            remove_new(directory, name);
            // Without locks, two processes could write the same file. So the caller uses a random name
            // instead, and the download can't be resumed.
            if Errno::from_io_error(&e).is_some_and(is_lacking) { Ok(None) } else { Err(e) }
        }
    }
}

fn held(directory: &OwnedFd, name: &OsStr, create: OFlags, mode: Mode) -> io::Result<Option<File>> {
    for _ in 0..RACES_MAX {
        let Some(file) = open_own(directory, name, create, mode)? else { return Ok(None) };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(None),
            Err(e) => return Err(e.into()),
        }
        // Another process may have renamed or removed the file before this one locked it. Check that the name
        // still refers to the locked file.
        let held = fstat(&file)?;
        match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if (stat.st_ino, stat.st_dev) == (held.st_ino, held.st_dev) => return Ok(Some(file)),
            Ok(_) | Err(Errno::NOENT) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(None)
}

/// Removes a file that this process has just created and can't use. A file that isn't empty existed before,
/// and stays.
fn remove_new(directory: &OwnedFd, name: &OsStr) {
    if statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|stat| is_empty_file(&stat)) {
        let _ = unlinkat(directory, name, AtFlags::empty());
    }
}

fn is_empty_file(stat: &rustix::fs::Stat) -> bool {
    stat.st_size == 0 && super::kind(stat) == FileType::RegularFile
}

/// Creates a new file and locks it. Replaces a file of the same name that an earlier run left. Returns `None`
/// if another process has locked that file, if it belongs to another user, or if the file system has no
/// locks. If the file system has no locks, sets `no_locks`, so that later calls return `None` at once. The
/// new file has the usual mode of the user's files.
pub(super) fn make(directory: &OwnedFd, name: &OsStr, no_locks: &AtomicBool) -> io::Result<Option<File>> {
    if no_locks.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    for _ in 0..RACES_MAX {
        let file = match openat(directory, name, flags, SHARED) {
            Ok(fd) => File::from(fd),
            Err(Errno::EXIST) => match hold(directory, name, OFlags::empty(), SHARED) {
                // Don't reuse the old file, because its mode and times may have changed. Remove it while it
                // is locked.
                Ok(Some(_left)) => match unlinkat(directory, name, AtFlags::empty()) {
                    Ok(()) | Err(Errno::NOENT) => continue,
                    Err(_) => return Ok(None),
                },
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Ok(None) | Err(_) => return Ok(None),
            },
            Err(e) => return Err(e.into()),
        };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            // Another run may have removed the file as a leftover before this process locked it. So accept it
            // only if it still has a link.
            Ok(()) if fstat(&file).is_ok_and(|stat| stat.st_nlink > 0) => return Ok(Some(file)),
            Ok(()) | Err(Errno::WOULDBLOCK) => {}
            Err(_) => {
                no_locks.store(true, Ordering::Relaxed);
                remove_new(directory, name);
                return Ok(None);
            }
        }
    }
    Ok(None)
}

/// Opens a file if it is safe to use: a regular file of this user without further hard links. Other users can
/// predict the file's name. If they can write to the folder, they may have created something else with this
/// name: a link to another file, a pipe, or a file that they keep open.
pub(super) fn open_own(
    directory: &OwnedFd,
    name: &OsStr,
    create: OFlags,
    mode: Mode,
) -> io::Result<Option<File>> {
    let flags = create | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = match openat(directory, name, flags, mode) {
        Ok(fd) => File::from(fd),
        Err(Errno::LOOP | Errno::ACCESS | Errno::PERM | Errno::ISDIR | Errno::NXIO) => return Ok(None),
        Err(e) => return Err(e.into()),
    };
    let metadata = file.metadata()?;
    let is_own = metadata.uid() == rustix::process::geteuid().as_raw();
    Ok((metadata.is_file() && metadata.nlink() <= 1 && is_own).then_some(file))
}

/// Unlocks the file for other processes.
pub(super) fn release(file: impl AsFd) {
    // Ignore an error: closing the file later also unlocks it.
    let _ = flock(file, FlockOperation::Unlock);
}

#[cfg(test)]
mod tests;
