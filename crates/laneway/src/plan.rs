//! Pure functions and state machines that plan requests. These choose the slices of a download, the parts of
//! an upload, and the pages that a listing requests. They also decide whether one request is enough for an
//! object.

pub(crate) mod boundaries;
pub(crate) mod keyspace;
pub(crate) mod parts;
pub(crate) mod slices;

/// Up to this size in bytes, an object is fetched in one express request and collected in memory.
pub(crate) const SMALL_DOWNLOAD_MAX: u64 = 1 << 20;

/// Up to this size in bytes, a file is sent from memory in one request, because an upload of a single part
/// would take three requests. For a larger file, parallel parts are worth two more requests, and fewer bytes
/// are sent again after a failure.
pub(crate) const SMALL_UPLOAD_MAX: u64 = parts::PART_USUAL;

/// The number of concurrent parts of one upload, if the parts hold no memory. The dispatcher decides how many
/// of these parts it sends at the same time. We simulated an upload of 1 GiB over a path of 1 Gbit/s, 20 ms
/// and 0.1 % loss, with a sender that reacts to losses. With four concurrent parts, the upload took 10 times
/// the best possible time, and with sixteen 3 times. If more parts were sent at once, each part would be
/// slower, and the last parts would end late.
pub(crate) const PARTS_AT_ONCE: usize = 16;

/// Returns how many parts or slices may be under way at the same time if each of them holds its bytes in
/// memory.
pub(crate) fn requests_at_once(cores: usize) -> usize {
    (2 * cores).clamp(2, 16)
}

/// Random numbers for tests. They come from a seed, so that a failing test can run again.
#[cfg(test)]
pub(crate) mod random {
    pub(crate) struct RandomNumbers(pub(crate) u64);

    impl RandomNumbers {
        /// Returns a number from 0 to `n` - 1, or 0 if `n` is 0.
        pub(crate) fn below(&mut self, n: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % n.max(1)
        }
    }
}
