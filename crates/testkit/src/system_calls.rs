//! The system calls by which a program works on files: told of one by one, and struck at any of them. A program is killed there, or
//! told that the disk is full, or that fewer bytes were moved than it wanted.

use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::{env, fs};

use tempfile::TempDir;

use crate::{Program, Run};

/// What is loaded into the program.
const SOURCE: &str = include_str!("system_calls.c");

/// What happens to a call that is struck.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Blow {
    /// The program ends where it is, as by `kill -9`, before the call is made.
    Kill,
    /// The call isn't made, and fails with this number.
    Error(i32),
    /// Half of the bytes are read or written.
    Shorten,
}

/// One call that a program has made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Call {
    /// What it does: `create`, `open`, `truncate`, `write`, `read`, `flush` (a file), `flush-names` (a directory), `rename`, `link`,
    /// `unlink`, `mkdir`, `lock`, `times`, `mode`, `owner`, `look`, `list`.
    pub name: String,
    /// What it returned; negative is an error's number. `None` where the program was killed instead.
    pub returned: Option<i64>,
    /// The file or directory.
    pub path: PathBuf,
    /// The new name of what is renamed or linked.
    pub to: PathBuf,
    /// The how manyeth of all that were counted.
    pub number: u64,
}

/// Which calls of a program count, and what happens to some of them.
#[derive(Clone, Debug, Default)]
pub struct SystemCalls {
    below: Vec<PathBuf>,
    strike: Option<Strike>,
    kept: Option<PathBuf>,
    boot: Option<PathBuf>,
}

#[derive(Clone, Debug)]
struct Strike {
    /// With commas between them; all where there are none.
    names: Option<String>,
    nth: u64,
    times: u64,
    blow: Blow,
}

impl SystemCalls {
    /// Whether calls can be counted here: on Linux, where there is a C compiler and the kernel's filters may be used. What is lacking is told.
    pub fn can_be_struck() -> bool {
        static CAN: OnceLock<bool> = OnceLock::new();
        *CAN.get_or_init(|| {
            let what = match library() {
                Ok(library) if filters(library) => return true,
                Ok(_) => "the kernel lets no program filter its system calls".to_owned(),
                Err(why) => why.clone(),
            };
            println!("left out: {what}");
            false
        })
    }

    /// All calls on files and sockets, which are counted and not told of.
    pub fn all() -> Self {
        Self::default()
    }

    /// Calls on what lies in one of these folders.
    pub fn below<P: AsRef<Path>>(folders: impl IntoIterator<Item = P>) -> Self {
        // The kernel knows them without links.
        let real = |folder: P| fs::canonicalize(folder).expect("the folder is there");
        Self { below: folders.into_iter().map(real).collect(), ..Self::default() }
    }

    /// Strikes the `nth` call that counts, from 1.
    #[must_use]
    pub fn strike(mut self, nth: u64, blow: Blow) -> Self {
        self.strike = Some(Strike { names: None, nth, times: 1, blow });
        self
    }

    /// Strikes the `nth` call of a name, from 1.
    #[must_use]
    pub fn strike_named(self, name: &str, nth: u64, blow: Blow) -> Self {
        self.strike_from(&[name], nth, 1, blow)
    }

    /// Strikes the `nth` call that has one of these names, and those after it, so many in all.
    #[must_use]
    pub fn strike_from(mut self, names: &[&str], nth: u64, times: u64, blow: Blow) -> Self {
        self.strike = Some(Strike { names: Some(names.join(",")), nth, times, blow });
        self
    }

    /// Keeps in a folder of the same file system what files hold when they are flushed (`INODE.flushed`), and what loses its name, by
    /// the number of the call (`NUMBER.lost`).
    #[must_use]
    pub fn keeping(mut self, folder: &Path) -> Self {
        self.kept = Some(folder.to_owned());
        self
    }

    /// What the program is told of the machine's boot stands in this file.
    #[must_use]
    pub fn boot(mut self, file: &Path) -> Self {
        self.boot = Some(file.to_owned());
        self
    }

    /// Runs a program to its end, and says which calls it has made.
    ///
    /// # Panics
    /// Where calls can't be counted; see [`can_be_struck`](Self::can_be_struck).
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

    /// Runs a program to its end, and says how many calls it has made.
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

/// A line of the log.
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

/// The library, compiled beside the tests' programs once for each text of it.
fn library() -> &'static Result<PathBuf, String> {
    static LIBRARY: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    LIBRARY.get_or_init(compile)
}

fn compile() -> Result<PathBuf, String> {
    if !cfg!(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))) {
        return Err(
            "system calls are counted on Linux only, on processors of 64 bits by Intel, AMD and Arm".into()
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
    // Another test program may do the same now.
    let scratch = TempDir::new_in(folder).map_err(|e| e.to_string())?;
    let (source, made) = (scratch.path().join("system_calls.c"), scratch.path().join("made.so"));
    fs::write(&source, SOURCE).map_err(|e| e.to_string())?;
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut command = Command::new(compiler);
    command.args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&made).arg(&source);
    let ended = command.output().map_err(|e| format!("there is no C compiler: {e}"))?;
    // A compiler that is there and refuses it has found a fault of the library.
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    fs::rename(&made, &library).map_err(|e| e.to_string())?;
    Ok(library)
}

/// Whether the kernel lets the library do its work, in a program that does none.
fn filters(library: &Path) -> bool {
    let Ok(folder) = TempDir::new() else { return false };
    let (log, mut command) = (folder.path().join("log"), Command::new("true"));
    command.env("LD_PRELOAD", library).env("CALLS_LOG", &log).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success()) && fs::read(&log).is_ok_and(|log| !log.is_empty())
}
