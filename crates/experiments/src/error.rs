//! Errors that prevent an experiment, and failures of a single run.

use std::error::Error as _;
use std::io;

use crate::rival;

/// An error that prevents the whole experiment.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The plan is contradictory or exceeds a limit.
    #[error("{0}")]
    Plan(String),
    /// The embedded store can't be started.
    #[error("the embedded store can't be started")]
    Server(#[from] laneway_server::Error),
    /// An error about the experiment's own files or threads.
    #[error("{what} failed")]
    Local {
        /// The attempted operation: `writing the files`.
        what: &'static str,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// A CA file, or the platform's certificates, can't be used.
    #[error("{what} can't be used")]
    Certificates {
        /// The message's name for the certificates: `CA file PATH`, or `the platform's certificates`.
        what: String,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No credentials exist, or they can't be used.
    #[error("there are no usable credentials for the store: {0}")]
    Credentials(String),
    /// The store can't be reached, offers no bucket, or rejects the objects.
    #[error("the store can't be used")]
    Store(#[source] Failure),
    /// [`Stop::stop`](crate::Stop::stop) was called.
    #[error("the experiment was stopped")]
    Stopped,
}

/// The reason why a run has no figures.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A rival's request failed.
    #[error(transparent)]
    Rival(#[from] rival::Error),
    /// Laneway failed.
    #[error(transparent)]
    Laneway(#[from] ::laneway::Error),
    /// Laneway's job ended without a summary.
    #[error("the job ended without a summary")]
    Unfinished,
    /// One of the experiment's own files couldn't be read or written.
    #[error("a file of the experiment can't be read or written")]
    File(#[source] io::Error),
    /// The uploads reported success, but the store doesn't hold the expected objects.
    #[error(
        "the store must hold {wanted} objects of {size} bytes; it holds {right} of them, and {wrong} objects with another name or size"
    )]
    Wrong {
        /// Objects with the right name and size.
        right: usize,
        /// Number of objects that should be in the store.
        wanted: usize,
        /// Bytes that each object should have.
        size: u64,
        /// Objects with another name or size.
        wrong: usize,
    },
    /// Received or stored data differs from the expected data.
    #[error("{0}")]
    Different(String),
    /// The store lacks a feature that the method needs. The text is the message of the process that ran the method.
    #[error("{0}")]
    Absent(String),
    /// The separate process of the run failed with this message.
    #[error("{0}")]
    Process(String),
}

impl Failure {
    /// Returns whether the store lacks a feature that the method needs. Such a method counts as skipped, not as failed.
    pub fn is_absence(&self) -> bool {
        matches!(self, Self::Rival(rival::Error::NoHttp2) | Self::Absent(_))
    }

    /// Returns the text in place of the figures: "skipped" or "failed", and the reason.
    pub fn remark(&self) -> String {
        let word = if self.is_absence() { "skipped" } else { "failed" };
        format!("{word}: {}", self.reason())
    }

    /// Returns the failure with its causes, on one line.
    pub fn reason(&self) -> String {
        let mut text = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            text += &format!(": {error}");
            cause = error.source();
        }
        text
    }
}
