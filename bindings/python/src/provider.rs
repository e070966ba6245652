//! Credentials from a Python callable.

use std::error::Error;
use std::sync::Arc;
use std::thread;
use std::time::SystemTime;

use laneway::{AccessKey, BearerToken, CredentialProvider, ExpiringKey, Provided};
use pyo3::prelude::*;
use tokio::sync::oneshot;

use crate::kept::DroppableObject;

/// A callable that returns credentials, or a coroutine that returns them. obstore's providers are such
/// callables.
pub(crate) struct CallableProvider(Arc<DroppableObject>);

type ProviderError = Box<dyn Error + Send + Sync>;

impl CallableProvider {
    pub(crate) fn new(callable: Bound<'_, PyAny>) -> Self {
        Self(Arc::new(DroppableObject::new(callable.unbind())))
    }

    /// Calls the callable on a new thread, because the engine's threads must not wait for the interpreter.
    async fn ask<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T> + Send + 'static,
    ) -> Result<T, ProviderError> {
        let (answer, answered) = oneshot::channel();
        let callable = Arc::clone(&self.0);
        thread::Builder::new().name("laneway-credentials".into()).spawn(move || {
            let read = Python::try_attach(|py| {
                called(&callable.object(py).into_bound(py)).and_then(|given| read(&given))
            });
            let read = match read {
                Some(Ok(read)) => Ok(read),
                Some(Err(error)) => Err(error.to_string()),
                None => Err("the interpreter has ended".to_owned()),
            };
            // Sending fails if the caller no longer waits. Ignore this error.
            drop(answer.send(read));
        })?;
        Ok(answered.await.map_err(|_| "the provider ended without an answer")??)
    }
}

impl CredentialProvider for CallableProvider {
    fn name(&self) -> &str {
        "credential_provider"
    }

    fn access_key(&self) -> Provided<'_, ExpiringKey> {
        Box::pin(self.ask(|given| {
            let key = AccessKey::new(text(given, "access_key_id")?, text(given, "secret_access_key")?);
            let key = match given.call_method1("get", ("token",))?.extract::<Option<String>>()? {
                Some(token) => key.session_token(token),
                None => key,
            };
            let key = ExpiringKey::new(key);
            Ok(match end(given)? {
                Some(end) => key.expires_at(end),
                None => key,
            })
        }))
    }

    fn bearer_token(&self) -> Provided<'_, BearerToken> {
        Box::pin(self.ask(|given| {
            let token = BearerToken::new(text(given, "token")?);
            Ok(match end(given)? {
                Some(end) => token.expires_at(end),
                None => token,
            })
        }))
    }
}

fn called<'py>(callable: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let given = callable.call0()?;
    match given.hasattr("__await__")? {
        true => callable.py().import("asyncio")?.call_method1("run", (given,)),
        false => Ok(given),
    }
}

fn text(given: &Bound<'_, PyAny>, name: &str) -> PyResult<String> {
    given.get_item(name)?.extract()
}

/// Returns the time when the credentials expire, or `None` if they don't.
fn end(given: &Bound<'_, PyAny>) -> PyResult<Option<SystemTime>> {
    given.call_method1("get", ("expires_at",))?.extract()
}
