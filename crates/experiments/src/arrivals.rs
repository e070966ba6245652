//! Arrival times of small requests, drawn from a Poisson process. A request arrives at its time even if earlier ones
//! aren't complete.

use crate::random::Random;

/// An endless iterator of times in seconds from the start, on average `rate` per second. The same seed yields the same
/// times.
#[derive(Clone, Debug)]
pub(crate) struct Arrivals {
    random: Random,
    rate: f64,
    now: f64,
}

impl Arrivals {
    pub(crate) fn new(rate: f64, seed: u64) -> Self {
        Self { random: Random::new(seed), rate, now: 0.0 }
    }
}

impl Iterator for Arrivals {
    type Item = f64;

    fn next(&mut self) -> Option<f64> {
        // The times between arrivals of a Poisson process have an exponential distribution. The logarithm of `1 -
        // unit()` is finite, because `unit()` is never 1.
        self.now += -(1.0 - self.random.unit()).ln() / self.rate;
        Some(self.now)
    }
}

/// Parses a rate of arrivals such as `50/s`.
///
/// # Errors
/// Fails if the text isn't a positive number of arrivals per second.
pub fn parse_arrivals(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix("/s").unwrap_or(text).trim();
    let rate = number.parse::<f64>().ok().filter(|rate| rate.is_finite() && *rate > 0.0 && *rate <= 10_000.0);
    rate.ok_or_else(|| format!("{text:?} isn't a rate of arrivals; write it as 50/s, at most 10000/s"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_come_at_their_rate_and_not_in_step() {
        let times: Vec<f64> = Arrivals::new(50.0, 1).take(10_000).collect();
        assert!(times.is_sorted() && times[0] > 0.0);
        assert!((times[9_999] - 200.0).abs() < 8.0, "the last arrival is after {} s", times[9_999]);
        // In a Poisson process, 1 - 1/e = 63 % of the gaps are shorter than the mean.
        let short = times.windows(2).filter(|pair| pair[1] - pair[0] < 0.02).count();
        assert!((6100..6550).contains(&short), "{short} gaps are shorter than the mean");
        assert_eq!(times[..9], Arrivals::new(50.0, 1).take(9).collect::<Vec<_>>()[..]);
        assert_ne!(times[0], Arrivals::new(50.0, 2).next().unwrap());
    }

    #[test]
    fn a_rate_is_a_number_a_second() {
        assert_eq!((parse_arrivals("50/s"), parse_arrivals("0.5")), (Ok(50.0), Ok(0.5)));
        for wrong in ["", "0/s", "-1/s", "inf", "50/m", "NaN", "1e9/s"] {
            assert!(parse_arrivals(wrong).is_err(), "{wrong:?} is accepted as a rate");
        }
    }
}
