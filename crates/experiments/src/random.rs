//! Pseudorandom numbers from a seed, so that every method gets the same bytes and the same arrival times.

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
    pub(crate) fn bits(&mut self) -> u64 {
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
}
