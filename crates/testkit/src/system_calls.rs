//! Records the system calls by which a program works on files, and disturbs some of them. At any call, a test can kill
//! the program, return an error such as a full disk, or read or write fewer bytes than requested.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::{env, fs};

use tempfile::TempDir;

use crate::{Program, Run};

/// The source of the library that is loaded into the program.
const SOURCE: &str = include_str!("system_calls.c");

/// The disturbance of a system call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Blow {
    /// The program ends before the call is made, as by `kill -9`.
    Kill,
    /// The call isn't made, and fails with this error number.
    Error(i32),
    /// Only half of the bytes are read or written.
    Shorten,
}

/// One call that a program made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Call {
    /// The operation: `create`, `open`, `truncate`, `write`, `read`, `flush` (a file), `flush-names` (a directory),
    /// `rename`, `link`, `unlink`, `mkdir`, `lock`, `times`, `mode`, `owner`, `look`, `list`.
    pub name: String,
    /// The result. A negative number is an error number. `None` if the program was killed instead.
    pub returned: Option<i64>,
    /// The file or directory.
    pub path: PathBuf,
    /// The new name, for a rename or a link.
    pub to: PathBuf,
    /// The call's number among all counted calls.
    pub number: u64,
}

/// Selects the system calls of a program to count, and those to disturb.
#[derive(Clone, Debug, Default)]
pub struct SystemCalls {
    below: Vec<PathBuf>,
    strike: Option<Strike>,
    kept: Option<PathBuf>,
    boot: Option<PathBuf>,
}

#[derive(Clone, Debug)]
struct Strike {
    /// The names of the calls that `nth` counts, separated by commas. `None` means all.
    names: Option<String>,
    nth: u64,
    times: u64,
    blow: Blow,
}

impl SystemCalls {
    /// Returns true if calls can be counted here: on Linux, with a C compiler and permission to use the kernel's
    /// filters. If not, it prints what is missing.
    pub fn can_be_struck() -> bool {
        static CAN: OnceLock<bool> = OnceLock::new();
        *CAN.get_or_init(|| {
            let what = match library() {
                Ok(library) if filters(library) => return true,
                Ok(_) => "the kernel doesn't let programs filter system calls".to_owned(),
                Err(why) => why.clone(),
            };
            println!("skipped: {what}");
            false
        })
    }

    /// Counts all calls on files and sockets, without reporting them.
    pub fn all() -> Self {
        Self::default()
    }

    /// Counts and reports the calls on files in one of these folders.
    pub fn below<P: AsRef<Path>>(folders: impl IntoIterator<Item = P>) -> Self {
        // Resolve symbolic links, because the kernel reports paths without them.
        let real = |folder: P| fs::canonicalize(folder).expect("the folder is there");
        Self { below: folders.into_iter().map(real).collect(), ..Self::default() }
    }

    /// Disturbs the `nth` counted call, counting from 1.
    #[must_use]
    pub fn strike(mut self, nth: u64, blow: Blow) -> Self {
        self.strike = Some(Strike { names: None, nth, times: 1, blow });
        self
    }

    /// Disturbs the `nth` call with this name, counting from 1.
    #[must_use]
    pub fn strike_named(self, name: &str, nth: u64, blow: Blow) -> Self {
        self.strike_from(&[name], nth, 1, blow)
    }

    /// Disturbs `times` calls with one of these names, beginning with the `nth`.
    #[must_use]
    pub fn strike_from(mut self, names: &[&str], nth: u64, times: u64, blow: Blow) -> Self {
        self.strike = Some(Strike { names: Some(names.join(",")), nth, times, blow });
        self
    }

    /// Keeps copies for [`cut_power`] in `folder`, which must be on the same file system. When the program flushes a
    /// file, a copy of its content is kept as `INODE.flushed`. When the program removes or replaces a file, the old
    /// file is kept as `NUMBER.lost`, with the number of the call.
    #[must_use]
    pub fn keeping(mut self, folder: &Path) -> Self {
        self.kept = Some(folder.to_owned());
        self
    }

    /// Makes the program read the machine's boot id from this file.
    #[must_use]
    pub fn boot(mut self, file: &Path) -> Self {
        self.boot = Some(file.to_owned());
        self
    }

    /// Runs a program to its end, and returns the calls that it made.
    ///
    /// # Panics
    /// Panics if calls can't be counted; see [`can_be_struck`](Self::can_be_struck).
    #[track_caller]
    pub fn run<I>(&self, program: &Program, arguments: I) -> (Run, Vec<Call>)
    where
        I: IntoIterator,
        I::Item: AsRef<OsStr>,
    {
        let (library, folder) = (library().as_ref().expect("a library"), TempDir::new().expect("a folder"));
        let log = folder.path().join("log");
        let mut program = program.clone().with("LD_PRELOAD", library).with("CALLS_LOG", &log);
        if !self.below.is_empty() {
            program =
                program.with("CALLS_BELOW", env::join_paths(&self.below).expect("paths without a colon"));
        }
        if let Some(Strike { names, nth, times, blow }) = &self.strike {
            let does = match blow {
                Blow::Kill => "kill".to_owned(),
                Blow::Error(number) => number.to_string(),
                Blow::Shorten => "shorten".to_owned(),
            };
            program = program.with("CALLS_AT", nth.to_string()).with("CALLS_TIMES", times.to_string());
            program = program.with("CALLS_DO", does).with("CALLS_ONLY", names.as_deref().unwrap_or_default());
        }
        for (name, value) in [("CALLS_KEPT", &self.kept), ("CALLS_BOOT", &self.boot)] {
            if let Some(value) = value {
                program = program.with(name, value);
            }
        }
        let run = program.run(arguments);
        let log = fs::read_to_string(&log).expect("the library was loaded");
        (run, log.lines().map(read).collect())
    }

    /// Runs a program to its end, and returns the number of calls that it made.
    #[track_caller]
    pub fn count<I>(&self, program: &Program, arguments: I) -> (Run, u64)
    where
        I: IntoIterator,
        I::Item: AsRef<OsStr>,
    {
        let (run, calls) = self.run(program, arguments);
        let count = calls.last().map_or(0, |call| call.number);
        (run, count)
    }
}

/// Parses a line of the log.
fn read(line: &str) -> Call {
    let mut fields = line.split('\t');
    let mut next = || fields.next().expect("a line of five fields");
    let (number, name, returned) = (next(), next().to_owned(), next());
    Call {
        name,
        returned: returned.parse().ok(),
        path: next().into(),
        to: next().into(),
        number: number.parse().expect("a number"),
    }
}

/// Returns the path of the library, which is compiled into the folder of the test programs, once for each version of
/// its source.
fn library() -> &'static Result<PathBuf, String> {
    static LIBRARY: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    LIBRARY.get_or_init(compile)
}

fn compile() -> Result<PathBuf, String> {
    if !cfg!(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))) {
        return Err(
            "system calls are counted only on Linux, on 64-bit processors by Intel, AMD and Arm".into()
        );
    }
    let mut hash = DefaultHasher::new();
    SOURCE.hash(&mut hash);
    let this = env::current_exe().map_err(|e| e.to_string())?;
    let folder = this.parent().ok_or("a test program lies in a folder")?;
    let library = folder.join(format!("system-calls-{:016x}.so", hash.finish()));
    if library.exists() {
        return Ok(library);
    }
    // Another test program may compile the library at the same time, so compile to a temporary name.
    let scratch = TempDir::new_in(folder).map_err(|e| e.to_string())?;
    let (source, made) = (scratch.path().join("system_calls.c"), scratch.path().join("made.so"));
    fs::write(&source, SOURCE).map_err(|e| e.to_string())?;
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut command = Command::new(compiler);
    command.args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&made).arg(&source);
    let ended = command.output().map_err(|e| format!("there is no C compiler: {e}"))?;
    // A missing compiler only skips tests, but a compiler that rejects the source means a mistake in the library.
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    fs::rename(&made, &library).map_err(|e| e.to_string())?;
    Ok(library)
}

/// Returns true if the kernel permits the library's filters. Tries them with the program `true`.
fn filters(library: &Path) -> bool {
    let Ok(folder) = TempDir::new() else { return false };
    let (log, mut command) = (folder.path().join("log"), Command::new("true"));
    command.env("LD_PRELOAD", library).env("CALLS_LOG", &log).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success()) && fs::read(&log).is_ok_and(|log| !log.is_empty())
}

// Computes the state of a disk after a power cut, from the calls that a program had made by then.
//
// A file system may lose everything that wasn't flushed: a file's bytes since its last flush, and changes of names
// since the last flush of their directory. Or it may keep any part of the unflushed data. This simulation loses all
// unflushed bytes, all unflushed changes of names, or both.

/// The kinds of unflushed data that are lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// Changes of names: files that the program made are gone, and files that it renamed or removed are back at their
    /// old names.
    Names,
    /// Bytes: a file has the content of its last flush again, or zeros if it was never flushed.
    Bytes,
    /// Both.
    NamesAndBytes,
    /// Bytes, except in journals, which are small and may have been written back in time.
    BytesButJournals,
}

impl Loss {
    /// All kinds of loss.
    pub const ALL: [Self; 4] = [Self::Names, Self::Bytes, Self::NamesAndBytes, Self::BytesButJournals];
}

/// Undoes the changes that a program made in a folder by these `calls` and never flushed. `kept` is the folder that was
/// passed to [`SystemCalls::keeping`](crate::SystemCalls::keeping).
pub fn cut_power(calls: &[Call], kept: &Path, loss: Loss) {
    let done: Vec<&Call> =
        calls.iter().filter(|call| call.returned.is_some_and(|number| number >= 0)).collect();
    let written = written(&done, kept);
    if matches!(loss, Loss::Names | Loss::NamesAndBytes) {
        lose_names(&done, kept);
    }
    if loss != Loss::Names {
        let folders: BTreeSet<&Path> = done.iter().filter_map(|call| call.path.parent()).collect();
        for folder in folders {
            lose_bytes(folder, kept, &written, loss == Loss::BytesButJournals);
        }
    }
}

/// Returns the inodes of the files that the program wrote to.
fn written(done: &[&Call], kept: &Path) -> HashSet<u64> {
    let mut paths = HashSet::<PathBuf>::new();
    let mut inodes = HashSet::new();
    let inode = |path: &Path| fs::symlink_metadata(path).ok().map(|metadata| metadata.ino());
    for call in done {
        match &*call.name {
            "create" | "write" | "truncate" => {
                paths.insert(call.path.clone());
            }
            "rename" if paths.remove(&call.path) => {
                paths.insert(call.to.clone());
            }
            "unlink" if paths.remove(&call.path) => inodes.extend(inode(&lost(kept, call))),
            _ => {}
        }
    }
    inodes.extend(paths.iter().filter_map(|path| inode(path)));
    inodes
}

/// Returns the copy of the file that a call removed or replaced.
fn lost(kept: &Path, call: &Call) -> PathBuf {
    kept.join(format!("{}.lost", call.number))
}

fn lose_names(done: &[&Call], kept: &Path) {
    let mut flushed = HashSet::<&Path>::new();
    // Undo the latest call first. A flush of a directory preserves all changes in it before the flush.
    for call in done.iter().rev() {
        let folder = call.path.parent().unwrap_or(Path::new("/"));
        match &*call.name {
            "flush-names" => {
                flushed.insert(&call.path);
            }
            _ if flushed.contains(folder) => {}
            // A lost directory loses all its content, flushed or not.
            "mkdir" => drop(fs::remove_dir_all(&call.path)),
            "create" => drop(fs::remove_file(&call.path)),
            "rename" => {
                fs::rename(&call.to, &call.path).expect("renamed back");
                give_back(&lost(kept, call), &call.to);
            }
            "link" => drop(fs::remove_file(&call.to)),
            "unlink" => give_back(&lost(kept, call), &call.path),
            _ => {}
        }
    }
}

fn give_back(lost: &Path, to: &Path) {
    if lost.exists() {
        fs::rename(lost, to).expect("renamed back");
    }
}

fn lose_bytes(folder: &Path, kept: &Path, written: &HashSet<u64>, but_journals: bool) {
    // The folder itself may be gone, because `lose_names` has undone its creation.
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        let metadata = fs::symlink_metadata(&path).expect("it is there");
        let is_journal = path.extension().is_some_and(|extension| extension == "journal");
        if !metadata.is_file() || !written.contains(&metadata.ino()) || but_journals && is_journal {
            continue;
        }
        let flushed = fs::read(kept.join(format!("{}.flushed", metadata.ino())));
        fs::write(&path, flushed.unwrap_or_else(|_| vec![0; metadata.len() as usize])).expect("written");
    }
}
