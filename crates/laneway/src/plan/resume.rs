//! Computes the bytes that an interrupted download still needs. A journal's claims are the ranges that were
//! written. This module decides which claims are valid, and finds the gaps between them.

use std::ops::Range;

/// Returns the valid claims in order. They lie within the object's `size`, and don't overlap. If two claims
/// overlap, the one that begins first is valid. If both begin at the same offset, the longer one is valid.
pub(crate) fn settled<C>(mut claims: Vec<C>, size: u64, range: impl Fn(&C) -> Range<u64>) -> Vec<C> {
    claims.retain(|claim| {
        let range = range(claim);
        range.start < range.end && range.end <= size
    });
    claims.sort_by_key(|claim| {
        let range = range(claim);
        (range.start, std::cmp::Reverse(range.end))
    });
    let mut at = 0;
    claims.retain(|claim| {
        let range = range(claim);
        let is_free = range.start >= at;
        if is_free {
            at = range.end;
        }
        is_free
    });
    claims
}

/// Returns the ranges of an object that `done` doesn't cover. The ranges in `done` must be in order and must
/// not overlap.
pub(crate) fn missing(done: impl IntoIterator<Item = Range<u64>>, size: u64) -> Vec<Range<u64>> {
    let mut gaps = Vec::new();
    let mut at = 0;
    for range in done.into_iter().chain(std::iter::once(size..size)) {
        if range.start > at {
            gaps.push(at..range.start);
        }
        at = range.end;
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::random::RandomNumbers;

    #[test]
    fn gaps_are_what_no_claim_holds() {
        assert_eq!(missing([], 10), vec![0..10]);
        assert_eq!(missing(Some(0..10), 10), []);
        assert_eq!(missing([2..4, 4..5, 9..10], 10), [0..2, 5..9]);
        assert_eq!(missing([], 0), []);
    }

    #[test]
    fn of_claims_that_overlap_one_stays() {
        assert_eq!(settled(vec![4..6, 0..2, 0..3, 2..5, 6..11, 6..6], 10, Clone::clone), [0..3, 4..6]);
    }

    #[test]
    fn claims_and_gaps_are_each_byte_of_the_object_once_whatever_was_claimed() {
        for seed in 0..2_000 {
            let mut random = RandomNumbers(seed);
            let size = random.below(1_000);
            let claimed: Vec<Range<u64>> = (0..random.below(40))
                .map(|_| {
                    let start = random.below(1_100);
                    start..start + random.below(100)
                })
                .collect();
            let done = settled(claimed.clone(), size, Clone::clone);
            assert!(done.iter().all(|range| claimed.contains(range)), "seed {seed}");
            let mut all: Vec<_> = missing(done.clone(), size).into_iter().chain(done).collect();
            all.sort_by_key(|range| range.start);
            let mut at = 0;
            for range in all {
                assert!(range.start == at && range.end > at, "seed {seed}: {range:?} at {at}");
                at = range.end;
            }
            assert_eq!(at, size, "seed {seed}");
        }
    }
}
