//! A call: a request that may take several attempts, two of them at once. The caller makes the requests and judges the answers.

use std::future::Future;
use std::time::Duration;

use crate::{Alike, Breaks, Error, Request, Response};

/// An operation that [`Lanes::run`](crate::Lanes::run) carries out in as many attempts as it needs. The engine decides when to try again.
/// The call makes the requests and interprets the answers.
pub trait Call: Send + Sync {
    /// Why a request could not be made, for example a lack of credentials. It ends the call.
    type Refusal: Send;

    /// Returns the request of one attempt, counted from 1. Each attempt needs a new one, because signatures carry the date and sinks hold
    /// state.
    fn request(&self, attempt: u32) -> impl Future<Output = Result<Request, Self::Refusal>> + Send;

    /// Returns the meaning of an attempt's outcome.
    fn judge(&self, outcome: &Result<Response, Error>) -> Verdict;

    /// Returns the name of the requests that slow down together when a server asks for it. It is usually the part of a bucket that the
    /// request is about.
    fn throttle_key(&self) -> &str;

    /// Returns the object and the direction of the request. If only this object is refused, it alone is slowed down. No throttle key may be
    /// equal. `None` if the request isn't about a single object.
    fn throttle_object(&self) -> Option<&str> {
        None
    }

    /// Returns the breaks of the call's answers so far, and how many bytes came this time, if the caller requests the rest of a body by
    /// another call.
    fn breaks(&self) -> Option<(&Breaks, u64)> {
        None
    }

    /// Returns whether a straggling attempt may be hedged, and the requests that it is compared with. Only requests that may safely be
    /// carried out twice at once may return `Some`.
    fn hedged_among(&self) -> Option<Alike> {
        None
    }

    /// Returns the treatment of an attempt that has become a straggler.
    fn hedge(&self) -> impl Future<Output = Hedge> + Send {
        async { Hedge::Nothing }
    }
}

/// The treatment of a straggling attempt.
#[derive(Debug)]
pub enum Hedge {
    /// Wait for it.
    Nothing,
    /// Also send this request, on another connection. The first of the two that brings a complete answer ends the attempt. The other is
    /// cancelled.
    Send(Box<Request>),
}

/// The meaning of an attempt's outcome.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The call has ended, well or not.
    Done,
    /// Another attempt may help, after a pause.
    Retry,
    /// The server asks to slow down, and may say for how long.
    Throttled {
        /// `Retry-After`.
        after: Option<Duration>,
    },
    /// The server says only that it is unavailable (a bare 503). One of them is a transient failure. Two for one object within a second are
    /// a throttle.
    Unavailable,
    /// Try again at once, because the call has learned something (a bucket's region, for example). At most ten times per call.
    Again,
}

impl Verdict {
    /// Returns the pause that the server asks for.
    pub(crate) fn asked_pause(self) -> Option<Duration> {
        match self {
            Self::Throttled { after } => after,
            _ => None,
        }
    }
}

/// The end of a call.
#[derive(Debug)]
pub struct CallOutcome {
    /// The last attempt's outcome.
    pub outcome: Result<Response, Error>,
    /// The number of attempts made.
    pub attempts: u32,
    /// From the first attempt's start to the last one's end.
    pub elapsed: Duration,
    /// True if the call ended because the origin has sent nothing for [`Config::retry_for`](crate::Config::retry_for). Every other call to
    /// it would end like this.
    pub is_origin_away: bool,
}
