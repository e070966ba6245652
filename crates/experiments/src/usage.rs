//! What a process used: processor time and memory.

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// What a process used while a run lasted.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Usage {
    /// Processor seconds, of all threads, in the kernel and outside.
    pub cpu_s: f64,
    /// The most memory that was resident at once, in bytes; `None` where the system doesn't tell.
    pub peak_bytes: Option<u64>,
}

/// Measures this process from its start on.
pub(crate) struct Meter {
    cpu_s: f64,
}

impl Meter {
    pub(crate) fn start() -> Self {
        Self { cpu_s: cpu_s() }
    }

    pub(crate) fn stop(&self) -> Usage {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        Usage { cpu_s: cpu_s() - self.cpu_s, peak_bytes: peak_in(&status) }
    }
}

/// What `getrusage` says too, but to the nanosecond.
fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The high-water mark of resident memory. `getrusage` is of no use for it: what it says of a child that a large process
/// started is at least that process's size.
fn peak_in(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_read_in_kibibytes() {
        assert_eq!(peak_in("Name:\tx\nVmPeak:\t  9 kB\nVmHWM:\t    1234 kB\n"), Some(1234 * 1024));
        assert_eq!(peak_in(""), None);
    }

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
