//! Ends an experiment early.

use std::sync::Arc;

use tokio::sync::watch;

use crate::Error;

/// Ends an experiment from any thread. The experiment removes its objects, and its `run` returns.
#[derive(Clone, Debug)]
pub struct Stop(Arc<watch::Sender<bool>>);

impl Default for Stop {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl Stop {
    /// Requests the end of the experiment. Returns without waiting for it.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }

    /// Returns whether the end was requested.
    pub(crate) fn is_asked(&self) -> bool {
        *self.0.borrow()
    }

    /// Executes a future, but drops it if the end was requested before or is requested meanwhile.
    ///
    /// # Errors
    /// Returns [`Error::Stopped`] if the future was dropped.
    pub(crate) async fn unless<T>(&self, work: impl Future<Output = T>) -> Result<T, Error> {
        let mut stopped = self.0.subscribe();
        tokio::select! {
            done = work => Ok(done),
            // `self` holds the sender, so the channel isn't closed while this waits.
            _ = stopped.wait_for(|stopped| *stopped) => Err(Error::Stopped),
        }
    }
}
