//! Faults in an answer other than in its body's bytes, and faults in the requested range.

use http::HeaderMap;
use http::header::RANGE;

/// A fault in an answer other than in its body's bytes. `wrong_answer.rs` applies it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerFault {
    Length(Option<i64>),
    WrongChecksum,
    Garbled,
    Malformed,
}

/// A fault in the handling of the requested range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RangeFault {
    Ignored,
    Shifted,
}

impl RangeFault {
    /// Applies the fault to the range in a request's headers.
    pub(crate) fn befall(self, headers: &mut HeaderMap) {
        let asked = headers.remove(RANGE);
        if self == RangeFault::Shifted
            && let Some(shifted) = asked.and_then(|range| shifted(range.to_str().ok()?)?.parse().ok())
        {
            headers.insert(RANGE, shifted);
        }
    }
}

/// Returns a `Range` that begins and ends one byte later. For a range of the last N bytes, it returns the last N-1.
fn shifted(range: &str) -> Option<String> {
    let later = |number: &str| number.parse::<u64>().ok().map(|number| number + 1);
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    Some(match (first, last) {
        ("", suffix) => format!("bytes=-{}", suffix.parse::<u64>().ok()?.saturating_sub(1).max(1)),
        (first, "") => format!("bytes={}-", later(first)?),
        (first, last) => format!("bytes={}-{}", later(first)?, later(last)?),
    })
}

/// Returns true if a header of this name contains checksums.
pub(crate) fn is_checksum(name: &str) -> bool {
    matches!(name, "x-goog-hash" | "content-md5" | "x-ms-blob-content-md5" | "x-ms-content-crc64")
        || name.strip_prefix("x-amz-checksum-").is_some_and(|rest| rest != "type")
}

/// Returns wrong checksums in the same format as `value`: `AAAAAA==`, `AAAAAA==-2`, or a list as in
/// `crc32c=AAAAAA==,md5=...`.
pub(crate) fn of_other_bytes(value: &str) -> String {
    let other = |digest: &str| match digest.as_bytes().first() {
        None => String::new(),
        Some(b'A') => format!("B{}", &digest[1..]),
        Some(_) => format!("A{}", &digest[1..]),
    };
    let items = value.split(',').map(|item| match item.split_once('=') {
        Some((name, digest)) if matches!(name.trim(), "crc32c" | "md5") => {
            format!("{name}={}", other(digest))
        }
        _ => other(item),
    });
    items.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shifted_range_begins_and_ends_a_byte_later() {
        assert_eq!(shifted("bytes=0-99").unwrap(), "bytes=1-100");
        assert_eq!(shifted("bytes=5-").unwrap(), "bytes=6-");
        assert_eq!(shifted("bytes=-7").unwrap(), "bytes=-6");
        assert_eq!(shifted("rows=1-2"), None);
    }

    #[test]
    fn checksums_of_other_bytes_are_checksums_all_the_same() {
        assert_eq!(of_other_bytes("crc32c=yZRlqg==,md5=AUFAKA=="), "crc32c=AZRlqg==,md5=BUFAKA==");
        assert_eq!(of_other_bytes("yZRlqg==-2"), "AZRlqg==-2");
        assert!(is_checksum("x-amz-checksum-crc64nvme") && !is_checksum("x-amz-checksum-type"));
    }
}
