//! Objects as files. They have the methods of Python's own files, as far as these make sense for objects.

/// Adds the methods of Python's files that objects don't support. They raise `io.UnsupportedOperation`.
macro_rules! refused {
    ($file:ident: $($method:ident),+) => {
        #[pymethods]
        impl $file {
            $(
                #[pyo3(signature = (*_arguments))]
                fn $method(&self, py: Python<'_>, _arguments: &Bound<'_, PyTuple>) -> PyResult<()> {
                    Err(crate::error::unsupported(py, stringify!($method)))
                }
            )+
        }
    };
}

mod background;
mod readable;
mod writable;

pub(crate) use background::{FetchedRanges, OpeningFile};
pub(crate) use readable::{AsyncReadableFile, Readable, ReadableFile};
pub(crate) use writable::{AsyncWritableFile, Writable, WritableFile};
