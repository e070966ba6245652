//! Lists objects, or the entries of a folder.

use futures_util::{StreamExt as _, TryStreamExt as _};
use laneway::{Client, Error, List, Listed, ObjectMeta};
use laneway_bindings_core::fork::Turns;
use pyo3::exceptions::{PyStopAsyncIteration, PyStopIteration};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList};

use crate::call::{self, LibraryCall};
use crate::meta::described;
use crate::store::ObjectStore;
use crate::value::{KeyArgument, NumberArgument, PrefixArgument};

#[pymethods]
impl ObjectStore {
    /// Lists the objects whose paths begin with `prefix`, in byte order. Returns an iterator over lists of at most
    /// `chunk_size` objects. With a `limit`, Laneway lists and returns at most that many objects. With `return_arrow`,
    /// the iterator returns Arrow record batches instead of lists.
    #[pyo3(
        signature = (prefix = None, *, offset = None, limit = None, chunk_size = NumberArgument(50), return_arrow = false),
        text_signature = "($self, prefix=None, *, offset=None, limit=None, chunk_size=50, return_arrow=False)"
    )]
    fn list(
        &self,
        prefix: Option<PrefixArgument>,
        offset: Option<KeyArgument>,
        limit: Option<NumberArgument>,
        chunk_size: NumberArgument,
        return_arrow: bool,
    ) -> ListStream {
        let prefix = prefix.unwrap_or_default();
        let mut list = self.bucket.list(&prefix);
        if let Some(offset) = offset {
            list = list.start_after(&offset);
        }
        if let Some(NumberArgument(limit)) = limit {
            list = list.limit(limit);
        }
        ListStream {
            client: self.bucket.client().clone(),
            list: Turns::new(list),
            prefix: prefix.to_owned(),
            chunk_size: usize::try_from(chunk_size.0.max(1)).unwrap_or(usize::MAX),
            give: if return_arrow { record_batch } else { listed },
        }
    }
}

/// An iterator over objects as they arrive, for `for` and `async for`.
#[pyclass(frozen, module = "laneway")]
pub(crate) struct ListStream {
    client: Client,
    list: Turns<List>,
    prefix: String,
    chunk_size: usize,
    /// Converts the objects of a chunk.
    give: ConvertMetas,
}

type ConvertMetas = fn(Python<'_>, &[ObjectMeta]) -> PyResult<Py<PyAny>>;

#[pymethods]
impl ListStream {
    fn __repr__(&self) -> String {
        format!("<laneway.ListStream prefix={:?} chunk_size={}>", self.prefix, self.chunk_size)
    }

    /// Returns all remaining objects in one list.
    fn collect(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let give = self.give;
        self.some(py, usize::MAX, move |py, metas| give(py, &metas))?.wait(py)
    }

    /// The awaitable form of `collect`.
    fn collect_async<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let give = self.give;
        self.some(py, usize::MAX, move |py, metas| give(py, &metas))?.awaited(py)
    }

    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __aiter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let give = self.give;
        let next = self.some(py, self.chunk_size, move |py, metas| match metas.is_empty() {
            true => Err(PyStopIteration::new_err(())),
            false => give(py, &metas),
        });
        next?.wait_if_need_be(py)
    }

    fn __anext__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let give = self.give;
        let next = self.some(py, self.chunk_size, move |py, metas| match metas.is_empty() {
            true => Err(PyStopAsyncIteration::new_err(())),
            false => give(py, &metas),
        });
        next?.awaited(py)
    }
}

impl ListStream {
    fn some(
        &self,
        py: Python<'_>,
        most: usize,
        give: impl FnOnce(Python<'_>, Vec<ObjectMeta>) -> PyResult<Py<PyAny>> + Send + 'static,
    ) -> PyResult<LibraryCall> {
        let line = call::turn(&self.list, py)?;
        let some = async move {
            let mut list = line.turn().await;
            let mut some = Vec::new();
            if let Some(list) = &mut list {
                while some.len() < most
                    && let Some(meta) = list.next().await
                {
                    some.push(meta?);
                }
            }
            Ok::<_, Error>(some)
        };
        Ok(LibraryCall::new(&self.client, some, give))
    }
}

/// Converts objects to an Arrow record batch.
fn record_batch(py: Python<'_>, metas: &[ObjectMeta]) -> PyResult<Py<PyAny>> {
    static OF: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    OF.import(py, "laneway._arrow", "record_batch")?.call1((listed(py, metas)?,)).map(Bound::unbind)
}

/// Converts objects to a list of dictionaries.
fn listed(py: Python<'_>, metas: &[ObjectMeta]) -> PyResult<Py<PyAny>> {
    let list = PyList::empty(py);
    for meta in metas {
        list.append(described(py, meta)?)?;
    }
    Ok(list.into_any().unbind())
}

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
