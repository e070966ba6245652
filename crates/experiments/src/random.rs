//! Pseudorandom numbers from a seed, so that every method gets the same bytes and times, and arrival times that are
//! drawn from a Poisson process.

use std::ops::Range;

/// The increment of splitmix64's state.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The generator splitmix64. It makes a gigabyte in half a second, and compression doesn't make its output smaller.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the bytes in `range` of the [`content`](Self::content) that a new generator with this seed makes.
    pub(crate) fn content_at(seed: u64, range: &Range<u64>) -> Vec<u8> {
        let before = range.start % 8;
        let mut random = Self(seed.wrapping_add((range.start / 8).wrapping_mul(STEP)));
        random.content(before + range.end - range.start).split_off(before as usize)
    }

    /// Returns the next 64 bits.
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns the next number in 0..1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns the next number from `low` to `high`, both inclusive.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + (self.unit() * (high - low + 1) as f64) as u64
    }

    /// Returns `len` bytes.
    pub(crate) fn content(&mut self, len: u64) -> Vec<u8> {
        let mut content = Vec::with_capacity(len as usize + 8);
        while (content.len() as u64) < len {
            content.extend_from_slice(&self.bits().to_le_bytes());
        }
        content.truncate(len as usize);
        content
    }
}

/// An endless iterator of times in seconds from the start, on average `rate` per second. The same seed yields the same
/// times. A request arrives at its time even if earlier ones aren't complete.
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
    fn a_seed_gives_the_same_numbers_within_their_bounds() {
        let (mut a, mut b) = (Random::new(7), Random::new(7));
        let drawn: Vec<u64> = (0..1000).map(|_| a.between(3, 5)).collect();
        assert_eq!(drawn, (0..1000).map(|_| b.between(3, 5)).collect::<Vec<_>>());
        assert!([3, 4, 5].iter().all(|n| drawn.contains(n)) && drawn.iter().all(|n| (3..=5).contains(n)));
        assert_eq!(a.content(13).len(), 13);
        let content = Random::new(7).content(100);
        assert_eq!(Random::content_at(7, &(0..100)), content);
        assert_eq!(Random::content_at(7, &(21..98)), content[21..98]);
    }

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
