//! Injected faults: requests that are answered wrongly, late or not at all.
//!
//! A rule reads `[VERB][:SELECTOR] [key=GLOB] ACTION`, for example `get:3 reset@256KiB`, `put:10% status 503
//! retry-after 2s`, `any key=logs/* stall@1MiB`, `goaway`. Several rules may match one request, and their effects
//! combine. For a copy, `key=` is compared with the destination's key. For a listing, it is compared with the prefix.
//! The code that selects the requests has no side effects, and gets the time as an argument.

pub(crate) mod answer;
pub(crate) mod body;
pub(crate) mod injector;
mod parse;
pub(crate) mod select;

use std::fmt;
use std::time::Duration;

pub use crate::verb::Verb;
pub use parse::parse_fault;

/// All rules of a server, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Faults {
    /// The rules. Several may match one request.
    pub rules: Vec<FaultRule>,
}

impl Faults {
    /// Parses all rules.
    ///
    /// # Errors
    /// Returns the first rule that can't be parsed, with the expected syntax.
    pub fn parse<'a>(rules: impl IntoIterator<Item = &'a str>) -> Result<Faults, crate::Error> {
        rules.into_iter().map(parse_fault).collect::<Result<_, _>>().map(|rules| Faults { rules })
    }
}

/// One rule: a selection of requests, and the fault that they get.
#[derive(Debug, Clone, PartialEq)]
pub struct FaultRule {
    /// The verb of the requests. `None` stands for `any`.
    pub verb: Option<Verb>,
    /// The pattern that the keys must match. `None` matches every key.
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
    /// The requests from the first number to the last, both included. `:3` stands for 3 to 3.
    Between(u64, u64),
    /// A random share of the requests, from 0 to 1. The random numbers start from the server's seed.
    Share(f64),
}

/// The fault of a selected request.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Answers with this status instead of carrying out the request.
    Status {
        /// The HTTP status, 400 to 599.
        status: u16,
        /// The reason or error code in the body. The default is the usual one for the status.
        reason: Option<String>,
        /// The `Retry-After` header, in whole seconds, rounded up.
        retry_after: Option<Duration>,
    },
    /// Breaks off the transfer after this many body bytes: with a TCP reset on HTTP/1.1, and with RST_STREAM on HTTP/2.
    /// With 0 there is no answer.
    Reset(u64),
    /// After this many body bytes, the TCP connection is reset, with all its streams.
    Drop(u64),
    /// After this many body bytes, the TCP connection is closed, with all its streams and without TLS's close_notify.
    /// With 0 there is no answer.
    Cut(u64),
    /// After this many body bytes, no more bytes are transferred, but the connection stays open. When the server's
    /// faults are replaced, the stalled transfer is reset.
    Stall(u64),
    /// The answer's body ends after this many bytes, by default after half, although Content-Length announces all of
    /// them.
    Truncate(Option<u64>),
    /// One bit of the body is flipped, in the byte at this position. By default it is the byte in the middle.
    Corrupt(Option<u64>),
    /// The answer's Content-Length is wrong by this many bytes, or missing with `None`. The body itself is complete,
    /// except that HTTP/1.1 sends no more bytes than announced.
    Length(Option<i64>),
    /// The answer is the whole object, although a range was requested.
    IgnoreRange,
    /// The answer is the range that begins one byte later than requested, and its headers state this range.
    ShiftRange,
    /// The checksums in the answer's headers are those of other bytes.
    WrongChecksum,
    /// Before the request is carried out, the object is replaced, as if by another writer. The new object has the same
    /// size, and all its bytes are different.
    Replace,
    /// Answers 200 with an error document instead of carrying out the request.
    ErrorIn200 {
        /// The reason or error code in the document. The default is the usual one for status 500.
        reason: Option<String>,
    },
    /// Carries out the request, and answers with a web page. The content of objects isn't affected.
    Garble,
    /// Carries out the request, and sends half of the answer's document as if it were complete. The content of objects
    /// isn't affected.
    Malformed,
    /// Carries out the request, then resets the connection instead of answering.
    LoseAnswer,
    /// The body is transferred at this many bytes per second.
    Slow(u64),
    /// Limits the rate of requests with a token bucket. Requests above the limit are throttled (S3: 503 SlowDown, GCS:
    /// 429).
    Rate {
        /// Requests per second.
        per_second: f64,
        /// The number of requests that may arrive at the same time.
        burst: f64,
    },
    /// Waits for this time before carrying out the request.
    Delay(Duration),
    /// Announces the end of the connection: with a graceful GOAWAY on HTTP/2, and with `Connection: close` in the
    /// answer on HTTP/1.1.
    GoAway,
    /// Refuses the request before carrying it out: with RST_STREAM and REFUSED_STREAM on HTTP/2, and with a reset of
    /// the connection on HTTP/1.1.
    RefuseStream,
}

/// A pattern for whole keys. `*` matches any characters including `/`, and `?` matches one character.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob(Vec<char>);

impl Glob {
    /// Returns a pattern. Every text is a valid pattern.
    pub fn new(pattern: &str) -> Glob {
        Glob(pattern.chars().collect())
    }

    /// Returns true if the whole key matches. The time is proportional to the length of the key times the number of
    /// stars.
    pub fn matches(&self, key: &str) -> bool {
        let key: Vec<char> = key.chars().collect();
        let (mut p, mut k) = (0, 0);
        let mut star: Option<(usize, usize)> = None;
        while k < key.len() {
            match self.0.get(p) {
                Some('*') => {
                    star = Some((p, k));
                    p += 1;
                }
                Some(c) if *c == '?' || *c == key[k] => {
                    p += 1;
                    k += 1;
                }
                _ => match star {
                    Some((at, eaten)) => {
                        star = Some((at, eaten + 1));
                        p = at + 1;
                        k = eaten + 1;
                    }
                    None => return false,
                },
            }
        }
        self.0[p..].iter().all(|c| *c == '*')
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|c| write!(f, "{c}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_crosses_slashes_and_a_question_mark_is_one_character() {
        assert!(Glob::new("logs/*").matches("logs/2026/11.txt"));
        assert!(Glob::new("*.t?t").matches("ä/b.txt"));
        assert!(Glob::new("*a*b*").matches("xxaxxb"));
        assert!(Glob::new("").matches(""));
        assert!(!Glob::new("logs/*").matches("log"));
        assert!(!Glob::new("a?").matches("a"));
        assert!(!Glob::new("a").matches("ab"));
    }
}
