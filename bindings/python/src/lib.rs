//! The Python package: stores with their verbs, files, and jobs.
//!
//! It wraps the Rust library, and makes no decisions of its own about requests. It shares `laneway-bindings-core` with
//! other bindings. The verbs in `verbs` turn arguments into calls of the library. `call` waits for such a call with the
//! interpreter's lock released, or completes a future of an event loop. `python/laneway` contains the parts that are
//! written in Python: configuration keys, exceptions, and puts from files and iterators.
//!
//! The engine's threads may drop Python's buffers, but they never wait for the interpreter (see `kept`). After a
//! `fork`, the child never hangs on a lock that a thread of its parent held (see `fork` in `laneway-bindings-core`).

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
mod plan;
mod settings;
mod store;
mod value;
mod verbs;

use pyo3::prelude::*;

/// The native module. The modules in `python/laneway` import its items and give them their public names.
#[pymodule(gil_used = true)]
mod _laneway {
    #[pymodule_export]
    use crate::bytes::Bytes;
    #[pymodule_export]
    use crate::files::{
        AsyncReadableFile, AsyncWritableFile, FetchedRanges, OpeningFile, ReadableFile, WritableFile,
    };
    #[pymodule_export]
    use crate::job::JobHandle;
    #[pymodule_export]
    use crate::log::end_logging;
    #[pymodule_export]
    use crate::plan::{OpenedPlan, PlanTaskHandle};
    #[cfg(feature = "program")]
    #[pymodule_export]
    use crate::program;
    #[pymodule_export]
    use crate::settings::LocalObjects;
    #[pymodule_export]
    use crate::store::{ObjectStore, buckets_async, set_metadata_async, url_parts, versions_async};
    #[pymodule_export]
    use crate::verbs::{BytesStream, GetResult, ListStream};
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}

/// Runs the program `laneway`, which the Python package contains, with a command line, and returns its exit status. The
/// package's entry point calls this function.
#[cfg(feature = "program")]
#[pyfunction]
#[pyo3(signature = (line, /))]
fn program(py: Python<'_>, line: Vec<std::ffi::OsString>) -> u8 {
    py.detach(|| laneway_cli::run(line))
}
