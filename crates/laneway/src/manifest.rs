//! The manifest of a job: a file to which each item's outcome is written as it comes, and by which the same job, begun again, leaves out
//! what is done.

#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod known;
mod line;
mod settings;

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{mpsc, oneshot};

use crate::Error;
use crate::lines::{Line, Lines};

pub(crate) use known::Known;
pub(crate) use line::{Record, Subject};
pub(crate) use settings::Settings;

/// Outcomes that wait to be written before their items do.
const LINES_WAITING_MAX: usize = 1024;
/// Most bytes that are written at once.
const WRITE_MAX: usize = 256 << 10;

/// A manifest in use.
#[derive(Debug)]
pub(crate) struct Manifest {
    path: PathBuf,
    known: Known,
    /// Whether the destination was a folder when the job first began, where that is known.
    pub(crate) was_folder: Option<bool>,
    /// `None` in a dry run, which writes none.
    lines: Option<mpsc::Sender<Write>>,
    failed: Arc<Mutex<Option<io::Error>>>,
}

#[derive(Debug)]
enum Write {
    Line(Vec<u8>),
    /// All that came before is to be written.
    End(oneshot::Sender<()>),
}

impl Manifest {
    /// Reads what is there, and goes on with it. With it comes what is to be said of it, if anything is. Blocks.
    ///
    /// # Errors
    /// `ErrorKind::Refused` for a file that is another job's or none of ours, that has a broken line, or that another job is writing.
    pub(crate) fn open(
        path: PathBuf,
        subject: &Subject,
        dry_run: bool,
    ) -> Result<(Self, Option<String>), Error> {
        let failed = |e| Error::local(&path, "can't be used as a manifest", e);
        let opened = match dry_run {
            true => OpenOptions::new().read(true).open(&path),
            false => OpenOptions::new().read(true).append(true).create(true).open(&path),
        };
        let mut file = match opened {
            Err(e) if dry_run && e.kind() == io::ErrorKind::NotFound => {
                return Ok((Self::of(path, Found::default(), None)?, None));
            }
            opened => opened.map_err(failed)?,
        };
        if !dry_run && matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
            return Err(Error::refused(path.display().to_string(), "another job is writing this manifest"));
        }
        let mut found = read(&path, &file, subject)?;
        let mut warning = None;
        if let Some(torn) = found.torn.take() {
            warning = Some(format!(
                "line {} is torn, as a killed process leaves its last one: it counts as not written",
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

    fn of(path: PathBuf, found: Found, file: Option<File>) -> Result<Self, Error> {
        let failed = Arc::default();
        let lines = match file {
            Some(file) => Some(
                writer(file, Arc::clone(&failed))
                    .map_err(|e| Error::local(&path, "can't be written: no thread", e))?,
            ),
            None => None,
        };
        Ok(Self { path, known: found.known, was_folder: found.was_folder, lines, failed })
    }

    /// What is known of the items of earlier runs.
    pub(crate) fn known(&self) -> &Known {
        &self.known
    }

    /// Writes an item's outcome.
    ///
    /// # Errors
    /// Once, when no more can be written.
    pub(crate) async fn record(&self, record: Record<'_>) -> Result<(), Error> {
        let Some(lines) = &self.lines else { return Ok(()) };
        match lines.send(Write::Line(record.line())).await {
            Ok(()) => Ok(()),
            Err(_) => self.result(),
        }
    }

    /// Returns when all is written.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub(crate) async fn end(&self) -> Result<(), Error> {
        let Some(lines) = &self.lines else { return Ok(()) };
        let (end, ended) = oneshot::channel();
        if lines.send(Write::End(end)).await.is_ok() {
            // Dropped where writing has failed.
            let _ = ended.await;
        }
        self.result()
    }

    fn result(&self) -> Result<(), Error> {
        match self.failed.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(e) => Err(Error::local(&self.path, "can't be written", e)),
            None => Ok(()),
        }
    }
}

/// What a file holds.
#[derive(Default)]
struct Found {
    known: Known,
    was_folder: Option<bool>,
    /// Whether its first line stands.
    is_begun: bool,
    torn: Option<Line>,
}

fn read(path: &Path, file: &File, subject: &Subject) -> Result<Found, Error> {
    let refused = |number: u64, why: String| {
        Error::refused(format!("{}:{number}", path.display()), format!("{why}; nothing was done"))
    };
    let mut lines = Lines::new(BufReader::new(file));
    let mut found = Found::default();
    loop {
        let line = match lines.next() {
            Ok(Some(line)) => line,
            Ok(None) => return Ok(found),
            Err(e) => return Err(Error::local(path, "can't be read as a manifest", e)),
        };
        match (found.is_begun, line.is_ended) {
            (false, true) => {
                found.was_folder = subject.check(&line.bytes).map_err(|why| refused(1, why))?;
                found.is_begun = true;
            }
            // Whatever else a file may hold that has no line: it is not ours to cut.
            (false, false) if !subject.line().starts_with(&line.bytes) => {
                return Err(refused(1, "this is no manifest".to_owned()));
            }
            (_, false) => found.torn = Some(line),
            (true, true) => found.known.read(&line.bytes).map_err(|why| refused(line.number, why))?,
        }
    }
}

/// Starts a thread that writes what it is sent, together where much waits.
fn writer(mut file: File, failed: Arc<Mutex<Option<io::Error>>>) -> io::Result<mpsc::Sender<Write>> {
    let (lines, mut waiting) = mpsc::channel(LINES_WAITING_MAX);
    let write = move || {
        while let Some(first) = waiting.blocking_recv() {
            let (mut bytes, mut end) = (Vec::new(), None);
            let mut next = Some(first);
            while let Some(write) = next {
                match write {
                    Write::Line(line) => bytes.extend(line),
                    Write::End(ended) => end = Some(ended),
                }
                next = if bytes.len() < WRITE_MAX { waiting.try_recv().ok() } else { None };
            }
            if let Err(e) = file.write_all(&bytes) {
                *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(e);
                return;
            }
            if let Some(end) = end {
                // The next job may use it as soon as it is told that this one has ended.
                drop(file);
                let _ = end.send(());
                return;
            }
        }
    };
    std::thread::Builder::new().name("laneway-manifest".into()).spawn(write)?;
    Ok(lines)
}
