//! The interface of dialects over HTTP. They build and sign the requests of all verbs, and interpret the answers.

use std::future::Future;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use laneway_lanes::{Body, Lanes, Origin, Request, Response};

use crate::encryption::KeyUse;
use crate::judge::ErrorResponse;
use crate::requests::RequestTally;
use crate::{ChecksumAlgorithm, Error, ErrorKind, Provider};

/// Renews the signature of a request that was signed some time ago.
pub(crate) trait RequestSigner: Send + Sync + 'static {
    /// Replaces the old signature by a new one, with the credential in use. Without a credential the old signature is
    /// kept, and the store may accept or refuse it.
    fn sign_again(&self, request: &mut Request);
}

/// The parts of a dialect that [`Exchange`](super::Exchange) needs to send requests over HTTP.
pub(crate) trait HttpDialect: Send + Sync {
    /// The kind of store.
    const PROVIDER: Provider;

    /// The service's name in error messages.
    const SERVICE: &'static str;

    /// Returns the lanes of its requests.
    fn lanes(&self) -> &Lanes;

    /// Returns the counters of its requests.
    fn tally(&self) -> &RequestTally;

    /// Returns the URL of the requests, without credentials. It is the same for every bucket and region.
    fn endpoint(&self) -> String;

    /// Returns the headers that the caller adds to requests for objects.
    fn added_headers(&self) -> &HeaderMap;

    /// Returns the checksum of uploads that the caller chose.
    fn checksum_algorithm(&self) -> ChecksumAlgorithm {
        ChecksumAlgorithm::default()
    }

    /// The type that signs a request again.
    type Signer: RequestSigner;

    /// Returns the request for one attempt, with origin and credentials. If the request has to wait, the signer renews
    /// its signature.
    fn request(
        &self,
        bucket: &str,
        outgoing: &Outgoing,
    ) -> impl Future<Output = Result<(Request, Self::Signer), Error>> + Send;

    /// Returns the failure that an answer describes, or `None` for a success.
    fn failure(&self, outgoing: &Outgoing, response: &Response) -> Option<ErrorResponse>;

    /// Returns the kind of error for a failure.
    fn kind(&self, failure: &ErrorResponse) -> ErrorKind;

    /// Learns from the failure of a request that `credential` signed, for example the region or that the token is
    /// stale. Returns true if another attempt can now succeed.
    fn learn(&self, bucket: &str, outgoing: &Outgoing, failure: &ErrorResponse, credential: u64) -> bool;
}

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
