//! A client's settings by name.

use std::sync::Arc;

use laneway::{Client, CredentialProvider};
use laneway_bindings_core::settings;
use laneway_bindings_core::value::Value;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::provider::Asked;
use crate::{error, log, value};

/// A setting that is a callable, and therefore in no table.
const PROVIDER: &str = "credential_provider";

/// Makes a client from the environment and these settings, which override it.
///
/// # Errors
/// If a setting doesn't exist or can't be read; as `ClientBuilder::build`.
pub(crate) fn client(py: Python<'_>, settings: &Bound<'_, PyDict>) -> PyResult<Client> {
    log::attend(py, true);
    let provider = settings
        .get_item(PROVIDER)?
        .map(|callable| Arc::new(Asked::new(callable)) as Arc<dyn CredentialProvider>);
    let others = settings.copy()?;
    if provider.is_some() {
        others.del_item(PROVIDER)?;
    }
    let mut named = value::named(&others, settings::kind_of)?;
    // The variables are the process's, unless the caller's configuration replaces them.
    if !named.iter().any(|(name, _)| name == "variables") {
        named.push(("environment".to_owned(), Value::Flag(true)));
    }
    py.detach(|| settings::client(named, provider)).map_err(|failure| error::failed(py, &failure))
}
