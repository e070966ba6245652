//! Plans, as pure functions and state machines: how a download is sliced, who takes which slice, how an upload is cut
//! into parts, what goes as one request, and how a listing goes through the keys of a bucket.

pub(crate) mod boundaries;
pub(crate) mod copies;
pub(crate) mod kept_parts;
pub(crate) mod keyspace;
pub(crate) mod parts;
#[cfg(test)]
pub(crate) mod random;
pub(crate) mod resume;
pub(crate) mod slices;

/// Up to this many bytes an object is fetched in one express request and collected in memory.
pub(crate) const SMALL_DOWNLOAD_MAX: u64 = 1 << 20;

/// Up to this many bytes a file is sent in one request from memory: what would be a single part costs no three requests.
/// Above it, parts in parallel pay for their two more, and a failure repeats less.
pub(crate) const SMALL_UPLOAD_MAX: u64 = parts::PART_USUAL;

/// Parts of one upload that are under way at once where they cost no memory. How many of them really are on the wire is the dispatcher's
/// decision; this keeps it supplied. From senders that go by loss a simulated path of 1 Gbit/s, 20 ms and .1 % loss took 10 times the least for
/// 1 GiB with four, 3 times with these; the last of more would all end late.
pub(crate) const PARTS_AT_ONCE: usize = 16;

/// Parts or slices that may be under way at once where each holds its bytes in memory.
pub(crate) fn requests_at_once(cores: usize) -> usize {
    (2 * cores).clamp(2, 16)
}
