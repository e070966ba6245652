//! AWS's credentials: found as its SDKs find them, and signed with.

mod chain;
mod instance;
mod plan;
mod source;
mod sso;
mod sts;
mod temporary;

use std::sync::Arc;
use std::time::SystemTime;

use http::HeaderValue;
use laneway_lanes::Lanes;
use reqsign_aws_v4::Credential;
use reqsign_core::time::Timestamp;

use self::chain::Chain;
pub(super) use self::temporary::read as read_keys;
use super::cache::{Cache, Ends, Now};
use super::sigv4;
use crate::{AccessKey, Error, ErrorKind, Operation, Settings};

/// Signs requests with SigV4.
#[derive(Debug)]
pub(crate) struct Aws(Who);

#[derive(Debug)]
enum Who {
    /// Requests stay unsigned.
    Anonymous,
    /// Keys that the caller has.
    Given(Arc<Credential>),
    /// Keys that are looked for.
    Found(Box<(Chain, Cache<Credential>)>),
}

impl Aws {
    /// The credentials that these settings mean. Nothing is looked for before the first request.
    pub(crate) fn new(settings: &Settings, lanes: &Lanes) -> Self {
        Self(match &settings.access_key {
            _ if settings.anonymous => Who::Anonymous,
            Some(AccessKey { id, secret, session_token }) => Who::Given(Arc::new(Credential {
                access_key_id: id.clone(),
                secret_access_key: secret.clone(),
                session_token: session_token.clone(),
                expires_in: None,
            })),
            None => Who::Found(Box::new((Chain::new(settings, lanes), Cache::new()))),
        })
    }

    /// Signs a request for a service in `region` at what `now` is to the store; an anonymous one is left as it is.
    ///
    /// # Errors
    /// `Unauthenticated` where there are no credentials, `Invalid` for headers that can't be signed.
    pub(crate) async fn sign(
        &self,
        service: &str,
        region: &str,
        now: SystemTime,
        request: &mut http::request::Parts,
    ) -> Result<(), Error> {
        let credential = match &self.0 {
            Who::Anonymous => return Ok(()),
            Who::Given(credential) => Arc::clone(credential),
            Who::Found(found) => found.1.obtain(Now::read, || found.0.load()).await?,
        };
        signed(request, &credential, (region, service), now)
    }

    /// Whether nothing is signed.
    pub(crate) fn is_anonymous(&self) -> bool {
        matches!(self.0, Who::Anonymous)
    }

    /// Signs a request by the session of a directory bucket, whose token has a header of its own.
    ///
    /// # Errors
    /// `Invalid` for headers that can't be signed.
    pub(crate) fn sign_by_session(
        &self,
        session: &AccessKey,
        service: &str,
        region: &str,
        now: SystemTime,
        request: &mut http::request::Parts,
    ) -> Result<(), Error> {
        let token = session.session_token.as_deref().unwrap_or_default();
        let mut token = HeaderValue::try_from(token).map_err(|_| {
            Error::new(
                ErrorKind::Invalid,
                Operation::Open,
                "the session's token holds what no header can carry",
            )
        })?;
        token.set_sensitive(true);
        request.headers.insert("x-amz-s3session-token", token);
        let credential = Credential {
            access_key_id: session.id.clone(),
            secret_access_key: session.secret.clone(),
            session_token: None,
            expires_in: None,
        };
        signed(request, &credential, (region, service), now)
    }

    /// Gives up credentials that the store refused; whether others can be had.
    pub(crate) fn forget(&self) -> bool {
        matches!(&self.0, Who::Found(found) if found.1.forget(Now::read()))
    }
}

#[cfg(test)]
impl Aws {
    /// As if the credentials that were found had been loaded so much earlier.
    pub(crate) fn age(&self, by: std::time::Duration) {
        if let Who::Found(found) = &self.0 {
            found.1.age(by);
        }
    }
}

impl Ends for Credential {
    fn ends(&self) -> Option<Timestamp> {
        self.expires_in
    }
}

/// Signs a request.
///
/// # Errors
/// `Invalid` for headers that can't be signed.
fn signed(
    request: &mut http::request::Parts,
    credential: &Credential,
    scope: (&str, &str),
    now: SystemTime,
) -> Result<(), Error> {
    sigv4::sign(request, credential, scope, now).map_err(|e| {
        Error::new(ErrorKind::Invalid, Operation::Open, format!("the request can't be signed: {e}"))
    })
}
