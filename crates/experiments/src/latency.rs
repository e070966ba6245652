//! Latencies of many requests, and what is said of them.

use serde::{Deserialize, Serialize};

/// Seconds, sorted.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Latencies(Vec<f64>);

impl Latencies {
    /// Takes them in any order.
    pub fn new(mut seconds: Vec<f64>) -> Self {
        seconds.sort_by(f64::total_cmp);
        Self(seconds)
    }

    /// The smallest that at least `percent` of them don't exceed (the nearest-rank method, which invents no value); 0
    /// where there are none.
    pub fn percentile(&self, percent: f64) -> f64 {
        let rank = (percent / 100.0 * self.0.len() as f64).ceil().max(1.0) as usize;
        self.0.get(rank - 1).or(self.0.last()).copied().unwrap_or(0.0)
    }

    /// The largest; 0 where there are none.
    pub fn max(&self) -> f64 {
        self.0.last().copied().unwrap_or(0.0)
    }

    /// All of them, the smallest first.
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
