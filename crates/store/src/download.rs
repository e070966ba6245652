//! The arguments and the result of a download.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use laneway_lanes::{Breaks, Protocol, Route, SinkError};

use crate::{GetRange, ObjectId, ObjectMeta, Unless, Version};

/// Makes a sink for each attempt of a download. `None` means that the body is collected into [`Got::body`].
pub type SinkMaker<'a> = Option<&'a (dyn Fn() -> Box<dyn GetSink> + Send + Sync)>;

/// The reaction to a request that is much slower than others; see [`Get::hedge`].
pub enum GetHedge {
    /// Keep waiting for the request.
    Nothing,
    /// Send a second request for this range, whose body goes to this sink. Without a range it requests the same bytes
    /// as the first request. From then on, two threads may write to the two sinks at the same time.
    Send(Option<Range<u64>>, Box<dyn GetSink>),
}

/// Chooses the reaction to a request that is much slower than others. [`Get::hedge`] explains `None`.
pub type HedgeMaker<'a> = Option<&'a (dyn Fn() -> GetHedge + Send + Sync)>;

/// A download of an object or of a range of it.
#[derive(Clone)]
pub struct Get<'a> {
    /// The object to download.
    pub id: &'a ObjectId,
    /// The bytes to download. `None` requests the whole object without a `Range` header, and S3 then sends its
    /// checksum.
    pub range: Option<GetRange>,
    /// The state the object must be in. The request carries it as a condition, and the answer is checked against it.
    pub version: Option<&'a Version>,
    /// The state that the caller already has. The object is downloaded only if it has changed since.
    pub unless: Option<&'a Unless>,
    /// The expected size of the body in bytes, if known. It decides if the request uses an express lane or a freight
    /// lane.
    pub expected: Option<u64>,
    /// The size of the whole object in bytes, if known. It is used if the answer doesn't state the size.
    pub size: Option<u64>,
    /// Makes the destinations of the body.
    pub sink: SinkMaker<'a>,
    /// The reaction to an attempt that is slow compared with others. If this is `None` and the body goes to a sink,
    /// Laneway never sends a second request beside the first one. If the body is collected in memory, this field has no
    /// effect, and Laneway itself decides to send a second request.
    pub hedge: HedgeMaker<'a>,
    /// Counts how often answers broke off. Callers set it if they fetch one body with several downloads in turn. With
    /// the counter, a download whose answer breaks off waits before it returns. After too many breaks without progress,
    /// its error is no longer [interrupted](crate::Error::is_interrupted).
    pub breaks: Option<&'a Breaks>,
}

impl<'a> Get<'a> {
    /// Downloads the whole object into memory.
    pub fn new(id: &'a ObjectId) -> Self {
        Self {
            id,
            range: None,
            version: None,
            unless: None,
            expected: None,
            size: None,
            sink: None,
            hedge: None,
            breaks: None,
        }
    }
}

impl fmt::Debug for Get<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Get")
            .field("id", &self.id)
            .field("range", &self.range)
            .field("version", &self.version)
            .field("unless", &self.unless)
            .field("expected", &self.expected)
            .finish_non_exhaustive()
    }
}

/// Receives the body of a download, on the thread of the lane that reads it.
pub trait GetSink: Send + 'static {
    /// Called once, before any byte. `meta` describes the whole object, with its full size even if a range was
    /// requested. `range` is the range that this body carries.
    ///
    /// # Errors
    /// An error ends the download; see [`Error::into_sink_error`](crate::Error::into_sink_error).
    fn begin(&mut self, meta: &ObjectMeta, range: Range<u64>) -> Result<Route, SinkError>;

    /// Receives the next bytes, at least one. The function must not block unless [`begin`](Self::begin) returned
    /// [`Route::Freight`].
    ///
    /// # Errors
    /// An error ends the download; see [`Error::into_sink_error`](crate::Error::into_sink_error).
    fn write(&mut self, bytes: &[u8]) -> Result<Route, SinkError>;
}

/// A successful download.
#[derive(Clone, Debug)]
pub struct Got {
    /// The whole object's metadata, as far as the answer contained it. GCS leaves out
    /// [`metadata`](ObjectMeta::metadata), and S3 leaves out the checksums if a range was requested.
    /// [`Store::head`](crate::Store::head) returns them all.
    pub meta: ObjectMeta,
    /// The range that the body carried, or would have carried if the sink had not [`stopped`](Self::stopped) it. If a
    /// second request was sent, it is the range of the answer that was complete first.
    pub range: Range<u64>,
    /// The body, if there was no sink.
    pub body: Bytes,
    /// The number of bytes that the sink accepted.
    pub sunk: u64,
    /// True if the sink ended the body early.
    pub stopped: bool,
    /// The number of attempts.
    pub attempts: u32,
    /// The time spent in each phase.
    pub timings: Timings,
}

/// The time that the phases of a request took. `queued` and `first_byte` are those of the last attempt.
///
/// The default is zero for every phase, as for a store in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timings {
    /// The time that the request waited for a lane.
    pub queued: Duration,
    /// The time from sending the request to receiving the answer's head.
    pub first_byte: Duration,
    /// The time from the first attempt's start to the last one's end.
    pub elapsed: Duration,
    /// The protocol of the connection.
    pub protocol: Protocol,
}

impl Default for Timings {
    fn default() -> Self {
        let none = Duration::ZERO;
        Self { queued: none, first_byte: none, elapsed: none, protocol: Protocol::H1 }
    }
}
