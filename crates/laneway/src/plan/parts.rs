//! Cuts an upload into parts, within the limits of its store.

use laneway_store::{PartRules, Store};

/// The usual size of a part in bytes.
pub(crate) const PART_USUAL: u64 = 16 << 20;
/// GCS requires the chunks of a resumable upload to be multiples of this many bytes. [`PART_USUAL`] is such a
/// multiple.
pub(crate) const CHUNK_UNIT: u64 = 256 << 10;
/// If an upload's length is unknown, the size of its parts doubles each time this percentage of the allowed
/// number of parts has been sent. With 10,000 allowed parts, the first 18 GiB are sent in parts of the usual
/// size. The largest part has 4 GiB, and all parts together hold 6 TiB.
const DOUBLING_PERCENT: u64 = 12;

/// Returns the size of all parts but the last, for an upload of `size` bytes.
pub(crate) fn part_len(size: u64, rules: PartRules) -> u64 {
    let least = size.div_ceil(rules.count_max.max(1)).next_multiple_of(1 << 20);
    least.max(PART_USUAL).max(rules.bytes_min).min(rules.bytes_max)
}

/// The sizes of the parts of a stream, whose length is known only at its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StreamPartSizes {
    /// The size of the first part. If all parts must have the same size, their size.
    first: u64,
    grows: bool,
    rules: PartRules,
}

impl StreamPartSizes {
    /// If the store accepts `unequal` parts, the parts grow, so that 10,000 parts hold up to 6 TiB. Otherwise
    /// all parts have the same size. Parts of the usual size hold 156 GiB in total, so the parts are larger
    /// if the `expected` size requires it.
    fn new(rules: PartRules, unequal: bool, expected: Option<u64>) -> Self {
        Self { first: part_len(expected.unwrap_or(0), rules), grows: unequal, rules }
    }

    /// Returns how to cut an upload to `store`.
    pub(crate) fn of(store: &Store, expected: Option<u64>) -> Self {
        Self::new(store.capabilities().parts, store.takes_unequal_parts(), expected)
    }

    /// Returns the maximum number of parts that the store allows.
    pub(crate) fn count_max(self) -> u64 {
        self.rules.count_max
    }

    /// Returns the size of part `number`, counted from 1, or `None` if the number is above the limit.
    pub(crate) fn len(self, number: u32) -> Option<u64> {
        let (before, count_max) = (u64::from(number.checked_sub(1)?), self.rules.count_max);
        let doublings = before / (count_max * DOUBLING_PERCENT / 100).max(1);
        let grown = if self.grows { PART_USUAL << doublings.min(8) } else { 0 };
        (before < count_max).then(|| self.first.max(grown).min(self.rules.bytes_max))
    }

    /// Returns how many bytes all parts can hold together.
    pub(crate) fn holds(self) -> u64 {
        (1..).map_while(|number| self.len(number)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: PartRules = PartRules::S3;
    const LARGEST: u64 = RULES.object_bytes_max();

    fn is_allowed(len: u64) -> bool {
        (RULES.bytes_min..=RULES.bytes_max).contains(&len) && len.is_multiple_of(CHUNK_UNIT)
    }

    #[test]
    fn any_object_fits_in_the_parts_there_may_be() {
        assert_eq!(LARGEST, 53_687_091_200_000, "48.8 TiB");
        for size in [0, 1, PART_USUAL, 160 << 30, (160 << 30) + 1, 5 << 40, LARGEST] {
            let len = part_len(size, RULES);
            assert!(is_allowed(len) && size.div_ceil(len) <= RULES.count_max, "{size}");
        }
    }

    #[test]
    fn parts_keep_to_the_limits_of_their_store() {
        let few = PartRules { count_max: 100, bytes_min: 32 << 20, bytes_max: 64 << 20 };
        assert_eq!([0, 5000 << 20, 6400 << 20].map(|size| part_len(size, few) >> 20), [32, 50, 64]);
        let cut = StreamPartSizes::new(few, true, None);
        let lens: Vec<u64> = (1..).map_while(|number| cut.len(number)).collect();
        assert_eq!((lens.len(), lens[0] >> 20, lens[99] >> 20), (100, 32, 64));
    }

    #[test]
    fn growing_parts_reach_five_tebibytes_within_the_limits() {
        let cut = StreamPartSizes::new(RULES, true, None);
        let lens: Vec<u64> = (1..).map_while(|number| cut.len(number)).collect();
        assert_eq!((lens.len() as u64, lens[0]), (RULES.count_max, PART_USUAL));
        assert_eq!((lens[1199], lens[1200], lens[9999]), (PART_USUAL, 2 * PART_USUAL, 4 << 30));
        assert!(lens.iter().all(|len| is_allowed(*len)));
        assert!(lens.is_sorted());
        assert!(cut.holds() >= 5 << 40);
    }

    #[test]
    fn equal_parts_are_equal_and_as_large_as_is_expected() {
        let usual = StreamPartSizes::new(RULES, false, None);
        assert_eq!(usual.holds() >> 30, 156);
        for expected in [1, 200 << 30, 5 << 40, LARGEST] {
            let cut = StreamPartSizes::new(RULES, false, Some(expected));
            assert!(cut.holds() >= expected && cut.len(1) == cut.len(10_000));
            assert_eq!((cut.len(0), cut.len(10_001)), (None, None));
        }
        let grows = StreamPartSizes::new(RULES, true, Some(8 << 40));
        assert!(grows.holds() >= 8 << 40 && grows.len(1) == Some(part_len(8 << 40, RULES)));
    }
}
