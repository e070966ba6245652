//! Minimal replacements for types of `lanes` and `laneway` that the modules under test use.

use std::fmt;

use crate::threads::atomic::{AtomicU64, Ordering::Relaxed};

/// An error with only a message.
#[derive(Debug)]
pub struct Error(String);

impl Error {
    pub(crate) fn integrity(target: impl Into<String>, message: impl Into<String>) -> Self {
        Self(format!("{}: {}", target.into(), message.into()))
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
