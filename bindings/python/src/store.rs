//! A store: a bucket, or the part of a bucket below a prefix.

use std::collections::BTreeMap;

use laneway::dialect::VersionNames;
use laneway::{
    Bucket, Entry, Error, ErrorKind, Event, Item, ListRequest, Location, MetaChange, Outcome, SetMetaRequest,
};
use laneway_bindings_core::described::counters;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::call::LibraryCall;
use crate::value::KeyArgument;
use crate::{error, meta, settings};

/// The class that has the verbs. The subclasses `AzureStore`, `GCSStore` and `S3Store`, which are written in Python,
/// translate configuration keys.
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

    /// Returns the store's URL, with the prefix.
    #[getter]
    fn url(&self) -> String {
        self.bucket.url()
    }

    fn __repr__(&self) -> String {
        format!("<laneway.ObjectStore {}>", self.bucket.url())
    }

    /// Returns the bucket's name.
    #[getter]
    fn bucket(&self) -> &str {
        self.bucket.name()
    }

    /// Returns the prefix that the store puts before every path, or `None` if the store is the whole bucket.
    #[getter]
    fn prefix(&self) -> Option<&str> {
        Some(self.bucket.prefix()).filter(|prefix| !prefix.is_empty())
    }

    /// Returns `az`, `gs` or `s3`.
    #[getter]
    fn scheme(&self) -> &'static str {
        self.bucket.provider().scheme()
    }

    /// Returns the engine's counters so far: `connections`, `connections_open`, `connections_peak`, `handshakes`,
    /// `requests`, `retries`, `hedges`, `throttles`, `bytes_received` and `bytes_sent`. Stores with the same network settings (certificates, proxies, timeouts)
    /// share connections, and therefore also these counters.
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, value) in counters(&self.bucket.client().counters()) {
            dict.set_item(name, value)?;
        }
        Ok(dict)
    }
}

/// Returns an awaitable for the versions of an object that its bucket keeps. S3 lists the newest version first, and
/// includes delete markers. GCS lists the oldest first.
#[pyfunction]
#[pyo3(signature = (store, path, /))]
pub(crate) fn versions_async<'py>(
    py: Python<'py>,
    store: &ObjectStore,
    path: KeyArgument,
) -> PyResult<Bound<'py, PyAny>> {
    let (client, at) = (store.bucket.client(), store.location(&path));
    let mut listing = client.list(ListRequest::new(at).all_versions(true));
    let key = format!("{}{}", store.bucket.prefix(), &*path);
    let versions = async move {
        let mut versions = Vec::new();
        while let Some(entry) = listing.next().await {
            match entry? {
                Entry::Object(meta) if meta.id.key == key => versions.push(*meta),
                _ => {}
            }
        }
        Ok::<_, Error>(versions)
    };
    let call = LibraryCall::new(client, versions, |py, versions| {
        let described = versions.iter().map(|meta| {
            let dict = meta::described(py, meta)?;
            dict.set_item("version", meta.version_id.as_deref().or(meta.id.version.as_deref()))?;
            dict.set_item("is_latest", meta.is_latest)?;
            dict.set_item("delete_marker", meta.delete_marker)?;
            Ok(dict)
        });
        let described: Vec<_> = described.collect::<PyResult<_>>()?;
        Ok(described.into_pyobject(py)?.into_any().unbind())
    });
    call.awaited(py)
}

/// Changes the user metadata of an object in place, and returns an awaitable. The value `None` removes an entry.
/// Entries that aren't named stay.
#[pyfunction]
#[pyo3(signature = (store, path, changes, /))]
pub(crate) fn set_metadata_async<'py>(
    py: Python<'py>,
    store: &ObjectStore,
    path: KeyArgument,
    changes: BTreeMap<String, Option<String>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (client, at) = (store.bucket.client(), store.location(&path));
    if at.is_pattern() {
        let why =
            format!("{at}: Laneway can't change the metadata of an object whose key contains *, ? or [");
        return Err(error::own(py, ErrorKind::Unsupported, &why));
    }
    let change = changes.into_iter().fold(MetaChange::default(), |change, (name, value)| match value {
        Some(value) => change.metadata(name, value),
        None => change.removed(name),
    });
    let mut job = client.set_meta(SetMetaRequest::new(vec![at], change));
    let done = async move {
        let mut failed = None;
        while let Some(event) = job.next().await {
            if let Event::Item(Item { outcome: Outcome::Failed(error), .. }) = event {
                failed = Some(error);
            }
        }
        failed.map_or(Ok(()), Err)
    };
    LibraryCall::new(client, done, |py, ()| Ok(py.None())).awaited(py)
}

/// Returns an awaitable for the names of an account's buckets. `url` is `az://`, `gs://` or `s3://`.
#[pyfunction]
#[pyo3(signature = (url, settings, /))]
pub(crate) fn buckets_async<'py>(
    py: Python<'py>,
    url: &str,
    settings: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let client = settings::client(py, settings)?;
    let at: Location = url.parse().map_err(|error| error::raised(py, &error))?;
    let mut listing = client.list(ListRequest::new(at));
    let names = async move {
        let mut names = Vec::new();
        while let Some(entry) = listing.next().await {
            if let Entry::Bucket(name) = entry? {
                names.push(name);
            }
        }
        Ok::<_, Error>(names)
    };
    LibraryCall::new(&client, names, |py, names| Ok(names.into_pyobject(py)?.into_any().unbind())).awaited(py)
}

/// Returns the scheme, the bucket and the prefix that a store's URL names. If a URL of Azure names the account, the
/// bucket is `container@host`.
#[pyfunction]
#[pyo3(signature = (url, /))]
pub(crate) fn url_parts(py: Python<'_>, url: &str) -> PyResult<(&'static str, String, String)> {
    match url.parse().map_err(|error| error::raised(py, &error))? {
        Location::Object { provider, bucket, key } => Ok((provider.scheme(), bucket, key)),
        at => Err(error::own(
            py,
            ErrorKind::Usage,
            &format!("{at}: this isn't the URL of a bucket or a folder in it"),
        )),
    }
}

impl ObjectStore {
    fn location(&self, path: &str) -> Location {
        let bucket = &self.bucket;
        let key = format!("{}{path}", bucket.prefix());
        Location::Object { provider: bucket.provider(), bucket: bucket.name().to_owned(), key }
    }

    pub(crate) fn versions(&self) -> VersionNames {
        self.bucket.capabilities().versions
    }
}
