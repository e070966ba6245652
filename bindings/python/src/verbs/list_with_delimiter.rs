//! Lists the entries of a folder.

use futures_util::TryStreamExt as _;
use laneway::Listed;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList};

use crate::call::LibraryCall;
use crate::store::ObjectStore;
use crate::value::PrefixArgument;

use super::list::listed;

#[pymethods]
impl ObjectStore {
    /// Lists the entries of a folder, or of the whole store. With `name_prefix`, lists only the entries whose names begin
    /// with that text. In the result, `objects` are the objects directly in the folder, and `common_prefixes`
    /// are the names of its folders, without a slash at the end. With `return_arrow`, `objects` is an Arrow table
    /// instead of a list.
    #[pyo3(signature = (prefix = None, *, name_prefix = None, return_arrow = false))]
    fn list_with_delimiter(
        &self,
        py: Python<'_>,
        prefix: Option<PrefixArgument>,
        name_prefix: Option<&str>,
        return_arrow: bool,
    ) -> PyResult<Py<PyAny>> {
        list_with_delimiter(self, prefix, name_prefix, return_arrow).wait(py)
    }

    /// The awaitable form of `list_with_delimiter`.
    #[pyo3(signature = (prefix = None, *, name_prefix = None, return_arrow = false))]
    fn list_with_delimiter_async<'py>(
        &self,
        py: Python<'py>,
        prefix: Option<PrefixArgument>,
        name_prefix: Option<&str>,
        return_arrow: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        list_with_delimiter(self, prefix, name_prefix, return_arrow).awaited(py)
    }
}

fn list_with_delimiter(
    store: &ObjectStore,
    prefix: Option<PrefixArgument>,
    name_prefix: Option<&str>,
    return_arrow: bool,
) -> LibraryCall {
    let mut folder = prefix.unwrap_or_default().to_owned();
    if !folder.is_empty() && !folder.ends_with('/') {
        folder.push('/');
    }
    folder.push_str(name_prefix.unwrap_or_default());
    let list = store.bucket.list_dir(&folder);
    LibraryCall::new(store.bucket.client(), list.try_collect::<Vec<Listed>>(), move |py, below| {
        let (prefixes, mut objects) = (PyList::empty(py), Vec::new());
        for entry in below {
            match entry {
                Listed::Prefix(prefix) => prefixes.append(prefix.strip_suffix('/').unwrap_or(&prefix))?,
                Listed::Object(meta) => objects.push(*meta),
                // `Listed` is non-exhaustive, so the compiler demands this arm.
                _ => {}
            }
        }
        let mut objects = listed(py, &objects)?;
        if return_arrow {
            objects = table(py, &objects)?;
        }
        let result = PyDict::new(py);
        result.set_item("common_prefixes", prefixes)?;
        result.set_item("objects", objects)?;
        Ok(result.into_any().unbind())
    })
}

/// Converts a list of objects to an Arrow table.
fn table(py: Python<'_>, objects: &Py<PyAny>) -> PyResult<Py<PyAny>> {
    static OF: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    OF.import(py, "laneway._arrow", "table")?.call1((objects,)).map(Bound::unbind)
}
