//! A manifest that the commands of a run share.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::Duration;

use super::known::{TextHash, key};
use super::line::Command;
use super::{ManifestSubject, OpenedManifest, Targets};
use crate::{Error, Warning};

/// A manifest that many jobs share. Each job carries out one line of a list of commands. The manifest has a
/// line for each item of these jobs, with the command's number, and lines for the outcomes of the commands.
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
pub struct RunManifest(Arc<OpenedManifest>);

/// A command of a run with a manifest. Pass it to a request as [`Manifest::Run`](crate::Manifest::Run).
#[derive(Clone, Debug)]
pub struct RunCommand {
    pub(super) opened: Arc<OpenedManifest>,
    pub(super) number: u64,
    line: Arc<[u8]>,
    pub(super) scope: TextHash,
    has_done_something: Arc<AtomicBool>,
    was_done: Arc<OnceLock<bool>>,
}

impl RunManifest {
    pub(crate) fn open(path: PathBuf, subject: &ManifestSubject) -> Result<(Self, Option<Warning>), Error> {
        let target = path.display().to_string();
        let (opened, torn) = OpenedManifest::open(path, subject, &mut Targets::default(), false)?;
        let warning = torn.map(|message| Warning { target, message });
        Ok((Self(Arc::new(opened)), warning))
    }

    /// Returns the command in a line of the list. Later runs identify a command by the line's text, not by
    /// its number.
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

    /// Closes the file, so that another run can use it. Call this once all commands have ended, because later
    /// writes fail. Blocks the thread.
    ///
    /// # Errors
    /// If a line could not be written.
    ///
    /// # Panics
    /// Panics in a task of a tokio runtime, because such a task must not block its thread.
    pub fn close(self) -> Result<(), Error> {
        self.0.close_now()
    }
}

impl RunCommand {
    /// Returns whether an earlier run has done this command. If several commands have the same text, each
    /// earlier success counts for one of them, in the order of the calls of this method.
    pub fn was_done(&self) -> bool {
        *self.was_done.get_or_init(|| {
            self.opened.commands.lock().unwrap_or_else(PoisonError::into_inner).takes(self.scope)
        })
    }

    /// Returns whether any of the command's items was done since the command began.
    pub fn has_done_something(&self) -> bool {
        self.has_done_something.load(Ordering::Relaxed)
    }

    pub(super) fn did(&self) {
        self.has_done_something.store(true, Ordering::Relaxed);
    }

    /// Records the command's outcome. Blocks the thread.
    ///
    /// # Errors
    /// If the outcome can't be written, or the manifest is closed.
    ///
    /// # Panics
    /// Panics in a task of a tokio runtime, because such a task must not block its thread.
    pub fn ended(&self, is_done: bool, took: Duration) -> Result<(), Error> {
        self.opened.write_now(Command::ended(self.number, &self.line, is_done, took.as_secs_f64()).line())
    }

    /// Records that the command begins.
    pub(super) async fn begin(&self) -> Result<(), Error> {
        self.opened.write(Command::begun(self.number, &self.line).line()).await
    }
}
