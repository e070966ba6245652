//! The resource usage of a process, and facts about the machine from Linux's `/proc`. On other systems, the functions
//! that read `/proc` return `None`, and reports show the fact as unknown.

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

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
        Usage { cpu_s: cpu_s() - self.cpu_s, peak_bytes: memory_peak() }
    }
}

/// Returns the processor time of this process. The time is the same as from `getrusage`, but with a resolution of nanoseconds.
fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Returns the processor's name.
pub(crate) fn processor() -> Option<String> {
    let text = read("/proc/cpuinfo")?;
    field(&text, "model name").filter(|name| !name.is_empty()).map(str::to_owned)
}

/// Returns the machine's memory in bytes.
pub(crate) fn memory_total() -> Option<u64> {
    kibibytes(&read("/proc/meminfo")?, "MemTotal")
}

/// Returns the bytes of memory that programs can still allocate, as the kernel estimates them.
pub(crate) fn memory_available() -> Option<u64> {
    kibibytes(&read("/proc/meminfo")?, "MemAvailable")
}

/// Returns this process's peak resident memory in bytes. `getrusage` can't be used for this, because for the child of a
/// large process it reports at least the parent's size.
fn memory_peak() -> Option<u64> {
    kibibytes(&read("/proc/self/status")?, "VmHWM")
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// Returns the text after `name:` in the first line that begins with it.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(key, _)| key.trim_end() == name).map(|(_, value)| value.trim())
}

fn kibibytes(text: &str, name: &str) -> Option<u64> {
    field(text, name)?.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
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

    #[test]
    fn memory_is_read_in_kibibytes() {
        let text = "MemTotal:       24689764 kB\nMemFree:        21000000 kB\nMemAvailable:   22000000 kB\n";
        assert_eq!(kibibytes(text, "MemAvailable"), Some(22_000_000 * 1024));
        assert_eq!(kibibytes("Name:\tx\nVmPeak:\t  9 kB\nVmHWM:\t    1234 kB\n", "VmHWM"), Some(1234 * 1024));
        assert_eq!((kibibytes("MemTotal: 1 kB\n", "MemAvailable"), kibibytes("", "VmHWM")), (None, None));
    }

    #[test]
    fn a_field_is_known_by_its_whole_name() {
        assert_eq!(
            field("processor\t: 0\nmodel\t: 4\nmodel name\t: Fast 9000\n", "model name"),
            Some("Fast 9000")
        );
        assert_eq!(field("model name\t:\n", "model name"), Some(""));
        assert_eq!(field("MemTotal: 1 kB", "Mem"), None);
    }
}
