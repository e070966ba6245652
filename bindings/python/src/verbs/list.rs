//! Lists objects.

use futures_util::StreamExt as _;
use laneway::{Client, Error, List, ObjectMeta};
use laneway_bindings_core::fork::Turns;
use pyo3::exceptions::{PyStopAsyncIteration, PyStopIteration};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyList;

use crate::call::LibraryCall;
use crate::meta::described;
use crate::store::ObjectStore;
use crate::turns;
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
        let line = turns::line(&self.list, py)?;
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
pub(super) fn listed(py: Python<'_>, metas: &[ObjectMeta]) -> PyResult<Py<PyAny>> {
    let list = PyList::empty(py);
    for meta in metas {
        list.append(described(py, meta)?)?;
    }
    Ok(list.into_any().unbind())
}
