//! Temporary files that outlive a run. Their names derive from the destination's name and the source's URL. A
//! process holds such a file by a lock, one process at a time.

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

use super::journal::{Claim, Journal, Subject, read};
use super::staged::temporary_name;
use crate::content::checksum::{Hashing, Run, Wanted};
use crate::plan::resume::settled;

/// The number of tries to open and lock a file. Another process may commit or remove the file between the two
/// steps.
const RACES_MAX: u32 = 16;
/// The mode of the user's files, before the umask.
const SHARED: Mode = Mode::from_raw_mode(0o666);
const READ: usize = 256 << 10;

pub(super) struct Names {
    pub(super) part: OsString,
    pub(super) journal: OsString,
}

impl Names {
    /// Returns the names for the file `name` from `url`. The same input always gives the same names.
    pub(super) fn of(name: &OsStr, url: &str) -> Self {
        let mut hash = crc_fast::Digest::new(CrcAlgorithm::Crc64Nvme);
        hash.update(url.as_bytes());
        // URLs and names contain no NUL, so different pairs give different bytes.
        hash.update(b"\0");
        hash.update(name.as_bytes());
        let hash = format!("{:016x}", hash.finalize());
        Self { part: temporary_name(name, &hash, "part"), journal: temporary_name(name, &hash, "journal") }
    }
}

/// A temporary file that this process holds, its journal, and the ranges that it already has.
pub(super) struct Partial {
    pub(super) file: File,
    pub(super) journal: Journal,
    pub(super) done: Vec<(u64, Run)>,
}

/// The way in which a partial file is opened.
pub(crate) struct TakeUp<'a> {
    pub(crate) subject: &'a Subject,
    /// True if existing content is ignored.
    pub(crate) fresh: bool,
    /// The number of the machine's current boot; see [`crate::local::platform`].
    pub(crate) boot: u64,
    /// Called now and then while the file is read back. If it returns true, reading ends.
    pub(crate) is_cancelled: &'a dyn Fn() -> bool,
}

/// Opens the partial file of a destination. Begins a new file if there is none, or if the existing one is of
/// another object or version.
///
/// Returns `None` if another process holds the file, if it belongs to another user, or if the file system has
/// no locks. Then the caller uses a file with a random name, which can't be resumed.
pub(super) fn take_up(directory: &OwnedFd, names: &Names, how: &TakeUp<'_>) -> io::Result<Option<Partial>> {
    let Some(file) = hold(directory, &names.part, OFlags::CREATE, SHARED)? else { return Ok(None) };
    // Only the process that holds the file touches its journal.
    let journal = match open_own(directory, &names.journal, OFlags::CREATE, SHARED) {
        Ok(Some(journal)) => journal,
        none => {
            // An existing journal of another user stays.
            if none.is_err() {
                remove_new(directory, &names.journal);
            }
            remove_new(directory, &names.part);
            return none.map(|_| None);
        }
    };
    match go_on(&file, journal, how) {
        Ok((journal, done)) => Ok(Some(Partial { file, journal, done })),
        Err(e) => {
            // Remove the file, because the caller begins another one instead.
            remove(directory, names);
            Err(e)
        }
    }
}

/// Continues a partial file that this process holds, or begins it anew.
fn go_on(file: &File, journal: File, how: &TakeUp<'_>) -> io::Result<(Journal, Vec<(u64, Run)>)> {
    let TakeUp { subject, fresh, boot, .. } = *how;
    let claims = match !fresh && file.metadata()?.len() == subject.size {
        // An unreadable journal counts as empty.
        true => read_journal(&journal, subject).ok().flatten(),
        false => None,
    };
    let Some(claims) = claims else {
        return Ok((begin(file, journal, subject, boot)?, Vec::new()));
    };
    let (certain, doubtful): (Vec<_>, Vec<_>) =
        claims.into_iter().partition(|claim| boot != 0 && claim.boot == boot);
    let mut certain = settled(certain, subject.size, Claim::range);
    // Skip claims of an earlier boot if this boot has claimed the same ranges again.
    let candidates = doubtful.iter().copied().filter(|claim| !overlaps(&certain, claim)).collect();
    let read_back = confirmed(file, settled(candidates, subject.size, Claim::range), how);
    let claimed = match (how.is_cancelled)() {
        // Reading back was cut short, so keep all claims for a later run.
        true => doubtful.iter().chain(&certain).map(|claim| u64::from(claim.len)).sum(),
        false => certain.iter().chain(&read_back).map(|claim| u64::from(claim.len)).sum(),
    };
    let journal = Journal::new(journal, subject, boot, Some(claimed))?;
    for claim in &read_back {
        journal.record(claim.start, &claim.run(subject.crc));
    }
    certain.extend(read_back);
    certain.sort_by_key(|claim| claim.start);
    Ok((journal, joined(&certain, subject)))
}

/// Gives the file the right size, and begins an empty journal.
fn begin(file: &File, journal: File, subject: &Subject, boot: u64) -> io::Result<Journal> {
    // Remove the claims before the bytes that they describe.
    let journal = Journal::new(journal, subject, boot, None)?;
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

/// Returns the claims whose checksums match the file's bytes. Unreadable ranges don't match.
fn confirmed(file: &File, claims: Vec<Claim>, how: &TakeUp<'_>) -> Vec<Claim> {
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

/// Returns the checksums of a range of a file. Returns `None` if `is_cancelled` returns true meanwhile.
pub(super) fn read_back(
    file: &File,
    range: Range<u64>,
    wanted: Wanted,
    is_cancelled: &dyn Fn() -> bool,
) -> io::Result<Option<Run>> {
    let mut hashing = Hashing::new(wanted);
    let is_read = read_through(file, range, is_cancelled, &mut |bytes| hashing.update(bytes))?;
    Ok(is_read.then(|| hashing.finish()))
}

/// Passes the bytes of a range of a file to the caller in order. Returns false if `is_cancelled` returns true
/// meanwhile.
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

/// Joins adjacent claims, and returns them as runs.
fn joined(claims: &[Claim], subject: &Subject) -> Vec<(u64, Run)> {
    let mut runs: Vec<(u64, Run)> = Vec::new();
    for claim in claims {
        let run = claim.run(subject.crc);
        match runs.last_mut() {
            Some((start, before)) if *start + before.len == claim.start => *before = before.then(run),
            _ => runs.push((claim.start, run)),
        }
    }
    runs
}

fn read_journal(journal: &File, subject: &Subject) -> io::Result<Option<Vec<Claim>>> {
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

/// Returns whether there is a partial file of this name with a journal.
pub(super) fn exists(directory: &OwnedFd, names: &Names) -> bool {
    let is_there = |name: &OsStr| statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
    is_there(&names.part) && is_there(&names.journal)
}

/// Removes a partial file and its journal, unless another process holds them.
pub(super) fn discard(directory: &OwnedFd, names: &Names) {
    if let Ok(Some(_held)) = hold(directory, &names.part, OFlags::empty(), SHARED) {
        remove(directory, names);
    }
}

/// Removes the partial file and its journal, which this process holds.
pub(super) fn remove(directory: &OwnedFd, names: &Names) {
    // The files may be gone already, so ignore errors. Remove the journal first: a process that finds the
    // file alone begins anew.
    let _ = unlinkat(directory, &*names.journal, AtFlags::empty());
    let _ = unlinkat(directory, &*names.part, AtFlags::empty());
}

/// Opens a file and locks it. Returns `None` if this process must not use it: another process has locked it,
/// it belongs to another user, or locks are missing. A new file gets the mode, minus the umask.
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
            // The file system has no locks, so the file can't be resumed.
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
        // Another process may have committed or removed the file before the lock was taken.
        let held = fstat(&file)?;
        match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if (stat.st_ino, stat.st_dev) == (held.st_ino, held.st_dev) => return Ok(Some(file)),
            Ok(_) | Err(Errno::NOENT) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(None)
}

/// Removes an empty file that was just created but can't be used. A file with content existed before, and
/// stays.
fn remove_new(directory: &OwnedFd, name: &OsStr) {
    if statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|stat| is_empty_file(&stat)) {
        let _ = unlinkat(directory, name, AtFlags::empty());
    }
}

fn is_empty_file(stat: &rustix::fs::Stat) -> bool {
    stat.st_size == 0 && super::kind(stat) == FileType::RegularFile
}

/// Creates a new file and locks it. Replaces a file of the same name that an earlier run left. Returns `None`
/// if another process holds that file, if it belongs to another user, or if the file system has no locks,
/// which `no_locks` remembers. The new file has the mode of user files.
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
            // Another run may have removed the file as a leftover before the lock was taken.
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

/// Opens a file that belongs to this user alone. The name is predictable. So in a folder that other users can
/// write to, it may be anything: a link to another file, a pipe, or a file that another user keeps open.
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
    // Closing the file would do the same a little later.
    let _ = flock(file, FlockOperation::Unlock);
}

#[cfg(test)]
mod tests;
