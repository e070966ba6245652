//! What a download is given, and what it hands back.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use laneway_lanes::{Breaks, Protocol, Route, SinkError};

use crate::{GetRange, ObjectId, ObjectMeta, Unless, Version};

/// Makes the sink of one attempt. `None` collects the body into [`Got::body`].
pub type SinkMaker<'a> = Option<&'a (dyn Fn() -> Box<dyn GetSink> + Send + Sync)>;

/// What is done about a request for an object that is much slower than others; see [`Get::hedge`].
pub enum GetHedge {
    /// It is waited for.
    Nothing,
    /// A second request is sent for these bytes, into this sink; without a range it asks for what the first one asked.
    /// From then on both sinks are written to, by different threads.
    Send(Option<Range<u64>>, Box<dyn GetSink>),
}

/// Says what is done about a request that is much slower than others.
pub type HedgeMaker<'a> = Option<&'a (dyn Fn() -> GetHedge + Send + Sync)>;

/// A download of an object or of a range of it.
#[derive(Clone)]
pub struct Get<'a> {
    /// Which object.
    pub id: &'a ObjectId,
    /// Which bytes. `None` asks for the whole without a `Range`, which makes S3 send its checksum.
    pub range: Option<GetRange>,
    /// The state it must be in: asked for, and compared with the answer.
    pub version: Option<&'a Version>,
    /// What the caller has already: the object is downloaded only if it is another by now.
    pub unless: Option<&'a Unless>,
    /// How many bytes the body is expected to have, if that is known: decides between express and freight.
    pub expected: Option<u64>,
    /// How many bytes the whole object has, if that is known: believed where the answer doesn't say.
    pub size: Option<u64>,
    /// Where the body goes.
    pub sink: SinkMaker<'a>,
    /// What is done about an attempt that is slow compared with others: `None` never asks twice at once for what goes to a
    /// sink. A body that is collected may always be asked for twice.
    pub hedge: HedgeMaker<'a>,
    /// How the answers of one body have broken off so far, where the caller goes on with the rest of it by another download.
    /// What breaks off then waits before it ends, and ends as no longer
    /// [interrupted](crate::Error::is_interrupted) once it has done so too often without any progress.
    pub breaks: Option<&'a Breaks>,
}

impl<'a> Get<'a> {
    /// The whole object, collected in memory.
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

/// Takes the body of a download, on the thread of the lane that reads it.
pub trait GetSink: Send + 'static {
    /// Called once, before any byte. `meta` is that of the whole object (its size too, also where a range was asked
    /// for); `range` is what this body will carry.
    ///
    /// # Errors
    /// An error ends the download; see [`Error::into_sink_error`](crate::Error::into_sink_error).
    fn begin(&mut self, meta: &ObjectMeta, range: Range<u64>) -> Result<Route, SinkError>;

    /// The next bytes, never empty. May block only when the route is [`Route::Freight`].
    ///
    /// # Errors
    /// An error ends the download; see [`Error::into_sink_error`](crate::Error::into_sink_error).
    fn write(&mut self, bytes: &[u8]) -> Result<Route, SinkError>;
}

/// A download that ended well.
#[derive(Clone, Debug)]
pub struct Got {
    /// The whole object's metadata, as far as the answer told it. GCS leaves [`metadata`](ObjectMeta::metadata) out, S3
    /// the checksums where a range was asked for: [`Store::head`](crate::Store::head) tells them all.
    pub meta: ObjectMeta,
    /// What the body of the answer that came first carried, or would have carried had it not been [`stopped`](Self::stopped).
    pub range: Range<u64>,
    /// The body where no sink took it.
    pub body: Bytes,
    /// How many bytes the sink took.
    pub sunk: u64,
    /// Whether the sink ended the body before its end.
    pub stopped: bool,
    /// How many attempts were made.
    pub attempts: u32,
    /// Where the time went.
    pub timings: Timings,
}

/// Where the time of a request's last attempt went.
///
/// The default is that of an answer that took no time, as a store without a network gives it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timings {
    /// Waiting for a lane.
    pub queued: Duration,
    /// From sending the request to receiving the answer's head.
    pub first_byte: Duration,
    /// From the first attempt's start to the last one's end.
    pub elapsed: Duration,
    /// What the connection spoke.
    pub protocol: Protocol,
}

impl Default for Timings {
    fn default() -> Self {
        let none = Duration::ZERO;
        Self { queued: none, first_byte: none, elapsed: none, protocol: Protocol::H1 }
    }
}
