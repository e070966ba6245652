//! The manifest of a job: a file with the outcome of each item. If the same job runs again, it skips the
//! items that are done.

#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod known;
mod line;
mod run;
mod targets;

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use laneway_store::Version;
use tokio::sync::{mpsc, oneshot};

use crate::engine::files::FileThreads;
use crate::location::lines::{Lines, TextLine};
use crate::{Error, Outcome};
use known::{Commands, DoneItems, Scope};
pub(crate) use line::{ManifestRecord, ManifestSubject, ObjectSettings};

pub use run::{RunCommand, RunManifest};
pub(crate) use targets::Targets;

/// The maximum number of outcomes in the queue to the writing thread. While the queue is full, an item can't
/// end, because its outcome must wait for room in the queue.
const LINES_WAITING_MAX: usize = 1024;
const WRITE_MAX: usize = 256 << 10;

/// The file in which a job records the outcome of each item. A later run reads from it which items are done.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Manifest {
    /// A file for this job alone.
    File(PathBuf),
    /// A file that the commands of a run share. The job is one of these commands.
    Run(RunCommand),
}

impl From<PathBuf> for Manifest {
    fn from(file: PathBuf) -> Self {
        Self::File(file)
    }
}

impl From<RunCommand> for Manifest {
    fn from(command: RunCommand) -> Self {
        Self::Run(command)
    }
}

/// A manifest in use by a job.
#[derive(Debug)]
pub(crate) struct JobManifest {
    opened: Arc<OpenedManifest>,
    /// The command of a run that this job carries out, if any.
    command: Option<RunCommand>,
    /// The sources that the job moves or removes.
    targets: Targets,
    is_dry: bool,
}

impl JobManifest {
    /// Opens the manifest of a job. Also returns a warning about the file, if there is one.
    ///
    /// # Errors
    /// `ErrorKind::Refused` if the file isn't a manifest or belongs to another job, has a broken line, or is
    /// being written by another job.
    pub(crate) async fn begin(
        manifest: Manifest,
        subject: ManifestSubject,
        mut targets: Targets,
        is_dry: bool,
        files: &FileThreads,
    ) -> Result<(Self, Option<String>), Error> {
        match manifest {
            Manifest::File(path) => {
                let open = move || {
                    let opened = OpenedManifest::open(path, &subject, &mut targets, is_dry)?;
                    Ok::<_, Error>((opened, targets))
                };
                let ((opened, torn), targets) = files.run(open).await??;
                Ok((Self { opened: Arc::new(opened), command: None, targets, is_dry }, torn))
            }
            Manifest::Run(command) => {
                if !is_dry {
                    command.begin().await?;
                }
                let opened = Arc::clone(&command.opened);
                Ok((Self { opened, command: Some(command), targets, is_dry }, None))
            }
        }
    }

    fn scope(&self) -> Scope {
        self.command.as_ref().map(|command| command.scope)
    }

    /// Returns whether an earlier run has done this item while its source was in this state.
    pub(crate) fn has_done(&self, ends: (&str, Option<&str>), state: (&str, u64)) -> bool {
        self.opened.known.has_done(self.scope(), ends, state)
    }

    /// Returns whether an earlier run has done this item and wrote this version of the destination.
    pub(crate) fn has_made(&self, ends: (&str, Option<&str>), state: (&str, u64), version: &Version) -> bool {
        self.opened.known.has_made(self.scope(), ends, state, version)
    }

    pub(crate) fn has(&self, source: &str) -> bool {
        self.opened.known.has(self.scope(), source)
    }

    /// Returns whether an earlier run has emptied a target, so that finding nothing below it is no error. A
    /// target counts as emptied if the manifest lists the job's command, or any item below the target, as
    /// done.
    pub(crate) fn has_taken(&self, target: &str) -> bool {
        match &self.command {
            Some(command) => self.targets.has(target) && command.was_done(),
            None => self.targets.was_met(target),
        }
    }

    /// Writes an item's outcome.
    ///
    /// # Errors
    /// If the manifest can't be written any more.
    pub(crate) async fn record(&self, record: ManifestRecord<'_>) -> Result<(), Error> {
        if self.is_dry {
            return Ok(());
        }
        let number = self.command.as_ref().map(|command| command.number);
        if let (Some(command), Outcome::Done { .. }) = (&self.command, record.outcome) {
            command.did();
        }
        self.opened.write(ManifestRecord { command: number, ..record }.line()).await
    }

    /// Returns once everything is written.
    ///
    /// # Errors
    /// Fails as [`record`](Self::record) does.
    pub(crate) async fn end(&self) -> Result<(), Error> {
        match (self.is_dry, &self.command) {
            (true, _) => Ok(()),
            (false, Some(_)) => self.opened.flushed().await,
            (false, None) => self.opened.closed().await,
        }
    }
}

/// A manifest's file, and its content when it was opened.
#[derive(Debug)]
struct OpenedManifest {
    path: PathBuf,
    known: DoneItems,
    commands: Mutex<Commands>,
    /// `None` in a dry run, which writes nothing.
    lines: Option<mpsc::Sender<WriteMessage>>,
    failed: Arc<Mutex<Option<io::Error>>>,
}

#[derive(Debug)]
enum WriteMessage {
    Line(Vec<u8>),
    /// Asks the writing thread to confirm that all earlier lines are written.
    Flush(oneshot::Sender<()>),
    /// Asks the writing thread to write all earlier lines, to close the file, and then to confirm this.
    Close(oneshot::Sender<()>),
}

impl OpenedManifest {
    /// Reads the file, and opens it for more lines. Also returns a warning about the file, if there is one.
    /// Blocks the thread.
    ///
    /// # Errors
    /// Fails as [`JobManifest::begin`] does.
    fn open(
        path: PathBuf,
        subject: &ManifestSubject,
        targets: &mut Targets,
        dry_run: bool,
    ) -> Result<(Self, Option<String>), Error> {
        let failed = |e| Error::local(&path, "can't be used as a manifest", e);
        let opened = match dry_run {
            true => OpenOptions::new().read(true).open(&path),
            false => OpenOptions::new().read(true).append(true).create(true).open(&path),
        };
        let mut file = match opened {
            Err(e) if dry_run && e.kind() == io::ErrorKind::NotFound => {
                return Ok((Self::of(path, ManifestContent::default(), None)?, None));
            }
            opened => opened.map_err(failed)?,
        };
        if !dry_run && matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            return Err(Error::refused(path.display().to_string(), "another job is writing this manifest"));
        }
        let mut found = read(&path, &file, subject, targets)?;
        let mut warning = None;
        if let Some(torn) = found.torn.take() {
            warning = Some(format!(
                "line {} is incomplete, probably because of a crash, and is ignored",
                torn.number
            ));
            if !dry_run {
                file.set_len(torn.start).map_err(failed)?;
            }
        }
        if dry_run {
            return Ok((Self::of(path, found, None)?, warning));
        }
        file.seek(SeekFrom::End(0)).map_err(failed)?;
        if !found.is_begun {
            file.write_all(&subject.line()).map_err(failed)?;
        }
        Ok((Self::of(path, found, Some(file))?, warning))
    }

    fn of(path: PathBuf, found: ManifestContent, file: Option<File>) -> Result<Self, Error> {
        let failed = Arc::default();
        let lines = match file {
            Some(file) => Some(writer(file, Arc::clone(&failed)).map_err(|e| {
                Error::local(&path, "can't be written, because no thread could be started", e)
            })?),
            None => None,
        };
        Ok(Self { path, known: found.known, commands: Mutex::new(found.commands), lines, failed })
    }

    async fn write(&self, line: Vec<u8>) -> Result<(), Error> {
        let Some(lines) = &self.lines else { return Ok(()) };
        match lines.send(WriteMessage::Line(line)).await {
            Ok(()) => Ok(()),
            Err(_) => self.written(false),
        }
    }

    /// Writes a line, and returns once it is written. Blocks the thread.
    fn write_now(&self, line: Vec<u8>) -> Result<(), Error> {
        let is_reached = self.reached_now(Some(line), WriteMessage::Flush);
        self.written(is_reached)
    }

    /// Closes the file, and returns once it is closed. Blocks the thread.
    fn close_now(&self) -> Result<(), Error> {
        self.reached_now(None, WriteMessage::Close);
        self.result()
    }

    fn reached_now(
        &self,
        line: Option<Vec<u8>>,
        mark: impl FnOnce(oneshot::Sender<()>) -> WriteMessage,
    ) -> bool {
        let Some(lines) = &self.lines else { return true };
        let (end, ended) = oneshot::channel();
        let mut writes = line.map(WriteMessage::Line).into_iter().chain([mark(end)]);
        // The writer drops the channel when writing has failed or the file is closed.
        writes.all(|write| lines.blocking_send(write).is_ok()) && ended.blocking_recv().is_ok()
    }

    /// Returns once everything sent before is written.
    async fn flushed(&self) -> Result<(), Error> {
        let is_reached = self.reached(WriteMessage::Flush).await;
        self.written(is_reached)
    }

    /// Returns once everything sent before is written and the file is closed.
    async fn closed(&self) -> Result<(), Error> {
        self.reached(WriteMessage::Close).await;
        self.result()
    }

    async fn reached(&self, mark: impl FnOnce(oneshot::Sender<()>) -> WriteMessage) -> bool {
        let Some(lines) = &self.lines else { return true };
        let (end, ended) = oneshot::channel();
        // The writer drops the channel when writing has failed or the file is closed.
        lines.send(mark(end)).await.is_ok() && ended.await.is_ok()
    }

    /// Returns the error of the writing thread if it has failed. If `is_taken` is false, the manifest was
    /// closed too early, which is also an error.
    fn written(&self, is_taken: bool) -> Result<(), Error> {
        self.result()?;
        match is_taken {
            true => Ok(()),
            false => {
                Err(Error::local(&self.path, "can't be written", io::Error::other("the manifest is closed")))
            }
        }
    }

    fn result(&self) -> Result<(), Error> {
        match &*self.failed.lock().unwrap_or_else(PoisonError::into_inner) {
            // Return a copy and keep the error, because each command of a run must get it.
            Some(e) => {
                Err(Error::local(&self.path, "can't be written", io::Error::new(e.kind(), e.to_string())))
            }
            None => Ok(()),
        }
    }
}

#[derive(Default)]
struct ManifestContent {
    known: DoneItems,
    commands: Commands,
    /// True if the file's first line is complete.
    is_begun: bool,
    torn: Option<TextLine>,
}

fn read(
    path: &Path,
    file: &File,
    subject: &ManifestSubject,
    targets: &mut Targets,
) -> Result<ManifestContent, Error> {
    let refused = |number: u64, why: String| {
        Error::refused(format!("{}:{number}", path.display()), format!("{why}; nothing was done"))
    };
    let mut lines = Lines::new(BufReader::new(file));
    let mut found = ManifestContent::default();
    loop {
        let line = match lines.next() {
            Ok(Some(line)) => line,
            Ok(None) => return Ok(found),
            Err(e) => return Err(Error::local(path, "can't be read as a manifest", e)),
        };
        match (found.is_begun, line.is_ended) {
            (false, true) => {
                subject.check(&line.bytes).map_err(|why| refused(1, why))?;
                found.is_begun = true;
            }
            // The first line is incomplete and isn't the beginning of a manifest's first line. This may be
            // another program's file, so don't truncate it.
            (false, false) if !subject.line().starts_with(&line.bytes) => {
                return Err(refused(1, "this is not a manifest".to_owned()));
            }
            (_, false) => found.torn = Some(line),
            (true, true) => {
                found.add(&line.bytes, subject, targets).map_err(|why| refused(line.number, why))?;
            }
        }
    }
}

impl ManifestContent {
    /// Adds a line of the manifest, other than the first line.
    ///
    /// # Errors
    /// A message that says what is wrong with the line.
    fn add(&mut self, line: &[u8], subject: &ManifestSubject, targets: &mut Targets) -> Result<(), String> {
        if !subject.is_run() {
            let item = line::read_item(line)?;
            if item.outcome == line::DONE {
                targets.meet(&item.source);
            }
            self.known.add(None, &item);
            return Ok(());
        }
        match line::read_item(line) {
            Ok(item) => self.known.add(self.commands.scope_of(&item)?, &item),
            Err(why) => self.commands.add(&line::read_command(line).ok_or(why)?)?,
        }
        Ok(())
    }
}

/// Starts a thread that writes the lines it receives. The thread writes many waiting lines at once.
fn writer(mut file: File, failed: Arc<Mutex<Option<io::Error>>>) -> io::Result<mpsc::Sender<WriteMessage>> {
    let (lines, mut waiting) = mpsc::channel(LINES_WAITING_MAX);
    let write = move || {
        while let Some(first) = waiting.blocking_recv() {
            let (mut bytes, mut flushed, mut end) = (Vec::new(), Vec::new(), None);
            let mut next = Some(first);
            while let Some(write) = next {
                match write {
                    WriteMessage::Line(line) => bytes.extend(line),
                    WriteMessage::Flush(ended) => flushed.push(ended),
                    WriteMessage::Close(ended) => end = Some(ended),
                }
                next = if bytes.len() < WRITE_MAX { waiting.try_recv().ok() } else { None };
            }
            if let Err(e) = file.write_all(&bytes) {
                *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(e);
                return;
            }
            for waiting in flushed {
                let _ = waiting.send(());
            }
            if let Some(end) = end {
                // Close the file before reporting the end, because the next job may then open it at once.
                drop(file);
                let _ = end.send(());
                return;
            }
        }
    };
    std::thread::Builder::new().name("laneway-manifest".into()).spawn(write)?;
    Ok(lines)
}
