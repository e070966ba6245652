//! Standard error: lines for people, above the progress bar if there is one.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use indicatif::ProgressBar;

/// The current bar. A command draws at most one.
static BAR: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Prints lines above `bar` from now on.
pub(crate) fn share_with(bar: Option<ProgressBar>) {
    *BAR.lock().unwrap_or_else(PoisonError::into_inner) = bar;
}

/// Returns an error without additions of the system's library: its number, and words that hide that no thread
/// can start.
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
    let _ = Above.write_all(format!("{}\n", plain(text)).as_bytes());
}

/// Writes whole lines.
#[derive(Debug)]
pub(crate) struct Above;

impl Write for Above {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Clone it, because the bar's own thread may want to print while it is suspended.
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
