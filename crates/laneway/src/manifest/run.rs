//! A manifest that the commands of a run keep together.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::Duration;

use super::known::{Key, key};
use super::line::Command;
use super::{Opened, Subject, Targets};
use crate::{Error, Warning};

/// A manifest that many jobs keep together, each of which is what a line of commands asks for. What is written is what a job of its own
/// would write, with the command's number; beside it stands how each command has ended.
///
/// ```
/// # let server = laneway_server::Server::start(laneway_server::Config::default()).expect("a server");
/// # server.create_bucket("lake").expect("a bucket");
/// # let client = laneway::Client::builder().anonymous(true).s3_endpoint(server.url()).build()?;
/// # let dir = tempfile::tempdir().expect("a folder");
/// # client.bucket("s3://lake/")?.put("a", "bytes").call()?;
/// use laneway::{CopyRequest, Event};
/// use std::time::Duration;
///
/// let file = dir.path().join("manifest");
/// let (manifest, warning) = client.run_manifest(file)?;
/// assert!(warning.is_none());
/// let command = manifest.command(1, b"cp s3://lake/a s3://lake/b");
/// assert!(!command.was_done());
/// let request = CopyRequest::new(vec!["s3://lake/a".parse()?], "s3://lake/b".parse()?).manifest(command.clone());
/// let mut job = client.copy(request);
/// while let Some(event) = job.next_blocking() {
///     if let Event::Done(summary) = event {
///         command.ended(summary.failed == 0, Duration::from_secs_f64(summary.seconds))?;
///     }
/// }
/// assert!(command.has_done_something());
/// manifest.close()?;
/// # Ok::<(), laneway::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct RunManifest(Arc<Opened>);

/// A command of a run that keeps a manifest: the value of a request's `manifest`.
#[derive(Clone, Debug)]
pub struct RunCommand {
    pub(super) opened: Arc<Opened>,
    pub(super) number: u64,
    line: Arc<[u8]>,
    pub(super) scope: Key,
    has_done_something: Arc<AtomicBool>,
    was_done: Arc<OnceLock<bool>>,
}

impl RunManifest {
    pub(crate) fn open(path: PathBuf, subject: &Subject) -> Result<(Self, Option<Warning>), Error> {
        let target = path.display().to_string();
        let (opened, torn) = Opened::open(path, subject, &mut Targets::default(), false)?;
        let warning = torn.map(|message| Warning { target, message });
        Ok((Self(Arc::new(opened)), warning))
    }

    /// The command in a line: its number, and its text, by which it is known again.
    pub fn command(&self, number: u64, line: &[u8]) -> RunCommand {
        RunCommand {
            opened: Arc::clone(&self.0),
            number,
            scope: key(line),
            line: line.into(),
            has_done_something: Arc::default(),
            was_done: Arc::default(),
        }
    }

    /// Closes the file once all commands have ended, so that another run can use it. Blocks the thread. What a command would write later
    /// is an error.
    ///
    /// # Errors
    /// When something could not be written.
    ///
    /// # Panics
    /// In a task of an asynchronous runtime of tokio, whose thread must not be blocked.
    pub fn close(self) -> Result<(), Error> {
        self.0.close_now()
    }
}

impl RunCommand {
    /// Whether an earlier run has done it. Each time that it was done counts for one command of the same text, the first of them that
    /// is asked.
    pub fn was_done(&self) -> bool {
        *self.was_done.get_or_init(|| {
            self.opened.commands.lock().unwrap_or_else(PoisonError::into_inner).takes(self.scope)
        })
    }

    /// Whether any of its items was done since it was begun.
    pub fn has_done_something(&self) -> bool {
        self.has_done_something.load(Ordering::Relaxed)
    }

    pub(super) fn did(&self) {
        self.has_done_something.store(true, Ordering::Relaxed);
    }

    /// Writes how it has ended. Blocks the thread.
    ///
    /// # Errors
    /// When that can't be written, or the manifest is closed.
    ///
    /// # Panics
    /// In a task of an asynchronous runtime of tokio, whose thread must not be blocked.
    pub fn ended(&self, is_done: bool, took: Duration) -> Result<(), Error> {
        self.opened.write_now(Command::ended(self.number, &self.line, is_done, took.as_secs_f64()).line())
    }

    /// Writes that it begins.
    pub(super) async fn begin(&self) -> Result<(), Error> {
        self.opened.write(Command::begun(self.number, &self.line).line()).await
    }
}
