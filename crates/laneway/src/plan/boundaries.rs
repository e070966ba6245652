//! The boundaries of an object's uploaded parts.

use std::collections::BTreeMap;
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

/// Finds the parts of an object whose bytes have all arrived, while ranges of the object arrive in any order.
#[derive(Debug)]
pub(crate) struct PartArrivals {
    /// The parts, without gaps between them. An index into this list identifies a part.
    parts: Vec<Range<u64>>,
    is_complete: Vec<bool>,
    /// The ranges that have arrived, by their starts, each with its end. Ranges that touch are joined.
    arrived: BTreeMap<u64, u64>,
}

impl PartArrivals {
    pub(crate) fn new(parts: Vec<Range<u64>>) -> Self {
        Self { is_complete: vec![false; parts.len()], parts, arrived: BTreeMap::new() }
    }

    /// Adds a range that has arrived. Returns the indices of the parts that are complete now and weren't
    /// before.
    pub(crate) fn add(&mut self, range: &Range<u64>) -> Vec<usize> {
        let Range { mut start, mut end } = *range;
        while let Some((&from, &to)) = self.arrived.range(..=end).next_back().filter(|(_, to)| **to >= start)
        {
            self.arrived.remove(&from);
            (start, end) = (start.min(from), end.max(to));
        }
        self.arrived.insert(start, end);
        let first = self.parts.partition_point(|part| part.end <= range.start);
        let touched =
            self.parts.iter().enumerate().skip(first).take_while(|(_, part)| part.start < range.end);
        let complete = touched.filter(|(_, part)| start <= part.start && part.end <= end);
        let new: Vec<_> = complete.map(|(i, _)| i).filter(|i| !self.is_complete[*i]).collect();
        new.iter().for_each(|i| self.is_complete[*i] = true);
        new
    }

    /// Returns the indices of the parts that aren't complete.
    pub(crate) fn missing(&self) -> Vec<usize> {
        (0..self.parts.len()).filter(|i| !self.is_complete[*i]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::random::RandomNumbers;
    use crate::plan::slices::settled_claims;

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
            let mut random = RandomNumbers(seed);
            let claims = (0..random.below(20)).map(|_| {
                let start = random.below(200);
                start..start + 1 + random.below(30)
            });
            let claims = settled_claims(claims.collect(), 230, Clone::clone);
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

    #[test]
    fn a_part_is_complete_once_its_last_byte_has_arrived() {
        let mut arrivals = PartArrivals::new(of_lens(100, &[30, 30, 40]).unwrap());
        assert!(arrivals.add(&(0..20)).is_empty());
        assert!(arrivals.add(&(50..70)).is_empty());
        assert_eq!(arrivals.add(&(20..50)), [0, 1]);
        assert_eq!(arrivals.missing(), [2]);
        assert!(arrivals.add(&(10..60)).is_empty(), "these bytes arrived before");
        assert_eq!(arrivals.add(&(0..100)), [2]);
        assert!(arrivals.missing().is_empty());
    }

    #[test]
    fn in_whatever_order_ranges_arrive_each_part_is_complete_once() {
        let mut random = RandomNumbers(1);
        for _ in 0..200 {
            let lens: Vec<u64> = (0..1 + random.below(20)).map(|_| 1 + random.below(30)).collect();
            let size = lens.iter().sum();
            let parts = of_lens(size, &lens).unwrap();
            let mut arrivals = PartArrivals::new(parts.clone());
            let (mut has, mut complete) = (vec![false; size as usize], Vec::new());
            while has.contains(&false) {
                let start = random.below(size);
                let range = start..(start + 1 + random.below(40)).min(size);
                complete.extend(arrivals.add(&range));
                has[range.start as usize..range.end as usize].fill(true);
                let expected =
                    |part: &&Range<u64>| has[part.start as usize..part.end as usize].iter().all(|has| *has);
                assert_eq!(complete.len(), parts.iter().filter(expected).count());
            }
            complete.sort_unstable();
            assert!(complete.into_iter().eq(0..parts.len()));
        }
    }
}
