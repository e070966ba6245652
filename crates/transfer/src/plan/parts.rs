//! How an upload is cut into parts.
//!
//! S3 and the XML API of GCS take 1 to 10,000 parts of 5 MiB to 5 GiB each (the last may be smaller), 5 TiB in all:
//! <https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html>,
//! <https://cloud.google.com/storage/quotas#requests>.

/// Most parts of an upload.
pub(crate) const PARTS_MAX: u64 = 10_000;
/// The usual part.
pub(crate) const PART_USUAL: u64 = 16 << 20;
/// Largest object.
pub(crate) const OBJECT_MAX: u64 = 5 << 40;
/// What a chunk of a GCS resumable upload is a multiple of; the usual part is one.
pub(crate) const CHUNK_UNIT: u64 = 256 << 10;
/// Parts of the same size before the size doubles, where the length isn't known: the first 18 GiB go in usual parts,
/// the largest part is 4 GiB, and 10,000 parts hold 6 TiB.
const PARTS_BEFORE_DOUBLING: u64 = 1_200;

/// The size of all parts but the last, of an upload of `size` bytes.
pub(crate) fn part_len(size: u64) -> u64 {
    size.div_ceil(PARTS_MAX).next_multiple_of(1 << 20).max(PART_USUAL)
}

/// The size of part `number` (from 1) of an upload whose length isn't known: parts grow, so that any object fits.
pub(crate) fn growing_part_len(number: u32) -> u64 {
    PART_USUAL << (u64::from(number.saturating_sub(1)) / PARTS_BEFORE_DOUBLING).min(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PART_MIN: u64 = 5 << 20;
    const PART_MAX: u64 = 5 << 30;

    #[test]
    fn any_object_fits_in_the_parts_there_may_be() {
        for size in [0, 1, PART_USUAL, 160 << 30, (160 << 30) + 1, OBJECT_MAX] {
            let len = part_len(size);
            assert!((PART_MIN..=PART_MAX).contains(&len) && size.div_ceil(len) <= PARTS_MAX, "{size}");
            assert!(len.is_multiple_of(CHUNK_UNIT));
        }
    }

    #[test]
    fn growing_parts_reach_the_largest_object_within_the_limits() {
        let mut sum = 0;
        for number in 1..=PARTS_MAX as u32 {
            let len = growing_part_len(number);
            assert!((PART_MIN..=PART_MAX).contains(&len) && len.is_multiple_of(CHUNK_UNIT));
            assert!(number == 1 || len >= growing_part_len(number - 1));
            sum += len;
        }
        assert!(sum >= OBJECT_MAX);
        assert_eq!(growing_part_len(1), PART_USUAL);
    }
}
