//! The answer to a request.

use std::fmt;
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
    /// Leaves the headers' values out: a session's URL is a secret.
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
    /// The body where no sink took it: everything of a 2xx answer, at most
    /// [`Response::ERROR_BODY_MAX`] bytes of another.
    pub body: Bytes,
    /// Bytes that the sink took.
    pub sunk: u64,
    /// True if the body was ended before its end: by the sink, or because an unsuccessful answer's is longer than
    /// [`Response::ERROR_BODY_MAX`].
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
    /// Leaves the body out: it may be a token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, {} bytes collected, {} sunk", self.head, self.body.len(), self.sunk)
    }
}

impl Response {
    /// Bytes of an unsuccessful answer's body that are read. A longer one is cut there, and its HTTP/1.1 connection closed
    /// or its HTTP/2 stream reset. Stores' error documents have a few KiB.
    pub const ERROR_BODY_MAX: usize = 64 * 1024;
    /// The largest 2xx body that is collected without a sink: beyond it the request fails with
    /// [`Kind::Protocol`](crate::Kind::Protocol). A list page of 1000 keys of 1024 bytes stays well below it.
    pub const COLLECTED_BODY_MAX: usize = 64 << 20;
}
