//! A verb's request before a dialect has made it one of its own.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use laneway_lanes::{Body, Origin};

use crate::encryption::Keyed;

/// A request before it has an origin, credentials or an attempt's number.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    pub(crate) method: Method,
    /// Where it goes instead of to the endpoint; the target is then the whole path.
    pub(crate) origin: Option<Origin>,
    /// Path and query under the endpoint, percent-encoded.
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
    pub(crate) expected: Option<u64>,
    pub(crate) no_progress: Option<Duration>,
    /// A status besides 2xx that is no failure.
    pub(crate) also: Option<StatusCode>,
    /// Whether the body of a 200 can hold an error, as S3's can where it answers before it has finished.
    pub(crate) doubtful: bool,
    /// Whether a conflict with another conditional write ends it, because nothing is left to be tried again.
    pub(crate) conflict_is_final: bool,
    /// Which part encryption plays in it.
    pub(crate) keyed: Keyed,
}

impl Outgoing {
    pub(crate) fn new(method: Method, target: impl Into<String>) -> Self {
        Self {
            method,
            origin: None,
            target: target.into(),
            headers: HeaderMap::new(),
            body: Body::empty(),
            expected: None,
            no_progress: None,
            also: None,
            doubtful: false,
            conflict_is_final: false,
            keyed: Keyed::Nothing,
        }
    }

    /// Has the headers added that encryption asks for.
    pub(crate) fn keyed(self, keyed: Keyed) -> Self {
        Self { keyed, ..self }
    }

    /// Adds a header.
    ///
    /// # Errors
    /// The name, when the value holds what no header can.
    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Result<Self, Unsendable> {
        let value = HeaderValue::from_str(value).map_err(|_| Unsendable(name.to_owned()))?;
        self.headers.insert(HeaderName::from_static(name), value);
        Ok(self)
    }

    pub(crate) fn header_some(self, name: &'static str, value: Option<&str>) -> Result<Self, Unsendable> {
        match value {
            Some(value) => self.header(name, value),
            None => Ok(self),
        }
    }
}

/// A header whose value can't be sent.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the value of {0} holds characters that no header can carry")]
pub(crate) struct Unsendable(pub(crate) String);
