//! Credentials that the calling program obtains by itself.

use std::error::Error;
use std::fmt;
use std::future::{Future, ready};
use std::pin::Pin;
use std::time::SystemTime;

/// Supplies credentials in place of those from files and environment variables.
///
/// Laneway asks for a credential before the first request that needs it, and only once, even if many requests wait for
/// the answer. It asks again when a quarter of the credential's lifetime is left, but at most 15 minutes before the
/// end. Until the new credential has arrived, requests use the old one. If the provider fails, they use the old one
/// until it expires. If a store refuses a credential, Laneway discards it and asks for a new one.
///
/// A provider may implement only one of the two methods. Requests to the other kind of store then fail.
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
    /// Returns the provider's name for error messages.
    fn name(&self) -> &str;

    /// Returns a token for GCS. Laneway sends it only over TLS, to Google's hosts and to endpoints from the settings.
    ///
    /// # Errors
    /// Return the cause. The request then fails as unauthenticated, with the provider's name and this cause.
    fn bearer_token(&self) -> Provided<'_, BearerToken> {
        Box::pin(ready(Err("it provides no bearer tokens, which GCS needs".into())))
    }

    /// Returns a key for S3.
    ///
    /// # Errors
    /// As for [`bearer_token`](Self::bearer_token).
    fn access_key(&self) -> Provided<'_, ExpiringKey> {
        Box::pin(ready(Err("it provides no access keys, which S3 needs".into())))
    }
}

/// The future that a [`CredentialProvider`] returns. Laneway may poll it on any thread, and outside any async runtime.
/// A future that needs a runtime (tokio, for example) must therefore start or enter one itself.
pub type Provided<'a, T> = Pin<Box<dyn Future<Output = Result<T, Box<dyn Error + Send + Sync>>> + Send + 'a>>;

/// An AWS access key. `Debug` leaves the secrets out.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AccessKey {
    /// The access key id.
    pub id: String,
    /// The secret access key.
    pub secret: String,
    /// The session token of temporary keys.
    pub session_token: Option<String>,
}

impl AccessKey {
    /// Returns a key without a session token.
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
    /// The time at which the token expires. `None` if it doesn't expire.
    pub expires_at: Option<SystemTime>,
}

impl BearerToken {
    /// Returns a token without an expiration time.
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

/// An AWS access key that may expire. `Debug` leaves the secrets out.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ExpiringKey {
    /// The key.
    pub key: AccessKey,
    /// The time at which the key expires. `None` if it doesn't expire.
    pub expires_at: Option<SystemTime>,
}

impl ExpiringKey {
    /// Returns a key without an expiration time.
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
