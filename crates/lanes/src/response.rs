//! The answer to a request, and the sink that takes its body.

use std::fmt;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

use crate::Protocol;

/// Status and headers of an answer.
#[derive(Clone)]
pub struct ResponseHead {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
}

impl fmt::Debug for ResponseHead {
    /// Leaves out the headers' values, because they may contain a secret, such as the URL of an upload session.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with {} headers", self.status, self.headers.len())
    }
}

impl ResponseHead {
    /// Returns a header's value if the header exists and is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns the `Content-Length` if it exists and is a number.
    pub fn content_length(&self) -> Option<u64> {
        self.header("content-length")?.parse().ok()
    }
}

/// An answer. It is complete unless [`stopped`](Self::stopped) is true.
pub struct Response {
    /// Status and headers.
    pub head: ResponseHead,
    /// The body if no sink took it. It is complete for a 2xx answer, and has at most [`Response::ERROR_BODY_MAX`] bytes for other answers.
    pub body: Bytes,
    /// The number of bytes that the sink took.
    pub sunk: u64,
    /// True if the body was cut off: the sink asked to stop, or the body of an unsuccessful answer is longer than
    /// [`Response::ERROR_BODY_MAX`].
    pub stopped: bool,
    /// The protocol of the connection.
    pub protocol: Protocol,
    /// The [`credential`](crate::Request::credential) of the request.
    pub credential: u64,
    /// Time spent waiting for a lane.
    pub queued: Duration,
    /// Time from sending the first byte of the request to receiving the answer's head.
    pub first_byte: Duration,
}

impl fmt::Debug for Response {
    /// Leaves out the body, because it may contain an access token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, {} bytes collected, {} sunk", self.head, self.body.len(), self.sunk)
    }
}

impl Response {
    /// The maximum number of bytes that are kept of an unsuccessful answer's body. A longer body is cut off: its HTTP/1.1 connection is
    /// closed, or its HTTP/2 stream reset. Stores' error documents have a few KiB.
    pub const ERROR_BODY_MAX: usize = 64 * 1024;
    /// The maximum size of a 2xx body that is collected in memory without a sink. With a larger body, the request fails with
    /// [`Kind::Protocol`](crate::Kind::Protocol). A list of 1000 keys of 1024 bytes is much smaller.
    pub const COLLECTED_BODY_MAX: usize = 16 << 20;
}

/// Takes the body of a successful (2xx) response, chunk by chunk, on the thread of the connection that reads it.
///
/// The chunks are borrowed from the connection's read buffer. Copy them to keep them. Bodies of other answers never reach the sink, but are
/// collected into [`Response::body`](crate::Response::body).
pub trait Sink: Send + 'static {
    /// Called once with the head, before any byte of the body.
    ///
    /// # Errors
    /// An error ends the request with [`Kind::Sink`](crate::Kind::Sink).
    fn begin(&mut self, head: &ResponseHead) -> Result<Route, SinkError>;

    /// Takes the next bytes of the body, at least one. If the route is [`Route::Freight`], it may block for a file's `pwrite`. Otherwise it
    /// must not block.
    ///
    /// # Errors
    /// An error ends the request with [`Kind::Sink`](crate::Kind::Sink).
    fn write(&mut self, bytes: &[u8]) -> Result<Route, SinkError>;

    /// Returns whether the sink can take more bytes. Until it can, the body isn't read further, so the server stops sending: the buffers of
    /// an HTTP/1.1 connection fill, or an HTTP/2 stream gets no more window. The no-progress timeout doesn't include this wait. But the
    /// request keeps its lane meanwhile. With HTTP/2, it also keeps a part of the connection's window.
    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }
}

/// The thread that reads the rest of a body, if it is read at all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Route {
    /// Read on the same thread as before.
    Stay,
    /// Read on a freight thread, where the sink may block, because the body is large. An HTTP/1.1 connection becomes a freight lane and
    /// moves there. An HTTP/2 stream stays on its connection, and only its sink's writes run there. Only [`Sink::begin`] can request this.
    /// If [`Sink::write`] returns `Freight`, this has the effect of [`Stay`](Self::Stay).
    Freight,
    /// Don't read the rest. The request ends successfully with [`Response::stopped`](crate::Response::stopped) set.
    Stop,
}

/// The reason why a sink couldn't take bytes.
pub type SinkError = Box<dyn std::error::Error + Send + Sync>;
