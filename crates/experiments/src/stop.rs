//! Ends an experiment early.

use std::sync::Arc;

use tokio::sync::watch;

use crate::Error;

/// Ends an experiment from any thread: what it wrote is removed, and the experiment's `run` returns.
#[derive(Clone, Debug)]
pub struct Stop(Arc<watch::Sender<bool>>);

impl Default for Stop {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl Stop {
    /// Asks for the end. Returns at once.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }

    /// Whether the end was asked for.
    pub(crate) fn is_asked(&self) -> bool {
        *self.0.borrow()
    }

    /// Carries work out, unless the end was or is asked for: then the work is dropped where it is.
    ///
    /// # Errors
    /// [`Error::Stopped`].
    pub(crate) async fn unless<T>(&self, work: impl Future<Output = T>) -> Result<T, Error> {
        let mut stopped = self.0.subscribe();
        tokio::select! {
            done = work => Ok(done),
            // The sender lives in this value, so that the only outcome is the one waited for.
            _ = stopped.wait_for(|stopped| *stopped) => Err(Error::Stopped),
        }
    }
}
