//! The driver's view of a protocol: an open connection, and the steps of a request on it.

use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use crate::addresses::{FAILED_FOR, SLOW_FOR};
use crate::error::Error;
use crate::incoming::ResponseReceiver;
use crate::shared::SharedState;
use crate::stream::IoProgress;
use crate::{Protocol, Request, Route};

/// A connection on which nothing has moved for this time was idle. Servers keep idle ones for a second or more.
pub(crate) const RESTED: Duration = Duration::from_millis(500);

/// An open connection. A request is sent, then its answer's body received. Features that a protocol may lack have a default.
pub(crate) trait ClientConnection: Send + Sized + 'static {
    /// The protocol of the connection.
    const PROTOCOL: Protocol;

    /// An answer's body that has not been received yet.
    type Rest: Send;

    /// Returns when it last moved a byte, and its path's signals.
    fn progress(&self) -> &Arc<IoProgress>;

    /// Returns how many requests its server takes at once, as last announced.
    fn requests_max(&self) -> usize {
        1
    }

    /// Returns a handle for one more request. `None` if the protocol isn't multiplexed: a request then takes the whole connection.
    fn share(&self) -> Option<Self> {
        None
    }

    /// Returns whether an idle connection still looks open. If so, the context's waker is called when bytes or the end come. A protocol
    /// that reports the end of its connection itself is always quiet.
    fn is_quiet(&mut self, _cx: &mut Context<'_>) -> bool {
        true
    }

    /// Returns whether it has answered no request yet.
    fn is_unused(&self) -> bool;

    /// Returns whether it had answered nothing when this handle's request came.
    fn is_first(&self) -> bool;

    /// Waits until it can take a request.
    ///
    /// # Errors
    /// An [unsent](Error::is_unsent) error if it takes no more requests.
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

    /// Returns the fate of the connection after the error of this handle's request, and the error. The error is marked as
    /// [stale](Error::is_stale) if the connection was gone before the request came.
    fn failed(&self, error: Error, is_hedged: bool, timeout: Duration) -> (Error, ConnectionFate);
}

/// The rest of an exchange after the answer's head.
pub(crate) struct PendingBody<R> {
    pub(crate) rest: R,
    pub(crate) route: Route,
    /// True if the connection takes no other request after this answer.
    pub(crate) is_last: bool,
    /// The time for which the server keeps idle connections, if it announces a new one.
    pub(crate) keeps_idle: Option<Duration>,
}

/// The end of an answer's body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BodyEnd {
    /// True if the sink refused the rest.
    pub(crate) is_stopped: bool,
    /// True if the connection takes another request.
    pub(crate) is_reusable: bool,
}

/// The fate of a connection, and of its address, after a request on it has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ConnectionFate {
    /// It takes other requests.
    Usable,
    /// It can't be used any more.
    Spent,
    /// It was too slow under a request whose hedge was faster.
    Slow,
    /// Most likely it was gone before the request came.
    Stale,
    /// It was silent after it had served others. Most likely a middlebox has forgotten it.
    Lost,
    /// It broke or fell silent under its request.
    Broken,
}

impl ConnectionFate {
    /// Returns how long new connections avoid its address.
    pub(crate) fn avoided_for(self) -> Option<Duration> {
        match self {
            Self::Broken | Self::Lost => Some(FAILED_FOR),
            Self::Slow => Some(SLOW_FOR),
            Self::Usable | Self::Spent | Self::Stale => None,
        }
    }
}
