//! Minimal replacements for the parts of `lanes`, `laneway` and the bindings' core that the modules under test use.

use std::fmt;

use shuttle::future::JoinHandle;

use crate::threads::atomic::{AtomicU64, Ordering::Relaxed};

/// An error with only a message.
#[derive(Debug)]
pub struct Error(String);

impl Error {
    pub(crate) fn integrity(target: impl Into<String>, message: impl Into<String>) -> Self {
        Self(format!("{}: {}", target.into(), message.into()))
    }

    pub(crate) fn mismatch(target: impl Into<String>, message: impl Into<String>) -> Self {
        Self::integrity(target, message)
    }

    pub(crate) fn source(target: impl Into<String>, message: impl Into<String>) -> Self {
        Self::integrity(target, message)
    }

    pub(crate) fn cancelled(target: impl Into<String>) -> Self {
        Self::integrity(target, "cancelled")
    }

    pub(crate) fn local(path: &str, message: &'static str, source: impl fmt::Display) -> Self {
        Self(format!("{path}: {message}: {source}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// Counts the transferred bytes.
#[derive(Debug, Default)]
pub struct Progress(AtomicU64);

impl Progress {
    pub(crate) fn moved(&self, bytes: u64) {
        self.0.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn taken_back(&self, bytes: u64) {
        self.0.fetch_sub(bytes, Relaxed);
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Replaces the head of a response.
#[derive(Clone, Debug, Default)]
pub struct ResponseHead;

/// Replaces the group of similar requests with which a request is compared. The scenarios need only one group.
#[derive(Clone, Copy, Debug)]
pub struct Alike;

/// A client that runs tasks.
#[derive(Clone, Debug)]
pub struct Client;

impl Client {
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) -> Result<Spawned, Error> {
        Ok(Spawned(shuttle::future::spawn(future)))
    }
}

/// A running task. Dropping this value cancels the task.
#[derive(Debug)]
pub struct Spawned(JoinHandle<()>);

impl Drop for Spawned {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Replaces the module `failure` of the bindings' core.
pub(crate) mod failure {
    use super::Error;
    use crate::packed::Packed;

    pub(crate) struct Failure;

    impl Failure {
        pub(crate) fn cancelled() -> Self {
            Self
        }
    }

    impl From<Error> for Failure {
        fn from(_: Error) -> Self {
            Self
        }
    }

    /// Packs only a flag, which is true if the call succeeded.
    pub(crate) fn answer(outcome: Result<Packed, Failure>) -> Packed {
        let mut packed = Packed::default();
        packed.flag(outcome.is_ok());
        packed
    }
}

/// Replaces the standard library's threads, locks and atomics with those of [`shuttle`].
pub(crate) mod threads {
    pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard, atomic};
    pub(crate) use shuttle::thread::Builder;
    pub(crate) use std::sync::PoisonError;
}

/// The library's path to the same threads and locks.
pub(crate) mod engine {
    pub(crate) use crate::threads;
}
