//! A file that is being opened in the background, before a program asks for it.

use laneway::{Client, Open, Reader};
use pyo3::prelude::*;

use super::begun::Begun;
use super::{Readable, ReadableFile};

/// A file that is being opened. Dropping it cancels this.
#[pyclass(frozen, module = "laneway")]
pub(crate) struct Opening {
    client: Client,
    begun: Begun<Reader>,
}

impl Opening {
    /// # Errors
    /// Fails if the engine can't start.
    pub(crate) fn begin(py: Python<'_>, client: &Client, open: Open) -> PyResult<Self> {
        let begun = Begun::new(py, client, open.into_future())?;
        Ok(Self { client: client.clone(), begun })
    }
}

#[pymethods]
impl Opening {
    fn __repr__(&self) -> String {
        format!("<laneway.Opening done={}>", self.begun.is_done())
    }

    /// Returns whether the file is open.
    fn is_done(&self) -> bool {
        self.begun.is_done()
    }

    /// Waits until the file is open, and returns it. It can be called once, and only in the process that started to
    /// open it.
    fn result(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let client = self.client.clone();
        self.begun.result(py, move |py, reader| {
            Ok(ReadableFile(Readable::new(client, reader)).into_pyobject(py)?.into_any().unbind())
        })
    }
}
