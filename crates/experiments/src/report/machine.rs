//! The machine of a measurement.

use crate::proc;

/// A human-readable description of a machine.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Kernel and its release.
    pub system: String,
    /// The processor's name.
    pub processor: String,
    /// Number of hardware threads.
    pub cores: usize,
    /// The size of its memory.
    pub memory: String,
}

impl Machine {
    /// Describes this machine.
    pub fn this() -> Self {
        let uname = rustix::system::uname();
        let part = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
        Self {
            system: format!("{} {}", part(uname.sysname()), part(uname.release())),
            processor: proc::processor().unwrap_or_else(|| part(uname.machine())),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory: match proc::memory_total() {
                Some(bytes) => format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)),
                None => "unknown memory".to_owned(),
            },
        }
    }
}
