//! The boundaries of the parts in which an object was uploaded.

use std::ops::Range;

/// Returns the `count` parts of an object of `size` bytes, if all parts but the last have `first` bytes.
/// Nearly every program divides its uploads in this way. Returns `None` if such parts can't make up `size`
/// bytes.
pub(crate) fn even(size: u64, first: u64, count: u32) -> Option<Vec<Range<u64>>> {
    if first == 0 || size.div_ceil(first) != u64::from(count) {
        return None;
    }
    Some((0..u64::from(count)).map(|i| i * first..size.min((i + 1) * first)).collect())
}

/// Returns the parts of an object of `size` bytes with known lengths, or `None` if these don't add up to
/// `size`.
pub(crate) fn of_lens(size: u64, lens: &[u64]) -> Option<Vec<Range<u64>>> {
    let mut at = 0u64;
    let mut parts = Vec::with_capacity(lens.len());
    for len in lens {
        let end = at.checked_add(*len)?;
        parts.push(at..end);
        at = end;
    }
    (at == size).then_some(parts)
}

/// A section of a range: either a claim within it, or bytes between claims.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum RangeSection {
    /// The whole claim with this index.
    Claim(usize),
    /// Bytes of the range that no claim within it covers.
    Bytes(Range<u64>),
}

/// Divides a range into the claims that lie within it, and the bytes between these claims. `claims` must be
/// in order and must not overlap.
pub(crate) fn cover(range: &Range<u64>, claims: &[Range<u64>]) -> Vec<RangeSection> {
    let mut stretches = Vec::new();
    let mut at = range.start;
    let from = claims.partition_point(|claim| claim.start < range.start);
    for (i, claim) in claims.iter().enumerate().skip(from).take_while(|(_, claim)| claim.end <= range.end) {
        if claim.start > at {
            stretches.push(RangeSection::Bytes(at..claim.start));
        }
        stretches.push(RangeSection::Claim(i));
        at = claim.end;
    }
    if at < range.end {
        stretches.push(RangeSection::Bytes(at..range.end));
    }
    stretches
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::random::Random;
    use crate::plan::resume::settled;

    #[test]
    fn even_parts_are_as_many_as_there_are() {
        assert_eq!(even(10, 4, 3), Some(vec![0..4, 4..8, 8..10]));
        assert_eq!(even(8, 4, 2), Some(vec![0..4, 4..8]));
        assert_eq!(even(10, 4, 2), None);
        assert_eq!(even(10, 0, 2), None);
    }

    #[test]
    fn parts_of_any_lengths_are_the_object_or_nothing() {
        assert_eq!(of_lens(10, &[3, 6, 1]), Some(vec![0..3, 3..9, 9..10]));
        assert_eq!(of_lens(10, &[3, 6]), None);
        assert_eq!(of_lens(10, &[u64::MAX, 11]), None);
    }

    #[test]
    fn a_range_is_covered_once_and_claims_across_its_ends_are_not_used() {
        for seed in 0..2_000 {
            let mut random = Random(seed);
            let claims = (0..random.below(20)).map(|_| {
                let start = random.below(200);
                start..start + 1 + random.below(30)
            });
            let claims = settled(claims.collect(), 230, Clone::clone);
            let start = random.below(200);
            let range = start..start + random.below(60);
            let mut at = range.start;
            for stretch in cover(&range, &claims) {
                let bytes = match stretch {
                    RangeSection::Claim(i) => claims[i].clone(),
                    RangeSection::Bytes(bytes) => bytes,
                };
                assert!(bytes.start == at && bytes.end > at, "seed {seed}");
                at = bytes.end;
            }
            assert_eq!(at, range.end, "seed {seed}");
        }
    }
}
