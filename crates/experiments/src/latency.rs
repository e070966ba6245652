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

/// The median of several runs by some measure; of an even number, the larger of the two in the middle.
pub(crate) fn median_by<T>(mut runs: Vec<T>, measure: impl Fn(&T) -> f64) -> Option<T> {
    runs.sort_by(|a, b| measure(a).total_cmp(&measure(b)));
    let middle = runs.len() / 2;
    runs.into_iter().nth(middle)
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

    #[test]
    fn of_an_even_number_of_runs_the_slower_one_in_the_middle_counts() {
        assert_eq!(median_by(vec![3.0, 1.0, 2.0], |x| *x), Some(2.0));
        assert_eq!(median_by(vec![3.0, 1.0], |x| *x), Some(3.0));
        assert_eq!(median_by(Vec::<f64>::new(), |x| *x), None);
    }
}
