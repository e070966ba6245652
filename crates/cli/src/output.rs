//! Standard output: buffered lines, and what happens when nobody reads them any more.

use std::io::{self, BufWriter, IsTerminal as _, Stdout, Write};
use std::sync::Mutex;

/// Big enough that a listing of a million names is written with few system calls.
const BUFFER: usize = 64 * 1024;

/// Standard output, shared by the thread that prints and the ticker that flushes what has been left lying.
#[derive(Debug)]
pub(crate) struct Output {
    writer: Mutex<BufWriter<Stdout>>,
}

impl Output {
    /// Standard output with an empty buffer.
    pub(crate) fn new() -> Self {
        Self { writer: Mutex::new(BufWriter::with_capacity(BUFFER, io::stdout())) }
    }

    /// Adds a line.
    ///
    /// # Errors
    /// As `write` on stdout; [`is_closed`] tells whether its reader has gone.
    pub(crate) fn line(&self, line: &str) -> io::Result<()> {
        self.with(|writer| {
            writer.write_all(line.as_bytes())?;
            writer.write_all(b"\n")
        })
    }

    /// Adds a value as one line of JSON.
    ///
    /// # Errors
    /// As [`Output::line`].
    pub(crate) fn json(&self, value: &impl serde::Serialize) -> io::Result<()> {
        self.with(|writer| {
            serde_json::to_writer(&mut *writer, value)?;
            writer.write_all(b"\n")
        })
    }

    /// Adds bytes as they are.
    ///
    /// # Errors
    /// As [`Output::line`].
    pub(crate) fn bytes(&self, bytes: &[u8]) -> io::Result<()> {
        self.with(|writer| writer.write_all(bytes))
    }

    /// Hands everything on to whoever reads.
    ///
    /// # Errors
    /// As [`Output::line`].
    pub(crate) fn flush(&self) -> io::Result<()> {
        self.with(|writer| writer.flush())
    }

    /// Whether a person looks at it.
    pub(crate) fn is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    fn with<T>(&self, write: impl FnOnce(&mut BufWriter<Stdout>) -> io::Result<T>) -> io::Result<T> {
        // A writer whose owner panicked still holds whole lines.
        write(&mut self.writer.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}

/// Whether an error says that the other end of a pipe is gone: `laneway ls ... | head` has all it wanted.
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
}
