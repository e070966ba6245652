//! The range of an object's bytes that a download requests.

use std::ops::{Range, RangeFrom};

use http::HeaderValue;

/// A range of bytes of an object whose size may be unknown.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum GetRange {
    /// The bytes from `start` up to, but not including, `end`. If the object ends earlier, the range ends there.
    Bounded(Range<u64>),
    /// The bytes from this offset to the end.
    From(u64),
    /// This many bytes at the end of the object. A shorter object is returned whole.
    Last(u64),
}

impl From<Range<u64>> for GetRange {
    fn from(range: Range<u64>) -> Self {
        Self::Bounded(range)
    }
}

impl From<RangeFrom<u64>> for GetRange {
    fn from(range: RangeFrom<u64>) -> Self {
        Self::From(range.start)
    }
}

impl GetRange {
    /// Returns the range as byte offsets in an object of this size. If the object has none of the bytes, the result is
    /// an empty range at the object's end.
    pub fn within(&self, size: u64) -> Range<u64> {
        let range = match self {
            Self::Bounded(range) => range.start..range.end.min(size),
            Self::From(start) => *start..size,
            Self::Last(len) => size.saturating_sub(*len)..size,
        };
        range.start.min(range.end)..range.end
    }

    /// Returns true if the range is empty for objects of every size.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Bounded(range) => range.is_empty(),
            Self::From(_) => false,
            Self::Last(len) => *len == 0,
        }
    }

    /// Returns true if this range of an empty object means the whole object. If a store answers 416 to such a range,
    /// that isn't an error.
    pub(crate) fn is_whole_of_nothing(&self) -> bool {
        match self {
            Self::Bounded(Range { start, .. }) | Self::From(start) => *start == 0,
            Self::Last(_) => true,
        }
    }

    /// Returns the `Range` header of a range that [isn't empty](Self::is_empty).
    pub(crate) fn header(&self) -> HeaderValue {
        let value = match self {
            Self::Bounded(range) => format!("bytes={}-{}", range.start, range.end.saturating_sub(1)),
            Self::From(start) => format!("bytes={start}-"),
            // Some servers fail to parse larger numbers, and no object is longer than this.
            Self::Last(len) => format!("bytes=-{}", len.min(&(i64::MAX as u64))),
        };
        // The value has only ASCII letters, digits, `=` and `-`, so the conversion never fails.
        HeaderValue::try_from(value).unwrap_or_else(|_| HeaderValue::from_static("bytes=0-"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_says_which_bytes_it_is_of_an_object() {
        let table = [
            (GetRange::from(2..5), 2..5, "bytes=2-4"),
            (GetRange::from(8..100), 8..10, "bytes=8-99"),
            (GetRange::from(7..), 7..10, "bytes=7-"),
            (GetRange::Last(3), 7..10, "bytes=-3"),
            (GetRange::Last(30), 0..10, "bytes=-30"),
            (GetRange::Last(u64::MAX), 0..10, "bytes=-9223372036854775807"),
            (GetRange::from(10..12), 10..10, "bytes=10-11"),
            (GetRange::from(12..), 10..10, "bytes=12-"),
        ];
        for (range, bytes, header) in table {
            assert_eq!((range.within(10), range.header().to_str().ok()), (bytes, Some(header)));
            assert!(!range.is_empty());
        }
        assert!(GetRange::from(5..5).is_empty() && GetRange::Last(0).is_empty());
    }

    #[test]
    fn an_object_without_bytes_is_wholly_in_what_begins_at_its_start() {
        for whole in [GetRange::from(0..9), GetRange::from(0..), GetRange::Last(9)] {
            assert!(whole.is_whole_of_nothing() && whole.within(0) == (0..0), "{whole:?}");
        }
        assert!(!GetRange::from(1..9).is_whole_of_nothing() && !GetRange::from(1..).is_whole_of_nothing());
    }
}
