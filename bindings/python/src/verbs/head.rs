//! Requests an object's metadata.

use pyo3::prelude::*;

use crate::call::LibraryCall;
use crate::meta::described;
use crate::store::ObjectStore;
use crate::value::KeyArgument;

#[pymethods]
impl ObjectStore {
    /// Returns an object's metadata, by one request that doesn't transfer the object's bytes.
    #[pyo3(signature = (path))]
    fn head(&self, py: Python<'_>, path: KeyArgument) -> PyResult<Py<PyAny>> {
        head(self, &path).wait(py)
    }

    /// The awaitable form of `head`.
    #[pyo3(signature = (path))]
    fn head_async<'py>(&self, py: Python<'py>, path: KeyArgument) -> PyResult<Bound<'py, PyAny>> {
        head(self, &path).awaited(py)
    }
}

fn head(store: &ObjectStore, path: &str) -> LibraryCall {
    let call = store.bucket.head(path).into_future();
    LibraryCall::new(store.bucket.client(), call, |py, meta| Ok(described(py, &meta)?.into_any().unbind()))
}
