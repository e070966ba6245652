//! Opens an object as a file for writing.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::attributes::options;
use crate::files::{AsyncWritableFile, Writable, WritableFile};
use crate::store::ObjectStore;
use crate::value::{KeyArgument, NumberArgument};

#[pymethods]
impl ObjectStore {
    /// Opens a new object as a file for writing. The object becomes visible when the file is closed. If the file is
    /// used in a `with` block, an exception in it aborts the upload. `buffer_size` and `max_concurrency` are accepted for
    /// obstore's sake and have no effect, because Laneway chooses both.
    #[pyo3(signature = (path, *, attributes = None, tags = None, mode = None, buffer_size = None, max_concurrency = None))]
    fn open_writer(
        &self,
        path: KeyArgument,
        attributes: Option<&Bound<'_, PyDict>>,
        tags: Option<&Bound<'_, PyDict>>,
        mode: Option<&Bound<'_, PyAny>>,
        buffer_size: Option<NumberArgument>,
        max_concurrency: Option<NumberArgument>,
    ) -> PyResult<WritableFile> {
        let _ = (buffer_size, max_concurrency);
        Ok(WritableFile(open_writer(self, &path, attributes, tags, mode)?))
    }

    /// Like `open_writer`, but for a file whose methods are awaited.
    #[pyo3(signature = (path, *, attributes = None, tags = None, mode = None, buffer_size = None, max_concurrency = None))]
    fn open_writer_async(
        &self,
        path: KeyArgument,
        attributes: Option<&Bound<'_, PyDict>>,
        tags: Option<&Bound<'_, PyDict>>,
        mode: Option<&Bound<'_, PyAny>>,
        buffer_size: Option<NumberArgument>,
        max_concurrency: Option<NumberArgument>,
    ) -> PyResult<AsyncWritableFile> {
        let _ = (buffer_size, max_concurrency);
        Ok(AsyncWritableFile(open_writer(self, &path, attributes, tags, mode)?))
    }
}

fn open_writer(
    store: &ObjectStore,
    path: &str,
    attributes: Option<&Bound<'_, PyDict>>,
    tags: Option<&Bound<'_, PyDict>>,
    mode: Option<&Bound<'_, PyAny>>,
) -> PyResult<Writable> {
    let options = options(store.versions(), attributes, tags, mode)?;
    let writer = store.bucket.writer(path).options(options);
    Ok(Writable::new(store.bucket.client().clone(), path, writer))
}
