//! Opens an object as a file for reading or writing.

use laneway::Open;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::call::LibraryCall;
use crate::files::{AsyncReadableFile, AsyncWritableFile, OpeningFile, ReadableFile, Writable, WritableFile};
use crate::meta::options;
use crate::store::ObjectStore;
use crate::value::{KeyArgument, NumberArgument};

#[pymethods]
impl ObjectStore {
    /// Opens an object as a file. The request that opens it also reads the last `footer` bytes. All reads of the file
    /// get the version that was opened. With a `size`, the file has that size instead of the object's, as in obstore. If
    /// `size` is larger than the object, reads beyond the object's end raise `OSError`. obstore's `buffer_size` has no
    /// effect, because the engine chooses how much to read ahead.
    #[pyo3(signature = (path, *, footer = None, size = None, buffer_size = None))]
    fn open_reader(
        &self,
        py: Python<'_>,
        path: KeyArgument,
        footer: Option<NumberArgument>,
        size: Option<NumberArgument>,
        buffer_size: Option<NumberArgument>,
    ) -> PyResult<Py<PyAny>> {
        let _ = buffer_size;
        open_reader(self, &path, footer, size, |py, file| {
            Ok(ReadableFile(file).into_pyobject(py)?.into_any().unbind())
        })
        .wait(py)
    }

    /// The awaitable form of `open_reader`. The file's methods are awaited too.
    #[pyo3(signature = (path, *, footer = None, size = None, buffer_size = None))]
    fn open_reader_async<'py>(
        &self,
        py: Python<'py>,
        path: KeyArgument,
        footer: Option<NumberArgument>,
        size: Option<NumberArgument>,
        buffer_size: Option<NumberArgument>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = buffer_size;
        open_reader(self, &path, footer, size, |py, file| {
            Ok(AsyncReadableFile(file).into_pyobject(py)?.into_any().unbind())
        })
        .awaited(py)
    }

    /// Starts to open an object as a file in the background. `result()` of the returned object waits for the file.
    #[pyo3(signature = (path, *, footer = None))]
    fn begin_reader(
        &self,
        py: Python<'_>,
        path: KeyArgument,
        footer: Option<NumberArgument>,
    ) -> PyResult<OpeningFile> {
        OpeningFile::begin(py, self.bucket.client(), open(self, &path, footer))
    }
}

fn open(store: &ObjectStore, path: &str, footer: Option<NumberArgument>) -> Open {
    let open = store.bucket.open(path);
    match footer {
        Some(NumberArgument(bytes)) => open.footer(bytes),
        None => open,
    }
}

fn open_reader(
    store: &ObjectStore,
    path: &str,
    footer: Option<NumberArgument>,
    size: Option<NumberArgument>,
    give: impl FnOnce(Python<'_>, crate::files::Readable) -> PyResult<Py<PyAny>> + Send + 'static,
) -> LibraryCall {
    let client = store.bucket.client().clone();
    LibraryCall::new(store.bucket.client(), open(store, path, footer).into_future(), move |py, reader| {
        give(py, crate::files::Readable::new(client, reader, size.map(|NumberArgument(size)| size)))
    })
}

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
