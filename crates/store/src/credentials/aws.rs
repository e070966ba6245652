//! AWS's credentials: finds them as the AWS SDKs do, and signs requests with them.

mod chain;
mod plan;
mod source;
mod sso;
mod sts;

use std::sync::Arc;
use std::time::SystemTime;

use http::HeaderValue;
use laneway_lanes::Lanes;

use self::chain::AwsChain;
pub(super) use self::source::read_keys;
use super::cache::{Cache, Expiring, IdentifiedCredential};
use super::sigv4;
use crate::{AccessKey, Error, ErrorKind, ExpiringKey, Operation, Settings};

/// An access key, with the number that identifies it in this process.
pub(crate) type Key = IdentifiedCredential<ExpiringKey>;

/// Signs requests with SigV4.
#[derive(Debug)]
pub(crate) struct AwsCredentials(AwsIdentity);

#[derive(Debug)]
enum AwsIdentity {
    /// Requests aren't signed.
    Anonymous,
    /// An access key from the caller's settings.
    Given(Arc<ExpiringKey>),
    /// An access key from the default chain of sources (variables, files, metadata services).
    Found(Arc<Cache<AwsChain>>),
}

impl AwsCredentials {
    /// Returns the credentials that these settings choose. Laneway doesn't search for an access key before the first
    /// request needs one.
    pub(crate) fn new(settings: &Settings, lanes: &Lanes) -> Self {
        Self(match &settings.access_key {
            _ if settings.anonymous => AwsIdentity::Anonymous,
            Some(key) if settings.assume_role.is_none() => {
                AwsIdentity::Given(Arc::new(ExpiringKey::new(key.clone())))
            }
            _ => AwsIdentity::Found(Cache::new(AwsChain::new(settings, lanes))),
        })
    }

    /// Signs a request for a service in `region`. `now` is the time by the store's clock. Returns the credential's
    /// number.
    ///
    /// # Errors
    /// `Invalid` if a header can't be signed.
    pub(crate) fn sign(
        key: &Key,
        scope: (&str, &str),
        now: SystemTime,
        request: &mut http::request::Parts,
    ) -> Result<u64, Error> {
        signed(request, &key.credential.key, scope, now)?;
        Ok(key.number)
    }

    /// Returns the credential in use, without waiting. Returns `None` for anonymous requests, and if a credential would
    /// have to be fetched first.
    pub(crate) fn held(&self) -> Option<Key> {
        match &self.0 {
            AwsIdentity::Anonymous => None,
            AwsIdentity::Given(credential) => {
                Some(IdentifiedCredential { credential: Arc::clone(credential), number: 0 })
            }
            AwsIdentity::Found(found) => found.held(),
        }
    }

    /// Returns the credential that signs, or `None` for anonymous requests.
    ///
    /// # Errors
    /// `Unauthenticated` if there are no credentials.
    pub(crate) async fn credential(&self) -> Result<Option<Key>, Error> {
        match &self.0 {
            AwsIdentity::Found(found) => found.obtain().await.map(Some),
            _ => Ok(self.held()),
        }
    }

    /// Signs a URL that is valid for a number of seconds. The signature uses a directory bucket's session, if there is
    /// one, or else the caller's own credentials. Returns the URL and the time at which the session or the credentials
    /// expire.
    ///
    /// # Errors
    /// `Unauthenticated` if there are no credentials, `Invalid` if a header can't be signed.
    pub(crate) async fn presign(
        &self,
        session: Option<&(Arc<AccessKey>, SystemTime)>,
        (service, region): (&str, &str),
        expires_s: u64,
        now: SystemTime,
        request: &http::request::Parts,
    ) -> Result<(String, Option<SystemTime>), Error> {
        let (credential, name, end) = match session {
            Some((key, end)) => {
                (Arc::new(ExpiringKey::new(AccessKey::clone(key))), "X-Amz-S3session-Token", Some(*end))
            }
            None => {
                let IdentifiedCredential { credential, .. } = self.credential().await?.ok_or_else(|| {
                    let message = "an anonymous client can't sign URLs";
                    Error::new(ErrorKind::Unauthenticated, Operation::Sign, message)
                })?;
                let end = credential.expires_at;
                (credential, "X-Amz-Security-Token", end)
            }
        };
        let key = &credential.key;
        let token = key.session_token.as_deref().map(|token| (name, token));
        let url = sigv4::presign(request, key, token, (region, service), expires_s, now);
        Ok((url.map_err(unsignable)?, end))
    }

    /// Returns true if requests aren't signed.
    pub(crate) fn is_anonymous(&self) -> bool {
        matches!(self.0, AwsIdentity::Anonymous)
    }

    /// Signs a request with the session of a directory bucket. The session's token travels in the header
    /// `x-amz-s3session-token`.
    /// # Errors
    /// `Invalid` if a header can't be signed.
    pub(crate) fn sign_by_session(
        session: &AccessKey,
        scope: (&str, &str),
        now: SystemTime,
        request: &mut http::request::Parts,
    ) -> Result<(), Error> {
        let token = session.session_token.as_deref().unwrap_or_default();
        let mut token = HeaderValue::try_from(token).map_err(|_| {
            Error::new(
                ErrorKind::Invalid,
                Operation::Open,
                "the session's token has characters that a header can't carry",
            )
        })?;
        token.set_sensitive(true);
        request.headers.insert("x-amz-s3session-token", token);
        // The token has just been added in its own header, so the signature must not add it as `x-amz-security-token`
        // too.
        let key = AccessKey { session_token: None, ..session.clone() };
        signed(request, &key, scope, now)
    }

    /// Discards the credential of this number, which the store refused. Returns true if the request can be signed again
    /// with a newer credential.
    pub(crate) fn replaces(&self, number: u64) -> bool {
        matches!(&self.0, AwsIdentity::Found(found) if found.replaces(number))
    }
}

#[cfg(test)]
impl AwsCredentials {
    /// Makes the last refusal of the credentials older by this duration, so that a test needn't wait.
    pub(crate) fn age(&self, by: std::time::Duration) {
        if let AwsIdentity::Found(found) = &self.0 {
            found.age(by);
        }
    }
}

impl Expiring for ExpiringKey {
    fn ends(&self) -> Option<SystemTime> {
        self.expires_at
    }
}

/// Signs a request.
///
/// # Errors
/// `Invalid` if a header can't be signed.
fn signed(
    request: &mut http::request::Parts,
    key: &AccessKey,
    scope: (&str, &str),
    now: SystemTime,
) -> Result<(), Error> {
    sigv4::sign(request, key, scope, now).map_err(unsignable)
}

fn unsignable(why: String) -> Error {
    Error::new(ErrorKind::Invalid, Operation::Open, format!("the request can't be signed: {why}"))
}
