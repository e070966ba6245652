//! Renames an object.

use pyo3::prelude::*;

use crate::call::LibraryCall;
use crate::meta::written;
use crate::store::ObjectStore;
use crate::value::KeyArgument;

#[pymethods]
impl ObjectStore {
    /// Renames an object: copies it, and then removes the version of the source that was copied. In between, other
    /// clients can see both objects.
    #[pyo3(signature = (from_, to, *, overwrite = true))]
    fn rename(
        &self,
        py: Python<'_>,
        from_: KeyArgument,
        to: KeyArgument,
        overwrite: bool,
    ) -> PyResult<Py<PyAny>> {
        rename(self, &from_, &to, overwrite).wait(py)
    }

    /// The awaitable form of `rename`.
    #[pyo3(signature = (from_, to, *, overwrite = true))]
    fn rename_async<'py>(
        &self,
        py: Python<'py>,
        from_: KeyArgument,
        to: KeyArgument,
        overwrite: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        rename(self, &from_, &to, overwrite).awaited(py)
    }
}

fn rename(store: &ObjectStore, from: &str, to: &str, overwrite: bool) -> LibraryCall {
    let call = store.bucket.rename(from, to);
    let call = if overwrite { call } else { call.if_absent() };
    LibraryCall::new(store.bucket.client(), call.into_future(), |py, done| {
        Ok(written(py, &done)?.into_any().unbind())
    })
}
