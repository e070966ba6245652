//! Copies an object.

use pyo3::prelude::*;

use crate::call::LibraryCall;
use crate::meta::written;
use crate::store::ObjectStore;
use crate::value::KeyArgument;

#[pymethods]
impl ObjectStore {
    /// Copies an object within the store, without its bytes passing through this machine.
    #[pyo3(signature = (from_, to, *, overwrite = true))]
    fn copy(
        &self,
        py: Python<'_>,
        from_: KeyArgument,
        to: KeyArgument,
        overwrite: bool,
    ) -> PyResult<Py<PyAny>> {
        copy(self, &from_, &to, overwrite).wait(py)
    }

    /// The awaitable form of `copy`.
    #[pyo3(signature = (from_, to, *, overwrite = true))]
    fn copy_async<'py>(
        &self,
        py: Python<'py>,
        from_: KeyArgument,
        to: KeyArgument,
        overwrite: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        copy(self, &from_, &to, overwrite).awaited(py)
    }
}

fn copy(store: &ObjectStore, from: &str, to: &str, overwrite: bool) -> LibraryCall {
    let call = store.bucket.copy(from, to);
    let call = if overwrite { call } else { call.if_absent() };
    LibraryCall::new(store.bucket.client(), call.into_future(), |py, done| {
        Ok(written(py, &done)?.into_any().unbind())
    })
}
