//! Creates clients from settings that Python passes by name. Among them are credentials from a callable, and stores on
//! this machine: in the memory of the process, or in a folder.

use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::SystemTime;

use laneway::dialect::{Dialect, InFolder, InMemory};
use laneway::{AccessKey, BearerToken, Client, CredentialProvider, ExpiringKey, Provided};
use laneway_bindings_core::failure::Failure;
use laneway_bindings_core::settings::{self, BuiltClient};
use laneway_bindings_core::value::Value;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tokio::sync::oneshot;

use crate::kept::DroppableObject;
use crate::{error, log, value};

/// A setting that isn't in the table of settings, because its value is a callable.
const PROVIDER: &str = "credential_provider";
/// A setting that isn't in the table of settings, because its value is a [`LocalObjects`].
const DIALECT: &str = "dialect";

/// Creates a client from the environment and from these settings, which override it.
///
/// # Errors
/// Fails if a setting doesn't exist, if its value is invalid, or if `ClientBuilder::build` fails.
pub(crate) fn client(py: Python<'_>, settings: &Bound<'_, PyDict>) -> PyResult<Client> {
    built(py, settings).map(|built| built.client)
}

/// Creates a client that a plan can limit to a share of a bandwidth.
///
/// # Errors
/// Fails as [`client`] does.
pub(crate) fn built(py: Python<'_>, settings: &Bound<'_, PyDict>) -> PyResult<BuiltClient> {
    log::attend(py, true);
    let provider = settings
        .get_item(PROVIDER)?
        .map(|callable| Arc::new(CallableProvider::new(callable)) as Arc<dyn CredentialProvider>);
    let dialect = settings.get_item(DIALECT)?;
    let dialect = dialect.map(|objects| objects.cast_into::<LocalObjects>()).transpose()?;
    let dialect = dialect.map(|objects| Arc::clone(&objects.get().0));
    let others = settings.copy()?;
    for (name, is_given) in [(PROVIDER, provider.is_some()), (DIALECT, dialect.is_some())] {
        if is_given {
            others.del_item(name)?;
        }
    }
    let mut named = value::named(&others, settings::kind_of)?;
    // Use the process's environment variables, unless the caller passes its own set of variables.
    if !named.iter().any(|(name, _)| name == "variables") {
        named.push(("environment".to_owned(), Value::Flag(true)));
    }
    let made = py.detach(|| {
        BuiltClient::new(named, provider, |builder| match dialect {
            Some(dialect) => builder.dialect(dialect),
            None => builder,
        })
    });
    made.map_err(|failure: Failure| error::failed(py, &failure))
}

/// A callable that returns credentials, or a coroutine that returns them. obstore's providers are such callables.
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
            let key = AccessKey::new(
                credential_text(given, "access_key_id")?,
                credential_text(given, "secret_access_key")?,
            );
            let key = match given.call_method1("get", ("token",))?.extract::<Option<String>>()? {
                Some(token) => key.session_token(token),
                None => key,
            };
            let key = ExpiringKey::new(key);
            Ok(match credential_end(given)? {
                Some(end) => key.expires_at(end),
                None => key,
            })
        }))
    }

    fn bearer_token(&self) -> Provided<'_, BearerToken> {
        Box::pin(self.ask(|given| {
            // obstore's providers for Azure may also return keys and SAS tokens.
            if !given.contains("token")? && (given.contains("access_key")? || given.contains("sas_token")?) {
                let why = "it returned an account key or a SAS token, and Laneway takes only tokens of Entra ID from a \
                           provider: pass `account_key` or `sas_token` to the store";
                return Err(PyValueError::new_err(why));
            }
            let token = BearerToken::new(credential_text(given, "token")?);
            Ok(match credential_end(given)? {
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

fn credential_text(given: &Bound<'_, PyAny>, name: &str) -> PyResult<String> {
    given.get_item(name)?.extract()
}

/// Returns the time when the credentials expire, or `None` if they don't.
fn credential_end(given: &Bound<'_, PyAny>) -> PyResult<Option<SystemTime>> {
    given.call_method1("get", ("expires_at",))?.extract()
}

/// The name of the only bucket.
const BUCKET: &str = "local";

/// The objects of a `MemoryStore` or `LocalStore`. The stores of its folders, and jobs, share these objects.
#[pyclass(frozen, module = "laneway")]
pub(crate) struct LocalObjects(pub(crate) Arc<dyn Dialect>);

#[pymethods]
impl LocalObjects {
    /// Returns an empty store in memory. Its objects disappear when the store does.
    #[staticmethod]
    fn in_memory() -> PyResult<Self> {
        let store = InMemory::new("memory").map_err(|why| PyValueError::new_err(why.to_string()))?;
        Ok(Self(Arc::new(store.bucket(BUCKET))))
    }

    /// Returns a store whose objects are the files below a folder.
    #[staticmethod]
    fn in_folder(folder: PathBuf, remove_empty_folders: bool) -> PyResult<Self> {
        let store = InFolder::new("folder").map_err(|why| PyValueError::new_err(why.to_string()))?;
        Ok(Self(Arc::new(store.bucket(BUCKET, folder).remove_empty_folders(remove_empty_folders))))
    }

    /// Returns the URL of the only bucket.
    #[getter]
    fn url(&self) -> String {
        format!("{}://{BUCKET}/", self.0.provider().scheme())
    }

    fn __repr__(&self) -> String {
        format!("<laneway.LocalObjects {}>", self.url())
    }
}
