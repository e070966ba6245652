//! What a client is asked to do.

mod check;

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use laneway_store::PutOptions;

use crate::{Error, Gzip, Location};

/// Copies sources to a destination: uploads, downloads, copies between stores, each as the two ends say.
#[derive(Clone, Debug)]
pub struct CopyRequest {
    /// What is copied. Keys with `*`, `?` or `[` are patterns.
    pub sources: Vec<Location>,
    /// Where to. Whether it is a folder is decided by its text (a bucket's root, a trailing slash); only of a local
    /// one it is looked up.
    pub destination: Location,
    /// Whether directories and prefixes are copied with what they hold.
    pub recursive: bool,
    /// Whether each source is removed once its copy is verified.
    pub remove_source: bool,
    /// Only tell what would be done.
    pub dry_run: bool,
    /// Leave destinations that exist as they are.
    pub no_clobber: bool,
    /// Flush files and their directories to disk before an item counts as done.
    pub durable: bool,
    /// When the job is cancelled, leave what has come of large objects beside their destinations, and in the store what
    /// it has of large files ([`Settings::upload_journals`](crate::Settings::upload_journals)), where the same request
    /// goes on with it. What a failure of the network or the end of the process interrupts is kept in any case.
    pub keep_partial: bool,
    /// Enter directories through symbolic links too. Links to files are followed in any case.
    pub follow_symlinks: bool,
    /// What new objects are to be; an empty content type is guessed from the name.
    pub put: PutOptions,
    /// Which local files are compressed on their way into a store.
    pub gzip: Gzip,
    /// How many bytes a source will bring whose length can't be seen: standard input, a pipe. Only needed where they are
    /// more than 156 GiB and the store wants parts of one size, or more than 6 TiB.
    pub expect_size: Option<u64>,
}

impl CopyRequest {
    /// A plain copy.
    pub fn new(sources: Vec<Location>, destination: Location) -> Self {
        Self {
            sources,
            destination,
            recursive: false,
            remove_source: false,
            dry_run: false,
            no_clobber: false,
            durable: false,
            keep_partial: false,
            follow_symlinks: false,
            put: PutOptions::default(),
            gzip: Gzip::default(),
            expect_size: None,
        }
    }
}

/// Removes objects.
#[derive(Clone, Debug)]
pub struct RemoveRequest {
    /// Objects, patterns, or with [`recursive`](Self::recursive) prefixes.
    pub targets: Vec<Location>,
    /// Whether prefixes are removed with everything under them.
    pub recursive: bool,
    /// Only tell what would be removed.
    pub dry_run: bool,
}

/// Lists objects.
#[derive(Clone, Debug)]
pub struct ListRequest {
    /// A prefix, an object, a pattern; without a bucket, the buckets.
    pub at: Location,
    /// Whether everything under the prefix is listed instead of one level.
    pub recursive: bool,
}

/// Reads an object, or a range of it, in order.
#[derive(Clone, Debug)]
pub struct ReadRequest {
    /// The object.
    pub at: Location,
    /// Which bytes; `None` for all.
    pub range: Option<ByteRange>,
}

/// Bytes of an object: `A-B` (both inclusive), `A-`, or `-N` for the last N.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ByteRange {
    /// From the first to the last, inclusive.
    Between(u64, u64),
    /// From an offset to the end.
    From(u64),
    /// The last so many.
    Last(u64),
}

impl ByteRange {
    /// The bytes that are meant in an object of `size` bytes, cut off at its end.
    ///
    /// `None` when the range starts at or beyond the end of an object that isn't empty.
    pub fn within(self, size: u64) -> Option<Range<u64>> {
        let range = match self {
            Self::Between(first, last) => first..last.saturating_add(1).min(size),
            Self::From(first) => first..size,
            Self::Last(n) => size.saturating_sub(n)..size,
        };
        (range.start < size || (size == 0 && range.start == 0)).then_some(range)
    }
}

impl FromStr for ByteRange {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || Error::usage(text, "a range is A-B, A- or -N, in bytes");
        let (first, last) = text.split_once('-').ok_or_else(wrong)?;
        let number = |digits: &str| match digits.bytes().all(|b| b.is_ascii_digit()) {
            true => digits.parse::<u64>().map_err(|_| wrong()),
            false => Err(wrong()),
        };
        match (first, last) {
            ("", "") => Err(wrong()),
            ("", n) => Ok(Self::Last(number(n)?)),
            (a, "") => Ok(Self::From(number(a)?)),
            (a, b) => match (number(a)?, number(b)?) {
                (a, b) if a <= b => Ok(Self::Between(a, b)),
                _ => Err(Error::usage(text, "the range ends before it begins")),
            },
        }
    }
}

impl fmt::Display for ByteRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Between(first, last) => write!(f, "{first}-{last}"),
            Self::From(first) => write!(f, "{first}-"),
            Self::Last(n) => write!(f, "-{n}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_range_is_cut_off_at_the_end_and_refused_beyond_it() {
        assert_eq!(ByteRange::Between(2, 99).within(10), Some(2..10));
        assert_eq!(ByteRange::Between(0, u64::MAX).within(10), Some(0..10));
        assert_eq!(ByteRange::From(10).within(10), None);
        assert_eq!(ByteRange::Last(99).within(10), Some(0..10));
        assert_eq!(ByteRange::From(0).within(0), Some(0..0));
        assert_eq!(ByteRange::Last(0).within(10), None);
    }
}
