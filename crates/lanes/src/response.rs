//! The answer to a request, and the sink that takes its body.

use std::fmt;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

use crate::Protocol;

/// Status and headers of an answer.
#[derive(Clone)]
pub struct Head {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
}

impl fmt::Debug for Head {
    /// Leaves out the headers' values: an upload session's URL is a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with {} headers", self.status, self.headers.len())
    }
}

impl Head {
    /// A header's value, if it is there and is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The `Content-Length`, if it is there and is a number.
    pub fn content_length(&self) -> Option<u64> {
        self.header("content-length")?.parse().ok()
    }
}

/// An answer, complete unless [`stopped`](Self::stopped).
pub struct Response {
    /// Status and headers.
    pub head: Head,
    /// The body if no sink took it: all of a 2xx answer, or at most [`Response::ERROR_BODY_MAX`] bytes of another.
    pub body: Bytes,
    /// Bytes that the sink took.
    pub sunk: u64,
    /// True if the body was cut off: by the sink, or because an unsuccessful answer's is longer than [`Response::ERROR_BODY_MAX`].
    pub stopped: bool,
    /// The protocol that the connection spoke.
    pub protocol: Protocol,
    /// The [`credential`](crate::Request::credential) of the request.
    pub credential: u64,
    /// Time spent waiting for a lane.
    pub queued: Duration,
    /// Time from sending the first byte of the request to receiving the answer's head.
    pub first_byte: Duration,
}

impl fmt::Debug for Response {
    /// Leaves out the body, which may be a token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, {} bytes collected, {} sunk", self.head, self.body.len(), self.sunk)
    }
}

impl Response {
    /// Most bytes of an unsuccessful answer's body. A longer one is cut off, and its HTTP/1.1 connection closed or its HTTP/2 stream reset.
    /// Stores' error documents have a few KiB.
    pub const ERROR_BODY_MAX: usize = 64 * 1024;
    /// The largest 2xx body that is collected without a sink. A larger one fails the request with
    /// [`Kind::Protocol`](crate::Kind::Protocol). A list page of 1000 keys of 1024 bytes is well below this.
    pub const COLLECTED_BODY_MAX: usize = 64 << 20;
}

/// Takes the body of a successful (2xx) response, chunk by chunk, on the thread of the lane that reads it.
///
/// The chunks are borrowed from the connection's read buffer. Copy them to keep them. Bodies of other answers never reach the sink, but are
/// collected into [`Response::body`](crate::Response::body).
pub trait Sink: Send + 'static {
    /// Called once with the head, before any byte.
    ///
    /// # Errors
    /// An error ends the request with [`Kind::Sink`](crate::Kind::Sink).
    fn begin(&mut self, head: &Head) -> Result<Route, SinkError>;

    /// Takes the next bytes of the body, never empty. It may block for a file's `pwrite` if the route is [`Route::Freight`], but not
    /// otherwise.
    ///
    /// # Errors
    /// An error ends the request with [`Kind::Sink`](crate::Kind::Sink).
    fn write(&mut self, bytes: &[u8]) -> Result<Route, SinkError>;

    /// Returns whether the next bytes may come. Until then the body isn't read further, so the server stops sending: the socket of an
    /// HTTP/1.1 connection fills, and an HTTP/2 stream gets no more window. That doesn't count as a lack of progress. But the request keeps
    /// its lane meanwhile, and with HTTP/2 a part of the connection's window.
    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }
}

/// Where the rest of a body is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Route {
    /// On the present thread.
    Stay,
    /// On a freight thread, which may block, because the body is bulk. An HTTP/1.1 connection becomes freight and moves there. An HTTP/2
    /// stream stays on its connection, and only its sink's writes run there. [`Sink::begin`] may return this; from [`Sink::write`] it means
    /// [`Stay`](Self::Stay).
    Freight,
    /// Nowhere, since no more of it is wanted. The request ends successfully with [`Response::stopped`](crate::Response::stopped) set.
    Stop,
}

/// Why a sink could not take bytes.
pub type SinkError = Box<dyn std::error::Error + Send + Sync>;
