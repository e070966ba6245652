//! Removes objects.

use futures_util::{StreamExt as _, stream};
use pyo3::prelude::*;

use crate::call::Call;
use crate::store::ObjectStore;
use crate::value::KeyArgument;

/// One path or many.
#[derive(FromPyObject)]
pub(super) enum Paths {
    One(KeyArgument),
    Many(Vec<KeyArgument>),
}

#[pymethods]
impl ObjectStore {
    /// Removes an object, or many objects in full batches. If an object doesn't exist, GCS reports an error and S3
    /// reports success. With many objects, all are tried, and then the first failure is raised.
    #[pyo3(signature = (paths))]
    fn delete(&self, py: Python<'_>, paths: Paths) -> PyResult<Py<PyAny>> {
        delete(self, paths).wait(py)
    }

    /// The awaitable form of `delete`.
    #[pyo3(signature = (paths))]
    fn delete_async<'py>(&self, py: Python<'py>, paths: Paths) -> PyResult<Bound<'py, PyAny>> {
        delete(self, paths).awaited(py)
    }
}

fn delete(store: &ObjectStore, paths: Paths) -> Call {
    let bucket = store.bucket.clone();
    let removed = async move {
        let paths = match paths {
            Paths::One(path) => return bucket.delete(&path).await,
            Paths::Many(paths) => paths,
        };
        let mut outcomes = bucket.delete_many(stream::iter(paths.into_iter().map(String::from)));
        let mut failed = None;
        while let Some((_, outcome)) = outcomes.next().await {
            failed = failed.or(outcome.err());
        }
        failed.map_or(Ok(()), Err)
    };
    Call::new(store.bucket.client(), removed, |py, ()| Ok(py.None()))
}
