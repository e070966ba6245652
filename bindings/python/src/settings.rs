//! Creates clients from settings that Python passes by name.

use std::sync::Arc;

use laneway::{Client, CredentialProvider};
use laneway_bindings_core::failure::Failure;
use laneway_bindings_core::settings;
use laneway_bindings_core::value::Value;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::dialect::LocalObjects;
use crate::provider::CallableProvider;
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
        let builder = settings::builder(named, provider)?;
        let builder = match dialect {
            Some(dialect) => builder.dialect(dialect),
            None => builder,
        };
        Ok(builder.build()?)
    });
    made.map_err(|failure: Failure| error::failed(py, &failure))
}
