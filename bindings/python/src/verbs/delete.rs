//! Removes objects.

use futures_util::{StreamExt as _, stream};
use pyo3::prelude::*;

use crate::call::LibraryCall;
use crate::store::ObjectStore;
use crate::value::KeysArgument;

#[pymethods]
impl ObjectStore {
    /// Removes an object, or many objects in full batches. If an object doesn't exist, GCS reports an error and S3
    /// reports success. With many objects, all are tried, and then the first failure is raised.
    #[pyo3(signature = (paths))]
    fn delete(&self, py: Python<'_>, paths: KeysArgument) -> PyResult<Py<PyAny>> {
        delete(self, paths).wait(py)
    }

    /// The awaitable form of `delete`.
    #[pyo3(signature = (paths))]
    fn delete_async<'py>(&self, py: Python<'py>, paths: KeysArgument) -> PyResult<Bound<'py, PyAny>> {
        delete(self, paths).awaited(py)
    }
}

fn delete(store: &ObjectStore, paths: KeysArgument) -> LibraryCall {
    let bucket = store.bucket.clone();
    let removed = async move {
        let paths = match paths {
            KeysArgument::One(path) => return bucket.delete(&path).await,
            KeysArgument::Many(paths) => paths,
        };
        let mut outcomes = bucket.delete_many(stream::iter(paths.into_iter().map(String::from)));
        let mut failed = None;
        while let Some((_, outcome)) = outcomes.next().await {
            failed = failed.or(outcome.err());
        }
        failed.map_or(Ok(()), Err)
    };
    LibraryCall::new(store.bucket.client(), removed, |py, ()| Ok(py.None()))
}
