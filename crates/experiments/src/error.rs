//! Why an experiment can't be made, and why a run of it has no figures.

use std::error::Error as _;
use std::io;

use crate::rival;

/// Why an experiment can't be made at all.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The plan makes no sense.
    #[error("{0}")]
    Plan(String),
    /// The embedded store can't be started.
    #[error("the embedded store can't be started")]
    Server(#[from] laneway_server::Error),
    /// Files or threads of the experiment's own.
    #[error("{what}")]
    Local {
        /// What was done.
        what: &'static str,
        /// What the system answered.
        #[source]
        source: io::Error,
    },
    /// A CA file, or the platform's certificates, can't be used.
    #[error("{what} can't be used")]
    Certificates {
        /// Which.
        what: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// There are no credentials, or none that can be used.
    #[error("no credentials for the store: {0}")]
    Credentials(String),
    /// The store can't be reached, doesn't give us a bucket or doesn't take the objects.
    #[error("the store can't be used")]
    Store(#[source] Failure),
    /// [`Stop::stop`](crate::Stop::stop) was called.
    #[error("stopped")]
    Stopped,
}

/// Why a run has no figures.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A request of one of the usual ways failed.
    #[error(transparent)]
    Rival(#[from] rival::Error),
    /// Laneway failed.
    #[error(transparent)]
    Laneway(#[from] ::laneway::Error),
    /// Laneway's job ended without telling how.
    #[error("the job ended without a summary")]
    Unfinished,
    /// A file of the experiment's own couldn't be read or written.
    #[error("a file of the experiment can't be read or written")]
    File(#[source] io::Error),
    /// The uploads succeeded, and afterwards the store held something else.
    #[error("{right} of {wanted} objects are in the store with {size} bytes each, and {wrong} others")]
    Wrong {
        /// Objects with the right name and size.
        right: usize,
        /// How many there should be.
        wanted: usize,
        /// Bytes that each should have.
        size: u64,
        /// Objects with another name or size.
        wrong: usize,
    },
    /// What came, or what is in the store, is not what should be.
    #[error("{0}")]
    Different(String),
    /// This store has no such thing; told by the process that tried.
    #[error("{0}")]
    Absent(String),
    /// The process that carried the run out ended badly; what it said.
    #[error("{0}")]
    Process(String),
}

impl Failure {
    /// Whether the store merely lacks what the rung needs: then the rung is skipped, and nothing went wrong.
    pub fn is_absence(&self) -> bool {
        matches!(self, Self::Rival(rival::Error::NoHttp2) | Self::Absent(_))
    }

    /// What stands in the place of figures: that the rung was skipped or failed, and why.
    pub fn remark(&self) -> String {
        let word = if self.is_absence() { "skipped" } else { "failed" };
        format!("{word}: {}", self.reason())
    }

    /// The failure with its causes, on one line.
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
