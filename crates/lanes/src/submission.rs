//! A request on its way to a connection.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::oneshot;

use crate::dispatch::AttemptId;
use crate::error::Error;
use crate::hedge::Tracker;
use crate::{Request, Response};

/// A submitted request and where its outcome is awaited. When nobody waits any more, it is cancelled.
pub(crate) struct Submission {
    pub(crate) attempt: AttemptId,
    pub(crate) request: Request,
    pub(crate) reply: oneshot::Sender<Result<Response, Error>>,
    pub(crate) submitted: Instant,
    /// How many new lanes have turned out to be gone when it was to be sent on them.
    pub(crate) bounces: u8,
    /// Where it shows its signs of life, if it may be hedged.
    pub(crate) tracker: Option<Arc<Tracker>>,
    /// The attempt that this one is a hedge of.
    pub(crate) hedge_of: Option<AttemptId>,
}
