//! The interface of dialects over HTTP. They build and sign the requests of all verbs, and interpret the answers.

use std::future::Future;

use http::HeaderMap;
use laneway_lanes::{Lanes, Request, Response};

use super::Outgoing;
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
