//! Decides whether an object is copied inside a store in one call, or part by part.

use std::ops::Range;

use laneway_store::{Capabilities, PartRules};

/// The largest object that is copied in one call, and the parts of larger ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CopySizes {
    /// The size in bytes of the largest object that is copied in one call. If the store's own limit is lower,
    /// that limit counts.
    pub whole_max: u64,
    /// The size in bytes of the parts of a larger object: 1 GiB. The store copies the bytes itself, so each
    /// part costs only a request.
    pub part: u64,
}

impl Default for CopySizes {
    fn default() -> Self {
        Self { whole_max: u64::MAX, part: 1 << 30 }
    }
}

impl CopySizes {
    /// Returns whether an object of `size` bytes must be copied in parts. The same holds for a change of its
    /// metadata.
    pub(crate) fn is_large(self, size: u64, can: &Capabilities) -> bool {
        can.copy_bytes_max.is_some_and(|max| size > max.min(self.whole_max))
    }

    /// Returns the parts of an object of `size` bytes, numbered from 1. The parts are larger than `self.part`
    /// if there would be too many of them.
    pub(crate) fn parts(self, size: u64, rules: PartRules) -> impl Iterator<Item = (u32, Range<u64>)> {
        let least = size.div_ceil(rules.count_max.max(1)).max(rules.bytes_min);
        let part = self.part.max(least).min(rules.bytes_max).max(1);
        (1..).zip((0..size.div_ceil(part)).map(move |i| i * part..size.min((i + 1) * part)))
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
}
