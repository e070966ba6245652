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

/// Prints a line. A stderr that is gone is no reason to stop.
pub(crate) fn line(text: &str) {
    let _ = Above.write_all(format!("{text}\n").as_bytes());
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
