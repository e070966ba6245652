//! The library for Python: stores with their verbs, files, and jobs.
//!
//! It wraps the library and decides nothing. It shares `laneway-bindings-core` with other bindings. A verb is
//! a file of `verbs`, which turns arguments into a call of the library. `call` waits for the call with the
//! interpreter's lock released, or completes a future of an event loop. `python/laneway` has everything that
//! needs no Rust: configuration keys, exceptions, and puts from files and iterators.
//!
//! Buffers of Python may be dropped on the engine's threads, which never wait for the interpreter (`kept`).
//! By the rules of the core's `fork`, a child of a `fork` can't hang on locks that its parent's threads held.

mod attributes;
mod buffer;
mod bytes;
mod call;
mod error;
mod files;
mod job;
mod kept;
mod log;
mod memory;
mod meta;
#[cfg(feature = "program")]
mod program;
mod provider;
mod settings;
mod store;
mod turns;
mod value;
mod verbs;

use pyo3::prelude::*;

/// The module that Python imports. The package's modules give its items their names.
#[pymodule(gil_used = true)]
mod _laneway {
    #[pymodule_export]
    use crate::bytes::Bytes;
    #[pymodule_export]
    use crate::files::{AsyncReadableFile, AsyncWritableFile, Fetched, Opening, ReadableFile, WritableFile};
    #[pymodule_export]
    use crate::job::Job;
    #[pymodule_export]
    use crate::log::end_logging;
    #[cfg(feature = "program")]
    #[pymodule_export]
    use crate::program::program;
    #[pymodule_export]
    use crate::store::{ObjectStore, buckets_async, set_metadata_async, versions_async};
    #[pymodule_export]
    use crate::verbs::{BytesStream, GetResult, ListStream};
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
