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

/// Up to this size in bytes, an object is fetched in one express request and collected in memory.
pub(crate) const SMALL_DOWNLOAD_MAX: u64 = 1 << 20;

/// Up to this size in bytes, a file is sent from memory in one request, because an upload of a single part
/// would take three requests. For a larger file, parallel parts are worth two more requests, and fewer bytes
/// are sent again after a failure.
pub(crate) const SMALL_UPLOAD_MAX: u64 = parts::PART_USUAL;

/// The number of concurrent parts of one upload, if the parts hold no memory. The dispatcher decides how many
/// of them are on the wire, and this number keeps it supplied. We simulated a path of 1 Gbit/s, 20 ms and 0.1
/// % loss with loss-based senders. For 1 GiB, four parts took 10 times the best possible time, and sixteen
/// took 3 times. With more parts at once, each is slower, so the last parts would all end late.
pub(crate) const PARTS_AT_ONCE: usize = 16;

/// Returns how many parts or slices may be under way at once if each holds its bytes in memory.
pub(crate) fn requests_at_once(cores: usize) -> usize {
    (2 * cores).clamp(2, 16)
}
