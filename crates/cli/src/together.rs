//! The state that parallel commands of `laneway run` share.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use laneway::{Canceller, Client};

/// One engine, and the jobs that Ctrl-C ends.
#[derive(Debug)]
pub(crate) struct Together {
    pub(crate) client: Client,
    jobs: Mutex<Jobs>,
}

#[derive(Default, Debug)]
struct Jobs {
    under_way: HashMap<u64, Canceller>,
    begun: u64,
    is_stopped: bool,
}

impl Together {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, jobs: Mutex::default() }
    }

    /// Registers a job for as long as the returned value lives. If the commands were stopped, the job is
    /// cancelled.
    pub(crate) fn enter(&self, job: Canceller) -> Entered<'_> {
        let mut jobs = self.lock();
        if jobs.is_stopped {
            job.cancel();
        }
        jobs.begun += 1;
        let number = jobs.begun;
        jobs.under_way.insert(number, job);
        Entered { together: self, number }
    }

    /// Cancels running jobs, and those that begin from now on.
    pub(crate) fn stop(&self) {
        let mut jobs = self.lock();
        jobs.is_stopped = true;
        jobs.under_way.values().for_each(Canceller::cancel);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.lock().is_stopped
    }

    /// Locks the jobs. No code under the lock can panic.
    fn lock(&self) -> std::sync::MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running job.
#[derive(Debug)]
pub(crate) struct Entered<'a> {
    together: &'a Together,
    number: u64,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.together.lock().under_way.remove(&self.number);
    }
}
