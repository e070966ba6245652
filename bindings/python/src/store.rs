//! A bucket, or the part of one below a prefix.

use laneway::Bucket;
use laneway::dialect::VersionNames;
use laneway_bindings_core::described::counters;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::{error, settings};

/// What verbs are called on. `GCSStore` and `S3Store` are its subclasses, which know configuration by the names that people use.
#[pyclass(frozen, subclass, module = "laneway")]
pub(crate) struct ObjectStore {
    pub(crate) bucket: Bucket,
}

#[pymethods]
impl ObjectStore {
    #[new]
    #[pyo3(signature = (url, settings))]
    fn new(py: Python<'_>, url: &str, settings: &Bound<'_, PyDict>) -> PyResult<Self> {
        let client = settings::client(py, settings)?;
        let bucket = client.bucket(url).map_err(|error| error::raised(py, &error))?;
        Ok(Self { bucket })
    }

    /// Its URL, with the prefix.
    #[getter]
    fn url(&self) -> String {
        self.bucket.url()
    }

    /// The bucket's name.
    #[getter]
    fn bucket(&self) -> &str {
        self.bucket.name()
    }

    /// What every key begins with in the bucket; `None` for the whole of it.
    #[getter]
    fn prefix(&self) -> Option<&str> {
        Some(self.bucket.prefix()).filter(|prefix| !prefix.is_empty())
    }

    /// `gs` or `s3`.
    #[getter]
    fn scheme(&self) -> &'static str {
        self.bucket.provider().scheme()
    }

    /// What the process's engine has done so far for stores that reach their servers alike.
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, value) in counters(&self.bucket.client().counters()) {
            dict.set_item(name, value)?;
        }
        Ok(dict)
    }
}

impl ObjectStore {
    pub(crate) fn versions(&self) -> VersionNames {
        self.bucket.capabilities().versions
    }
}
