//! Divides a large download among streams. The opener is the first GET, which can begin before the size is
//! known. The opener fetches the object from the first byte on. Other streams take ranges from the object's
//! end. After an interruption, only the ranges are fetched that the download's journal doesn't claim as
//! written.

use std::ops::Range;
use std::time::Duration;

use super::SMALL_DOWNLOAD_MAX;

/// The usual minimum size of a slice, in bytes. At S3 and GCS, range requests of 8 to 16 MiB have the highest
/// throughput. Near an object's end, slices can be smaller.
pub(crate) const SLICE_MIN: u64 = 8 << 20;
/// The usual maximum size of a slice, in bytes. A slow slice of this size can be requested again at little
/// cost.
pub(crate) const SLICE_MAX: u64 = 16 << 20;
/// The length of a claim in a download's journal. Slices are cut at its multiples.
pub(crate) const CLAIM_LEN: u64 = 1 << 20;

/// The usual length of the segments that Azure's answers have, each with a checksum. A stream whose range ends
/// between two segments needn't read beyond its end to get the checksum of its last bytes.
pub(crate) const SEGMENT_LEN: u64 = 4 << 20;

/// Does the same as [`split`], but cuts at a multiple of `unit` if that is worth it.
pub(crate) fn split_at(left: &mut Range<u64>, most: u64, unit: u64) -> Option<Range<u64>> {
    split_at_multiple(left, most, unit).or_else(|| split(left, most))
}

/// Takes the end of a stream's range for another stream: at most `most` bytes, and at most half of the range.
/// Each of the two ranges must be worth a request, and large enough to be bulk (above 1 MiB). For a small
/// request, the dispatcher would open connections and slow bulk down.
pub(crate) fn split(left: &mut Range<u64>, most: u64) -> Option<Range<u64>> {
    split_at_multiple(left, most, CLAIM_LEN)
}

fn split_at_multiple(left: &mut Range<u64>, most: u64, unit: u64) -> Option<Range<u64>> {
    let half = (left.end - left.start) / 2;
    let at = (left.end - most.min(half)).next_multiple_of(unit);
    let is_worth_it = at >= left.start + CLAIM_LEN && at + SMALL_DOWNLOAD_MAX < left.end;
    is_worth_it.then(|| at..std::mem::replace(&mut left.end, at))
}

/// The number of bytes that a new connection sends in its first round trip: ten segments.
const INITIAL_WINDOW: f64 = 14_600.0;

/// A stream younger than this number of round trips can be in slow start. Its own rate is then lower than the
/// rate that it will reach.
const SLOW_START: u32 = 10;

/// The progress of one stream of a large download.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamProgress {
    /// The number of bytes that the stream must still fetch.
    pub(crate) left: u64,
    /// The number of bytes that the stream has fetched.
    pub(crate) fetched: u64,
    /// The time since the stream began.
    pub(crate) age: Duration,
}

/// Chooses the streams whose ranges are split for further streams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SplitChoice {
    pub(crate) round_trip: Duration,
    /// The number of bytes in all ranges that further streams have taken over.
    pub(crate) taken_over: u64,
    /// The number of further streams that can begin now, including the one for which the choice is made.
    pub(crate) more: usize,
    /// True if the further stream has an open connection.
    pub(crate) is_open: bool,
}

impl SplitChoice {
    /// Returns the indices of the running streams that a further stream may help, and the maximum number of
    /// bytes that it takes over from each. The stream that needs the longest time comes first. `fetched` is
    /// the number of bytes that the whole download has fetched in its `age`.
    ///
    /// The further stream takes so few bytes that both streams end at the same time, and at most an equal
    /// share of the missing bytes. It also takes at most as much as all further streams have taken over so far,
    /// or [`first`](Self::first) if that is more. So if it turns out to be slow, it has few bytes to fetch.
    pub(crate) fn candidates(
        &self,
        streams: &[StreamProgress],
        fetched: u64,
        age: Duration,
    ) -> Vec<(usize, u64)> {
        // In the first round trip, the rate is unknown.
        let whole = if age <= self.round_trip { 0.0 } else { fetched as f64 / age.as_secs_f64() };
        let rate_of = |stream: &StreamProgress| match stream.age {
            young if young < self.round_trip * SLOW_START => whole / streams.len() as f64,
            old => stream.fetched as f64 / old.as_secs_f64(),
        };
        let missing: u64 = streams.iter().map(|stream| stream.left).sum();
        let most =
            (missing / (streams.len() + self.more).max(1) as u64).min(self.first().max(self.taken_over));
        let mut by_time: Vec<_> = streams.iter().map(rate_of).enumerate().collect();
        let takes = |(at, rate): &(usize, f64)| streams[*at].left as f64 / rate.max(1.0);
        by_time.sort_by(|one, other| takes(other).total_cmp(&takes(one)));
        let help = |(at, rate): (usize, f64)| (at, most.min(help(streams[at].left, rate, self.delay(rate))));
        by_time.into_iter().map(help).collect()
    }

    /// Returns the length of the first range that a further stream takes over: the number of bytes that 1
    /// Gbit/s carries in a round trip, but at least [`SLICE_MIN`]. A shorter range would end before the
    /// stream's congestion window is fully open.
    fn first(&self) -> u64 {
        SLICE_MIN.max((125e6 * self.round_trip.as_secs_f64()) as u64)
    }

    /// Returns how long the further stream takes until it moves `rate` bytes per second. An open connection
    /// needs two round trips: one for the request, and one in which its window opens again. A new connection
    /// needs three, and one more for each doubling of its first window. The last doubling brings as many bytes
    /// as all earlier ones together, so one round trip is subtracted.
    fn delay(&self, rate: f64) -> Duration {
        let doublings = (rate * self.round_trip.as_secs_f64() / INITIAL_WINDOW).max(1.0).log2();
        self.round_trip.mul_f64(if self.is_open { 2.0 } else { 2.0 + doublings })
    }
}

/// Returns how many of the `left` bytes of a stream another stream should take over, so that both end at the
/// same time. Both move `rate` bytes a second, but the other stream begins after `delay`.
fn help(left: u64, rate: f64, delay: Duration) -> u64 {
    left.saturating_sub((rate * delay.as_secs_f64()) as u64) / 2
}

/// Returns whether an object is large enough for several streams.
pub(crate) fn is_sliced(size: u64) -> bool {
    size > SLICE_MAX
}

/// The bytes of an object that no stream fetches yet, and the bytes that the object's opener must still
/// fetch.
///
/// The request of a stream covers all bytes that the stream may have to fetch, so the stream never pauses
/// between requests. Other streams take over the ends of the longest ranges, if that pays off. Each byte is
/// always in exactly one of four states: in `left`, claimed by a stream, to be fetched by the opener, or
/// fetched by the opener.
#[derive(Clone, Debug)]
pub(crate) struct Slices {
    /// Ranges that no stream fetches, in no particular order. [`claim`](Self::claim) takes the one with the
    /// lowest offset.
    left: Vec<Range<u64>>,
    /// The opener's range, from its position to its end.
    opener: Option<Range<u64>>,
    /// The opener's range is cut at multiples of this number of bytes, if that is worth it.
    unit: u64,
}

impl Slices {
    /// Returns slices of the missing ranges of an object, for streams to claim one by one. The ranges must
    /// not overlap.
    pub(crate) fn planned(missing: impl IntoIterator<Item = Range<u64>>) -> Self {
        let left = missing.into_iter().filter(|range| !range.is_empty()).collect();
        Self { left, opener: None, unit: CLAIM_LEN }
    }

    /// Returns the slices of an object that an opener fetches from its first byte on.
    pub(crate) fn opened(size: u64) -> Self {
        Self { left: Vec::new(), opener: Some(0..size), unit: CLAIM_LEN }
    }

    /// Lets the opener's range be cut at multiples of `unit` bytes, if that is worth it.
    pub(crate) fn cut_at(&mut self, unit: u64) {
        self.unit = unit;
    }

    /// Takes the range with the lowest offset among those that no stream fetches.
    pub(crate) fn claim(&mut self) -> Option<Range<u64>> {
        let at = (0..self.left.len()).min_by_key(|i| self.left[*i].start)?;
        Some(self.left.swap_remove(at))
    }

    /// Returns how many bytes the opener must still fetch.
    pub(crate) fn before_opener(&self) -> u64 {
        self.opener.as_ref().map_or(0, |before| before.end - before.start)
    }

    /// Takes over the end of the opener's range, at most `most` bytes.
    pub(crate) fn split_opener(&mut self, most: u64) -> Option<Range<u64>> {
        split_at(self.opener.as_mut()?, most, self.unit)
    }

    /// Counts `bytes` further bytes that the opener has received, and returns how many of these bytes lie in
    /// the opener's range. If the result is less than `bytes`, another stream fetches the other bytes, and
    /// the opener must end.
    pub(crate) fn opener_takes(&mut self, bytes: u64) -> u64 {
        let Some(before) = &mut self.opener else { return 0 };
        let own = bytes.min(before.end - before.start);
        before.start += own;
        own
    }

    /// Returns the current end of the opener's range.
    pub(crate) fn opener_end(&self) -> Option<u64> {
        self.opener.as_ref().map(|before| before.end)
    }

    /// Records that the opener has ended, complete or broken. Other streams fetch the rest of its range.
    pub(crate) fn opener_ended(&mut self) {
        if let Some(before) = self.opener.take().filter(|before| !before.is_empty()) {
            self.left.push(before);
        }
    }
}

/// Returns the valid claims in order. They lie within the object's `size`, and don't overlap. If two claims
/// overlap, the one that begins first is valid. If both begin at the same offset, the longer one is valid.
/// Claims are the ranges that a journal records as written.
pub(crate) fn settled_claims<C>(mut claims: Vec<C>, size: u64, range: impl Fn(&C) -> Range<u64>) -> Vec<C> {
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
pub(crate) fn missing_ranges(done: impl IntoIterator<Item = Range<u64>>, size: u64) -> Vec<Range<u64>> {
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

    const MIB: u64 = 1 << 20;

    fn opener_is_needed(slices: &Slices) -> bool {
        slices.before_opener() > 0
    }

    #[test]
    fn an_opener_that_nobody_helps_brings_everything() {
        let mut slices = Slices::opened(10);
        assert_eq!(slices.opener_takes(4), 4);
        assert_eq!(slices.opener_takes(9), 6);
        assert!(!opener_is_needed(&slices) && slices.claim().is_none());
    }

    #[test]
    fn others_take_over_the_end_and_the_opener_is_cut_there() {
        let mut slices = Slices::opened(64 * MIB);
        assert_eq!(slices.split_opener(16 * MIB), Some(48 * MIB..64 * MIB));
        assert_eq!(slices.split_opener(100 * MIB), Some(24 * MIB..48 * MIB), "half at most");
        assert_eq!(slices.opener_takes(20 * MIB), 20 * MIB);
        assert_eq!(slices.split_opener(100 * MIB), Some(22 * MIB..24 * MIB));
        assert_eq!(slices.split_opener(100 * MIB), None, "too little is left to share");
        assert_eq!(slices.opener_takes(20 * MIB), 2 * MIB);
        assert!(!opener_is_needed(&slices));
    }

    #[test]
    fn what_a_broken_opener_leaves_is_claimed_whole() {
        let mut slices = Slices::opened(40 * MIB);
        slices.opener_takes(5 * MIB);
        slices.opener_ended();
        assert_eq!(slices.claim(), Some(5 * MIB..40 * MIB));
        assert_eq!(slices.claim(), None);
    }

    #[test]
    fn a_range_is_split_where_claims_end_and_not_into_small_requests() {
        let split = |mut left: Range<u64>, most| split(&mut left, most).map(|end| (left, end));
        assert_eq!(split(0..4 * MIB, 9 * MIB), Some((0..2 * MIB, 2 * MIB..4 * MIB)));
        assert_eq!(split(MIB / 2..4 * MIB, 9 * MIB), None, "the end would be small");
        assert_eq!(split(0..2 * MIB + 2, 9 * MIB), None);
        assert_eq!(split(MIB / 2..4 * MIB + 1, 9 * MIB), Some((MIB / 2..3 * MIB, 3 * MIB..4 * MIB + 1)));
        assert_eq!(split(0..100 * MIB + 1, 8 * MIB), Some((0..93 * MIB, 93 * MIB..100 * MIB + 1)));
        let split = |mut left: Range<u64>, most| split_at(&mut left, most, 4 * MIB).map(|end| (left, end));
        assert_eq!(split(0..100 * MIB + 1, 8 * MIB), Some((0..96 * MIB, 96 * MIB..100 * MIB + 1)));
        assert_eq!(
            split(0..4 * MIB, 9 * MIB),
            Some((0..2 * MIB, 2 * MIB..4 * MIB)),
            "no other cut is worth it"
        );
    }

    /// A further stream that can begin now, over 200 ms.
    const CHOICE: SplitChoice =
        SplitChoice { round_trip: Duration::from_millis(200), taken_over: u64::MAX, more: 1, is_open: true };

    #[test]
    fn help_takes_what_it_brings_by_the_end_of_the_helped_stream() {
        let (open, new) = (CHOICE.delay(10e6), SplitChoice { is_open: false, ..CHOICE }.delay(10e6));
        assert_eq!(open, Duration::from_millis(400));
        assert_eq!(help(10_000_000, 10e6, open), 3_000_000);
        assert_eq!(help(4_000_000, 10e6, open), 0, "it would come too late");
        assert!((1.8..1.9).contains(&new.as_secs_f64()), "{new:?}");
        assert_eq!(help(10_000_000, 10e6, new), 0);
        assert_eq!(help(10_000_000, 0.0, new), 5_000_000, "the rate is unknown");
    }

    #[test]
    fn the_stream_that_ends_last_is_helped_first() {
        let second = Duration::from_secs(1);
        let stream = |left, fetched, age| StreamProgress { left: left * MIB, fetched: fetched * MIB, age };
        // 5 s, 8 s, and, since its own rate is that of slow start, 30 MiB at a third of 15 MiB/s.
        let streams = [stream(50, 100, 10 * second), stream(40, 50, 10 * second), stream(30, 1, second)];
        let order = |choice: SplitChoice| choice.candidates(&streams, 150 * MIB, 10 * second);
        assert_eq!(order(CHOICE), [(1, 19 * MIB), (2, 14 * MIB), (0, 23 * MIB)]);
        let few = SplitChoice { taken_over: 0, ..CHOICE };
        assert_eq!(order(few).into_iter().map(|(at, _)| at).collect::<Vec<_>>(), [1, 2, 0]);
        assert!(order(few).iter().all(|(_, most)| *most <= 25_000_000), "what 1 Gbit/s carries in 200 ms");
        assert!(order(SplitChoice { more: 9, ..CHOICE }).iter().all(|(_, most)| *most <= 10 * MIB));
    }

    #[test]
    fn in_the_first_round_trip_the_longest_range_is_halved() {
        let age = Duration::from_millis(100);
        let streams = [10, 90].map(|left| StreamProgress { left: left * MIB, fetched: MIB, age });
        assert_eq!(CHOICE.candidates(&streams, 2 * MIB, age), [(1, 100 * MIB / 3), (0, 5 * MIB)]);
        assert_eq!(CHOICE.candidates(&[], 0, age), []);
    }

    #[test]
    fn an_empty_object_has_nothing_to_claim() {
        assert!(!opener_is_needed(&Slices::opened(0)));
        assert_eq!(Slices::planned([]).claim(), None);
    }

    #[test]
    fn every_byte_arrives_once_in_any_order_of_splits_and_failures() {
        for seed in 0..2_000 {
            let mut random = RandomNumbers(seed);
            let size = random.below(200 * MIB);
            let with_opener = random.below(3) > 0;
            // The ranges that an earlier run has done: none, or all except a few gaps.
            let mut done: Vec<Range<u64>> = Vec::new();
            while !with_opener && random.below(3) > 0 {
                let start = done.last().map_or(0, |range| range.end) + random.below(30 * MIB);
                done.push(start..start + 1 + random.below(30 * MIB));
            }
            let done = settled_claims(done, size, Clone::clone);
            let mut slices = match with_opener {
                true => Slices::opened(size),
                false => Slices::planned(missing_ranges(done.clone(), size)),
            };
            let mut opener_at = with_opener.then_some(0);
            let mut claimed: Vec<Range<u64>> = Vec::new();
            let mut arrived: Vec<Range<u64>> = done;
            for step in 0.. {
                assert!(step < 100_000, "seed {seed} does not end");
                if arrived.iter().map(|range| range.end - range.start).sum::<u64>() == size {
                    break;
                }
                match random.below(5) {
                    0 => claimed.extend(slices.claim()),
                    1 => {
                        let most = 1 + random.below(40 * MIB);
                        let longest = claimed.iter_mut().max_by_key(|range| range.end - range.start);
                        let end = match longest.filter(|_| random.below(2) > 0) {
                            Some(longest) => split(longest, most),
                            None => slices.split_opener(most),
                        };
                        claimed.extend(end);
                    }
                    2 => {
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

    #[test]
    fn gaps_are_what_no_claim_holds() {
        assert_eq!(missing_ranges([], 10), vec![0..10]);
        assert_eq!(missing_ranges(Some(0..10), 10), []);
        assert_eq!(missing_ranges([2..4, 4..5, 9..10], 10), [0..2, 5..9]);
        assert_eq!(missing_ranges([], 0), []);
    }

    #[test]
    fn of_claims_that_overlap_one_stays() {
        assert_eq!(settled_claims(vec![4..6, 0..2, 0..3, 2..5, 6..11, 6..6], 10, Clone::clone), [0..3, 4..6]);
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
            let done = settled_claims(claimed.clone(), size, Clone::clone);
            assert!(done.iter().all(|range| claimed.contains(range)), "seed {seed}");
            let mut all: Vec<_> = missing_ranges(done.clone(), size).into_iter().chain(done).collect();
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
