//! A request, its body (segments of memory and files), and its submission to the driver. A call is a request that
//! can take several attempts.

use std::fmt;
use std::fs::File;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Method, Uri};
use tokio::sync::oneshot;

use crate::dispatch::AttemptId;
use crate::error::{Error, Kind};
use crate::hedge::Tracker;
use crate::outage::Outage;
use crate::spare::SpareClaim;
use crate::tally::Tally;
use crate::throttle::AdmissionPass;
use crate::{Alike, Breaks, Origin, Response, Sink};

/// Signs a request again if its signature is old. It runs on the engine's threads and must not block.
pub type Renew = Arc<dyn Fn(&mut Request) + Send + Sync>;

/// The request of one attempt.
pub struct Request {
    /// The server.
    pub origin: Origin,
    /// The method.
    pub method: Method,
    /// Path and query, already percent-encoded exactly as they were signed.
    pub target: Uri,
    /// The headers. `Host` and `Content-Length` are set from [`origin`](Self::origin) and [`body`](Self::body) if they are missing.
    pub headers: HeaderMap,
    /// The body.
    pub body: Body,
    /// The expected size of the answer's body, if known. The dispatcher uses it to choose between an express and a freight lane.
    pub expected: Option<u64>,
    /// Takes the body of a 2xx answer. Without a sink, the body is collected in memory.
    pub sink: Option<Box<dyn Sink>>,
    /// The time without progress after which the request fails. It replaces [`Config::no_progress`](crate::LanesConfig::no_progress).
    pub no_progress: Option<Duration>,
    /// The number of the credential that signed the request. The [response](crate::Response::credential) repeats this number. If the server
    /// refuses the credential, the caller knows from the number which credential it was, even if another one is in use by then.
    pub credential: u64,
    /// Called if the signature has become old while the request waited for a lane.
    pub renew: Option<Renew>,
    /// Incremented when the request is put on a connection, even if it then fails.
    pub sent: Option<Arc<AtomicU64>>,
    /// The permission that the throttle gave when it admitted the request. It is checked again when a lane is free for the request.
    pub(crate) pass: Option<AdmissionPass>,
    /// Records the answer as a sign of life of the origin.
    pub(crate) outage: Option<Arc<Outage>>,
    /// The tally that counts the request, in addition to the engine's own counters.
    pub(crate) tally: Option<Tally>,
}

impl Request {
    /// Creates a request without body, headers or sink.
    pub fn new(origin: Origin, method: Method, target: Uri) -> Self {
        Self {
            origin,
            method,
            target,
            headers: HeaderMap::new(),
            body: Body::empty(),
            expected: None,
            sink: None,
            no_progress: None,
            credential: 0,
            renew: None,
            sent: None,
            pass: None,
            outage: None,
            tally: None,
        }
    }

    /// Returns a copy of the request without its sink.
    pub(crate) fn again(&self) -> Self {
        Self {
            origin: self.origin.clone(),
            method: self.method.clone(),
            target: self.target.clone(),
            headers: self.headers.clone(),
            body: self.body.clone(),
            expected: self.expected,
            sink: None,
            no_progress: self.no_progress,
            credential: self.credential,
            renew: self.renew.clone(),
            sent: self.sent.clone(),
            pass: self.pass.clone(),
            outage: self.outage.clone(),
            tally: self.tally.clone(),
        }
    }

    /// Returns the `Content-Length` to add, or `None` if the request needs none. If the method usually has a body, the length of an empty
    /// body is sent too (RFC 9110, section 8.6). Otherwise stores answer 411.
    pub(crate) fn undeclared_length(&self) -> Option<u64> {
        let has_body =
            matches!(self.method, Method::POST | Method::PUT | Method::PATCH) || !self.body.is_empty();
        (has_body && !self.headers.contains_key(CONTENT_LENGTH)).then(|| self.body.len())
    }

    /// Returns whether the answer can have any size: its size isn't known in advance, and a sink takes its body.
    pub(crate) fn is_opener(&self) -> bool {
        self.expected.is_none() && self.sink.is_some()
    }
}

impl fmt::Debug for Request {
    /// Leaves out headers and query, because they may contain credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{} ({} bytes)", self.method, self.origin, self.target.path(), self.body.len())
    }
}

/// A request body as a sequence of segments. It is cheap to clone, so an attempt can be repeated.
#[derive(Clone, Debug, Default)]
pub struct Body {
    segments: Vec<Segment>,
    len: u64,
}

/// One segment of a [`Body`].
#[derive(Clone, Debug)]
pub enum Segment {
    /// Bytes in memory.
    Memory(Bytes),
    /// A range of a file, read with `pread` while it is sent. If the file ends before the range does, the request fails with
    /// [`Kind::Source`](crate::Kind::Source).
    File {
        /// The open file.
        file: Arc<File>,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u64,
    },
}

impl Body {
    /// Creates an empty body.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Creates a body from a range of a file.
    pub fn file(file: Arc<File>, offset: u64, len: u64) -> Self {
        Self::empty().and(Segment::File { file, offset, len })
    }

    /// Returns this body with one more segment at its end.
    #[must_use]
    pub fn and(mut self, segment: impl Into<Segment>) -> Self {
        let segment = segment.into();
        self.len += segment.len();
        if !segment.is_empty() {
            self.segments.push(segment);
        }
        self
    }

    /// Length in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the segments in order, without empty ones.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }
}

impl Segment {
    /// Length in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::File { len, .. } => *len,
        }
    }

    /// Returns whether the segment is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl From<Bytes> for Segment {
    fn from(bytes: Bytes) -> Self {
        Self::Memory(bytes)
    }
}

impl<T: Into<Bytes>> From<T> for Body {
    fn from(bytes: T) -> Self {
        Self::empty().and(bytes.into())
    }
}

/// Reads a range of a request body's file.
pub(crate) fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset).map_err(|e| match e.kind() {
        std::io::ErrorKind::UnexpectedEof => {
            Error::new(Kind::Source, "the file became shorter while it was read")
        }
        _ => Error::because(Kind::Source, "the file can't be read", e),
    })
}

/// Returns the bytes of a body as one buffer, or `None` if a segment is a file.
pub(crate) fn gathered(segments: &[Segment]) -> Option<Bytes> {
    if let [Segment::Memory(one)] = segments {
        return Some(one.clone());
    }
    let mut all = Vec::with_capacity(segments.iter().map(|s| s.len() as usize).sum());
    for segment in segments {
        let Segment::Memory(bytes) = segment else { return None };
        all.extend_from_slice(bytes);
    }
    Some(all.into())
}

/// A request that has waited longer than this for its lane is signed again, because stores refuse signatures with an old date. After a
/// shorter wait, the date is recent enough, so a new signature would only cost time.
const SIGNED_FOR: Duration = Duration::from_secs(1);

/// A submitted request, and the channel for its outcome. If the caller drops the receiving end, the request is cancelled.
pub(crate) struct Submission {
    pub(crate) attempt: AttemptId,
    pub(crate) request: Request,
    pub(crate) reply: oneshot::Sender<Result<Response, Error>>,
    pub(crate) submitted: Instant,
    /// The number of new connections that had ended before the request could be sent on them.
    pub(crate) bounces: u8,
    /// Records the request's progress, if it may be hedged.
    pub(crate) tracker: Option<Arc<Tracker>>,
    /// The attempt that this attempt hedges.
    pub(crate) hedge_of: Option<AttemptId>,
    /// The claim on a spare lane. It ends when the dispatcher counts the request.
    pub(crate) claim: Option<SpareClaim>,
}

impl Submission {
    /// Signs the request again if it has waited long for its lane.
    pub(crate) fn renew(&mut self, now: Instant) {
        if now.saturating_duration_since(self.submitted) > SIGNED_FOR
            && let Some(renew) = self.request.renew.take()
        {
            renew(&mut self.request);
        }
    }
}

/// An operation that [`Lanes::run`](crate::Lanes::run) carries out, in several attempts if needed. The engine
/// decides when to try again. The call makes the requests and interprets the answers.
pub trait Call: Send + Sync {
    /// The reason why the caller couldn't make a request, for example missing credentials. It ends the call.
    type Refusal: Send;

    /// Returns the request of an attempt. The first attempt has the number 1. Each attempt needs a new request, because signatures contain
    /// the date, and sinks contain state.
    fn request(&self, attempt: u32) -> impl Future<Output = Result<Request, Self::Refusal>> + Send;

    /// Returns the meaning of an attempt's outcome.
    fn judge(&self, outcome: &Result<Response, Error>) -> Verdict;

    /// Returns the name of a group of requests. If the server throttles one request of the group, all requests of the group slow down. The
    /// name usually stands for a part of a bucket, such as a folder.
    fn throttle_key(&self) -> &str;

    /// Returns a name for the object and the direction of the request, or `None` if the request isn't about a single object. If the server
    /// throttles only this object, only the requests for this object slow down. The name must differ from all throttle keys.
    fn throttle_object(&self) -> Option<&str> {
        None
    }

    /// Returns the record of a body's earlier interruptions, and the number of body bytes that this call has received. Returns `Some` only
    /// if the caller requests the rest of an interrupted body with another call.
    fn breaks(&self) -> Option<(&Breaks, u64)> {
        None
    }

    /// Returns the group of requests that an attempt is compared with, to find out if the attempt is a straggler. `None` means that the
    /// attempt must not be hedged. Return `Some` only if the server can carry out the request twice without harm.
    fn hedged_among(&self) -> Option<Alike> {
        None
    }

    /// Returns the action for an attempt that has become a straggler.
    fn hedge(&self) -> impl Future<Output = Hedge> + Send {
        async { Hedge::Nothing }
    }
}

/// The action for an attempt that has become a straggler.
#[derive(Debug)]
pub enum Hedge {
    /// Keep waiting for it.
    Nothing,
    /// Send this request, too, on another connection. The first complete answer ends the attempt, and the other request is cancelled.
    Send(Box<Request>),
}

/// The meaning of an attempt's outcome.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The call has ended, successfully or not.
    Done,
    /// Another attempt may help, after a pause.
    Retry,
    /// The server asks for fewer requests. Its answer can also say how long to pause.
    Throttled {
        /// The pause that the server asks for in `Retry-After`.
        after: Option<Duration>,
    },
    /// The server answered 503 without a reason. A single such answer counts as a transient failure. Two such answers for the same object
    /// within a second count as a throttle.
    Unavailable,
    /// Try again at once, because the call has learned something, such as a bucket's region. A call may do this at most ten times.
    Again,
}

impl Verdict {
    /// Returns the pause that the server asks for.
    pub(crate) fn asked_pause(self) -> Option<Duration> {
        match self {
            Self::Throttled { after } => after,
            _ => None,
        }
    }
}

/// The result of a call.
#[derive(Debug)]
pub struct CallOutcome {
    /// The last attempt's outcome.
    pub outcome: Result<Response, Error>,
    /// The number of attempts that the call made.
    pub attempts: u32,
    /// The time from the start of the first attempt to the end of the last.
    pub elapsed: Duration,
    /// True if the call ended because the origin has sent nothing for [`Config::retry_for`](crate::LanesConfig::retry_for). Every other call to
    /// the origin would now end in the same way.
    pub is_origin_away: bool,
    /// The time for which the origin has been away. The outage may have begun before this call.
    pub away_for: Duration,
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use http::Method;

    use super::*;
    use crate::Origin;

    #[test]
    fn a_request_that_has_waited_long_is_signed_again() {
        let mut request = Request::new(Origin::parse("http://h").unwrap(), Method::GET, "/".parse().unwrap());
        request.renew = Some(Arc::new(|request: &mut Request| request.credential += 1));
        let submitted = Instant::now();
        let (reply, _outcome) = oneshot::channel();
        let mut submission = Submission {
            attempt: AttemptId(0),
            request,
            reply,
            submitted,
            bounces: 0,
            tracker: None,
            hedge_of: None,
            claim: None,
        };
        submission.renew(submitted + SIGNED_FOR);
        assert_eq!(submission.request.credential, 0);
        submission.renew(submitted + 2 * SIGNED_FOR);
        assert_eq!(submission.request.credential, 1);
    }
}
