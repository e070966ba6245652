//! [`ByteRange`], a range of an object's bytes.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use laneway_store::GetRange;

use crate::Error;

/// A range of an object's bytes: from one offset to another, from an offset to the end, or the last bytes. It
/// is never empty and never reversed.
///
/// Its text form is `A-B` (both inclusive), `A-`, or `-N` for the last N.
///
/// ```
/// use laneway::ByteRange;
/// assert_eq!(ByteRange::between(0..100)?, "0-99".parse()?);
/// assert_eq!(ByteRange::last(8)?.within(100), Some(92..100));
/// assert!(ByteRange::between(7..7).is_err());
/// # Ok::<(), laneway::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ByteRange(Bounds);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Bounds {
    /// The offset of the first byte, and the offset after the last byte. The second is always larger.
    Between(u64, u64),
    From(u64),
    /// The number of bytes at the end of the object, at least 1.
    Last(u64),
}

impl ByteRange {
    /// Makes a range from the offset `range.start` up to, but not including, `range.end`. If it reaches
    /// beyond the object's end, a read returns the bytes up to the end.
    ///
    /// # Errors
    /// `ErrorKind::Usage` if the range is empty or reversed.
    pub fn between(range: Range<u64>) -> Result<Self, Error> {
        match range.start < range.end {
            true => Ok(Self(Bounds::Between(range.start, range.end))),
            false => Err(Error::usage(format!("{}..{}", range.start, range.end), "the range holds no byte")),
        }
    }

    /// Makes a range from an offset to the object's end.
    pub const fn starting_at(first: u64) -> Self {
        Self(Bounds::From(first))
    }

    /// Makes a range of the last bytes of an object, or of all bytes if there are fewer.
    ///
    /// # Errors
    /// `ErrorKind::Usage` for 0 bytes.
    pub fn last(bytes: u64) -> Result<Self, Error> {
        match bytes {
            0 => Err(Error::usage("-0", "the range holds no byte")),
            _ => Ok(Self(Bounds::Last(bytes))),
        }
    }

    /// Returns the range in the form that a store's GET takes.
    pub(crate) fn asked(self) -> GetRange {
        match self.0 {
            Bounds::Between(from, to) => GetRange::Bounded(from..to),
            Bounds::From(first) => GetRange::From(first),
            Bounds::Last(bytes) => GetRange::Last(bytes),
        }
    }

    /// Returns both offsets, or `None` if they depend on the object's size.
    pub(crate) fn offsets(self) -> Option<Range<u64>> {
        match self.0 {
            Bounds::Between(from, to) => Some(from..to),
            Bounds::From(_) | Bounds::Last(_) => None,
        }
    }

    /// Returns whether the range covers every byte of any object.
    pub(crate) fn is_whole(self) -> bool {
        self.0 == Bounds::From(0)
    }

    /// Returns the offsets of the range in an object of `size` bytes, up to the object's end.
    ///
    /// Returns `None` if the range starts at or after the object's end. If the object is empty, a range that
    /// starts at 0 is valid, and the result is empty.
    pub fn within(self, size: u64) -> Option<Range<u64>> {
        let range = match self.0 {
            Bounds::Between(from, to) => from..to.min(size),
            Bounds::From(first) => first..size,
            Bounds::Last(n) => size.saturating_sub(n)..size,
        };
        (range.start < size || (size == 0 && range.start == 0)).then_some(range)
    }
}

impl FromStr for ByteRange {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || Error::usage(text, "a range must be A-B, A- or -N, in bytes");
        let (first, last) = text.split_once('-').ok_or_else(wrong)?;
        let number = |digits: &str| match digits.bytes().all(|b| b.is_ascii_digit()) {
            true => digits.parse::<u64>().map_err(|_| wrong()),
            false => Err(wrong()),
        };
        match (first, last) {
            ("", "") => Err(wrong()),
            ("", n) => Self::last(number(n)?),
            (a, "") => Ok(Self::starting_at(number(a)?)),
            (a, b) => match (number(a)?, number(b)?) {
                // No object has 2^64 bytes, so even the saturated end lies after the last byte of every
                // object.
                (a, b) if a <= b => Self::between(a..b.saturating_add(1)),
                _ => Err(Error::usage(text, "the range ends before it begins")),
            },
        }
    }
}

impl fmt::Display for ByteRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Bounds::Between(from, to) => write!(f, "{from}-{}", to - 1),
            Bounds::From(first) => write!(f, "{first}-"),
            Bounds::Last(n) => write!(f, "-{n}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between(from: u64, to: u64) -> ByteRange {
        ByteRange::between(from..to).unwrap()
    }

    #[test]
    fn ranges_read_as_they_are_written() {
        for text in ["0-0", "5-9", "7-", "-3"] {
            assert_eq!(text.parse::<ByteRange>().unwrap().to_string(), text);
        }
        for text in ["", "-", "5", "9-5", "a-b", "+1-2", "1--2", "99999999999999999999-"] {
            assert!(text.parse::<ByteRange>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_range_that_is_empty_or_reversed_cannot_be_made() {
        let reversed = Range { start: 9, end: 7 };
        assert!(ByteRange::between(7..7).is_err() && ByteRange::between(reversed).is_err());
        assert!(ByteRange::last(0).is_err() && "-0".parse::<ByteRange>().is_err());
    }

    #[test]
    fn the_largest_offsets_overflow_nothing() {
        let max = u64::MAX;
        for text in [format!("0-{max}"), format!("{}-{max}", max - 2), format!("{max}-"), format!("-{max}")] {
            let range: ByteRange = text.parse().unwrap();
            assert!(range.within(10).is_none_or(|range| range == (0..10)), "{text}");
            assert!(!range.to_string().is_empty());
        }
        // A range with this last byte would end at 2^64, which doesn't fit into a `u64`.
        assert!(format!("{max}-{max}").parse::<ByteRange>().is_err());
    }

    #[test]
    fn a_range_is_cut_off_at_the_end_and_refused_beyond_it() {
        assert_eq!(between(2, 100).within(10), Some(2..10));
        assert_eq!(between(0, u64::MAX).within(10), Some(0..10));
        assert_eq!(ByteRange::starting_at(10).within(10), None);
        assert_eq!(ByteRange::last(99).unwrap().within(10), Some(0..10));
        assert_eq!(ByteRange::starting_at(0).within(0), Some(0..0));
    }
}
