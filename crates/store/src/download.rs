//! The arguments and the result of a download.

use std::fmt;
use std::ops::{Range, RangeFrom};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use laneway_lanes::{Breaks, Protocol, Route, SinkError};

use crate::{ObjectId, ObjectMeta, Unless, Version};

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

    /// Called after [`begin`](Self::begin) if the body contains the store's checksums of its bytes. Some bytes then
    /// arrive before their checksum. [`checked`](Self::checked) is called when their checksum was right.
    fn expect_checks(&mut self) {}

    /// Called when the store's checksums have confirmed all bytes that this sink has received so far.
    ///
    /// # Errors
    /// An error ends the download, as for [`write`](Self::write).
    fn checked(&mut self) -> Result<Route, SinkError> {
        Ok(Route::Stay)
    }
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
    /// True if the body contained the store's checksums of its bytes, and they were right. If the sink
    /// [`stopped`](Self::stopped) the body, only the sink knows which bytes were checked.
    pub checked: bool,
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

/// A range of bytes of an object whose size may be unknown.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum GetRange {
    /// The bytes from `start` up to, but not including, `end`. If the object ends earlier, the range ends there.
    Bounded(Range<u64>),
    /// The bytes from this offset to the end.
    From(u64),
    /// This many bytes at the end of the object. A shorter object is returned whole.
    Last(u64),
}

impl From<Range<u64>> for GetRange {
    fn from(range: Range<u64>) -> Self {
        Self::Bounded(range)
    }
}

impl From<RangeFrom<u64>> for GetRange {
    fn from(range: RangeFrom<u64>) -> Self {
        Self::From(range.start)
    }
}

impl GetRange {
    /// Returns the range as byte offsets in an object of this size. If the object has none of the bytes, the result is
    /// an empty range at the object's end.
    pub fn within(&self, size: u64) -> Range<u64> {
        let range = match self {
            Self::Bounded(range) => range.start..range.end.min(size),
            Self::From(start) => *start..size,
            Self::Last(len) => size.saturating_sub(*len)..size,
        };
        range.start.min(range.end)..range.end
    }

    /// Returns true if the range is empty for objects of every size.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Bounded(range) => range.is_empty(),
            Self::From(_) => false,
            Self::Last(len) => *len == 0,
        }
    }

    /// Returns true if this range of an empty object means the whole object. If a store answers 416 to such a range,
    /// that isn't an error.
    pub(crate) fn is_whole_of_nothing(&self) -> bool {
        match self {
            Self::Bounded(Range { start, .. }) | Self::From(start) => *start == 0,
            Self::Last(_) => true,
        }
    }

    /// Returns the `Range` header of a range that [isn't empty](Self::is_empty).
    pub(crate) fn header(&self) -> HeaderValue {
        let value = match self {
            Self::Bounded(range) => format!("bytes={}-{}", range.start, range.end.saturating_sub(1)),
            Self::From(start) => format!("bytes={start}-"),
            // Some servers fail to parse larger numbers, and no object is longer than this.
            Self::Last(len) => format!("bytes=-{}", len.min(&(i64::MAX as u64))),
        };
        // The value has only ASCII letters, digits, `=` and `-`, so the conversion never fails.
        HeaderValue::try_from(value).unwrap_or_else(|_| HeaderValue::from_static("bytes=0-"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_says_which_bytes_it_is_of_an_object() {
        let table = [
            (GetRange::from(2..5), 2..5, "bytes=2-4"),
            (GetRange::from(8..100), 8..10, "bytes=8-99"),
            (GetRange::from(7..), 7..10, "bytes=7-"),
            (GetRange::Last(3), 7..10, "bytes=-3"),
            (GetRange::Last(30), 0..10, "bytes=-30"),
            (GetRange::Last(u64::MAX), 0..10, "bytes=-9223372036854775807"),
            (GetRange::from(10..12), 10..10, "bytes=10-11"),
            (GetRange::from(12..), 10..10, "bytes=12-"),
        ];
        for (range, bytes, header) in table {
            assert_eq!((range.within(10), range.header().to_str().ok()), (bytes, Some(header)));
            assert!(!range.is_empty());
        }
        assert!(GetRange::from(5..5).is_empty() && GetRange::Last(0).is_empty());
    }

    #[test]
    fn an_object_without_bytes_is_wholly_in_what_begins_at_its_start() {
        for whole in [GetRange::from(0..9), GetRange::from(0..), GetRange::Last(9)] {
            assert!(whole.is_whole_of_nothing() && whole.within(0) == (0..0), "{whole:?}");
        }
        assert!(!GetRange::from(1..9).is_whole_of_nothing() && !GetRange::from(1..).is_whole_of_nothing());
    }
}
