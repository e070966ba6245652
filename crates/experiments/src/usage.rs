//! The resource usage of a process: processor time and memory.

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::proc;

/// The resource usage of a process during a run.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Usage {
    /// Processor seconds of all threads, in user space and in the kernel.
    pub cpu_s: f64,
    /// Peak resident memory in bytes since the process started, or `None` if the system doesn't report it.
    pub peak_bytes: Option<u64>,
}

/// Measures this process's processor time since the meter was created, and its peak memory since the process started.
pub(crate) struct Meter {
    cpu_s: f64,
}

impl Meter {
    pub(crate) fn start() -> Self {
        Self { cpu_s: cpu_s() }
    }

    pub(crate) fn stop(&self) -> Usage {
        Usage { cpu_s: cpu_s() - self.cpu_s, peak_bytes: proc::memory_peak() }
    }
}

/// Returns the processor time of this process. The time is the same as from `getrusage`, but with a resolution of nanoseconds.
fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_processor_time() {
        let meter = Meter::start();
        let mut x = 1u64;
        while meter.stop().cpu_s == 0.0 {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
        assert!(meter.stop().cpu_s > 0.0);
    }
}
