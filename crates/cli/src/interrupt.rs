//! Ctrl-C: the first one asks for an orderly end, the second one gets an immediate end.

use std::io;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

use crate::exit::Exit;

/// A second signal within this time belongs to the first: `timeout` signals a program and then its group.
const SAME_PRESS: Duration = Duration::from_millis(300);

/// Listens for signals until it is dropped.
#[derive(Debug)]
pub(crate) struct Interrupt(Handle);

impl Interrupt {
    /// Calls `first` on a thread of its own at the first SIGINT or SIGTERM, and ends the program at the
    /// second. It doesn't handle SIGHUP, so `nohup` works.
    ///
    /// # Errors
    /// If the system refuses a handler or a thread.
    pub(crate) fn listen(first: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        let mut signals = Signals::new([SIGINT, SIGTERM])?;
        let handle = signals.handle();
        std::thread::Builder::new().name("signals".into()).spawn(move || {
            let mut first = Some(first);
            let mut asked = Instant::now();
            for _ in signals.forever() {
                match first.take() {
                    Some(first) => {
                        asked = Instant::now();
                        first();
                    }
                    None if asked.elapsed() < SAME_PRESS => {}
                    // Skip destructors and exit handlers: a user who presses twice wants the prompt back.
                    None => signal_hook::low_level::exit(Exit::Interrupted.status().into()),
                }
            }
        })?;
        Ok(Self(handle))
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        self.0.close();
    }
}
