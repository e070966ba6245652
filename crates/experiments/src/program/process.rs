//! A program's process, with a time limit.

use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::command::Command;
use crate::Failure;

/// Time limit of a program.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of output that are read at a time.
const READ_BYTES: usize = 64 << 10;
/// A longer error message of a program is cut off after this many characters.
const SHOWN_BYTES_MAX: usize = 200;

/// Measurements of a program's run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Took {
    /// Seconds from the program's start to its end.
    pub(crate) seconds: f64,
    /// Time of the program's start, in seconds since the epoch.
    pub(crate) begun_s: f64,
    /// Number of lines that the program printed, or 0 if its output wasn't read.
    pub(crate) lines: u64,
}

/// A program's process group. Dropping this value kills the group.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // If the group has already ended, the call fails. This does no harm.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

/// Runs a command to its end.
///
/// # Errors
/// Returns [`Failure::Process`] if it can't be started, takes too long, or fails.
pub(super) async fn run(command: Command, prints: bool) -> Result<Took, Failure> {
    within(command, prints, TIMEOUT).await
}

async fn within(command: Command, prints: bool, timeout: Duration) -> Result<Took, Failure> {
    let name = command.program.to_string_lossy().into_owned();
    let failed = |why: String| Failure::Process(format!("{name} {why}"));
    let mut process = tokio::process::Command::new(&command.program);
    process.args(command.arguments).envs(command.variables).process_group(0);
    let stdout = if prints { Stdio::piped() } else { Stdio::null() };
    process.stdin(Stdio::null()).stdout(stdout).stderr(Stdio::piped()).kill_on_drop(true);
    // The embedded store is on this machine, so no proxy is needed.
    process.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
    let begun_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    let started = Instant::now();
    let mut child = process.spawn().map_err(|e| failed(format!("can't be started: {e}")))?;
    let _group = Group(child.id().and_then(|id| Pid::from_raw(id.cast_signed())));
    let (mut said, mut lines) = (Vec::new(), 0);
    let (mut stderr, stdout) = (child.stderr.take(), child.stdout.take());
    let ended = tokio::time::timeout(timeout, async {
        let complaining = async {
            if let Some(stderr) = &mut stderr {
                // A read error doesn't matter, because this text is only shown to the user.
                let _ = stderr.read_to_end(&mut said).await;
            }
        };
        let printing = async {
            if let Some(stdout) = stdout {
                lines = count_lines(stdout).await;
            }
        };
        tokio::join!(complaining, printing);
        child.wait().await
    });
    let status = ended.await.map_err(|_| failed(format!("took longer than {} s", timeout.as_secs())))?;
    let seconds = started.elapsed().as_secs_f64();
    let status = status.map_err(|e| failed(e.to_string()))?;
    match status.success() {
        true => Ok(Took { seconds, begun_s, lines }),
        false => Err(failed(complaint(status, &said))),
    }
}

/// Reads to the end and counts the lines. After a read error the count is too low. The caller compares it with the
/// expected count, so the run fails.
async fn count_lines(mut stdout: impl AsyncRead + Unpin) -> u64 {
    let (mut buffer, mut lines) = (vec![0; READ_BYTES], 0);
    loop {
        match stdout.read(&mut buffer).await {
            Ok(0) | Err(_) => return lines,
            Ok(read) => lines += buffer[..read].iter().filter(|byte| **byte == b'\n').count() as u64,
        }
    }
}

/// Describes the end of a program, with the last line of its error output.
fn complaint(status: ExitStatus, said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    // Progress dots or advice may follow the error line.
    let lines = || said.lines().map(str::trim).filter(|line| line.contains(char::is_alphanumeric));
    let last = lines().rfind(|line| line.to_lowercase().contains("error")).or_else(|| lines().next_back());
    let last = last.unwrap_or_default();
    let last: String = last.chars().take(SHOWN_BYTES_MAX).collect();
    let status = status.code().map_or_else(|| status.to_string(), |code| format!("exit status {code}"));
    if last.is_empty() { format!("ended badly: {status}") } else { format!("ended badly: {status}: {last}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, timeout: Duration) -> Result<Took, Failure> {
        let arguments = vec!["-c".into(), script.into()];
        let variables = vec![("SAID", "gone".into())];
        let command = Command { program: "sh".into(), arguments, variables };
        crate::stage::runtime().unwrap().block_on(within(command, true, timeout))
    }

    #[test]
    fn a_program_that_fails_says_why() {
        assert!(shell("exit 0", TIMEOUT).unwrap().seconds > 0.0);
        assert_eq!(shell("echo a; echo b", TIMEOUT).unwrap().lines, 2);
        let failed = shell("echo first >&2; echo \"bucket $SAID\" >&2; exit 3", TIMEOUT).unwrap_err();
        assert_eq!(failed.reason(), "sh ended badly: exit status 3: bucket gone");
        let failed =
            shell("echo 'ERROR: gone' >&2; echo advice >&2; echo ' .' >&2; exit 1", TIMEOUT).unwrap_err();
        assert_eq!(failed.reason(), "sh ended badly: exit status 1: ERROR: gone");
        let missing =
            Command { program: "no-such-program".into(), arguments: Vec::new(), variables: Vec::new() };
        let missing = crate::stage::runtime().unwrap().block_on(run(missing, false)).unwrap_err();
        let reason = missing.reason();
        assert!(reason.starts_with("no-such-program can't be started"), "the reason is wrong: {reason}");
    }

    #[test]
    fn a_program_that_takes_too_long_ends_with_all_that_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK;
        let fifo_read = rustix::fs::open(&fifo, flags, rustix::fs::Mode::empty()).unwrap();
        // The grandchild holds the fifo open. The reader sees the fifo's end only when all processes are gone.
        let script = format!("exec 3>'{}'; sleep 1000 & wait", fifo.display());
        let late = shell(&script, Duration::from_millis(300)).unwrap_err();
        assert!(late.reason().contains("took longer than"), "the reason is wrong: {}", late.reason());
        while rustix::io::read(&fifo_read, &mut [0; 1]) != Ok(0) {
            std::thread::yield_now();
        }
    }
}
