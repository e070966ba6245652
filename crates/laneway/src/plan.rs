//! Plans, as pure functions and state machines. They choose the slices of a download, the parts of an upload,
//! and the pages that a listing requests. They also decide whether one request is enough for an object.

pub(crate) mod boundaries;
pub(crate) mod copies;
pub(crate) mod kept_parts;
pub(crate) mod keyspace;
pub(crate) mod parts;
#[cfg(test)]
pub(crate) mod random;
pub(crate) mod resume;
pub(crate) mod slices;

/// Up to this size, an object is fetched in one express request and collected in memory.
pub(crate) const SMALL_DOWNLOAD_MAX: u64 = 1 << 20;

/// Up to this size, a file is sent in one request from memory, because a single part would cost three
/// requests. Above it, parallel parts are worth two more requests, and a failure repeats less.
pub(crate) const SMALL_UPLOAD_MAX: u64 = parts::PART_USUAL;

/// Parts of one upload that are under way at once if they hold no memory. The dispatcher decides how many are
/// on the wire; this number keeps it supplied. We simulated a path of 1 Gbit/s, 20 ms and 0.1 % loss with
/// loss-based senders. For 1 GiB, four parts took 10 times the best possible time, and sixteen took 3 times.
/// With more parts at once, each is slower, so the last parts would all end late.
pub(crate) const PARTS_AT_ONCE: usize = 16;

/// Returns how many parts or slices may be under way at once if each holds its bytes in memory.
pub(crate) fn requests_at_once(cores: usize) -> usize {
    (2 * cores).clamp(2, 16)
}
