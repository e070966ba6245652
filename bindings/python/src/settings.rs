//! Creates clients from settings that Python passes by name.

use std::sync::Arc;

use laneway::{Client, CredentialProvider};
use laneway_bindings_core::settings;
use laneway_bindings_core::value::Value;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::provider::CallableProvider;
use crate::{error, log, value};

/// The one setting that isn't in the table of settings, because its value is a callable.
const PROVIDER: &str = "credential_provider";

/// Creates a client from the environment and from these settings, which override it.
///
/// # Errors
/// Fails if a setting doesn't exist, if its value is invalid, or if `ClientBuilder::build` fails.
pub(crate) fn client(py: Python<'_>, settings: &Bound<'_, PyDict>) -> PyResult<Client> {
    log::attend(py, true);
    let provider = settings
        .get_item(PROVIDER)?
        .map(|callable| Arc::new(CallableProvider::new(callable)) as Arc<dyn CredentialProvider>);
    let others = settings.copy()?;
    if provider.is_some() {
        others.del_item(PROVIDER)?;
    }
    let mut named = value::named(&others, settings::kind_of)?;
    // Use the process's environment variables, unless the caller passes its own set of variables.
    if !named.iter().any(|(name, _)| name == "variables") {
        named.push(("environment".to_owned(), Value::Flag(true)));
    }
    py.detach(|| settings::client(named, provider)).map_err(|failure| error::failed(py, &failure))
}
