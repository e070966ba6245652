//! Credentials that the caller has or gets by means of its own.

use std::error::Error;
use std::fmt;
use std::future::{Future, ready};
use std::pin::Pin;
use std::time::SystemTime;

/// Hands out credentials in place of all that files and variables mean. Each is asked for before the first request that needs
/// it, once, however many requests wait for the answer. The next one is asked for when a quarter of its life is left (15 minutes
/// at most) or when a store refuses it. Requests go on with the old one meanwhile, and to its end while asking fails.
///
/// A provider need not have both kinds: without one of the methods, requests to the other store fail.
///
/// ```
/// use laneway_store::{BearerToken, CredentialProvider, Provided};
///
/// struct Broker;
///
/// impl CredentialProvider for Broker {
///     fn name(&self) -> &str {
///         "our broker"
///     }
///
///     fn bearer_token(&self) -> Provided<'_, BearerToken> {
///         Box::pin(async { Ok(BearerToken::new("ya29...")) })
///     }
/// }
/// ```
pub trait CredentialProvider: Send + Sync {
    /// What errors call it.
    fn name(&self) -> &str;

    /// A token for GCS. It is shown to Google's hosts and to endpoints of the settings' own, over TLS alone.
    ///
    /// # Errors
    /// Why there is none: the request fails as unauthenticated, with the provider's name and this cause.
    fn bearer_token(&self) -> Provided<'_, BearerToken> {
        Box::pin(ready(Err("it hands out no bearer tokens, which GCS wants".into())))
    }

    /// A key for S3.
    ///
    /// # Errors
    /// As above.
    fn access_key(&self) -> Provided<'_, ExpiringKey> {
        Box::pin(ready(Err("it hands out no access keys, which S3 wants".into())))
    }
}

/// What a [`CredentialProvider`] answers with, in its own time. It is awaited on threads of the engine or on one of its own, in
/// no particular runtime: what needs one brings it along.
pub type Provided<'a, T> = Pin<Box<dyn Future<Output = Result<T, Box<dyn Error + Send + Sync>>> + Send + 'a>>;

/// An AWS access key. `Debug` leaves the secrets out.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AccessKey {
    /// The key's name.
    pub id: String,
    /// The key itself.
    pub secret: String,
    /// What temporary keys come with.
    pub session_token: Option<String>,
}

impl AccessKey {
    /// A key that comes without a session token.
    pub fn new(id: impl Into<String>, secret: impl Into<String>) -> Self {
        Self { id: id.into(), secret: secret.into(), session_token: None }
    }

    /// Sets [`session_token`](field@Self::session_token).
    #[must_use]
    pub fn session_token(mut self, token: impl Into<String>) -> Self {
        self.session_token = Some(token.into());
        self
    }
}

impl fmt::Debug for AccessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// An OAuth 2.0 access token. `Debug` leaves it out.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BearerToken {
    /// The token, without `Bearer`.
    pub token: String,
    /// When it ends, if it does.
    pub expires_at: Option<SystemTime>,
}

impl BearerToken {
    /// A token of which no end is known.
    pub fn new(token: impl Into<String>) -> Self {
        Self { token: token.into(), expires_at: None }
    }

    /// Sets [`expires_at`](field@Self::expires_at).
    #[must_use]
    pub fn expires_at(mut self, end: SystemTime) -> Self {
        self.expires_at = Some(end);
        self
    }
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BearerToken").field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}

/// An AWS access key that may end. `Debug` leaves the secrets out.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ExpiringKey {
    /// The key.
    pub key: AccessKey,
    /// When it ends, if it does.
    pub expires_at: Option<SystemTime>,
}

impl ExpiringKey {
    /// A key of which no end is known.
    pub fn new(key: AccessKey) -> Self {
        Self { key, expires_at: None }
    }

    /// Sets [`expires_at`](field@Self::expires_at).
    #[must_use]
    pub fn expires_at(mut self, end: SystemTime) -> Self {
        self.expires_at = Some(end);
        self
    }
}
