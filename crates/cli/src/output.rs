//! The standard streams. Lines for standard output are buffered, and its reader may close it early. Messages for the
//! user go to standard error, above the progress bar if there is one.

use std::fs::File;
use std::io::{BufWriter, IsTerminal as _, Write};
use std::os::fd::AsFd as _;
use std::sync::{Mutex, PoisonError};
use std::{fmt, io};

use indicatif::ProgressBar;

use crate::standard_streams;

/// The buffer's size in bytes. It is large so that a listing of a million names takes few system calls.
const BUFFER: usize = 64 * 1024;

/// Standard output. The thread that prints shares it with the ticker, which flushes buffered lines.
#[derive(Debug)]
pub(crate) struct StandardOutput {
    /// A file, because [`io::Stdout`] reports success even if the descriptor isn't open for writing.
    writer: Mutex<io::Result<BufWriter<File>>>,
}

impl StandardOutput {
    /// Returns standard output with an empty buffer.
    pub(crate) fn new() -> Self {
        let file = standard_streams::output()
            .and_then(|()| io::stdout().as_fd().try_clone_to_owned())
            .map(|owned| BufWriter::with_capacity(BUFFER, File::from(owned)));
        Self { writer: Mutex::new(file) }
    }

    /// Adds a line to the buffer.
    ///
    /// # Errors
    /// Fails if standard output can't be written. [`is_closed`] tells whether the reason is that the reader has closed its
    /// end of a pipe.
    pub(crate) fn line(&self, line: &str) -> io::Result<()> {
        self.with(|writer| {
            writer.write_all(line.as_bytes())?;
            writer.write_all(b"\n")
        })
    }

    /// Adds a value as one line of JSON.
    ///
    /// # Errors
    /// Fails in the same cases as [`StandardOutput::line`].
    pub(crate) fn json(&self, value: &impl serde::Serialize) -> io::Result<()> {
        self.with(|writer| {
            serde_json::to_writer(&mut *writer, value)?;
            writer.write_all(b"\n")
        })
    }

    /// Adds bytes as they are.
    ///
    /// # Errors
    /// Fails in the same cases as [`StandardOutput::line`].
    pub(crate) fn bytes(&self, bytes: &[u8]) -> io::Result<()> {
        self.with(|writer| writer.write_all(bytes))
    }

    /// Writes everything in the buffer.
    ///
    /// # Errors
    /// Fails in the same cases as [`StandardOutput::line`].
    pub(crate) fn flush(&self) -> io::Result<()> {
        match &*self.lock() {
            // Standard output couldn't be opened. A call that tried to write has already returned the error.
            Err(_) => return Ok(()),
            Ok(writer) if writer.buffer().is_empty() => return Ok(()),
            Ok(_) => {}
        }
        self.with(Write::flush)
    }

    /// Returns whether standard output is a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    fn with<T>(&self, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>) -> io::Result<T> {
        let written = match &mut *self.lock() {
            Ok(writer) => write(writer),
            Err(closed) => Err(io::Error::new(closed.kind(), closed.to_string())),
        };
        written.map_err(|e| io::Error::new(e.kind(), StdoutError(e)))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, io::Result<BufWriter<File>>> {
        // If a thread panicked while it held the lock, the buffer still has only whole lines.
        self.writer.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// A system call's error, with a message that names standard output.
#[derive(Debug)]
struct StdoutError(io::Error);

impl fmt::Display for StdoutError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "standard output can't be written: {}", self.0)
    }
}

impl std::error::Error for StdoutError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// Returns whether an error means that the other end of a pipe is closed: in `laneway ls ... | head`, `head`
/// has read enough.
pub(crate) fn is_closed(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// The progress bar. A command draws at most one.
static BAR: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// From now on, prints messages above `bar`, or without a bar if it is `None`.
pub(crate) fn share_with(bar: Option<ProgressBar>) {
    *BAR.lock().unwrap_or_else(PoisonError::into_inner) = bar;
}

/// Removes `(os error N)` from an error's text. Also replaces the system's message for a thread that can't be started, which doesn't
/// mention threads.
pub(crate) fn plain(text: &str) -> String {
    let text = text.replace("Resource temporarily unavailable", "not enough memory to start threads");
    let mut parts = text.split(" (os error ");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain += part.split_once(')').map_or(part, |(_, rest)| rest);
    }
    plain
}

/// Prints a line. The program goes on if stderr is closed.
pub(crate) fn line(text: &str) {
    let _ = StderrLines.write_all(format!("{}\n", plain(text)).as_bytes());
}

/// Standard error as a writer of whole lines, which appear above the progress bar.
#[derive(Debug)]
pub(crate) struct StderrLines;

impl Write for StderrLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Don't hold the lock while the bar is suspended, because the bar's own thread may print meanwhile.
        let bar = BAR.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let write = || io::stderr().write_all(bytes).map(|()| bytes.len());
        match bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Wrapping(io::Error);

    impl std::fmt::Display for Wrapping {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("writing")
        }
    }

    impl std::error::Error for Wrapping {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn a_closed_pipe_is_recognised_below_other_errors() {
        assert!(is_closed(&io::Error::from(io::ErrorKind::BrokenPipe)));
        assert!(is_closed(&Wrapping(io::ErrorKind::BrokenPipe.into())));
        assert!(!is_closed(&Wrapping(io::ErrorKind::NotFound.into())));
    }

    #[test]
    fn numbers_of_errors_are_left_out() {
        assert_eq!(
            plain("f: can't be read: No such file or directory (os error 2), again"),
            "f: can't be read: No such file or directory, again"
        );
        assert_eq!(
            plain("Resource temporarily unavailable (os error 11)"),
            "not enough memory to start threads"
        );
        assert_eq!(plain("nothing (of that)"), "nothing (of that)");
    }
}
