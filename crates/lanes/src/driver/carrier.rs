//! A connection without its type: what a lane holds.

use std::sync::Arc;
use std::task::Context;

use super::exchange::Exchange;
use crate::Protocol;
use crate::connection::Connection;
use crate::stream::Progress;
use crate::submission::Submission;

/// An open connection. What is asked once a request goes through here; the exchange itself runs on the connection's own type, so
/// that no step of it is boxed.
pub(crate) trait Carrier: Send {
    fn protocol(&self) -> Protocol;
    fn progress(&self) -> &Arc<Progress>;
    fn requests_max(&self) -> usize;
    fn is_quiet(&mut self, cx: &mut Context<'_>) -> bool;
    fn is_unused(&self) -> bool;

    /// Begins an exchange on the thread of its role. Returns the connection where it takes more requests meanwhile.
    fn carry(self: Box<Self>, exchange: Exchange, submission: Box<Submission>) -> Option<Box<dyn Carrier>>;
}

impl<C: Connection> Carrier for C {
    fn protocol(&self) -> Protocol {
        C::PROTOCOL
    }

    fn progress(&self) -> &Arc<Progress> {
        Connection::progress(self)
    }

    fn requests_max(&self) -> usize {
        Connection::requests_max(self)
    }

    fn is_quiet(&mut self, cx: &mut Context<'_>) -> bool {
        Connection::is_quiet(self, cx)
    }

    fn is_unused(&self) -> bool {
        Connection::is_unused(self)
    }

    fn carry(self: Box<Self>, exchange: Exchange, submission: Box<Submission>) -> Option<Box<dyn Carrier>> {
        match self.share() {
            Some(handle) => {
                exchange.spawn(Hold::Share(handle), submission);
                Some(self)
            }
            None => {
                exchange.spawn(Hold::Whole(self), submission);
                None
            }
        }
    }
}

/// A request's hold on its connection: all of it, or a handle beside others'.
pub(super) enum Hold<C> {
    Whole(Box<C>),
    Share(C),
}

impl<C: Connection> Hold<C> {
    pub(super) fn connection(&mut self) -> &mut C {
        match self {
            Self::Whole(connection) => connection,
            Self::Share(handle) => handle,
        }
    }

    /// The connection that the lane has to get back.
    pub(super) fn into_whole(self) -> Option<Box<dyn Carrier>> {
        match self {
            Self::Whole(connection) => Some(connection),
            Self::Share(_) => None,
        }
    }
}
