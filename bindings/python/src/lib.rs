//! The library for Python: stores with their verbs, files, and jobs.
//!
//! It wraps and decides nothing, and shares with other bindings what `laneway-bindings-core` has. A verb is a file of `verbs`: it turns arguments into a call of the library and hands it to
//! `call`, which waits for it with the interpreter's lock released, or completes a future of an event loop. `python/laneway` has what
//! needs no Rust: configuration keys, exceptions, what is put from files and iterators.
//!
//! What is taken from Python (buffers) may be dropped on the engine's threads, which never wait for the interpreter (`kept`). A child
//! of a `fork` can't hang on what its parent's threads held, by the rules of the core's `fork`.

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

/// What Python imports; the package's modules give it its names.
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
    use crate::store::ObjectStore;
    #[pymodule_export]
    use crate::verbs::{BytesStream, GetResult, ListStream};
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
