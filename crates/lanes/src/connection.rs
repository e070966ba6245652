//! The interface between the driver and a protocol: an open connection, and the steps of a request on it.

use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use crate::addresses::{FAILED_FOR, SLOW_FOR};
use crate::error::Error;
use crate::incoming::ResponseReceiver;
use crate::shared::SharedState;
use crate::stream::IoProgress;
use crate::{Protocol, Request, Route};

/// If no byte has moved on a connection for this time, the connection counts as idle, and the server may have closed it. Servers keep idle
/// connections open for a second or more.
pub(crate) const RESTED: Duration = Duration::from_millis(500);

/// An open connection. The driver calls [`ask`](Self::ask) to send a request, and [`receive`](Self::receive) to read the body of its
/// answer. Some protocols lack a feature, so the feature's methods have a default.
pub(crate) trait ClientConnection: Send + Sized + 'static {
    /// The protocol of the connection.
    const PROTOCOL: Protocol;

    /// The protocol's state between an answer's head and its body.
    type Rest: Send;

    /// Returns the record of when the connection last moved a byte, and of its network path.
    fn progress(&self) -> &Arc<IoProgress>;

    /// Returns the number of concurrent requests that the server allows on this connection, as it last announced.
    fn requests_max(&self) -> usize {
        1
    }

    /// Returns a handle for one more concurrent request. `None` means that the protocol isn't multiplexed, so a request takes the whole
    /// connection.
    fn share(&self) -> Option<Self> {
        None
    }

    /// Returns whether an idle connection still looks open. If so, the context's task is woken when bytes arrive or the peer closes the
    /// connection. A protocol that reports the end of its connection in another way always returns true.
    fn is_quiet(&mut self, _cx: &mut Context<'_>) -> bool {
        true
    }

    /// Returns whether the server has not answered any request on this connection yet.
    fn is_unused(&self) -> bool;

    /// Returns whether this handle's request was sent before the server had answered any request on the connection.
    fn is_first(&self) -> bool;

    /// Waits until the connection can take a request.
    ///
    /// # Errors
    /// Fails with an [unsent](Error::is_unsent) error if the connection takes no more requests.
    fn ready(&mut self, _timeout: Duration) -> impl Future<Output = Result<(), Error>> + Send {
        std::future::ready(Ok(()))
    }

    /// Sends the request and reads the answer's head. Call [`ready`](Self::ready) first.
    fn ask(
        &mut self,
        request: &mut Request,
        incoming: &mut ResponseReceiver,
        shared: &SharedState,
    ) -> impl Future<Output = Result<PendingBody<Self::Rest>, Error>> + Send;

    /// Reads the body of the answer.
    fn receive(
        &mut self,
        pending: PendingBody<Self::Rest>,
        incoming: &mut ResponseReceiver,
        timeout: Duration,
        shared: &SharedState,
    ) -> impl Future<Output = Result<BodyEnd, Error>> + Send;

    /// Judges the connection after this handle's request has failed. Returns the error and the fate of the connection. The error is marked
    /// as [stale](Error::is_stale) if the server had most likely closed the connection before the request reached it.
    fn failed(&self, error: Error, is_hedged: bool, timeout: Duration) -> (Error, ConnectionFate);
}

/// The state of an exchange after the answer's head was read.
pub(crate) struct PendingBody<R> {
    pub(crate) rest: R,
    pub(crate) route: Route,
    /// True if the connection can't take another request after this answer.
    pub(crate) is_last: bool,
    /// The server's timeout for idle connections, if this answer announces it.
    pub(crate) keeps_idle: Option<Duration>,
}

/// The end of an answer's body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BodyEnd {
    /// True if the sink asked to stop before the end.
    pub(crate) is_stopped: bool,
    /// True if the connection can take another request.
    pub(crate) is_reusable: bool,
}

/// The state of a connection after a request on it has ended. It also decides if new connections avoid the connection's address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ConnectionFate {
    /// The connection can take further requests.
    Usable,
    /// The connection can't be used any more.
    Spent,
    /// The connection was slow: the hedge of its request was faster.
    Slow,
    /// Most likely the server had closed the connection before the request reached the server.
    Stale,
    /// The server answered earlier requests on the connection, but not this one. Most likely a middlebox has
    /// forgotten the connection.
    Lost,
    /// The connection failed or fell silent while it carried a request.
    Broken,
}

impl ConnectionFate {
    /// Returns for how long new connections avoid the address of this connection.
    pub(crate) fn avoided_for(self) -> Option<Duration> {
        match self {
            Self::Broken | Self::Lost => Some(FAILED_FOR),
            Self::Slow => Some(SLOW_FOR),
            Self::Usable | Self::Spent | Self::Stale => None,
        }
    }
}
