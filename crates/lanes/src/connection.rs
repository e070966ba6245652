//! The driver's view of a protocol: an open connection, and the road of a request over it.

use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use crate::addresses::{FAILED_FOR, SLOW_FOR};
use crate::error::Error;
use crate::incoming::ResponseReceiver;
use crate::shared::SharedState;
use crate::stream::IoProgress;
use crate::{Protocol, Request, Route};

/// A connection on which nothing has moved for so long was idle. Servers keep idle ones for a second or more.
pub(crate) const RESTED: Duration = Duration::from_millis(500);

/// An open connection. A request asks, then receives the answer's body; what a protocol lacks has a default.
pub(crate) trait ClientConnection: Send + Sized + 'static {
    /// The protocol of the connection.
    const PROTOCOL: Protocol;

    /// An answer's body that has not been received yet.
    type Rest: Send;

    /// When it last moved a byte, and what its path tells.
    fn progress(&self) -> &Arc<IoProgress>;

    /// Returns how many requests its server takes at once, as far as it has said.
    fn requests_max(&self) -> usize {
        1
    }

    /// Returns a handle for one more request. `None` where the protocol isn't multiplexed: there a request takes the connection for
    /// itself.
    fn share(&self) -> Option<Self> {
        None
    }

    /// Returns whether an idle connection still looks open. Where it does, the context's waker hears of the first that comes. A
    /// protocol that tells of a connection's end by itself is always quiet.
    fn is_quiet(&mut self, _cx: &mut Context<'_>) -> bool {
        true
    }

    /// Returns whether it has answered no request yet.
    fn is_unused(&self) -> bool;

    /// Returns whether nothing had been answered on it when this handle's request came.
    fn is_first(&self) -> bool;

    /// Waits until it takes a request.
    ///
    /// # Errors
    /// An [unsent](Error::is_unsent) error when it takes none any more.
    fn ready(&mut self, _timeout: Duration) -> impl Future<Output = Result<(), Error>> + Send {
        std::future::ready(Ok(()))
    }

    /// Sends the request and reads the answer's head. The connection was [`ready`](Self::ready).
    fn ask(
        &mut self,
        request: &mut Request,
        incoming: &mut ResponseReceiver,
        shared: &SharedState,
    ) -> impl Future<Output = Result<PendingBody<Self::Rest>, Error>> + Send;

    /// Reads the body.
    fn receive(
        &mut self,
        pending: PendingBody<Self::Rest>,
        incoming: &mut ResponseReceiver,
        timeout: Duration,
        shared: &SharedState,
    ) -> impl Future<Output = Result<BodyEnd, Error>> + Send;

    /// Returns what the error of the handle's request says of the connection, and the error, marked as
    /// [stale](Error::is_stale) where the connection was gone before the request came.
    fn failed(&self, error: Error, is_hedged: bool, timeout: Duration) -> (Error, ConnectionFate);
}

/// The rest of an exchange after the answer's head.
pub(crate) struct PendingBody<R> {
    pub(crate) rest: R,
    pub(crate) route: Route,
    /// True when the connection takes no other request after this answer.
    pub(crate) is_last: bool,
    /// The time that the server keeps an idle connection, where it says so anew.
    pub(crate) keeps_idle: Option<Duration>,
}

/// The end of an answer's body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BodyEnd {
    /// True when the sink wanted no more of it.
    pub(crate) is_stopped: bool,
    /// True when the connection takes another request.
    pub(crate) is_reusable: bool,
}

/// The fate of a connection, and of its address, after a request on it has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ConnectionFate {
    /// It takes other requests.
    Usable,
    /// It is of no use any more.
    Spent,
    /// It was too quiet under a request whose hedge was sooner.
    Slow,
    /// It was gone before the request came, most likely.
    Stale,
    /// It said nothing to a request that came after others: something on the path has forgotten it, most likely.
    Lost,
    /// It broke off or fell silent under its request.
    Broken,
}

impl ConnectionFate {
    /// Returns how long new connections leave its address out.
    pub(crate) fn avoided_for(self) -> Option<Duration> {
        match self {
            Self::Broken | Self::Lost => Some(FAILED_FOR),
            Self::Slow => Some(SLOW_FOR),
            Self::Usable | Self::Spent | Self::Stale => None,
        }
    }
}
