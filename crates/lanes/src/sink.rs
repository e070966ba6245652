//! Where a response body goes.

use std::task::{Context, Poll};

use crate::response::Head;

/// Takes the body of a successful (2xx) response, chunk by chunk, on the thread of the lane that reads it.
///
/// The chunks are borrowed from the connection's read buffer: whoever needs them longer copies them. Bodies of other
/// answers never reach the sink; they are collected into [`Response::body`](crate::Response::body).
pub trait Sink: Send + 'static {
    /// Called once with the head, before any byte.
    ///
    /// # Errors
    /// An error ends the request with [`Kind::Sink`](crate::Kind::Sink).
    fn begin(&mut self, head: &Head) -> Result<Route, SinkError>;

    /// The next bytes of the body, never empty. May block for a file's `pwrite` when the route is
    /// [`Route::Freight`], and must not otherwise.
    ///
    /// # Errors
    /// An error ends the request with [`Kind::Sink`](crate::Kind::Sink).
    fn write(&mut self, bytes: &[u8]) -> Result<Route, SinkError>;

    /// Returns whether the next bytes may come. Until they may no more of the body is read, so that the server stops sending: an HTTP/1.1
    /// connection's socket fills, an HTTP/2 stream is given no more window. That is not counted as a lack of progress; but what is
    /// held up keeps its lane, and of HTTP/2 a part of its connection's window.
    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }
}

/// Where the rest of a body is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Route {
    /// Where it is.
    Stay,
    /// On a freight thread, whose work may block: this turned out to be bulk. An HTTP/1.1 connection changes its role
    /// and moves there; an HTTP/2 stream stays on its connection, and its sink's writes run on a freight thread. Said
    /// by [`Sink::begin`] only; from [`Sink::write`] it means [`Stay`](Self::Stay).
    Freight,
    /// Nowhere: no more of it is wanted. The request ends successfully with
    /// [`Response::stopped`](crate::Response::stopped) set.
    Stop,
}

/// Why a sink could not take bytes.
pub type SinkError = Box<dyn std::error::Error + Send + Sync>;
