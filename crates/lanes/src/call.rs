//! A call is a request that can take several attempts. Two of them can run at once: a slow attempt and its hedge. The caller makes the
//! requests and judges the answers.

use std::future::Future;
use std::time::Duration;

use crate::{Alike, Breaks, Error, Request, Response};

/// An operation that [`Lanes::run`](crate::Lanes::run) carries out, in several attempts if needed. The engine decides when to try again.
/// The call makes the requests and interprets the answers.
pub trait Call: Send + Sync {
    /// The reason why the caller couldn't make a request, for example missing credentials. It ends the call.
    type Refusal: Send;

    /// Returns the request of an attempt. The first attempt has the number 1. Each attempt needs a new request, because signatures contain
    /// the date, and sinks contain state.
    fn request(&self, attempt: u32) -> impl Future<Output = Result<Request, Self::Refusal>> + Send;

    /// Returns the meaning of an attempt's outcome.
    fn judge(&self, outcome: &Result<Response, Error>) -> Verdict;

    /// Returns the name of a group of requests. If the server throttles one request of the group, all requests of the group slow down. The
    /// name usually stands for a part of a bucket, such as a folder.
    fn throttle_key(&self) -> &str;

    /// Returns a name for the object and the direction of the request, or `None` if the request isn't about a single object. If the server
    /// throttles only this object, only the requests for this object slow down. The name must differ from all throttle keys.
    fn throttle_object(&self) -> Option<&str> {
        None
    }

    /// Returns the record of a body's earlier interruptions, and the number of body bytes that this call has received. Returns `Some` only
    /// if the caller requests the rest of an interrupted body with another call.
    fn breaks(&self) -> Option<(&Breaks, u64)> {
        None
    }

    /// Returns the group of requests that an attempt is compared with, to find out if the attempt is a straggler. `None` means that the
    /// attempt must not be hedged. Return `Some` only if the server can carry out the request twice without harm.
    fn hedged_among(&self) -> Option<Alike> {
        None
    }

    /// Returns the action for an attempt that has become a straggler.
    fn hedge(&self) -> impl Future<Output = Hedge> + Send {
        async { Hedge::Nothing }
    }
}

/// The action for an attempt that has become a straggler.
#[derive(Debug)]
pub enum Hedge {
    /// Keep waiting for it.
    Nothing,
    /// Send this request, too, on another connection. The first complete answer ends the attempt, and the other request is cancelled.
    Send(Box<Request>),
}

/// The meaning of an attempt's outcome.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The call has ended, successfully or not.
    Done,
    /// Another attempt may help, after a pause.
    Retry,
    /// The server asks for fewer requests. Its answer can also say how long to pause.
    Throttled {
        /// The pause that the server asks for in `Retry-After`.
        after: Option<Duration>,
    },
    /// The server answered 503 without a reason. A single such answer counts as a transient failure. Two such answers for the same object
    /// within a second count as a throttle.
    Unavailable,
    /// Try again at once, because the call has learned something, such as a bucket's region. A call may do this at most ten times.
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

/// The result of a call.
#[derive(Debug)]
pub struct CallOutcome {
    /// The last attempt's outcome.
    pub outcome: Result<Response, Error>,
    /// The number of attempts that the call made.
    pub attempts: u32,
    /// The time from the start of the first attempt to the end of the last.
    pub elapsed: Duration,
    /// True if the call ended because the origin has sent nothing for [`Config::retry_for`](crate::LanesConfig::retry_for). Every other call to
    /// the origin would now end in the same way.
    pub is_origin_away: bool,
    /// The time for which the origin has been away. The outage may have begun before this call.
    pub away_for: Duration,
}
