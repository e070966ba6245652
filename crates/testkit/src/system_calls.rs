//! Observes and disturbs the system calls by which a program works on files. At any call a test can kill the program,
//! report an error such as a full disk, or move fewer bytes than requested.

use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::{env, fs};

use tempfile::TempDir;

use crate::{Program, Run};

/// The source of the library that is loaded into the program.
const SOURCE: &str = include_str!("system_calls.c");

/// The effect on a selected call.
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
    /// Its operation: `create`, `open`, `truncate`, `write`, `read`, `flush` (a file), `flush-names` (a directory),
    /// `rename`, `link`, `unlink`, `mkdir`, `lock`, `times`, `mode`, `owner`, `look`, `list`.
    pub name: String,
    /// Its result. A negative number is an error's. `None` if the program was killed instead.
    pub returned: Option<i64>,
    /// The file or directory.
    pub path: PathBuf,
    /// The new name, for a rename or a link.
    pub to: PathBuf,
    /// Its number among all counted calls.
    pub number: u64,
}

/// The calls of a program that count, and the effects on some of them.
#[derive(Clone, Debug, Default)]
pub struct SystemCalls {
    below: Vec<PathBuf>,
    strike: Option<Strike>,
    kept: Option<PathBuf>,
    boot: Option<PathBuf>,
}

#[derive(Clone, Debug)]
struct Strike {
    /// The names, separated by commas. `None` means all.
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
                Ok(_) => "the kernel lets no program filter its system calls".to_owned(),
                Err(why) => why.clone(),
            };
            println!("left out: {what}");
            false
        })
    }

    /// Counts all calls on files and sockets, without reporting them.
    pub fn all() -> Self {
        Self::default()
    }

    /// Counts calls on files in one of these folders.
    pub fn below<P: AsRef<Path>>(folders: impl IntoIterator<Item = P>) -> Self {
        // The kernel knows the folders by their paths without links.
        let real = |folder: P| fs::canonicalize(folder).expect("the folder is there");
        Self { below: folders.into_iter().map(real).collect(), ..Self::default() }
    }

    /// Disturbs the `nth` counted call, from 1.
    #[must_use]
    pub fn strike(mut self, nth: u64, blow: Blow) -> Self {
        self.strike = Some(Strike { names: None, nth, times: 1, blow });
        self
    }

    /// Disturbs the `nth` call with this name, from 1.
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

    /// Keeps copies in a folder of the same file system: the content of files when they are flushed (`INODE.flushed`),
    /// and files that lose their name, by the number of the call (`NUMBER.lost`).
    #[must_use]
    pub fn keeping(mut self, folder: &Path) -> Self {
        self.kept = Some(folder.to_owned());
        self
    }

    /// Sets the file from which the program reads the machine's boot id.
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

/// Returns the library. It is compiled beside the tests' programs, once for each version of its source.
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
    // Another test program may compile it at the same time.
    let scratch = TempDir::new_in(folder).map_err(|e| e.to_string())?;
    let (source, made) = (scratch.path().join("system_calls.c"), scratch.path().join("made.so"));
    fs::write(&source, SOURCE).map_err(|e| e.to_string())?;
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut command = Command::new(compiler);
    command.args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&made).arg(&source);
    let ended = command.output().map_err(|e| format!("there is no C compiler: {e}"))?;
    // An existing compiler that rejects it has found a mistake in the library.
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    fs::rename(&made, &library).map_err(|e| e.to_string())?;
    Ok(library)
}

/// Returns true if the kernel permits the library's filters, tried with a program that does nothing.
fn filters(library: &Path) -> bool {
    let Ok(folder) = TempDir::new() else { return false };
    let (log, mut command) = (folder.path().join("log"), Command::new("true"));
    command.env("LD_PRELOAD", library).env("CALLS_LOG", &log).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success()) && fs::read(&log).is_ok_and(|log| !log.is_empty())
}
