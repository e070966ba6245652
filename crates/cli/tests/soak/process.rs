//! What this process takes: the store and the library's clients are both in it.

use std::fmt;
use std::fs;
use std::time::{Duration, Instant};

/// How often a sample is taken.
const EVERY: Duration = Duration::from_secs(1);
/// What the last quarter may take more than the second: a part, and what one object more or less makes.
const RESIDENT_GROWTH: f64 = 1.2;
const RESIDENT_SLACK_KIB: u64 = 48 << 10;
const DESCRIPTORS_SLACK: u64 = 24;
const THREADS_SLACK: u64 = 24;

#[derive(Clone, Copy, Debug)]
struct Sample {
    resident_kib: u64,
    descriptors: u64,
    threads: u64,
}

/// What was taken, second by second.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    all: Vec<Sample>,
    last: Option<Instant>,
}

impl Samples {
    /// Takes a sample, if it is time and the system tells.
    pub(crate) fn take(&mut self) {
        if self.last.is_some_and(|last| last.elapsed() < EVERY) {
            return;
        }
        self.last = Some(Instant::now());
        let Ok(status) = fs::read_to_string("/proc/self/status") else { return };
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
        };
        let descriptors = fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64);
        self.all.push(Sample { resident_kib: field("VmRSS:"), descriptors, threads: field("Threads:") });
    }

    /// The medians of the second and the last quarter: the first one is for what is made once.
    fn quarters(&self, of: impl Fn(&Sample) -> u64) -> (u64, u64) {
        let quarter = self.all.len() / 4;
        let median = |samples: &[Sample]| {
            let mut values: Vec<u64> = samples.iter().map(&of).collect();
            values.sort_unstable();
            values.get(values.len() / 2).copied().unwrap_or(0)
        };
        (median(&self.all[quarter..2 * quarter]), median(&self.all[3 * quarter..]))
    }

    /// Panics where anything has grown.
    #[track_caller]
    pub(crate) fn are_flat(&self) {
        let (early, late) = self.quarters(|sample| sample.resident_kib);
        let bound = (early as f64 * RESIDENT_GROWTH) as u64 + RESIDENT_SLACK_KIB;
        assert!(late <= bound, "memory grows: {self}");
        let (early, late) = self.quarters(|sample| sample.descriptors);
        assert!(late <= early + DESCRIPTORS_SLACK, "descriptors grow: {self}");
        let (early, late) = self.quarters(|sample| sample.threads);
        assert!(late <= early + THREADS_SLACK, "threads grow: {self}");
    }
}

impl fmt::Display for Samples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (early, late) = self.quarters(|sample| sample.resident_kib);
        write!(
            f,
            "{} samples, second and last quarter: {} and {} MiB, ",
            self.all.len(),
            early >> 10,
            late >> 10
        )?;
        let (early, late) = self.quarters(|sample| sample.descriptors);
        write!(f, "{early} and {late} descriptors, ")?;
        let (early, late) = self.quarters(|sample| sample.threads);
        write!(f, "{early} and {late} threads")
    }
}

#[test]
fn what_grows_is_noticed_and_what_wavers_is_not() {
    let samples = |resident: fn(u64) -> u64| Samples {
        all: (0..400)
            .map(|n| Sample { resident_kib: resident(n), descriptors: 40 + n % 9, threads: 9 })
            .collect(),
        last: None,
    };
    samples(|n| 400_000 + n % 7 * 10_000).are_flat();
    assert!(std::panic::catch_unwind(|| samples(|n| 100_000 + n * 1000).are_flat()).is_err());
}
