//! Standard error: lines for people, above the progress bar where there is one.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use indicatif::ProgressBar;

/// The bar that is being drawn. One command draws one at most.
static BAR: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Has lines printed above `bar` from now on.
pub(crate) fn share_with(bar: Option<ProgressBar>) {
    *BAR.lock().unwrap_or_else(PoisonError::into_inner) = bar;
}

/// An error without what the system's library adds to it: its number, and words that hide that no thread can be started.
pub(crate) fn plain(text: &str) -> String {
    let text = text.replace("Resource temporarily unavailable", "not enough memory to start threads");
    let mut parts = text.split(" (os error ");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain += part.split_once(')').map_or(part, |(_, rest)| rest);
    }
    plain
}

/// Prints a line. A stderr that is gone is no reason to stop.
pub(crate) fn line(text: &str) {
    let _ = Above.write_all(format!("{}\n", plain(text)).as_bytes());
}

/// Writes whole lines.
#[derive(Debug)]
pub(crate) struct Above;

impl Write for Above {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Cloned, because the bar's own thread may want to print while it is suspended.
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
