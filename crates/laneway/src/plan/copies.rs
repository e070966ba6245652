//! Decides whether an object is copied inside a store in one call, or part by part.

use std::ops::Range;

use laneway_store::{Capabilities, PartRules};

/// The maximum size of an object that is copied in one call, and the size of the parts of larger objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CopySizes {
    /// The size in bytes of the largest object that is copied in one call. If the store's own limit is lower,
    /// that limit applies. This field has no effect for GCS, which has no limit.
    pub whole_max: u64,
    /// The size in bytes of the parts of a larger object. The default is 1 GiB. The store copies the bytes
    /// itself, so each part costs only a request.
    pub part: u64,
}

impl Default for CopySizes {
    fn default() -> Self {
        Self { whole_max: u64::MAX, part: 1 << 30 }
    }
}

impl CopySizes {
    /// Returns whether an object of `size` bytes must be copied in parts. A change of an object's metadata
    /// is also such a copy.
    pub(crate) fn is_large(self, size: u64, can: &Capabilities) -> bool {
        can.copy_bytes_max.is_some_and(|max| size > max.min(self.whole_max))
    }

    /// Returns the parts of an object of `size` bytes, numbered from 1. If there would be too many parts, they
    /// are larger than `self.part`.
    pub(crate) fn parts(self, size: u64, rules: PartRules) -> impl Iterator<Item = (u32, Range<u64>)> {
        let least = size.div_ceil(rules.count_max.max(1)).max(rules.bytes_min);
        let part = self.part.max(least).min(rules.bytes_max).max(1);
        (1..).zip((0..size.div_ceil(part)).map(move |i| i * part..size.min((i + 1) * part)))
    }

    /// Returns the ranges of several objects that make up one upload, each with the index of its object. The
    /// ranges of an object have nearly the same length, so that none is shorter than a part may be.
    pub(crate) fn ranges_of_all(self, sizes: &[u64], rules: PartRules) -> Vec<(usize, Range<u64>)> {
        // Rounding adds at most one range for each object.
        let count = rules.count_max.saturating_sub(sizes.len() as u64).max(1);
        let least = sizes.iter().sum::<u64>().div_ceil(count).max(2 * rules.bytes_min);
        let most = self.part.max(least).min(rules.bytes_max).max(1);
        let mut ranges = Vec::new();
        for (at, size) in sizes.iter().copied().enumerate().filter(|(_, size)| *size > 0) {
            let part = size.div_ceil(size.div_ceil(most));
            ranges.extend((0..size.div_ceil(part)).map(|i| (at, i * part..size.min((i + 1) * part))));
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_large_where_its_store_limits_copies() {
        let any = Capabilities::default();
        let limited = Capabilities { copy_bytes_max: Some(5 << 30), ..Capabilities::default() };
        let (own, small) = (CopySizes::default(), CopySizes { whole_max: 1 << 20, ..CopySizes::default() });
        assert!(!own.is_large(u64::MAX, &any) && !small.is_large(u64::MAX, &any));
        assert!(own.is_large((5 << 30) + 1, &limited) && !own.is_large(5 << 30, &limited));
        assert!(small.is_large((1 << 20) + 1, &limited));
    }

    #[test]
    fn parts_are_each_byte_once_and_no_more_than_there_may_be() {
        let sizes = [(5 << 30) + 1, 5 << 40, 1 << 30, 1, (1 << 30) * 7];
        for (size, part) in sizes.into_iter().flat_map(|size| [(size, 1 << 30), (size, 5 << 20)]) {
            let mut at = 0;
            let mut count = 0;
            for (number, range) in (CopySizes { part, ..CopySizes::default() }).parts(size, PartRules::S3) {
                count += 1;
                assert!(
                    u64::from(number) == count && range.start == at && range.end > at,
                    "{size} by {part}"
                );
                at = range.end;
            }
            assert!(
                at == size && count <= PartRules::S3.count_max,
                "{size} by {part}: {count} parts up to {at}"
            );
        }
        assert_eq!(CopySizes::default().parts(0, PartRules::S3).count(), 0);
    }

    #[test]
    fn ranges_of_several_objects_are_each_byte_once_and_long_enough() {
        let rules = PartRules::S3;
        let cases: [&[u64]; 4] = [
            &[(1 << 30) + 1, 0, 7],
            &[rules.bytes_min, (5 << 30) + 1, 10 << 20, (10 << 20) + 1, 1],
            &[5 << 40; 3],
            &[1 << 30; 5000],
        ];
        for (sizes, part) in cases.into_iter().flat_map(|sizes| [(sizes, 1 << 30), (sizes, 5 << 20)]) {
            let ranges = (CopySizes { part, ..CopySizes::default() }).ranges_of_all(sizes, rules);
            assert!(ranges.len() as u64 <= rules.count_max, "{part}: {}", ranges.len());
            assert!(ranges.is_sorted_by_key(|(at, range)| (*at, range.start)));
            for (at, size) in sizes.iter().enumerate() {
                let own: Vec<_> = ranges.iter().filter(|(of, _)| *of == at).map(|(_, range)| range).collect();
                let least = rules.bytes_min.min(*size);
                assert!(
                    own.iter().all(|range| range.end - range.start >= least),
                    "{size} by {part}: {own:?}"
                );
                assert_eq!(own.iter().map(|range| range.end - range.start).sum::<u64>(), *size);
                assert!(own.windows(2).all(|two| two[0].end == two[1].start), "{size} by {part}: {own:?}");
            }
        }
    }
}
