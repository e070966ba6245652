//! A request on its way to a connection.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::dispatch::AttemptId;
use crate::error::Error;
use crate::hedge::Tracker;
use crate::spare::Claim;
use crate::{Request, Response};

/// A request that has waited longer for its lane is signed again. Signatures say when they were made, and stores refuse old ones; below
/// a second a second signature costs more than it is worth.
const SIGNED_FOR: Duration = Duration::from_secs(1);

/// A submitted request and where its outcome is awaited. When nobody waits any more, it is cancelled.
pub(crate) struct Submission {
    pub(crate) attempt: AttemptId,
    pub(crate) request: Request,
    pub(crate) reply: oneshot::Sender<Result<Response, Error>>,
    pub(crate) submitted: Instant,
    /// The number of new lanes that turned out to be gone when it was to be sent on them.
    pub(crate) bounces: u8,
    /// Where it shows its signs of life, if it may be hedged.
    pub(crate) tracker: Option<Arc<Tracker>>,
    /// The attempt that this one is a hedge of.
    pub(crate) hedge_of: Option<AttemptId>,
    /// The lane that was claimed for it, until the dispatcher counts it.
    pub(crate) claim: Option<Claim>,
}

impl Submission {
    /// Signs the request again if it has waited long for the lane that it takes now.
    pub(crate) fn renew(&mut self, now: Instant) {
        if now.saturating_duration_since(self.submitted) > SIGNED_FOR
            && let Some(renew) = self.request.renew.take()
        {
            renew(&mut self.request);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use http::Method;

    use super::*;
    use crate::Origin;

    #[test]
    fn a_request_that_has_waited_long_is_signed_again() {
        let mut request = Request::new(Origin::parse("http://h").unwrap(), Method::GET, "/".parse().unwrap());
        request.renew = Some(Arc::new(|request: &mut Request| request.credential += 1));
        let submitted = Instant::now();
        let (reply, _outcome) = oneshot::channel();
        let mut submission = Submission {
            attempt: AttemptId(0),
            request,
            reply,
            submitted,
            bounces: 0,
            tracker: None,
            hedge_of: None,
            claim: None,
        };
        submission.renew(submitted + SIGNED_FOR);
        assert_eq!(submission.request.credential, 0);
        submission.renew(submitted + 2 * SIGNED_FOR);
        assert_eq!(submission.request.credential, 1);
    }
}
