//! Runs a program as a user would, but without the environment variables of this machine.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

/// A program and its environment.
#[derive(Clone, Debug)]
pub struct Program {
    binary: PathBuf,
    home: PathBuf,
    variables: Vec<(String, OsString)>,
    folder: Option<PathBuf>,
    memory_max: Option<u64>,
    time_max: Duration,
}

/// The end of a run.
#[derive(Debug)]
pub struct Run {
    /// The exit status. `None` if a signal ended the program. This includes a program that ran too long and was killed.
    pub status: Option<i32>,
    /// Standard output, byte for byte.
    pub stdout: Vec<u8>,
    /// Standard error as text.
    pub stderr: String,
}

impl Program {
    /// Returns the program at `binary`. `home` takes the place of the user's home folder. It holds only the
    /// credentials, configuration and caches that a test puts there.
    pub fn new(binary: impl Into<PathBuf>, home: impl Into<PathBuf>) -> Self {
        Self {
            binary: binary.into(),
            home: home.into(),
            variables: Vec::new(),
            folder: None,
            memory_max: None,
            time_max: Running::TIME_MAX,
        }
    }

    /// Sets a variable in the program's environment.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.variables.retain(|(n, _)| n != name);
        self.variables.push((name.to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Removes a variable that [`with`](Self::with) has set.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.variables.retain(|(n, _)| n != name);
        self
    }

    /// Starts the program in this folder.
    #[must_use]
    pub fn in_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Limits the program's own memory, in bytes. An allocation beyond the limit fails, and a program that can't handle
    /// the failure aborts. Linux counts all private writable mappings, including the stacks of threads, whether they
    /// are touched or not. Other systems may not enforce the limit.
    #[must_use]
    pub fn with_memory_max(mut self, bytes: u64) -> Self {
        self.memory_max = Some(bytes);
        self
    }

    /// Kills the program after this time instead of [`Running::TIME_MAX`].
    #[must_use]
    pub fn with_time_max(mut self, time: Duration) -> Self {
        self.time_max = time;
        self
    }

    /// Returns the program's home folder.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Starts the program with an empty standard input.
    pub fn start<I>(&self, arguments: I) -> Running
    where
        I: IntoIterator,
        I::Item: AsRef<OsStr>,
    {
        Running::spawn(self.command(arguments), self.time_max)
    }

    /// Runs the program to its end with an empty standard input.
    pub fn run<I>(&self, arguments: I) -> Run
    where
        I: IntoIterator,
        I::Item: AsRef<OsStr>,
    {
        self.start(arguments).end()
    }

    /// Runs the program to its end with `input` on standard input.
    pub fn run_with_input<I>(&self, arguments: I, input: &[u8]) -> Run
    where
        I: IntoIterator,
        I::Item: AsRef<OsStr>,
    {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped());
        let mut running = Running::spawn(command, self.time_max);
        let mut pipe = running.child.stdin.take().expect("stdin is a pipe");
        std::thread::scope(|scope| {
            // Ignore an error: the program may end before it has read everything. The test checks how it ended.
            scope.spawn(move || pipe.write_all(input));
            running.end()
        })
    }

    fn command<I>(&self, arguments: I) -> Command
    where
        I: IntoIterator,
        I::Item: AsRef<OsStr>,
    {
        let mut command = match self.memory_max {
            None => Command::new(&self.binary),
            Some(bytes) => {
                let mut shell = Command::new("/bin/sh");
                let script = format!("ulimit -c 0; ulimit -d {}; exec \"$0\" \"$@\"", bytes >> 10);
                shell.args(["-c", &script]).arg(&self.binary);
                shell
            }
        };
        command.env_clear().env("HOME", &self.home).env("PATH", std::env::var_os("PATH").unwrap_or_default());
        // Retry for 4 s. This is long enough for temporary failures, and short enough for tests that wait until the
        // program gives up.
        command.env("LANEWAY_RETRY_FOR", "4s");
        // A search for credentials must never use the network of this machine.
        command.env("AWS_EC2_METADATA_DISABLED", "true").env("NO_GCE_CHECK", "true");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// A running program. It is killed when this value is dropped, or after [`TIME_MAX`](Self::TIME_MAX).
#[derive(Debug)]
pub struct Running {
    child: Child,
    /// Dropping this sender stops the watchdog.
    _watched: Sender<()>,
}

impl Running {
    /// The longest time that a program may run. No test needs that much, even on a slow machine. A program that hangs
    /// is then killed, and its test fails instead of hanging too.
    pub const TIME_MAX: Duration = Duration::from_secs(180);

    fn spawn(mut command: Command, time_max: Duration) -> Self {
        let child = command.spawn().expect("the program starts");
        let (watched, over) = mpsc::channel();
        let pid = child.id();
        std::thread::spawn(move || {
            if over.recv_timeout(time_max) == Err(RecvTimeoutError::Timeout) {
                send("-KILL", pid);
            }
        });
        Self { child, _watched: watched }
    }

    /// Sends the program a signal, in the notation of `kill`: `-INT`, `-TERM`.
    pub fn signal(&self, signal: &str) {
        assert!(send(signal, self.child.id()), "it takes the signal");
    }

    /// Takes the standard output, so that the test can read it while the program runs. [`Run::stdout`] is then empty.
    pub fn stdout(&mut self) -> ChildStdout {
        self.child.stdout.take().expect("stdout is taken once")
    }

    /// Takes the standard error, so that the test can read it while the program runs. [`Run::stderr`] is then empty.
    pub fn stderr(&mut self) -> ChildStderr {
        self.child.stderr.take().expect("stderr is taken once")
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the program's peak memory in bytes. Returns `None` if the program has ended, or if the system doesn't
    /// report it.
    pub fn memory_peak(&self) -> Option<u64> {
        memory_peak(self.id())
    }

    /// Waits for the end of the program.
    pub fn end(mut self) -> Run {
        let (stdout, stderr) = (self.child.stdout.take(), self.child.stderr.take());
        let (stdout, stderr) = std::thread::scope(|scope| {
            // Read both pipes at the same time, because a program blocks when one of its pipes is full.
            let stderr = scope.spawn(|| read(stderr));
            (read(stdout), stderr.join().expect("stderr is read"))
        });
        let status = self.child.wait().expect("the program ends").code();
        Run { status, stdout, stderr: String::from_utf8_lossy(&stderr).into_owned() }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The kill fails if the program has already ended, which is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn memory_peak(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(peak.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

fn read(pipe: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        pipe.read_to_end(&mut bytes).expect("the pipe is read");
    }
    bytes
}

fn send(signal: &str, pid: u32) -> bool {
    Command::new("kill").args([signal, &pid.to_string()]).status().is_ok_and(|status| status.success())
}

impl Run {
    /// Panics unless the status is 0.
    #[track_caller]
    pub fn succeeds(self) -> Self {
        self.exits(0)
    }

    /// Panics unless the status is `status`.
    #[track_caller]
    pub fn exits(self, status: i32) -> Self {
        assert_eq!(self.status, Some(status), "stdout: {}\nstderr: {}", self.text(), self.stderr);
        self
    }

    /// Panics unless standard error has exactly one line that starts with `laneway: `, and this line contains each of
    /// `parts`.
    #[track_caller]
    pub fn complains(self, parts: &[&str]) -> Self {
        let lines: Vec<_> = self.stderr.lines().filter(|line| line.starts_with("laneway: ")).collect();
        assert_eq!(lines.len(), 1, "not one complaint: {}", self.stderr);
        for part in parts {
            assert!(lines[0].contains(part), "{part:?} is not in {:?}", lines[0]);
        }
        self
    }

    /// Returns the standard output as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Returns the lines of the standard output.
    pub fn lines(&self) -> Vec<String> {
        self.text().lines().map(str::to_owned).collect()
    }

    /// Returns the standard output as one JSON value per line.
    #[track_caller]
    pub fn json(&self) -> Vec<serde_json::Value> {
        let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        self.text().lines().map(parse).collect()
    }

    /// Returns the only JSON line of this kind.
    #[track_caller]
    pub fn record(&self, kind: &str) -> serde_json::Value {
        let mut records: Vec<_> = self.json().into_iter().filter(|record| record["kind"] == kind).collect();
        assert_eq!(records.len(), 1, "records of kind {kind}: {}", self.text());
        records.remove(0)
    }
}
