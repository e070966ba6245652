//! A verb's request, before the dialect adds origin and credentials.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use laneway_lanes::{Body, Origin};

use crate::encryption::KeyUse;

/// A request from which each attempt is made. The dialect adds the origin and the credentials.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    pub(crate) method: Method,
    /// The origin to use instead of the endpoint's. In that case, `target` is the complete path.
    pub(crate) origin: Option<Origin>,
    /// Path and query below the endpoint's path, percent-encoded.
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Body,
    pub(crate) expected: Option<u64>,
    pub(crate) no_progress: Option<Duration>,
    /// A status other than 2xx that is a success for this request.
    pub(crate) also: Option<StatusCode>,
    /// True if an answer with status 200 may contain an error in its body. For some verbs, S3 sends the status before
    /// it has finished.
    pub(crate) doubtful: bool,
    /// True if a conflict with another conditional write is final, because a retry can't succeed.
    pub(crate) conflict_is_final: bool,
    /// The encryption headers that the request needs.
    pub(crate) key_use: KeyUse,
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
            key_use: KeyUse::Nothing,
        }
    }

    /// Sets the encryption headers that the request needs.
    pub(crate) fn key_use(self, key_use: KeyUse) -> Self {
        Self { key_use, ..self }
    }

    /// Adds a header.
    ///
    /// # Errors
    /// Returns the header's name if its value has characters that a header can't carry.
    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Result<Self, UnsendableHeader> {
        let value = HeaderValue::from_str(value).map_err(|_| UnsendableHeader(name.to_owned()))?;
        self.headers.insert(HeaderName::from_static(name), value);
        Ok(self)
    }

    pub(crate) fn header_some(
        self,
        name: &'static str,
        value: Option<&str>,
    ) -> Result<Self, UnsendableHeader> {
        match value {
            Some(value) => self.header(name, value),
            None => Ok(self),
        }
    }
}

/// The error for a header whose value has characters that can't be sent. Holds the header's name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the value of {0} holds characters that no header can carry")]
pub(crate) struct UnsendableHeader(pub(crate) String);
