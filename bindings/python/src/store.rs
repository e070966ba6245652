//! A bucket, or the part of one below a prefix.

use laneway::Bucket;
use laneway::dialect::VersionNames;
use laneway_bindings_core::described::counters;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::{error, settings};

/// The object with the verbs. Its subclasses `GCSStore` and `S3Store` read configuration by common names.
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

    /// Returns its URL, with the prefix.
    #[getter]
    fn url(&self) -> String {
        self.bucket.url()
    }

    /// Returns the bucket's name.
    #[getter]
    fn bucket(&self) -> &str {
        self.bucket.name()
    }

    /// Returns the prefix of every key in the bucket, or `None` for the whole bucket.
    #[getter]
    fn prefix(&self) -> Option<&str> {
        Some(self.bucket.prefix()).filter(|prefix| !prefix.is_empty())
    }

    /// Returns `gs` or `s3`.
    #[getter]
    fn scheme(&self) -> &'static str {
        self.bucket.provider().scheme()
    }

    /// Returns the engine's counts so far, for all stores that reach servers in the same way.
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
