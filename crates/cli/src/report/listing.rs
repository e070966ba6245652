//! The lines of `ls`.

use std::time::SystemTime;

use jiff::Timestamp;

use laneway_quantity as quantity;

/// Width of the size column, as in `gcloud storage ls -l`.
const SIZE_WIDTH: usize = 10;
/// Length of a time in UTC, to the second.
const TIME_WIDTH: usize = 20;

/// Returns the line of an object in a long listing: size, time of the last change in UTC, URL.
pub(crate) fn object(size: u64, updated: Option<SystemTime>, url: &str, readable: bool) -> String {
    let size = if readable { quantity::readable_size(size) } else { size.to_string() };
    let time = updated.and_then(timestamp).unwrap_or_default();
    format!("{size:>SIZE_WIDTH$}  {time:<TIME_WIDTH$}  {url}")
}

/// The suffix after the URL of a delete marker.
pub(crate) const DELETE_MARKER: &str = "  (delete marker)";

/// Returns the line of a delete marker in a long listing. It has no size.
pub(crate) fn delete_marker(updated: Option<SystemTime>, url: &str) -> String {
    let time = updated.and_then(timestamp).unwrap_or_default();
    format!("{:>SIZE_WIDTH$}  {time:<TIME_WIDTH$}  {url}{DELETE_MARKER}", "-")
}

/// Returns the line of a prefix in a long listing, with its URL below the others'.
pub(crate) fn prefix(url: &str) -> String {
    format!("{:1$}{url}", "", SIZE_WIDTH + 2 + TIME_WIDTH + 2)
}

/// Returns a line of `du`: bytes and their URL, in the form of `gsutil du` and `gcloud storage du`.
pub(crate) fn usage(bytes: u64, what: &str, readable: bool) -> String {
    let size = if readable { quantity::readable_size(bytes) } else { bytes.to_string() };
    format!("{size:<11}  {what}")
}

/// Returns the last line of a long listing.
pub(crate) fn total(objects: u64, bytes: u64) -> String {
    let objects = quantity::count(objects, "object", "objects");
    format!("TOTAL: {objects}, {bytes} bytes ({})", quantity::readable_size(bytes))
}

/// Returns a time in UTC to the second, in the form of RFC 3339.
pub(crate) fn timestamp(time: SystemTime) -> Option<String> {
    let whole = Timestamp::from_second(Timestamp::try_from(time).ok()?.as_second()).ok()?;
    Some(whole.to_string())
}

/// Returns a name that is safe on a terminal: control characters, which would command the terminal, are
/// escaped. Names in a pipe are unchanged.
pub(crate) fn printable(name: &str) -> String {
    let mut shown = String::with_capacity(name.len());
    for c in name.chars() {
        if c.is_control() { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn a_long_listing_has_the_columns_of_gcloud() {
        let updated = UNIX_EPOCH + Duration::from_millis(1_700_000_000_900);
        assert_eq!(
            object(4700, Some(updated), "gs://b/k", false),
            "      4700  2023-11-14T22:13:20Z  gs://b/k"
        );
        assert_eq!(
            object(4700, Some(updated), "gs://b/k", true),
            "   4.59KiB  2023-11-14T22:13:20Z  gs://b/k"
        );
        assert_eq!(object(1, None, "gs://b/k", false), "         1                        gs://b/k");
        assert_eq!(prefix("gs://b/p/"), "                                  gs://b/p/");
        assert_eq!(total(2, 9400), "TOTAL: 2 objects, 9400 bytes (9.18KiB)");
    }

    #[test]
    fn a_key_cannot_command_the_terminal() {
        assert_eq!(printable("gs://b/a\u{1b}[2J\n"), "gs://b/a\\u{1b}[2J\\n");
        assert_eq!(printable("gs://b/ä b"), "gs://b/ä b");
    }
}
