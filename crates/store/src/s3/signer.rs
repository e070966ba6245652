//! Signs the requests to a bucket, with the session of a directory bucket or with the caller's own credentials.

use std::sync::Arc;
use std::time::SystemTime;

use http::header::{ACCEPT_ENCODING, USER_AGENT};
use http::request::Parts;
use laneway_lanes::Request;

use super::clock::Clock;
use super::session::BucketSession;
use crate::Error;
use crate::credentials::{AwsCredentials, Key};
use crate::exchange::RequestSigner;

/// Signs requests for one service in one region.
pub(crate) struct S3Signer {
    pub(super) credentials: Arc<AwsCredentials>,
    pub(super) clock: Arc<Clock>,
    pub(super) service: &'static str,
    pub(super) region: String,
    pub(super) session: Option<BucketSession>,
}

impl S3Signer {
    /// Signs a request and returns the credential's number. Anonymous requests aren't changed.
    ///
    /// # Errors
    /// `Unauthenticated` if there are no credentials, `Invalid` for headers that can't be signed.
    pub(super) async fn sign(&self, request: &mut Parts) -> Result<u64, Error> {
        let key = match &self.session {
            Some(_) => None,
            None => self.credentials.credential().await?,
        };
        self.sign_by(key.as_ref(), request)
    }

    fn sign_by(&self, key: Option<&Key>, request: &mut Parts) -> Result<u64, Error> {
        let (scope, now) = ((&*self.region, self.service), self.clock.at(SystemTime::now()));
        match (&self.session, key) {
            (Some(session), _) => {
                AwsCredentials::sign_by_session(&session.key, scope, now, request)?;
                Ok(session.number)
            }
            (None, Some(key)) => AwsCredentials::sign(key, scope, now, request),
            (None, None) => Ok(0),
        }
    }
}

impl RequestSigner for S3Signer {
    fn sign_again(&self, request: &mut Request) {
        let key = self.credentials.held();
        if key.is_none() && self.session.is_none() {
            return;
        }
        let Ok(uri) = format!("{}{}", request.origin, request.target).parse() else { return };
        let (mut parts, ()) = http::Request::new(()).into_parts();
        (parts.method, parts.uri, parts.headers) = (request.method.clone(), uri, request.headers.clone());
        // Proxies may change these headers, which would break the signature, so they aren't signed.
        let unsigned = [USER_AGENT, ACCEPT_ENCODING].map(|name| (parts.headers.remove(&name), name));
        if let Ok(credential) = self.sign_by(key.as_ref(), &mut parts) {
            for (value, name) in unsigned {
                parts.headers.extend(value.map(|value| (name, value)));
            }
            (request.headers, request.credential) = (parts.headers, credential);
        }
    }
}
