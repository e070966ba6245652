//! A request that may take several attempts, two of them at once: what the caller knows of it.

use std::future::Future;
use std::time::Duration;

use crate::{Alike, Breaks, Error, Request, Response};

/// An operation that [`Lanes::run`](crate::Lanes::run) carries through as many attempts as it needs. The engine knows
/// when to try again; the call knows how to ask and what an answer means.
pub trait Call: Send + Sync {
    /// Why a request could not even be made (credentials, say). It ends the call.
    type Refusal: Send;

    /// The request of one attempt, counted from 1. Made anew each time, because signatures carry the date and sinks
    /// hold state.
    fn request(&self, attempt: u32) -> impl Future<Output = Result<Request, Self::Refusal>> + Send;

    /// Returns what the outcome of an attempt means.
    fn judge(&self, outcome: &Result<Response, Error>) -> Verdict;

    /// Returns what is slowed down together when a server asks for it: the part of a bucket that the request is about, usually.
    fn throttle_key(&self) -> &str;

    /// The object and the direction that a refusal slows down alone while no others of the key are refused; no other throttle
    /// key may be equal. `None` where the request is about no single object.
    fn throttle_object(&self) -> Option<&str> {
        None
    }

    /// Returns the breaks of its answers so far, and how many bytes came this time, where the caller asks for the rest by another call.
    fn breaks(&self) -> Option<(&Breaks, u64)> {
        None
    }

    /// Returns whether an attempt that has become a straggler may be hedged, and among which others it is to be found slow. Only for what
    /// does no harm when it is carried out twice at once.
    fn hedged_among(&self) -> Option<Alike> {
        None
    }

    /// Returns what is to be done about an attempt that has become a straggler.
    fn hedge(&self) -> impl Future<Output = Hedge> + Send {
        async { Hedge::Nothing }
    }
}

/// The treatment of a straggler.
#[derive(Debug)]
pub enum Hedge {
    /// It is waited for.
    Nothing,
    /// This is sent as well, on another connection. The first of the two to bring a whole answer ends the attempt, and
    /// the other is cancelled.
    Send(Box<Request>),
}

/// The meaning of an attempt's outcome.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// This is the end, good or bad.
    Done,
    /// Another attempt may help, after a pause.
    Retry,
    /// The server asks to slow down, and may have said for how long.
    Throttled {
        /// `Retry-After`.
        after: Option<Duration>,
    },
    /// The server says that it is unavailable and no more (a bare 503). Alone that is a failure that passes; two of one
    /// object within a second are a throttle.
    Unavailable,
    /// Ask again at once: the call has learned something (a bucket's region, say). At most ten times a call.
    Again,
}

impl Verdict {
    /// Returns how long the server wants to be left alone.
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
    /// True if no further attempt was made because nothing at all has come from the origin for
    /// [`Config::retry_for`](crate::Config::retry_for): every other call to it would end so.
    pub is_origin_away: bool,
}
