//! Credentials from the caller's own provider.

use std::error::Error;
use std::time::SystemTime;

use super::failure::CredentialFailure;
use super::google::Token;
use crate::timestamp::to_rfc3339;
use crate::{CredentialProvider, ExpiringKey};

/// Fetches a token for GCS.
///
/// # Errors
/// Returns the reason why there is none, with the provider's name.
pub(super) async fn token(provider: &dyn CredentialProvider) -> Result<Token, CredentialFailure> {
    let handed = provider
        .bearer_token()
        .await
        .map_err(|e| CredentialFailure::unusable(provider.name(), words(&*e)))?;
    good("token", handed.expires_at).map_err(|cause| CredentialFailure::unusable(provider.name(), cause))?;
    Ok(Token { access_token: handed.token, expires_at: handed.expires_at })
}

/// Fetches a key for S3.
///
/// # Errors
/// Returns the reason why there is none, with the provider's name.
pub(super) async fn key(provider: &dyn CredentialProvider) -> Result<ExpiringKey, CredentialFailure> {
    let handed =
        provider.access_key().await.map_err(|e| CredentialFailure::unusable(provider.name(), words(&*e)))?;
    let ExpiringKey { mut key, expires_at } = handed;
    good("key", expires_at).map_err(|cause| CredentialFailure::unusable(provider.name(), cause))?;
    if key.id.is_empty() || key.secret.is_empty() {
        return Err(CredentialFailure::unusable(provider.name(), "it returned an empty key"));
    }
    key.session_token = key.session_token.filter(|token| !token.is_empty());
    Ok(ExpiringKey { key, expires_at })
}

/// Checks that a new credential hasn't expired.
fn good(what: &str, expires_at: Option<SystemTime>) -> Result<(), String> {
    match expires_at {
        Some(time) if time <= SystemTime::now() => {
            Err(format!("it returned a {what} that expired at {}", to_rfc3339(time)))
        }
        _ => Ok(()),
    }
}

/// Returns the messages of an error and its causes in one line.
fn words(error: &(dyn Error + 'static)) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        // Some errors already contain their cause.
        if !words.contains(&more) {
            words = format!("{words}: {more}");
        }
        cause = error.source();
    }
    super::request::short(&words)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
    use std::time::Duration;

    use super::super::cache::{Cache, ClockReading, CredentialSource};
    use super::*;
    use crate::{AccessKey, BearerToken, Provided};

    /// A provider that numbers its credentials, each valid for an hour, until it is told to fail.
    #[derive(Default)]
    struct Numbered {
        handed: AtomicU32,
        fails: std::sync::atomic::AtomicBool,
    }

    impl CredentialProvider for Numbered {
        fn name(&self) -> &str {
            "numbers"
        }

        fn bearer_token(&self) -> Provided<'_, BearerToken> {
            Box::pin(async {
                let ExpiringKey { key, expires_at } = self.access_key().await?;
                Ok(BearerToken { token: key.id, expires_at })
            })
        }

        fn access_key(&self) -> Provided<'_, ExpiringKey> {
            Box::pin(async {
                // Let the other requests arrive and wait.
                tokio::task::yield_now().await;
                if self.fails.load(Ordering::Relaxed) {
                    return Err(std::io::Error::other("the broker\nis away").into());
                }
                let id = self.handed.fetch_add(1, Ordering::Relaxed).to_string();
                let key = AccessKey::new(id, "hush");
                Ok(ExpiringKey::new(key).expires_at(SystemTime::now() + Duration::from_secs(3600)))
            })
        }
    }

    /// The provider, at a time that the test sets.
    struct Clocked {
        provider: Numbered,
        start: ClockReading,
        after_s: AtomicU64,
    }

    impl CredentialSource for Clocked {
        type Credential = ExpiringKey;

        async fn load(&self) -> Result<ExpiringKey, CredentialFailure> {
            key(&self.provider).await
        }

        fn now(&self) -> ClockReading {
            self.start.after(Duration::from_secs(self.after_s.load(Ordering::Relaxed)))
        }
    }

    #[tokio::test]
    async fn a_provider_is_asked_once_by_many_and_its_failure_has_its_name() {
        let source = Clocked {
            provider: Numbered::default(),
            start: ClockReading::read(),
            after_s: AtomicU64::new(0),
        };
        let cache = Cache::new(source);
        let at = async |seconds: u64| {
            cache.source.after_s.store(seconds, Ordering::Relaxed);
            let key = cache.obtain().await;
            key.map(|key| key.credential.key.id.clone()).map_err(|e| e.to_string())
        };
        let many = futures_util::future::join_all((0..20).map(|_| at(0))).await;
        assert!(many.iter().all(|key| key.as_deref() == Ok("0")), "{many:?}");
        cache.source.provider.fails.store(true, Ordering::Relaxed);
        assert_eq!(at(3500).await.as_deref(), Ok("0"));
        let error = at(7300).await.expect_err("nothing is left");
        assert!(error.contains("numbers: the broker is away"), "{error}");
        cache.source.provider.fails.store(false, Ordering::Relaxed);
        assert_eq!(at(7320).await.as_deref(), Ok("1"));
    }

    #[tokio::test]
    async fn refuses_expired_or_missing_credentials_with_the_providers_name() {
        struct Old;
        impl CredentialProvider for Old {
            fn name(&self) -> &str {
                "old"
            }

            fn bearer_token(&self) -> Provided<'_, BearerToken> {
                let token = BearerToken::new("hush").expires_at(SystemTime::UNIX_EPOCH);
                assert!(!format!("{token:?}").contains("hush"));
                Box::pin(async { Ok(token) })
            }
        }
        let error = |lacking: CredentialFailure| lacking.into_error().to_string();
        let ended = error(token(&Old).await.map(|_| ()).expect_err("ended"));
        assert!(ended.contains("old: it returned a token that expired at 1970"), "{ended}");
        let other = error(key(&Old).await.map(|_| ()).expect_err("another kind"));
        assert!(other.contains("old: it provides no access keys"), "{other}");
    }
}
