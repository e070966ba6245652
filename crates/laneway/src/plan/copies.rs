//! How an object is copied inside one store: in one call, or part by part.

use std::ops::Range;

use super::parts::PARTS_MAX;

/// Up to which size S3 copies an object in one call, and what larger ones are cut into. The defaults are S3's own; a
/// server that speaks its protocol may allow less.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CopySizes {
    /// The largest object in bytes that is copied in one call: 5 GiB,
    /// <https://docs.aws.amazon.com/AmazonS3/latest/API/API_CopyObject.html>.
    pub whole_max: u64,
    /// The parts in bytes of larger ones: 1 GiB. They cost the store no transfer, only requests. S3 takes 5 MiB to 5 GiB.
    pub part: u64,
}

impl Default for CopySizes {
    fn default() -> Self {
        Self { whole_max: 5 << 30, part: 1 << 30 }
    }
}

impl CopySizes {
    /// The parts of an object of `size` bytes, numbered from 1. They are larger than asked for where there would be too
    /// many of them.
    pub(crate) fn parts(self, size: u64) -> impl Iterator<Item = (u32, Range<u64>)> {
        let part = self.part.max(size.div_ceil(PARTS_MAX)).max(1);
        (1..).zip((0..size.div_ceil(part)).map(move |i| i * part..size.min((i + 1) * part)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_each_byte_once_and_no_more_than_there_may_be() {
        let sizes = [(5 << 30) + 1, 5 << 40, 1 << 30, 1, (1 << 30) * 7];
        for (size, part) in sizes.into_iter().flat_map(|size| [(size, 1 << 30), (size, 5 << 20)]) {
            let mut at = 0;
            let mut count = 0;
            for (number, range) in (CopySizes { part, ..CopySizes::default() }).parts(size) {
                count += 1;
                assert!(
                    u64::from(number) == count && range.start == at && range.end > at,
                    "{size} by {part}"
                );
                at = range.end;
            }
            assert!(at == size && count <= PARTS_MAX, "{size} by {part}: {count} parts up to {at}");
        }
        assert_eq!(CopySizes::default().parts(0).count(), 0);
    }
}
