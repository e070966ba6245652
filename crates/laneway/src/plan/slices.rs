//! Who fetches which bytes of an object: slices are claimed, finished, or given back, and an opening stream of the
//! whole object eats from the front until it meets what others have taken.

use std::ops::Range;

use super::SMALL_DOWNLOAD_MAX;

/// The smallest usual slice, but for an object's end. Range requests of 8 to 16 MiB are where S3's and GCS's throughput for a request peaks.
pub(crate) const SLICE_MIN: u64 = 8 << 20;
/// The largest usual slice: short enough that a straggler costs little.
pub(crate) const SLICE_MAX: u64 = 16 << 20;
/// What of a slice is claimed at a time in the journal of its download, at whose multiples slices are cut.
pub(crate) const CLAIM_LEN: u64 = 1 << 20;
/// The shortest slice, near an object's end: less is not worth a request of its own, since a stream beside it is about to bring it anyway.
const SLICE_LEAST: u64 = 4 << 20;

/// The usual slice of an object of `size` bytes of which `in_flight` are fetched at once: an even share of it.
pub(crate) fn slice_len(size: u64, in_flight: usize) -> u64 {
    let share = size.div_ceil(in_flight.max(1) as u64);
    share.next_multiple_of(1 << 20).clamp(SLICE_MIN, SLICE_MAX)
}

/// Where what a stream still brings is cut, so that another brings the rest: in its middle, unless less would be left than is claimed at a
/// time. The rest is bulk as all of it was: as a small request it would have connections opened for it, and bulk yield.
pub(crate) fn middle(left: &Range<u64>) -> Option<u64> {
    let middle = (left.start + (left.end - left.start) / 2).next_multiple_of(CLAIM_LEN);
    (middle >= left.start + CLAIM_LEN && middle + SMALL_DOWNLOAD_MAX < left.end).then_some(middle)
}

/// Whether an object is worth more than one stream.
pub(crate) fn is_sliced(size: u64) -> bool {
    size > SLICE_MAX
}

/// Which bytes of an object are taken, by whom, and which are left.
///
/// Every byte is at any time in exactly one place: left, claimed, the opener's, or brought by it.
#[derive(Clone, Debug)]
pub(crate) struct Slices {
    slice: u64,
    /// How many are fetched at once.
    at_once: usize,
    /// What nobody has, in no order; claims take the lowest.
    left: Vec<Range<u64>>,
    /// What the opener has before it: from its position to where it will be cut.
    opener: Option<Range<u64>>,
}

impl Slices {
    /// What is missing of an object, to be claimed slice by slice. The ranges don't overlap.
    pub(crate) fn planned(missing: impl IntoIterator<Item = Range<u64>>, slice: u64, at_once: usize) -> Self {
        let left = missing.into_iter().filter(|range| !range.is_empty()).collect();
        Self { slice: slice.max(1), at_once: at_once.max(1), left, opener: None }
    }

    /// All of an object, which a stream has begun to bring from its first byte on.
    pub(crate) fn opened(size: u64, slice: u64, at_once: usize) -> Self {
        Self { slice: slice.max(1), at_once: at_once.max(1), left: Vec::new(), opener: Some(0..size) }
    }

    /// How large the next slice is: towards the end they become smaller, so that all lanes end about together. They are seldom
    /// more than a quarter of what is asked for at once.
    fn next_len(&self) -> u64 {
        let left: u64 = self.left.iter().chain(&self.opener).map(|range| range.end - range.start).sum();
        let share = left.div_ceil(self.at_once.div_ceil(4) as u64).next_multiple_of(CLAIM_LEN);
        share.max(SLICE_LEAST).min(self.slice)
    }

    /// Takes a slice: of what is left, or else from the end of what the opener has before it. Taking from its end
    /// keeps the opener going as long as there is work, since cutting it may cost its connection.
    pub(crate) fn claim(&mut self) -> Option<Range<u64>> {
        let slice = self.next_len();
        if let Some(at) = (0..self.left.len()).min_by_key(|i| self.left[*i].start) {
            let range = &mut self.left[at];
            // What would remain as a crumb is taken along.
            let len = range.end - range.start;
            let end = if len < slice + slice / 4 { range.end } else { range.start + slice };
            let claimed = range.start..end;
            range.start = end;
            if range.is_empty() {
                self.left.swap_remove(at);
            }
            return Some(claimed);
        }
        let before_opener = self.opener.as_mut()?;
        let len = before_opener.end - before_opener.start;
        if len < 2 * SLICE_LEAST {
            return None;
        }
        let start = before_opener.end - slice.min(len / 2);
        let claimed = start..before_opener.end;
        before_opener.end = start;
        Some(claimed)
    }

    /// Takes over the later half of what the opener has before it, if that is more than any slice has.
    pub(crate) fn halve_opener(&mut self, longest: u64) -> Option<Range<u64>> {
        let before = self.opener.as_mut().filter(|before| before.end - before.start > longest)?;
        let middle = middle(before)?;
        Some(middle..std::mem::replace(&mut before.end, middle))
    }

    /// The opener brings `bytes` more: how many of them are its own. Fewer than it brings means that it is cut.
    pub(crate) fn opener_takes(&mut self, bytes: u64) -> u64 {
        let Some(before) = &mut self.opener else { return 0 };
        let own = bytes.min(before.end - before.start);
        before.start += own;
        own
    }

    /// Where the opener will be cut, as things stand.
    pub(crate) fn opener_end(&self) -> Option<u64> {
        self.opener.as_ref().map(|before| before.end)
    }

    /// The opener ended, whole or broken: what it had before it is left for others.
    pub(crate) fn opener_ended(&mut self) {
        if let Some(before) = self.opener.take().filter(|before| !before.is_empty()) {
            self.left.push(before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::random::Random;
    use crate::plan::resume::{missing, settled};

    const MIB: u64 = 1 << 20;

    fn opener_is_needed(slices: &Slices) -> bool {
        slices.opener.as_ref().is_some_and(|before| !before.is_empty())
    }

    #[test]
    fn slices_are_an_even_share_between_their_bounds() {
        assert_eq!(slice_len(20 * MIB, 4), 8 * MIB);
        assert_eq!(slice_len(40 * MIB, 4), 10 * MIB);
        assert_eq!(slice_len(32 << 30, 16), 16 * MIB);
        assert_eq!(slice_len(0, 0), 8 * MIB);
    }

    #[test]
    fn an_opener_that_nobody_helps_brings_everything() {
        let mut slices = Slices::opened(10, 8, 4);
        assert_eq!(slices.opener_takes(4), 4);
        assert_eq!(slices.opener_takes(9), 6);
        assert!(!opener_is_needed(&slices) && slices.claim().is_none());
    }

    #[test]
    fn helpers_take_the_tail_and_the_opener_is_cut_where_they_meet() {
        let mut slices = Slices::opened(64 * MIB, 16 * MIB, 1);
        assert_eq!(slices.claim(), Some(48 * MIB..64 * MIB));
        assert_eq!(slices.claim(), Some(32 * MIB..48 * MIB));
        assert_eq!(slices.opener_takes(20 * MIB), 20 * MIB);
        assert_eq!(slices.claim(), Some(26 * MIB..32 * MIB));
        assert_eq!(slices.claim(), None, "what is before the opener is too little to share");
        assert_eq!(slices.opener_takes(20 * MIB), 6 * MIB);
        assert!(!opener_is_needed(&slices));
    }

    #[test]
    fn what_a_broken_opener_leaves_is_claimed_by_others() {
        let mut slices = Slices::opened(40 * MIB, 16 * MIB, 1);
        slices.opener_takes(5 * MIB);
        slices.opener_ended();
        assert_eq!(slices.claim(), Some(5 * MIB..21 * MIB));
        assert_eq!(slices.claim(), Some(21 * MIB..40 * MIB), "a crumb is taken along");
        assert_eq!(slices.claim(), None);
    }

    #[test]
    fn slices_become_smaller_towards_the_end_so_that_all_end_about_together() {
        let mut slices = Slices::planned(Some(0..256 * MIB), 16 * MIB, 32);
        let lens: Vec<_> =
            std::iter::from_fn(|| slices.claim()).map(|range| (range.end - range.start) / MIB).collect();
        assert_eq!(lens.iter().sum::<u64>(), 256);
        assert!(lens.is_sorted_by(|a, b| a >= b) && lens[8] == 16, "{lens:?}");
        assert!(lens[lens.len() - 8..].iter().all(|len| *len <= 4), "{lens:?}");
    }

    #[test]
    fn what_a_stream_still_brings_is_halved_where_claims_end_and_not_below_them() {
        assert_eq!(middle(&(0..4 * MIB)), Some(2 * MIB));
        assert_eq!(middle(&(MIB / 2..4 * MIB)), None, "the rest would be small");
        assert_eq!(middle(&(0..2 * MIB + 2)), None);
        assert_eq!(middle(&(1..3 * MIB)), None, "here as well");
        assert_eq!(middle(&(MIB / 2..4 * MIB + 1)), Some(3 * MIB));
        let mut slices = Slices::opened(7 * MIB, 16 * MIB, 4);
        assert_eq!(slices.claim(), None);
        assert_eq!(slices.halve_opener(8 * MIB), None, "a slice has more");
        assert_eq!(slices.halve_opener(6 * MIB), Some(4 * MIB..7 * MIB));
        assert_eq!(slices.opener_end(), Some(4 * MIB));
    }

    #[test]
    fn an_empty_object_has_nothing_to_claim() {
        assert!(!opener_is_needed(&Slices::opened(0, 8, 4)));
        assert_eq!(Slices::planned([], 8, 4).claim(), None);
    }

    #[test]
    fn every_byte_arrives_exactly_once_whatever_the_order_of_claims_and_failures() {
        for seed in 0..2_000 {
            let mut random = Random(seed);
            let size = random.below(200 * MIB);
            let at_once = 1 + random.below(8) as usize;
            let slice = slice_len(size, at_once);
            let with_opener = random.below(3) > 0;
            // What a run before this one has left: all, or a few gaps.
            let mut done: Vec<Range<u64>> = Vec::new();
            while !with_opener && random.below(3) > 0 {
                let start = done.last().map_or(0, |range| range.end) + random.below(30 * MIB);
                done.push(start..start + 1 + random.below(30 * MIB));
            }
            let done = settled(done, size, Clone::clone);
            let mut slices = match with_opener {
                true => Slices::opened(size, slice, at_once),
                false => Slices::planned(missing(done.clone(), size), slice, at_once),
            };
            let mut opener_at = with_opener.then_some(0);
            let mut claimed: Vec<Range<u64>> = Vec::new();
            let mut arrived: Vec<Range<u64>> = done;
            for step in 0.. {
                assert!(step < 100_000, "seed {seed} does not end");
                if arrived.iter().map(|range| range.end - range.start).sum::<u64>() == size {
                    break;
                }
                match random.below(4) {
                    0 => claimed.extend(slices.claim().or_else(|| slices.halve_opener(0))),
                    1 => {
                        if let Some(at) = &mut opener_at {
                            let own = slices.opener_takes(1 + random.below(3 * MIB));
                            arrived.push(*at..*at + own);
                            *at += own;
                            if !opener_is_needed(&slices) || random.below(40) == 0 {
                                slices.opener_ended();
                                opener_at = None;
                            }
                        }
                    }
                    _ if claimed.is_empty() => {}
                    _ => {
                        let at = random.below(claimed.len() as u64) as usize;
                        let slice = claimed.swap_remove(at);
                        let whole = slice.end - slice.start;
                        let part = if random.below(3) == 0 { random.below(whole) } else { whole };
                        arrived.push(slice.start..slice.start + part);
                        if part < whole {
                            claimed.push(slice.start + part..slice.end);
                        }
                    }
                }
            }
            arrived.retain(|range| !range.is_empty());
            arrived.sort_by_key(|range| range.start);
            let mut at = 0;
            for range in arrived {
                assert_eq!(range.start, at, "seed {seed}: a gap or an overlap");
                at = range.end;
            }
            assert_eq!(at, size, "seed {seed}");
        }
    }
}
