//! Credentials from a provider in the host language. The library requests credentials with an event, and the host
//! answers when it has them.

use std::collections::HashMap;
use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use laneway::{AccessKey, BearerToken, CredentialProvider, ExpiringKey, Provided};
use tokio::sync::oneshot;

use crate::events::Events;
use crate::packed::{OtherVersion, Unpacked};

/// A provider of credentials in the host language.
pub struct HostProvider {
    /// The events of the listener that owns the provider.
    pub events: Arc<Events>,
    /// The provider's number in the listener.
    pub provider: u64,
}

type FailureText = Box<dyn Error + Send + Sync>;

/// The calls that wait for an answer of a provider, by the number of the question.
static WAITING: LazyLock<Mutex<HashMap<u64, oneshot::Sender<Vec<u8>>>>> = LazyLock::new(Mutex::default);
static LAST: AtomicU64 = AtomicU64::new(0);

/// An entry in `WAITING`. Dropping this value removes it, so that a late answer is ignored.
struct CredentialWait(u64);

impl Drop for CredentialWait {
    fn drop(&mut self) {
        drop(waiting().remove(&self.0));
    }
}

/// Tells the host that the provider is no longer needed, because the client and everything made from it are gone.
impl Drop for HostProvider {
    fn drop(&mut self) {
        self.events.left(self.provider);
    }
}

impl HostProvider {
    /// Asks the provider. Returns `None` if the provider has no credentials of this kind.
    async fn ask<T>(
        &self,
        is_token: bool,
        read: impl FnOnce(&mut Unpacked<'_>) -> Result<T, OtherVersion>,
    ) -> Result<Option<T>, FailureText> {
        let (answer, answered) = oneshot::channel();
        let ask = CredentialWait(LAST.fetch_add(1, Ordering::Relaxed) + 1);
        waiting().insert(ask.0, answer);
        self.events.ask(ask.0, self.provider, is_token);
        let answer = answered.await.map_err(|_| "the provider ended without an answer")?;
        let mut answer = Unpacked::new(&answer);
        let understood = || -> Result<Result<Option<T>, String>, OtherVersion> {
            if !answer.flag()? {
                return Ok(Err(answer.text()?.to_owned()));
            }
            Ok(Ok(if answer.flag()? { Some(read(&mut answer)?) } else { None }))
        };
        Ok(understood().map_err(
            |_| "the provider's answer can't be read, because it has the format of another version",
        )??)
    }
}

/// Passes an answer of the host to the call that asked, if that call still waits.
pub fn provided(ask: u64, answer: Vec<u8>) {
    let asked = waiting().remove(&ask);
    if let Some(asked) = asked {
        drop(asked.send(answer));
    }
}

impl CredentialProvider for HostProvider {
    fn name(&self) -> &str {
        "the program's credential provider"
    }

    fn access_key(&self) -> Provided<'_, ExpiringKey> {
        Box::pin(async {
            let key = self.ask(false, |given| {
                let key = AccessKey::new(given.text()?, given.text()?);
                let key = match given.maybe_text()? {
                    Some(token) => key.session_token(token),
                    None => key,
                };
                let end: Option<SystemTime> = given.maybe_time()?;
                let key = ExpiringKey::new(key);
                Ok(match end {
                    Some(end) => key.expires_at(end),
                    None => key,
                })
            });
            Ok(key.await?.ok_or("it provides no access keys, which S3 needs")?)
        })
    }

    fn bearer_token(&self) -> Provided<'_, BearerToken> {
        Box::pin(async {
            let token = self.ask(true, |given| {
                let token = BearerToken::new(given.text()?);
                Ok(match given.maybe_time()? {
                    Some(end) => token.expires_at(end),
                    None => token,
                })
            });
            Ok(token.await?.ok_or("it provides no bearer tokens, which GCS needs")?)
        })
    }
}

fn waiting() -> MutexGuard<'static, HashMap<u64, oneshot::Sender<Vec<u8>>>> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}
