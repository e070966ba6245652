//! Random numbers for tests. They come from a seed, so that a failing test can run again.

pub(crate) struct RandomNumbers(pub(crate) u64);

impl RandomNumbers {
    /// Returns a number from 0 to `n` - 1, or 0 if `n` is 0.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n.max(1)
    }
}
