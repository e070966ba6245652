//! Lists the entries directly below a prefix.

use futures_util::TryStreamExt as _;
use laneway::Listed;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::call::LibraryCall;
use crate::meta::described;
use crate::store::ObjectStore;
use crate::value::PrefixArgument;

#[pymethods]
impl ObjectStore {
    /// Lists the entries directly below a prefix, which usually ends in a slash. The result has `objects`, and the
    /// `common_prefixes` of objects further down. These also end in a slash.
    #[pyo3(signature = (prefix = None))]
    fn list_with_delimiter(&self, py: Python<'_>, prefix: Option<PrefixArgument>) -> PyResult<Py<PyAny>> {
        list_with_delimiter(self, prefix).wait(py)
    }

    /// The awaitable form of `list_with_delimiter`.
    #[pyo3(signature = (prefix = None))]
    fn list_with_delimiter_async<'py>(
        &self,
        py: Python<'py>,
        prefix: Option<PrefixArgument>,
    ) -> PyResult<Bound<'py, PyAny>> {
        list_with_delimiter(self, prefix).awaited(py)
    }
}

fn list_with_delimiter(store: &ObjectStore, prefix: Option<PrefixArgument>) -> LibraryCall {
    let list = store.bucket.list_dir(&prefix.unwrap_or_default());
    LibraryCall::new(store.bucket.client(), list.try_collect::<Vec<Listed>>(), |py, below| {
        let (prefixes, objects) = (PyList::empty(py), PyList::empty(py));
        for entry in below {
            match entry {
                Listed::Prefix(prefix) => prefixes.append(prefix)?,
                Listed::Object(meta) => objects.append(described(py, &meta)?)?,
                // `Listed` is non-exhaustive, so the compiler demands this arm.
                _ => {}
            }
        }
        let result = PyDict::new(py);
        result.set_item("common_prefixes", prefixes)?;
        result.set_item("objects", objects)?;
        Ok(result.into_any().unbind())
    })
}
