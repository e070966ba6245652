//! Faults on purpose: which requests are answered wrongly, late or not at all.
//!
//! A rule reads `[VERB][:SELECTOR] [key=GLOB] ACTION`, for example `get:3 reset@256KiB`,
//! `put:10% status 503 retry-after 2s`, `any key=logs/* stall@1MiB`, `goaway`. Several rules may match one request;
//! their effects add up. A copy is chosen by the key that it writes, a listing by what its keys begin with. Which requests a
//! rule hits is decided by a pure state machine that is handed the time.

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

/// All rules of a server, in the order given.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Faults {
    /// The rules; several may hit one request.
    pub rules: Vec<FaultRule>,
}

impl Faults {
    /// Reads every rule.
    ///
    /// # Errors
    /// The first rule that can't be read, with what was expected.
    pub fn parse<'a>(rules: impl IntoIterator<Item = &'a str>) -> Result<Faults, crate::Error> {
        rules.into_iter().map(parse_fault).collect::<Result<_, _>>().map(|rules| Faults { rules })
    }
}

/// One rule: which requests, and what happens to them.
#[derive(Debug, Clone, PartialEq)]
pub struct FaultRule {
    /// `None` is `any`.
    pub verb: Option<Verb>,
    /// Restricts the rule to keys that match.
    pub key: Option<Glob>,
    /// Which of the matching requests.
    pub selector: Selector,
    /// What happens.
    pub action: Action,
}

/// Which of the requests that match verb and key are hit. Requests are counted from 1 for each rule by itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Selector {
    /// Each.
    Always,
    /// The first to the last, both included; `:3` is 3 to 3.
    Between(u64, u64),
    /// That share of them, drawn from the server's seed; 0 to 1.
    Share(f64),
}

/// What happens to a request that is hit.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Answer this status instead of doing the work.
    Status {
        /// The HTTP status, 400 to 599.
        status: u16,
        /// The reason or error code in the body; a fitting one if absent.
        reason: Option<String>,
        /// Sent as `Retry-After`, in whole seconds, rounded up.
        retry_after: Option<Duration>,
    },
    /// After that many body bytes: a TCP reset on h1, RST_STREAM on h2. At 0 nothing is answered at all.
    Reset(u64),
    /// After that many body bytes: the TCP connection is reset, under all its streams.
    Drop(u64),
    /// After that many body bytes: the TCP connection is closed, under all its streams, TLS without its close_notify. At 0
    /// nothing is answered at all.
    Cut(u64),
    /// After that many body bytes nothing more moves; the connection stays open, until the server's faults are replaced:
    /// then what is held up is reset.
    Stall(u64),
    /// The answer's body ends after that many bytes (default: half), whatever Content-Length says.
    Truncate(Option<u64>),
    /// One bit of that byte of the body is flipped (default: the byte in the middle).
    Corrupt(Option<u64>),
    /// The answer's length is told wrong by that many bytes, or not at all. What comes is what there is, but on h1 no more
    /// than is told.
    Length(Option<i64>),
    /// The whole object is answered whatever range was asked for.
    IgnoreRange,
    /// The range that begins and ends a byte later is answered, and told so.
    ShiftRange,
    /// The checksums in the answer's headers are those of other bytes.
    WrongChecksum,
    /// Before the request is carried out another writer replaces the object by one of the same size, whose bytes are all
    /// different.
    Replace,
    /// Answer 200 with the document of an error instead of doing the work.
    ErrorIn200 {
        /// The reason or error code in it; that of a 500 if absent.
        reason: Option<String>,
    },
    /// Do the work, and answer a web page. The content of objects stays as it is.
    Garble,
    /// Do the work, and answer half of the document, as if that were all. The content of objects stays as it is.
    Malformed,
    /// Do the work, then reset the connection instead of answering.
    LoseAnswer,
    /// The body moves at that many bytes per second.
    Slow(u64),
    /// A token bucket: requests beyond it are throttled (S3: 503 SlowDown, GCS: 429).
    Rate {
        /// Requests per second.
        per_second: f64,
        /// Requests that may come at once.
        burst: f64,
    },
    /// Wait before doing anything.
    Delay(Duration),
    /// h2: a graceful GOAWAY; h1: `Connection: close` on the answer.
    GoAway,
    /// h2: RST_STREAM with REFUSED_STREAM, nothing having been done; h1: the connection is reset.
    RefuseStream,
}
