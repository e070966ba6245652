//! Injected faults: requests that are answered wrongly, late or not at all.
//!
//! A rule reads `[VERB][:SELECTOR] [key=GLOB] ACTION`, for example `get:3 reset@256KiB`, `put:10% status 503
//! retry-after 2s`, `any key=logs/* stall@1MiB`, `goaway`. Several rules may match one request, and their effects
//! combine. A copy is matched by its destination's key, a listing by its prefix. A pure state machine, which takes the
//! time as an argument, selects the requests.

pub(crate) mod answer;
pub(crate) mod body;
pub(crate) mod draws;
mod glob;
mod parse;
pub(crate) mod select;

use std::time::Duration;

pub use glob::Glob;
pub use parse::parse_fault;

pub use crate::verb::Verb;

/// All rules of a server, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Faults {
    /// The rules. Several may match one request.
    pub rules: Vec<FaultRule>,
}

impl Faults {
    /// Reads all rules.
    ///
    /// # Errors
    /// Returns the first rule that can't be read, with the expected syntax.
    pub fn parse<'a>(rules: impl IntoIterator<Item = &'a str>) -> Result<Faults, crate::Error> {
        rules.into_iter().map(parse_fault).collect::<Result<_, _>>().map(|rules| Faults { rules })
    }
}

/// One rule: a selection of requests, and the fault.
#[derive(Debug, Clone, PartialEq)]
pub struct FaultRule {
    /// The verb; `None` is `any`.
    pub verb: Option<Verb>,
    /// The pattern of the keys.
    pub key: Option<Glob>,
    /// The selection among the matching requests.
    pub selector: Selector,
    /// The fault.
    pub action: Action,
}

/// The selection among the requests with matching verb and key. Each rule counts requests separately, from 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Selector {
    /// All requests.
    Always,
    /// The first to the last number, both included; `:3` is 3 to 3.
    Between(u64, u64),
    /// This share of the requests, from 0 to 1, drawn with the server's seed.
    Share(f64),
}

/// The fault of a selected request.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Returns this status instead of doing the work.
    Status {
        /// The HTTP status, 400 to 599.
        status: u16,
        /// The reason or error code in the body. The default fits the status.
        reason: Option<String>,
        /// The `Retry-After` header, in whole seconds, rounded up.
        retry_after: Option<Duration>,
    },
    /// After this many body bytes: a TCP reset on HTTP/1.1, RST_STREAM on HTTP/2. With 0 there is no answer.
    Reset(u64),
    /// After this many body bytes, the TCP connection is reset, with all its streams.
    Drop(u64),
    /// After this many body bytes, the TCP connection is closed with all its streams, TLS without a close_notify. With
    /// 0 there is no answer.
    Cut(u64),
    /// After this many body bytes, no more bytes are transferred, but the connection stays open. When the server's
    /// faults are replaced, the stalled transfer is reset.
    Stall(u64),
    /// The answer's body ends after this many bytes (default: half), whatever Content-Length says.
    Truncate(Option<u64>),
    /// One bit of this byte of the body is flipped. The default is the byte in the middle.
    Corrupt(Option<u64>),
    /// The announced length of the answer is wrong by this many bytes, or missing. The body itself is complete, except
    /// that HTTP/1.1 sends no more than the announced bytes.
    Length(Option<i64>),
    /// The answer is the whole object, whatever range was requested.
    IgnoreRange,
    /// The answer is the range one byte later, and its headers say so.
    ShiftRange,
    /// The checksums in the answer's headers belong to other bytes.
    WrongChecksum,
    /// Before the request is carried out, another writer replaces the object by one of the same size. All its bytes
    /// differ.
    Replace,
    /// Returns 200 with an error document instead of doing the work.
    ErrorIn200 {
        /// The reason or error code in the document. The default is that of a 500.
        reason: Option<String>,
    },
    /// Does the work, and returns a web page. The content of objects isn't affected.
    Garble,
    /// Does the work, and returns half of the document as if it were complete. The content of objects isn't affected.
    Malformed,
    /// Does the work, then resets the connection instead of answering.
    LoseAnswer,
    /// The body is transferred at this many bytes per second.
    Slow(u64),
    /// A token bucket. Requests beyond it are throttled (S3: 503 SlowDown, GCS: 429).
    Rate {
        /// Requests per second.
        per_second: f64,
        /// Requests that may arrive at once.
        burst: f64,
    },
    /// Waits before doing anything.
    Delay(Duration),
    /// HTTP/2: a graceful GOAWAY. HTTP/1.1: `Connection: close` on the answer.
    GoAway,
    /// HTTP/2: RST_STREAM with REFUSED_STREAM, before any work. HTTP/1.1: the connection is reset.
    RefuseStream,
}
