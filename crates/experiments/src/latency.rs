//! Latencies of many requests, and their percentiles.

use serde::{Deserialize, Serialize};

/// Latencies in seconds, sorted.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Latencies(Vec<f64>);

impl Latencies {
    /// Sorts latencies, which may come in any order.
    pub fn new(mut seconds: Vec<f64>) -> Self {
        seconds.sort_by(f64::total_cmp);
        Self(seconds)
    }

    /// Returns the smallest latency that at least `percent` of the latencies don't exceed, or 0 if there are none.
    /// This is the nearest-rank method, so the result is a latency that occurred.
    pub fn percentile(&self, percent: f64) -> f64 {
        let rank = (percent / 100.0 * self.0.len() as f64).ceil().max(1.0) as usize;
        self.0.get(rank - 1).or(self.0.last()).copied().unwrap_or(0.0)
    }

    /// Returns the largest latency, or 0 if there are none.
    pub fn max(&self) -> f64 {
        self.0.last().copied().unwrap_or(0.0)
    }

    /// Returns all latencies in ascending order.
    pub fn sorted(&self) -> &[f64] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occurred() {
        let latencies = Latencies::new((1..=100).rev().map(f64::from).collect());
        assert_eq!(
            [50.0, 99.0, 99.5, 100.0, 0.0].map(|p| latencies.percentile(p)),
            [50.0, 99.0, 100.0, 100.0, 1.0]
        );
        assert_eq!(latencies.max(), 100.0);
        let few = Latencies::new(vec![0.3, 0.1, 0.2]);
        assert_eq!([50.0, 99.0].map(|p| few.percentile(p)), [0.2, 0.3]);
        let one = Latencies::new(vec![7.0]);
        assert_eq!([1.0, 50.0, 99.0].map(|p| one.percentile(p)), [7.0; 3]);
        assert_eq!((Latencies::default().percentile(50.0), Latencies::default().max()), (0.0, 0.0));
    }
}
