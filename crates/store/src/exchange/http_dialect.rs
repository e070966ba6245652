//! The layer that dialects over HTTP share: building, signing and judging requests, whatever the verb.

use std::future::Future;

use http::HeaderMap;
use laneway_lanes::{Lanes, Request, Response};

use super::Outgoing;
use crate::judge::Failure;
use crate::requests::Tally;
use crate::{Error, ErrorKind, Provider};

/// Signs a request that was signed a while ago.
pub(crate) trait Sign: Send + Sync + 'static {
    /// Puts a signature of now in place of the old one, by the credential that is in use. Where there is none the old
    /// signature stays, and the store says what it makes of it.
    fn sign_again(&self, request: &mut Request);
}

/// The parts of a dialect by which [`Exchange`](super::Exchange) carries out requests over HTTP.
pub(crate) trait HttpDialect: Send + Sync {
    /// Whose protocol it is.
    const PROVIDER: Provider;

    /// The service's name in errors.
    const SERVICE: &'static str;

    /// What requests go over.
    fn lanes(&self) -> &Lanes;

    /// Where its requests are counted.
    fn tally(&self) -> &Tally;

    /// Where its requests go, as an URL without credentials: the same text whatever the bucket or region.
    fn endpoint(&self) -> String;

    /// What the caller adds to requests for objects.
    fn added_headers(&self) -> &HeaderMap;

    /// What signs a request again.
    type Signer: Sign;

    /// The request of one attempt, with origin and credentials, and what signs it again if it has to wait.
    fn request(
        &self,
        bucket: &str,
        outgoing: &Outgoing,
    ) -> impl Future<Output = Result<(Request, Self::Signer), Error>> + Send;

    /// What is wrong with an answer; `None` for a success.
    fn failure(&self, outgoing: &Outgoing, response: &Response) -> Option<Failure>;

    /// What a failure means.
    fn kind(&self, failure: &Failure) -> ErrorKind;

    /// Takes in what a failure teaches (a region, a stale token) of a request that `credential` signed. Whether asking again
    /// can now go better.
    fn learn(&self, bucket: &str, outgoing: &Outgoing, failure: &Failure, credential: u64) -> bool;
}
