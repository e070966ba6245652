//! The request that goes out.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Method, Uri};

use crate::outage::Outage;
use crate::tally::Tally;
use crate::throttle::Pass;
use crate::{Body, Origin, Sink};

/// Signs a request again whose signature is old. It is called on the engine's threads, and waits for nothing.
pub type Renew = Arc<dyn Fn(&mut Request) + Send + Sync>;

/// One attempt's request.
pub struct Request {
    /// Where it goes.
    pub origin: Origin,
    /// The method.
    pub method: Method,
    /// Path and query, already percent-encoded exactly as they were signed.
    pub target: Uri,
    /// Headers. `Host` and `Content-Length` are set from [`origin`](Self::origin) and [`body`](Self::body) when absent.
    pub headers: HeaderMap,
    /// The body.
    pub body: Body,
    /// Body bytes that the answer is expected to have, if that is known. They decide between express and freight.
    pub expected: Option<u64>,
    /// Where a 2xx answer's body goes; without one it is collected in memory.
    pub sink: Option<Box<dyn Sink>>,
    /// The time for which the server may make no progress, instead of [`Config::no_progress`](crate::Config::no_progress).
    pub no_progress: Option<Duration>,
    /// The number of the credential that signed it, which the [response](crate::Response::credential) tells again: by then
    /// another credential may be in use.
    pub credential: u64,
    /// Called when the request has waited so long for its lane that its signature is old.
    pub renew: Option<Renew>,
    /// Raised by one when it goes onto a connection, whatever becomes of it there.
    pub sent: Option<Arc<AtomicU64>>,
    /// The pass that it needs when its turn for a lane comes.
    pub(crate) pass: Option<Pass>,
    /// Where its answer's signs of life are noted.
    pub(crate) outage: Option<Arc<Outage>>,
    /// Where it counts besides.
    pub(crate) tally: Option<Tally>,
}

impl Request {
    /// A request without body, headers or sink.
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

    /// The same request once more, without its sink.
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

    /// The `Content-Length` to add. A method that has a body by its meaning declares an empty one too (RFC 9110, section 8.6). Otherwise
    /// stores answer 411.
    pub(crate) fn undeclared_length(&self) -> Option<u64> {
        let has_body =
            matches!(self.method, Method::POST | Method::PUT | Method::PATCH) || !self.body.is_empty();
        (has_body && !self.headers.contains_key(CONTENT_LENGTH)).then(|| self.body.len())
    }

    /// Returns whether its answer may be of any size.
    pub(crate) fn is_opener(&self) -> bool {
        self.expected.is_none() && self.sink.is_some()
    }
}

impl fmt::Debug for Request {
    /// Leaves headers and query out: they carry credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{} ({} bytes)", self.method, self.origin, self.target.path(), self.body.len())
    }
}
