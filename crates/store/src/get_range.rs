//! Which bytes of an object are asked for.

use std::ops::{Range, RangeFrom};

use http::HeaderValue;

/// A range of an object's bytes, as its reader knows it: the object's size may be unknown.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum GetRange {
    /// Bytes from start to before end. An end beyond the object's is cut there.
    Bounded(Range<u64>),
    /// The bytes from this one on.
    From(u64),
    /// So many bytes at the end; all of an object that is no longer than that.
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
    /// The bytes that it is of an object of this size, in bytes. It is empty at the object's end where the object has none
    /// of them.
    pub fn within(&self, size: u64) -> Range<u64> {
        let range = match self {
            Self::Bounded(range) => range.start..range.end.min(size),
            Self::From(start) => *start..size,
            Self::Last(len) => size.saturating_sub(*len)..size,
        };
        range.start.min(range.end)..range.end
    }

    /// Whether it holds no byte of any object.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Bounded(range) => range.is_empty(),
            Self::From(_) => false,
            Self::Last(len) => *len == 0,
        }
    }

    /// Whether of an object without bytes it is the whole, as whoever asks for it means it.
    pub(crate) fn is_whole_of_nothing(&self) -> bool {
        match self {
            Self::Bounded(Range { start, .. }) | Self::From(start) => *start == 0,
            Self::Last(_) => true,
        }
    }

    /// The `Range` header of one that [isn't empty](Self::is_empty).
    pub(crate) fn header(&self) -> HeaderValue {
        let value = match self {
            Self::Bounded(range) => format!("bytes={}-{}", range.start, range.end.saturating_sub(1)),
            Self::From(start) => format!("bytes={start}-"),
            // What is longer than any object can be says as much, and more digits than a server may read.
            Self::Last(len) => format!("bytes=-{}", len.min(&(i64::MAX as u64))),
        };
        // Digits, an equals sign and a dash make a header value.
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
