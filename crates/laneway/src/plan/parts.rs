//! How an upload is cut into parts.
//!
//! S3 and the XML API of GCS take 1 to 10,000 parts of 5 MiB to 5 GiB each (the last may be smaller):
//! <https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html>,
//! <https://cloud.google.com/storage/quotas#requests>. Other stores that speak S3's protocol may demand that all but
//! the last are of one size.

/// Most parts of an upload.
pub(crate) const PARTS_MAX: u64 = 10_000;
/// The usual part.
pub(crate) const PART_USUAL: u64 = 16 << 20;
/// Largest part.
#[cfg(test)]
const PART_MAX: u64 = 5 << 30;
/// What a chunk of a GCS resumable upload is a multiple of; the usual part is one.
pub(crate) const CHUNK_UNIT: u64 = 256 << 10;
/// Parts of the same size before the size doubles, where the length isn't known: the first 18 GiB go in usual parts,
/// the largest part is 4 GiB, and 10,000 parts hold 6 TiB.
const PARTS_BEFORE_DOUBLING: u64 = 1_200;

/// The size of all parts but the last, of an upload of `size` bytes.
pub(crate) fn part_len(size: u64) -> u64 {
    size.div_ceil(PARTS_MAX).next_multiple_of(1 << 20).max(PART_USUAL)
}

/// How a stream is cut whose length is known at its end only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cut {
    /// The size of the first part, and of all where they have to be equal.
    first: u64,
    grows: bool,
}

impl Cut {
    /// `unequal` is whether the store takes parts of different sizes: they then grow, so that any object of up to
    /// 6 TiB fits. Equal ones of the usual size hold 156 GiB, more if more is `expected`.
    pub(crate) fn new(unequal: bool, expected: Option<u64>) -> Self {
        Self { first: part_len(expected.unwrap_or(0)), grows: unequal }
    }

    /// The size of part `number`, from 1; `None` beyond the last that there may be.
    pub(crate) fn len(self, number: u32) -> Option<u64> {
        let before = u64::from(number.checked_sub(1)?);
        let grown = if self.grows { PART_USUAL << (before / PARTS_BEFORE_DOUBLING).min(8) } else { 0 };
        (before < PARTS_MAX).then(|| self.first.max(grown))
    }

    /// How many bytes all parts hold together.
    pub(crate) fn holds(self) -> u64 {
        (1..).map_while(|number| self.len(number)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PART_MIN: u64 = 5 << 20;

    #[test]
    fn any_object_fits_in_the_parts_there_may_be() {
        let largest = PARTS_MAX * PART_MAX;
        assert_eq!(largest, 53_687_091_200_000, "48.8 TiB");
        for size in [0, 1, PART_USUAL, 160 << 30, (160 << 30) + 1, 5 << 40, largest] {
            let len = part_len(size);
            assert!((PART_MIN..=PART_MAX).contains(&len) && size.div_ceil(len) <= PARTS_MAX, "{size}");
            assert!(len.is_multiple_of(CHUNK_UNIT));
        }
    }

    #[test]
    fn growing_parts_reach_five_tebibytes_within_the_limits() {
        let cut = Cut::new(true, None);
        let lens: Vec<u64> = (1..).map_while(|number| cut.len(number)).collect();
        assert_eq!((lens.len() as u64, lens[0]), (PARTS_MAX, PART_USUAL));
        assert!(lens.iter().all(|len| (PART_MIN..=PART_MAX).contains(len) && len.is_multiple_of(CHUNK_UNIT)));
        assert!(lens.is_sorted());
        assert!(cut.holds() >= 5 << 40);
    }

    #[test]
    fn equal_parts_are_equal_and_as_large_as_is_expected() {
        let usual = Cut::new(false, None);
        assert_eq!(usual.holds() >> 30, 156);
        for expected in [1, 200 << 30, 5 << 40, PARTS_MAX * PART_MAX] {
            let cut = Cut::new(false, Some(expected));
            assert!(cut.holds() >= expected && cut.len(1) == cut.len(10_000));
            assert_eq!((cut.len(0), cut.len(10_001)), (None, None));
        }
        let grows = Cut::new(true, Some(8 << 40));
        assert!(grows.holds() >= 8 << 40 && grows.len(1) == Some(part_len(8 << 40)));
    }
}
