//! Plans the requests that read many ranges of an object.
//!
//! Ranges that overlap or touch form one run of bytes. Two runs are joined if fetching the bytes between them
//! costs less than another request. The joined run must also be small enough for an express lane (at most 1
//! MiB). In a larger run, a request costs little compared to its bytes. A long run is split into slices, so
//! that several connections share it. If all these requests cost more than reading the whole object, the plan
//! is to read the whole object.

use std::ops::Range;

use laneway_store::{RequestPrices, Store};

use super::path::PathEstimate;
use crate::plan::SMALL_DOWNLOAD_MAX;
use crate::plan::slices::{SLICE_MAX, SLICE_MIN};

/// The maximum size in bytes of a request for joined runs. Larger requests would use freight lanes.
const JOINED_MAX: u64 = SMALL_DOWNLOAD_MAX;

/// The time in seconds that a slice should take on a connection.
const SLICE_SECONDS: f64 = 0.2;

/// The requests to send, and the ranges that their answers contain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Plan {
    /// Groups of requests, in the order of their offsets. No two groups fetch the same byte.
    pub(crate) groups: Vec<RequestGroup>,
    /// The indices in the caller's list of the ranges that are empty.
    pub(crate) empty: Vec<usize>,
    /// True if there are long runs that can't be split, because the object's size isn't known. The caller
    /// requests the size and plans again.
    pub(crate) needs_size: bool,
}

/// One request, or several requests for adjacent bytes if a long run was split.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct RequestGroup {
    /// The range of each request. Each request begins where the one before it ends.
    pub(crate) requests: Vec<Range<u64>>,
    /// The ranges that the answers contain, each with its index in the caller's list.
    pub(crate) asked: Vec<(usize, Range<u64>)>,
    /// The number of bytes in the group that the caller asked for. The group's other bytes lie between the
    /// requested ranges.
    pub(crate) wanted: u64,
}

/// The reason why a range can't be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum UnreadableRange {
    /// This range ends before it begins.
    Reversed(Range<u64>),
    /// This range begins at or after the object's end.
    Outside(Range<u64>),
}

impl RequestGroup {
    /// Returns the range from the beginning of the first request to the end of the last.
    pub(crate) fn bytes(&self) -> Range<u64> {
        let first = self.requests.first().map_or(0, |request| request.start);
        first..self.requests.last().map_or(first, |request| request.end)
    }

    /// Returns the number of bytes that the requests fetch.
    pub(crate) fn len(&self) -> u64 {
        let bytes = self.bytes();
        bytes.end - bytes.start
    }
}

/// Returns whether the plan is a single request on every network path.
pub(crate) fn is_one_request(asked: &[Range<u64>]) -> bool {
    matches!(asked, [range] if range.end.saturating_sub(range.start) <= SLICE_MIN)
}

/// Plans how to read the ranges `asked`. If the object's size is known, the plan ends ranges at the object's
/// end.
///
/// # Errors
/// The first range that can't be read.
pub(crate) fn plan(
    asked: &[Range<u64>],
    size: Option<u64>,
    path: &PathEstimate,
    prices: &PriceList,
) -> Result<Plan, UnreadableRange> {
    let mut empty = Vec::new();
    let mut sorted = Vec::with_capacity(asked.len());
    for (at, range) in asked.iter().enumerate() {
        let cut = within(range, size)?;
        match cut.is_empty() {
            true => empty.push(at),
            false => sorted.push((at, cut)),
        }
    }
    sorted.sort_by_key(|(_, range)| (range.start, range.end));
    let runs = runs(sorted);
    let byte = path.byte_seconds() + prices.byte_seconds();
    let request = path.request_seconds(runs.len()) + prices.request_seconds();
    let joined = join(runs, request / byte);
    let slice = slice_len(path);
    let seconds = |groups: &[RequestGroup]| {
        let requests = groups.iter().map(|group| cuts(group.len(), slice)).sum::<u64>() as usize;
        let bytes = groups.iter().map(RequestGroup::len).sum::<u64>() as f64;
        path.requests_seconds(requests) + requests as f64 * prices.request_seconds() + bytes * byte
    };
    let whole = size.filter(|_| joined.len() > 1).map(|size| {
        let wanted = joined.iter().map(|group| group.wanted).sum();
        vec![RequestGroup { requests: vec![0..size; 1], asked: Vec::new(), wanted }]
    });
    let mut groups = match whole.filter(|whole| seconds(whole) < seconds(&joined)) {
        Some(mut whole) => {
            whole[0].asked = joined.into_iter().flat_map(|group| group.asked).collect();
            whole
        }
        None => joined,
    };
    // Split runs only if the size is known. Otherwise a slice could begin after the object's end, and the
    // store would refuse its request.
    let needs_size = size.is_none() && groups.iter().any(|group| cuts(group.len(), slice) > 1);
    if size.is_some() {
        groups.iter_mut().for_each(|group| group.requests = cut(group.bytes(), slice));
    }
    Ok(Plan { groups, empty, needs_size })
}

/// Returns the part of a range that lies within an object of this size. If the size isn't known, returns the
/// range unchanged. An empty range may have any offset. In an empty object, a range that begins at 0 becomes
/// empty.
///
/// # Errors
/// If the range ends before it begins, or begins at or after the object's end.
pub(crate) fn within(range: &Range<u64>, size: Option<u64>) -> Result<Range<u64>, UnreadableRange> {
    if range.start > range.end {
        return Err(UnreadableRange::Reversed(range.clone()));
    }
    match size {
        Some(size) if !range.is_empty() => match range.start < size || (size == 0 && range.start == 0) {
            true => Ok(range.start..range.end.min(size)),
            false => Err(UnreadableRange::Outside(range.clone())),
        },
        _ => Ok(range.clone()),
    }
}

/// Joins overlapping or adjacent ranges into runs. Each run is a group with one request.
fn runs(sorted: Vec<(usize, Range<u64>)>) -> Vec<RequestGroup> {
    let mut runs: Vec<RequestGroup> = Vec::new();
    for (at, range) in sorted {
        match runs.last_mut() {
            Some(run) if range.start <= run.requests[0].end => {
                run.requests[0].end = run.requests[0].end.max(range.end);
                run.asked.push((at, range));
            }
            _ => {
                runs.push(RequestGroup { requests: vec![range.clone()], asked: vec![(at, range)], wanted: 0 })
            }
        }
    }
    runs.iter_mut().for_each(|run| run.wanted = run.len());
    runs
}

/// Joins runs that are at most `gap_max` bytes apart, up to [`JOINED_MAX`].
fn join(runs: Vec<RequestGroup>, gap_max: f64) -> Vec<RequestGroup> {
    let mut joined: Vec<RequestGroup> = Vec::with_capacity(runs.len());
    for run in runs {
        let bytes = run.bytes();
        match joined.last_mut() {
            Some(last)
                if bytes.end - last.requests[0].start <= JOINED_MAX
                    && (bytes.start - last.requests[0].end) as f64 <= gap_max =>
            {
                last.requests[0].end = bytes.end;
                last.asked.extend(run.asked);
                last.wanted += run.wanted;
            }
            _ => joined.push(run),
        }
    }
    joined
}

/// Returns the approximate length of slices on a path: 8 to 16 MiB, longer for faster connections.
fn slice_len(path: &PathEstimate) -> u64 {
    ((path.lane_rate * SLICE_SECONDS) as u64).clamp(SLICE_MIN, SLICE_MAX)
}

/// Returns the number of requests for a run of this length. Each request has [`SLICE_MIN`] to [`SLICE_MAX`]
/// bytes, unless there is only one.
fn cuts(len: u64, slice: u64) -> u64 {
    len.div_ceil(slice).min(len / SLICE_MIN).max(1)
}

/// Splits a range into requests of about the length of a slice. All have the same length, except the last.
fn cut(bytes: Range<u64>, slice: u64) -> Vec<Range<u64>> {
    let len = bytes.end - bytes.start;
    let each = len.div_ceil(cuts(len, slice)).max(1);
    let starts = (0..len.div_ceil(each)).map(|n| bytes.start + n * each);
    starts.map(|start| start..start.saturating_add(each).min(bytes.end)).collect()
}

/// The prices of requests, bytes and time. With these prices, Laneway decides between two ways to read
/// neighbouring ranges: two requests, or a single one that also fetches the bytes between them. All amounts
/// are in US dollars.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub struct PriceList {
    /// The price of a GET.
    pub request: f64,
    /// The price of a GiB that the store sends. This price is 0 for readers in the bucket's region, and about
    /// 0.1 over the internet.
    pub egress_gib: f64,
    /// The price of a second that the program waits. The default is the price of a machine with about 64
    /// cores. With a larger value, money matters less and time matters more: Laneway joins fewer ranges and
    /// sends more requests.
    pub second: f64,
}

impl PriceList {
    /// The prices for a reader that pays only for its time, not for requests or bytes.
    pub const FREE: Self = Self { request: 0.0, egress_gib: 0.0, second: 0.001 };

    /// Returns the prices for a reader in the bucket's region, with a store's prices for requests.
    pub fn of(prices: &RequestPrices) -> Self {
        Self { request: prices.reads / 1000.0, ..Self::FREE }
    }

    /// Returns the prices that the service at a store's endpoint charges. For an endpoint other than the
    /// cloud's own, such as a self-hosted server, requests are free.
    pub(super) fn charged_by(store: &Store) -> Self {
        let prices = store.capabilities().prices;
        if prices.are_charged_at(&store.endpoint()) { Self::of(&prices) } else { Self::FREE }
    }

    /// Returns the number of seconds of waiting that cost as much as a request.
    pub(super) fn request_seconds(&self) -> f64 {
        self.seconds(self.request)
    }

    /// Returns the number of seconds of waiting that cost as much as a byte.
    pub(super) fn byte_seconds(&self) -> f64 {
        self.seconds(self.egress_gib / (1u64 << 30) as f64)
    }

    /// Converts an amount to seconds of waiting. Returns 0 if a price is zero, negative, infinite or not a
    /// number.
    fn seconds(&self, amount: f64) -> f64 {
        let seconds = amount / self.second;
        if seconds.is_finite() && seconds > 0.0 { seconds } else { 0.0 }
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "a range is what is meant")]
mod tests {
    use std::time::Duration;

    use laneway_lanes::Protocol;

    use super::*;
    use crate::plan::random::RandomNumbers;

    const KIB: u64 = 1 << 10;
    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;
    /// Prices with $0.0004 for a thousand reads.
    const CHARGED: PriceList = PriceList { request: 0.000_000_4, ..PriceList::FREE };

    fn path(ms: u64, rate: f64) -> PathEstimate {
        PathEstimate { round_trip: Duration::from_millis(ms), rate, lane_rate: rate, protocol: Protocol::H1 }
    }

    /// Returns the planned requests for ranges, on a path of 1 Gbit/s and 20 ms.
    fn requests(asked: &[Range<u64>], size: Option<u64>) -> Vec<Range<u64>> {
        let plan = plan(asked, size, &path(20, 125e6), &PriceList::FREE).unwrap();
        plan.groups.into_iter().flat_map(|group| group.requests).collect()
    }

    #[test]
    fn ranges_that_overlap_or_touch_are_one_request() {
        assert_eq!(requests(&[20..30, 0..10, 10..20, 5..25, 0..10], None), [0..30]);
    }

    #[test]
    fn neighbours_are_joined_where_the_gap_costs_less_than_a_request() {
        assert_eq!(requests(&[0..KIB, 9 * KIB..10 * KIB], None), [0..10 * KIB]);
        let far = [0..KIB, 9 * MIB..9 * MIB + KIB];
        assert_eq!(requests(&far, None), far);
    }

    #[test]
    fn the_farther_the_store_the_larger_the_gap_that_pays() {
        let asked: Vec<_> = (0..100).map(|n| n * 64 * KIB..n * 64 * KIB + KIB).collect();
        let count = |path: PathEstimate| plan(&asked, None, &path, &PriceList::FREE).unwrap().groups.len();
        assert_eq!(count(path(1, 125e6)), 100);
        assert!(count(path(50, 125e6)) < 20);
        assert_eq!(count(path(50, 10e6)), 100, "a gap takes longer over a slow path");
    }

    #[test]
    fn prices_join_where_requests_cost_and_part_where_bytes_do() {
        let asked: Vec<_> = (0..100).map(|n| n * 64 * KIB..n * 64 * KIB + KIB).collect();
        let count = |prices| plan(&asked, None, &path(1, 125e6), &prices).unwrap().groups.len();
        assert_eq!(count(PriceList::FREE), 100);
        assert!(count(PriceList { second: 0.000_4, ..CHARGED }) < 20);
        assert_eq!(count(PriceList { egress_gib: 0.09, second: 0.000_4, ..CHARGED }), 100);
    }

    #[test]
    fn a_long_range_is_cut_into_slices_of_8_to_16_mib() {
        let size = Some(GIB);
        assert_eq!(requests(&[0..16 * MIB - 1], size).len(), 1);
        assert_eq!(requests(&[0..u64::MAX], size).len(), 64);
        assert_eq!(requests(&[MIB..21 * MIB], size), [MIB..11 * MIB, 11 * MIB..21 * MIB]);
        let slow = PathEstimate { lane_rate: 10e6, ..path(20, 125e6) };
        let sliced = plan(&[0..64 * MIB], size, &slow, &PriceList::FREE).unwrap();
        assert_eq!(sliced.groups[0].requests.len(), 8);
    }

    #[test]
    fn without_a_size_a_long_range_is_not_cut_and_says_so() {
        let plan = |asked| plan(&[asked], None, &path(20, 125e6), &PriceList::FREE).unwrap();
        let long = plan(0..u64::MAX);
        assert_eq!((long.needs_size, &long.groups[0].requests[..]), (true, &[0..u64::MAX][..]));
        assert!(!plan(0..16 * MIB - 1).needs_size);
    }

    #[test]
    fn the_whole_object_is_read_where_that_is_cheaper() {
        // Two of these ranges together exceed 1 MiB, so a request for both would be bulk.
        let asked: Vec<_> = (0..32).map(|n| n * MIB..n * MIB + 960 * KIB).collect();
        assert_eq!(requests(&asked, None).len(), 32, "without a size, Laneway can't read the whole object");
        assert_eq!(requests(&asked, Some(32 * MIB)).first(), Some(&(0..16 * MIB)));
        assert_eq!(requests(&asked, Some(GIB)).len(), 32);
    }

    #[test]
    fn a_parquet_read_is_a_request_for_each_chunk() {
        // A footer, and chunks of 320 KiB: three of the 50 columns in each of 64 row groups.
        let chunk = |group: u64, column: u64| {
            let start = (group * 50 + column) * 320 * KIB;
            start..start + 320 * KIB
        };
        let mut asked: Vec<_> =
            (0..64).flat_map(|group| [7, 23, 41].map(|column| chunk(group, column))).collect();
        asked.push(GIB - 64 * KIB..GIB);
        assert_eq!(requests(&asked, Some(GIB)).len(), asked.len());
    }

    #[test]
    fn empty_ranges_are_read_nowhere_and_reversed_ones_refused() {
        let free = &PriceList::FREE;
        let plan = |asked: &[Range<u64>], size| plan(asked, size, &path(20, 125e6), free);
        let nothing = plan(&[5..5, 99..99], Some(10)).unwrap();
        assert_eq!((nothing.groups.len(), nothing.empty), (0, vec![0, 1]));
        assert_eq!(plan(&[], None).unwrap().groups, []);
        let reversed = Range { start: 9, end: 5 };
        assert_eq!(plan(&[0..4, reversed.clone()], None), Err(UnreadableRange::Reversed(reversed)));
    }

    #[test]
    fn what_reaches_beyond_the_end_is_cut_there_and_what_begins_there_refused() {
        assert_eq!(requests(&[5..99], Some(10)), [5..10]);
        assert_eq!(requests(&[5..u64::MAX], Some(10)), [5..10]);
        let plan = |size, asked| plan(&[asked], Some(size), &path(20, 125e6), &PriceList::FREE);
        assert_eq!(plan(10, 10..11), Err(UnreadableRange::Outside(10..11)));
        assert_eq!(plan(0, 0..11).unwrap().empty, [0], "it is empty in an empty object");
        assert_eq!(plan(0, 1..11), Err(UnreadableRange::Outside(1..11)));
    }

    /// Ranges as callers ask for them: in any order, some twice, some overlapping, some empty or beyond the end.
    fn asked(random: &mut RandomNumbers, size: u64) -> Vec<Range<u64>> {
        let len_max = [KIB, 64 * KIB, 4 * MIB, 100 * MIB][random.below(4) as usize];
        let within = size.min([64 * KIB, 4 * MIB, GIB][random.below(3) as usize]).max(1);
        let mut asked: Vec<Range<u64>> = Vec::new();
        for _ in 0..random.below(300) {
            match asked.last().cloned() {
                Some(last) if random.below(8) == 0 => asked.push(last),
                Some(last) if random.below(8) == 0 => asked.push(last.end..last.end + random.below(len_max)),
                _ => {
                    let start = random.below(within);
                    asked.push(start..start + random.below(len_max));
                }
            }
        }
        asked
    }

    #[test]
    fn every_requested_byte_comes_once_within_the_bounds_of_cost() {
        for seed in 0..3_000 {
            let mut random = RandomNumbers(seed);
            let size = random.below(2 * GIB);
            let known = (random.below(2) == 0).then_some(size);
            let path = PathEstimate {
                round_trip: Duration::from_micros(random.below(200_000)),
                rate: 1e5 + random.below(4_000_000_000) as f64,
                lane_rate: 1e5 + random.below(200_000_000) as f64,
                protocol: if random.below(2) == 0 { Protocol::H1 } else { Protocol::H2 },
            };
            let prices = [PriceList::FREE, CHARGED, PriceList { egress_gib: 0.09, ..CHARGED }]
                [random.below(3) as usize];
            let mut asked = asked(&mut random, size);
            asked.retain(|range| range.is_empty() || range.start < size);
            let plan = plan(&asked, known, &path, &prices).unwrap();

            // Requests: in order, none empty, none overlapping.
            let mut end = 0;
            for group in &plan.groups {
                assert!(group.requests[0].start >= end, "seed {seed}");
                end = group.requests[0].start;
                for request in &group.requests {
                    assert!(request.start == end && request.start < request.end, "seed {seed}");
                    assert!(known.is_none() || request.end - request.start <= SLICE_MAX, "seed {seed}");
                    end = request.end;
                }
            }

            // Exactly one request contains each requested range, and contains it completely.
            let mut places = vec![0; asked.len()];
            plan.empty.iter().for_each(|at| places[*at] += 1);
            for group in &plan.groups {
                for (at, range) in &group.asked {
                    places[*at] += 1;
                    assert_eq!(*range, within(&asked[*at], known).unwrap(), "seed {seed}");
                    let bytes = group.bytes();
                    assert!(bytes.start <= range.start && range.end <= bytes.end, "seed {seed}");
                }
            }
            assert!(places.iter().all(|count| *count == 1), "seed {seed}");

            // Count the runs without a gap, and their bytes.
            let mut sorted: Vec<_> =
                asked.iter().map(|r| within(r, known).unwrap()).filter(|r| !r.is_empty()).collect();
            sorted.sort_by_key(|range| range.start);
            let (mut runs, mut wanted, mut end) = (0, 0, None);
            for range in sorted {
                runs += usize::from(end.is_none_or(|end| range.start > end));
                wanted += range.end.saturating_sub(end.unwrap_or(0).max(range.start));
                end = end.max(Some(range.end));
            }
            let brought: u64 = plan.groups.iter().map(RequestGroup::len).sum();
            assert_eq!(plan.groups.iter().map(|group| group.wanted).sum::<u64>(), wanted, "seed {seed}");
            let requests: usize = plan.groups.iter().map(|group| group.requests.len()).sum();
            let cuts = requests - plan.groups.len();
            assert!(requests <= runs + cuts && plan.groups.len() <= asked.len(), "seed {seed}");

            let is_whole = runs > 1 && known.is_some_and(|size| brought == size);
            let request = path.request_seconds(runs) + prices.request_seconds();
            let byte = path.byte_seconds() + prices.byte_seconds();
            let (wasted, saved) = ((brought - wanted) as f64, (runs - plan.groups.len()) as f64);
            assert!(is_whole || wasted * byte <= saved * request * 1.000_001, "seed {seed}");
            assert!(
                is_whole || brought - wanted <= (runs - plan.groups.len()) as u64 * JOINED_MAX,
                "seed {seed}"
            );
        }
    }

    #[test]
    fn prices_that_are_no_numbers_are_none() {
        let charged = PriceList::of(&RequestPrices { reads: 0.0004, ..RequestPrices::FREE });
        for second in [0.0, -1.0, f64::NAN] {
            assert_eq!(PriceList { second, ..charged }.request_seconds(), 0.0);
        }
        let seconds = charged.request_seconds();
        assert!((seconds - 0.000_4).abs() < 1e-9, "{seconds}");
    }
}
