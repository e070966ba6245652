//! The destination folder of a download. Laneway opens each directory relative to its parent and follows no
//! symbolic links. So no object's key can make Laneway write outside the folder, even if another program
//! changes the tree at the same time.

#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod journal;
mod partial;
mod place;
mod remove;
mod staged;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, mkdirat, openat, statat};
use rustix::io::Errno;

use crate::Error;
use crate::engine::runtime;
use crate::local::platform::flush_directory;
use crate::location::relative::RelativePath;

pub(crate) use journal::{Claim, DownloadSubject};
pub(crate) use partial::{PartialRequest, hold};
pub(crate) use place::{FilePlace, LocalDestination, file_in_the_way};
pub(crate) use remove::{folds_case, has_exactly};
pub(crate) use staged::{CommitOptions, StagedFile, is_temporary_name};

/// The maximum number of directories that a folder keeps open. Listings are sorted, so few directories are in
/// use at a time.
const OPEN_MAX: usize = 128;
const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC).union(OFlags::RDONLY);

/// A destination folder and the open directories below it. Laneway creates the folder on disk when it writes
/// the first entry.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// Open directories, by their path below the folder. The folder itself has the empty path.
    open: Mutex<HashMap<String, Arc<OwnedFd>>>,
    flushed: Mutex<FlushedDirectories>,
    /// The directories that received files. `None` unless the job removes leftovers of earlier runs from
    /// these directories at its end.
    used: Option<Mutex<BTreeSet<String>>>,
    /// True once a call has shown that the file system has no locks.
    no_locks: AtomicBool,
}

impl Folder {
    /// Returns the folder at `path`. If `path` itself contains symbolic links, Laneway follows them, because
    /// the user chose this path.
    pub(crate) fn new(path: impl Into<PathBuf>) -> Arc<Self> {
        Arc::new(Self::at(path.into(), None))
    }

    /// Returns a folder that records which directories receive files, for
    /// [`remove_leftovers`](Self::remove_leftovers).
    pub(crate) fn noting(path: impl Into<PathBuf>) -> Arc<Self> {
        Arc::new(Self::at(path.into(), Some(Mutex::default())))
    }

    fn at(mut path: PathBuf, used: Option<Mutex<BTreeSet<String>>>) -> Self {
        if path.as_os_str().is_empty() {
            path = PathBuf::from(".");
        }
        let (open, flushed) = Default::default();
        Self { path, open, flushed, used, no_locks: AtomicBool::new(false) }
    }

    pub(crate) fn place(self: &Arc<Self>, name: &RelativePath) -> FilePlace {
        if let Some(used) = &self.used {
            let mut used = used.lock().unwrap_or_else(PoisonError::into_inner);
            if !used.contains(name.folder()) {
                used.insert(name.folder().to_owned());
            }
        }
        FilePlace {
            folder: Arc::clone(self),
            directory: name.folder().to_owned(),
            name: OsString::from(name.name()),
        }
    }

    /// Returns the full path of the relative name `below`, for messages.
    pub(crate) fn path_of(&self, below: &str) -> String {
        self.path.join(below).display().to_string()
    }

    /// Creates the directory `below` (empty for the folder itself) and all directories above it.
    ///
    /// # Errors
    /// If a file or a link has the name of one of these directories, or the file system refuses.
    pub(crate) fn create(&self, below: &str) -> Result<(), Error> {
        self.directory(below).map(drop)
    }

    /// Returns the directory `below`. Creates it if it is missing.
    fn directory(&self, below: &str) -> Result<Arc<OwnedFd>, Error> {
        if let Some(known) = self.known(below) {
            return Ok(known);
        }
        let opened = match below.rsplit_once('/') {
            _ if below.is_empty() => self.open_itself()?,
            Some((parent, name)) => self.open_in(&*self.directory(parent)?, below, name)?,
            None => self.open_in(&*self.directory("")?, below, below)?,
        };
        let opened = Arc::new(opened);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= runtime::descriptors_allowed(OPEN_MAX) {
            open.clear();
        }
        open.insert(below.to_owned(), Arc::clone(&opened));
        Ok(opened)
    }

    fn known(&self, below: &str) -> Option<Arc<OwnedFd>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).get(below).cloned()
    }

    /// Makes sure that the directory `below` survives a crash. Flushes its entry in its parent to disk,
    /// and likewise the entries of all directories above it. Inside the folder, this includes directories
    /// that this job didn't create, because a killed job may have created them. Above the folder, this
    /// includes only directories that this job created.
    fn flush_above(&self, below: &str) -> io::Result<()> {
        // Record a directory only after its entry was flushed. For later files in this directory, the record
        // means that no flush is needed.
        let mut at = below;
        while !at.is_empty() {
            let parent = at.rsplit_once('/').map_or("", |(parent, _)| parent);
            if !self.flushed().has(at) {
                flush_directory(&*self.directory(parent).map_err(io::Error::other)?)?;
                self.flushed().insert(at);
            }
            at = parent;
        }
        let made_in = self.flushed().made_in.clone();
        for path in made_in {
            flush_directory(&OwnedFd::from(File::open(&path)?))?;
            self.flushed().made_in.remove(&path);
        }
        Ok(())
    }

    fn flushed(&self) -> MutexGuard<'_, FlushedDirectories> {
        self.flushed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_itself(&self) -> Result<OwnedFd, Error> {
        let open = || rustix::fs::open(&self.path, DIRECTORY, Mode::empty());
        if let Ok(there) = open() {
            return Ok(there);
        }
        let missing = self.path.ancestors().take_while(|at| !at.as_os_str().is_empty() && !at.exists());
        let made_in = missing.map(|at| match at.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        });
        self.flushed().made_in.extend(made_in);
        std::fs::create_dir_all(&self.path).map_err(|e| Error::local(&self.path, "can't be created", e))?;
        open().map_err(|e| Error::local(&self.path, "can't be opened as a directory", e))
    }

    fn open_in(&self, parent: &OwnedFd, below: &str, name: &str) -> Result<OwnedFd, Error> {
        let open = || openat(parent, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty());
        let opened = match open() {
            Err(Errno::NOENT) => match mkdirat(parent, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => open(),
                Err(e) => return Err(Error::local(self.path.join(below), "can't be created", e)),
            },
            other => other,
        };
        opened.map_err(|e| {
            let path = self.path.join(below);
            match (e, statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).map(|s| kind(&s))) {
                (_, Ok(FileType::Symlink)) => Error::refused(
                    path.display().to_string(),
                    "is a symbolic link; Laneway writes nothing through links below the destination",
                ),
                (_, Ok(FileType::RegularFile)) => Error::refused(
                    path.display().to_string(),
                    "is a file, but a directory of that name is needed",
                ),
                (e, _) => Error::local(path, "can't be opened as a directory", e),
            }
        })
    }
}

fn kind(stat: &rustix::fs::Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode as rustix::fs::RawMode)
}

/// Returns whether `path` exists and is a pipe, a socket or a device. Such a destination takes bytes only in
/// order. Follows links.
pub(crate) fn is_stream(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// Returns whether `path` exists and is a directory. Follows links.
pub(crate) fn is_directory(path: &OsStr) -> bool {
    Path::new(path).is_dir()
}

/// The maximum number of directories that are remembered as flushed. Laneway flushes any further directory
/// again for each file in it.
const NAMES_MAX: usize = 1 << 16;

/// The directories whose entries a job has flushed to disk, and the directories that it must still flush.
#[derive(Default, Debug)]
struct FlushedDirectories {
    /// Directories whose entry in their parent was flushed, by their path below the folder.
    below: HashSet<String>,
    /// Directories above the folder in which this job created a directory. The job must still flush them.
    made_in: BTreeSet<PathBuf>,
}

impl FlushedDirectories {
    fn has(&self, below: &str) -> bool {
        self.below.contains(below)
    }

    fn insert(&mut self, below: &str) {
        if self.below.len() < NAMES_MAX {
            self.below.insert(below.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn place(folder: &Arc<Folder>, name: &str) -> FilePlace {
        folder.place(&RelativePath::new(name.to_owned()).unwrap())
    }

    fn write(place: &FilePlace, bytes: &[u8]) -> Result<(), Error> {
        let staged = place.stage(bytes.len() as u64)?;
        staged.write_at(bytes, 0)?;
        staged.commit(CommitOptions::default())
    }

    fn names(path: &Path) -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(path)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_appears_whole_with_its_folders_and_the_umasks_mode() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::new(dir.path().join("new/root"));
        write(&place(&folder, "a/b/c"), b"whole").unwrap();
        let path = dir.path().join("new/root/a/b/c");
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
        let expected =
            std::fs::File::create(dir.path().join("plain")).unwrap().metadata().unwrap().permissions();
        assert_eq!(path.metadata().unwrap().permissions().mode(), expected.mode());
        assert_eq!(names(path.parent().unwrap()), ["c"], "no temporary file is left");
    }

    #[test]
    fn a_file_given_up_leaves_the_old_one_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("f"), "old").unwrap();
        let folder = Folder::new(dir.path());
        let staged = place(&folder, "f").stage(10).unwrap();
        staged.write_at(b"half", 0).unwrap();
        assert_eq!(names(dir.path()).len(), 2);
        drop(staged);
        assert_eq!(names(dir.path()), ["f"]);
        assert_eq!(std::fs::read(dir.path().join("f")).unwrap(), b"old");
    }

    #[test]
    fn decoding_ends_when_it_is_cancelled_and_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let staged = place(&Folder::new(dir.path()), "f").stage(0).unwrap();
        staged.write_at(&crate::content::encoding::compress(&b"plain"[..]).unwrap(), 0).unwrap();
        let decode = |is_cancelled: bool| {
            staged.commit_decoded(
                crate::content::encoding::ContentEncoding::Gzip,
                CommitOptions::default(),
                &|| is_cancelled,
            )
        };
        assert!(decode(true).unwrap_err().is_cancelled());
        let names = names(dir.path());
        assert!(names.len() == 1 && is_temporary_name(&names[0]), "{names:?}");
        decode(false).unwrap();
        assert_eq!(std::fs::read(dir.path().join("f")).unwrap(), b"plain");
    }

    #[test]
    fn what_a_killed_run_left_of_a_file_goes_with_the_next_one() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::new(dir.path());
        let staged = place(&folder, "f").stage(10).unwrap();
        let [left] = &names(dir.path())[..] else { panic!("one temporary file") };
        assert!(is_temporary_name(left));
        // Imitate a killed run: leave a temporary file that no process has locked.
        let copy = dir.path().join("copy");
        std::fs::write(&copy, "half").unwrap();
        std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o600)).unwrap();
        drop(staged);
        std::fs::rename(copy, dir.path().join(left)).unwrap();
        write(&place(&folder, "f"), b"whole").unwrap();
        assert_eq!(names(dir.path()), ["f"]);
        let path = dir.path().join("f");
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
        assert_ne!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600, "it is a new file");
    }

    #[test]
    fn two_that_write_one_file_at_once_have_a_temporary_file_each() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::new(dir.path());
        let (first, second) = (place(&folder, "f").stage(1).unwrap(), place(&folder, "f").stage(1).unwrap());
        assert_eq!(names(dir.path()).len(), 2);
        first.write_at(b"1", 0).unwrap();
        second.write_at(b"2", 0).unwrap();
        second.commit(CommitOptions::default()).unwrap();
        assert_eq!(std::fs::read(dir.path().join("f")).unwrap(), b"2");
        first.commit(CommitOptions::default()).unwrap();
        assert_eq!(std::fs::read(dir.path().join("f")).unwrap(), b"1");
        assert_eq!(names(dir.path()), ["f"]);
    }

    #[test]
    fn the_names_of_all_directories_above_a_durable_file_are_flushed_once() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::new(dir.path().join("new/root"));
        folder.create("a/b").unwrap();
        assert_eq!(folder.flushed().made_in.len(), 2, "{:?}", folder.flushed());
        let durable = CommitOptions { durable: true, ..CommitOptions::default() };
        place(&folder, "a/b/f").stage(1).unwrap().commit(durable).unwrap();
        let has = |below: &str| folder.flushed().has(below);
        assert!(has("a") && has("a/b") && !has("c") && folder.flushed().made_in.is_empty());
    }

    #[test]
    fn a_link_below_the_destination_is_not_written_through() {
        let dir = tempfile::tempdir().unwrap();
        let (root, outside) = (dir.path().join("root"), dir.path().join("outside"));
        std::fs::create_dir_all(&root).unwrap();
        std::fs::create_dir_all(&outside).unwrap();
        std::fs::write(outside.join("f"), "theirs").unwrap();
        symlink(&outside, root.join("link")).unwrap();
        symlink(outside.join("f"), root.join("file")).unwrap();
        let folder = Folder::new(&root);
        for name in ["link/f", "link/sub/f", "file"] {
            let error = write(&place(&folder, name), b"x").unwrap_err();
            assert!(
                error.kind() == crate::ErrorKind::Refused && error.to_string().contains("symbolic link"),
                "{error}"
            );
        }
        assert_eq!(std::fs::read(outside.join("f")).unwrap(), b"theirs");
        assert_eq!(names(&outside), ["f"]);
    }

    #[test]
    fn a_file_and_a_folder_of_one_name_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::new(dir.path());
        write(&place(&folder, "a"), b"x").unwrap();
        let error = write(&place(&folder, "a/b"), b"x").unwrap_err();
        assert!(error.to_string().contains("is a file"), "{error}");
        write(&place(&folder, "d/e"), b"x").unwrap();
        let error = write(&place(&folder, "d"), b"x").unwrap_err();
        assert!(error.to_string().contains("is a directory"), "{error}");
    }

    #[test]
    fn a_folder_made_while_a_file_of_its_name_is_written_refuses_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::new(dir.path());
        let staged = place(&folder, "d").stage(1).unwrap();
        write(&place(&folder, "d/e"), b"x").unwrap();
        let error = staged.commit(CommitOptions::default()).unwrap_err();
        assert!(
            error.kind() == crate::ErrorKind::Refused && error.to_string().contains("is a directory"),
            "{error}"
        );
        drop(staged);
        assert_eq!(names(dir.path()), ["d"], "no temporary file is left");
    }

    #[test]
    fn a_file_created_meanwhile_stays_if_nothing_may_be_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::new(dir.path());
        let only_absent = CommitOptions { only_absent: true, ..CommitOptions::default() };
        let staged = place(&folder, "f").stage(1).unwrap();
        std::fs::write(dir.path().join("f"), b"theirs").unwrap();
        let error = staged.commit(only_absent).unwrap_err();
        assert!(error.is_precondition() && error.to_string().contains("left unchanged"), "{error}");
        drop(staged);
        assert_eq!(std::fs::read(dir.path().join("f")).unwrap(), b"theirs");
        place(&folder, "g").stage(1).unwrap().commit(only_absent).unwrap();
        assert_eq!(names(dir.path()), ["f", "g"]);
    }

    #[test]
    fn the_root_itself_may_be_a_link() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("real")).unwrap();
        symlink("real", dir.path().join("link")).unwrap();
        write(&place(&Folder::new(dir.path().join("link")), "f"), b"x").unwrap();
        assert!(dir.path().join("real/f").is_file());
    }

    #[test]
    fn a_named_link_is_followed_to_its_file_even_when_that_is_missing() {
        let dir = tempfile::tempdir().unwrap();
        symlink("target", dir.path().join("one")).unwrap();
        symlink("one", dir.path().join("two")).unwrap();
        let LocalDestination::Place(place) = LocalDestination::at(&dir.path().join("two")).unwrap() else {
            panic!()
        };
        write(&place, b"x").unwrap();
        assert_eq!(names(dir.path()), ["one", "target", "two"]);
        assert!(dir.path().join("two").symlink_metadata().unwrap().is_symlink());
    }

    #[test]
    fn devices_are_streams_and_directories_refused() {
        assert!(matches!(LocalDestination::at(Path::new("/dev/null")), Ok(LocalDestination::Stream(_))));
        assert!(
            LocalDestination::at(Path::new("/")).is_err_and(|e| e.to_string().contains("is a directory"))
        );
    }

    #[test]
    fn more_directories_than_are_kept_open_all_work() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::new(dir.path());
        for i in 0..2 * OPEN_MAX {
            write(&place(&folder, &format!("{i}/{i}/f")), b"x").unwrap();
        }
        assert_eq!(names(dir.path()).len(), 2 * OPEN_MAX);
    }

    #[test]
    fn a_name_of_255_bytes_has_room_for_its_temporary_name() {
        let dir = tempfile::tempdir().unwrap();
        let name = "ü".repeat(127) + "x";
        write(&place(&Folder::new(dir.path()), &name), b"x").unwrap();
        assert_eq!(names(dir.path()), [name]);
    }
}
