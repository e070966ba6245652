//! Stores on this machine: in the memory of the process, and in a folder.

use std::path::PathBuf;
use std::sync::Arc;

use laneway::dialect::{Dialect, InFolder, InMemory};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The name of the only bucket.
const BUCKET: &str = "local";

/// The objects of a `MemoryStore` or `LocalStore`. The stores of its folders, and jobs, share these objects.
#[pyclass(frozen, module = "laneway")]
pub(crate) struct LocalObjects(pub(crate) Arc<dyn Dialect>);

#[pymethods]
impl LocalObjects {
    /// Returns an empty store in memory. Its objects disappear when the store does.
    #[staticmethod]
    fn in_memory() -> PyResult<Self> {
        let store = InMemory::new("memory").map_err(|why| PyValueError::new_err(why.to_string()))?;
        Ok(Self(Arc::new(store.bucket(BUCKET))))
    }

    /// Returns a store whose objects are the files below a folder.
    #[staticmethod]
    fn in_folder(folder: PathBuf, remove_empty_folders: bool) -> PyResult<Self> {
        let store = InFolder::new("folder").map_err(|why| PyValueError::new_err(why.to_string()))?;
        Ok(Self(Arc::new(store.bucket(BUCKET, folder).remove_empty_folders(remove_empty_folders))))
    }

    /// Returns the URL of the only bucket.
    #[getter]
    fn url(&self) -> String {
        format!("{}://{BUCKET}/", self.0.provider().scheme())
    }

    fn __repr__(&self) -> String {
        format!("<laneway.LocalObjects {}>", self.url())
    }
}
