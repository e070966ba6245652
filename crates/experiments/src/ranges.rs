//! Reads of many ranges of one object. There are two cases: scattered ranges, as the reader of an index needs them, and
//! columns of a table file, as a query engine needs them.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use laneway_quantity::size;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use crate::counted::{Bench, Counted, Found};
use crate::place::Target;
use crate::random::Random;
use crate::rival::{self, Http1, Pool, Protocol, Rival, Tally};
use crate::site::Site;
use crate::slices::floor_s;
use crate::stage::{Stage, Supply, on_stage};
use crate::turns::{Event, Repeats, Rung};
use crate::{Error, Failure, Stop, Workers, errand};

/// The seed of the object's bytes and of the ranges' positions.
const SEED: u64 = 11;

/// The ranges to read, and the store.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Number of scattered ranges.
    pub ranges: usize,
    /// Size of the object in bytes.
    pub size: u64,
    /// Runs of each method. The methods take turns.
    pub runs: Repeats,
    /// The store.
    pub target: Target,
}

/// The results for scattered ranges and for a table's columns.
#[derive(Debug)]
pub struct Ranges {
    /// Ranges from all over the object, requested at once.
    pub scattered: Counted,
    /// A footer, and after it three of fifty columns in each of 64 row groups.
    pub columns: Counted,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
enum Reader {
    OneByOne,
    Pool,
    FixedGap,
    Whole,
    Laneway,
}

const RUNGS: [Rung<Reader>; 5] = [
    Rung {
        method: Reader::OneByOne,
        name: "one-by-one",
        description: "one range after another on a kept-alive connection",
        group: "",
    },
    Rung {
        method: Reader::Pool,
        name: "pool-50",
        description: "each range by itself over a pool of 50 HTTP/1.1 connections",
        group: "",
    },
    Rung {
        method: Reader::FixedGap,
        name: "fixed-gap",
        description: "one request for ranges with gaps of at most 1 MiB, over 10 connections",
        group: "",
    },
    Rung {
        method: Reader::Whole,
        name: "whole",
        description: "the whole object in slices, over 10 connections",
        group: "",
    },
    Rung { method: Reader::Laneway, name: "laneway", description: "Laneway", group: "" },
];

/// The input of one run, as it is sent to the process that executes the run.
#[derive(Serialize, Deserialize)]
pub(crate) struct Errand {
    reader: Reader,
    key: String,
    size: u64,
    /// Groups of ranges. The ranges of a group are requested together, once the group before is complete.
    lots: Vec<Vec<Range<u64>>>,
}

impl errand::Errand for Errand {
    const NAME: &'static str = "ranges";
    type Found = Found;

    async fn run(self, site: Arc<Site>) -> Result<Found, Failure> {
        let (found, came) = match self.reader {
            Reader::Laneway => read_by_laneway(&site, &self.key, &self.lots).await?,
            reader => read(reader, &site, &self).await?,
        };
        let asked = self.lots.iter().flatten();
        if asked.clone().count() != came.len() {
            return Err(Failure::Different(format!("{} ranges arrived", came.len())));
        }
        // A method that returns wrong bytes gets no figures.
        match asked.zip(&came).find(|(range, bytes)| Random::content_at(SEED, range) != **bytes) {
            Some((range, _)) => {
                Err(Failure::Different(format!("the bytes {range:?} differ from those that were stored")))
            }
            None => Ok(found),
        }
    }
}

/// The result of a run, and the bytes of the ranges in the requested order.
type Came = (Found, Vec<Bytes>);

/// Reads the ranges with each method in turn. Blocks the thread, so don't call this on a thread that runs async tasks.
///
/// # Errors
/// Returns an error that prevents the whole experiment. If only one method fails, its row holds the failure.
pub fn run(
    plan: &Plan,
    workers: &Workers,
    stop: &Stop,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<Ranges, Error> {
    if plan.ranges == 0 || plan.runs.least == 0 || plan.ranges > 100_000 || plan.size < SIZE_MIN {
        let why =
            "the plan needs from 1 to 100,000 ranges of an object of at least 16 MiB, and at least one run";
        return Err(Error::Plan(why.to_owned()));
    }
    on_stage((&plan.target, None, plan.size), (workers, stop), tell, |stage, tell| climb(plan, stage, tell))
}

fn climb(plan: &Plan, stage: &Stage<'_>, tell: &mut dyn FnMut(Event<'_>)) -> Result<Ranges, Error> {
    stage.may_be_parted("object");
    stage.stock(&[Supply { name: "object".to_owned(), seed: SEED, size: plan.size }])?;
    let mut job = |bench: Bench, lots: Vec<Vec<Range<u64>>>| {
        let bytes = lots.iter().flatten().map(|range| range.end - range.start).sum();
        // `floor_s` includes the round trip for one group of requests. Add one for each further group.
        let floor_s = floor_s(stage, bytes, &plan.target) + (lots.len() - 1) as f64 * stage.rtt.as_secs_f64();
        let one = |reader, _| {
            stage.carry(Errand { reader, key: stage.key("object"), size: plan.size, lots: lots.clone() })
        };
        let ranges = lots.iter().map(Vec::len).sum();
        let size = size(plan.size);
        let what = match bench {
            Bench::Columns => format!("read the footer and columns of a table of {size}, in {ranges} ranges"),
            _ => format!("read {ranges} scattered ranges of an object of {size}"),
        };
        Counted::find(bench, (ranges, what, plan.runs), stage, floor_s, &RUNGS, tell, one)
    };
    let scattered = job(Bench::Ranges, scattered(plan.ranges, plan.size))?;
    let columns = job(Bench::Columns, columns(plan.size))?;
    Ok(Ranges { scattered, columns })
}

/// Minimum and maximum size of scattered ranges.
const LEN_MIN: u64 = 4 << 10;
const LEN_MAX: u64 = 64 << 10;

/// The shape of the table file.
const ROW_GROUPS: u64 = 64;
const COLUMNS: u64 = 50;
const FOOTER: u64 = 64 << 10;

/// The columns that are read. Two of them are adjacent, so that a method can merge their ranges.
const READ: [u64; 3] = [7, 8, 31];

/// The smallest size of the object. The ranges of both cases, scattered ranges and columns, fit into it.
const SIZE_MIN: u64 = 16 << 20;

/// Returns ranges of 4 to 64 KiB at random positions in an object.
fn scattered(count: usize, size: u64) -> Vec<Vec<Range<u64>>> {
    let mut random = Random::new(SEED);
    let mut range = || {
        let len = random.between(LEN_MIN, LEN_MAX);
        let start = random.between(0, size - len);
        start..start + len
    };
    vec![(0..count).map(|_| range()).collect()]
}

/// Returns a footer, and then three column chunks of each row group. Columns differ in width, as in real tables.
fn columns(size: u64) -> Vec<Vec<Range<u64>>> {
    let mut random = Random::new(SEED);
    let widths: Vec<u64> = (0..COLUMNS).map(|_| random.between(1, 40)).collect();
    let group = (size - FOOTER) / ROW_GROUPS;
    let unit = group / widths.iter().sum::<u64>();
    let chunk = |row_group: u64, column: u64| {
        let before = widths[..column as usize].iter().sum::<u64>();
        let start = row_group * group + before * unit;
        start..start + widths[column as usize] * unit
    };
    let chunks = (0..ROW_GROUPS).flat_map(|row_group| READ.map(|column| chunk(row_group, column)));
    vec![vec![size - FOOTER..size; 1], chunks.collect()]
}

/// Reads ranges with Laneway's library, as a program that has just started does.
async fn read_by_laneway(site: &Site, key: &str, lots: &[Vec<Range<u64>>]) -> Result<Came, Failure> {
    let started = Instant::now();
    let client = site.laneway(None)?;
    let bucket = client.bucket(&format!("{}://{}", site.provider.scheme(), site.bucket))?;
    let mut came = Vec::new();
    for lot in lots {
        came.extend(bucket.get_ranges(key, lot.iter().cloned()).await?);
    }
    let seconds = started.elapsed().as_secs_f64();
    let counters = client.counters();
    let tally = Tally { requests: counters.requests, connections: counters.connections };
    Ok((Found { seconds, tally }, came))
}

/// Ranges are merged into one request if the gap between them has at most this many bytes. The `object_store` crate
/// uses the same value.
const GAP_MAX: u64 = 1 << 20;

/// Size of the slices in which the whole object is read.
const SLICE: u64 = 8 << 20;

async fn read(reader: Reader, site: &Arc<Site>, errand: &Errand) -> Result<Came, Failure> {
    let started = Instant::now();
    let rival = Rival::new(site, Protocol::H1);
    let connections = match reader {
        Reader::OneByOne => 1,
        Reader::Pool => 50,
        Reader::FixedGap | Reader::Whole | Reader::Laneway => 10,
    };
    let pool = Pool::new(rival.clone(), Some(connections));
    let mut came = Vec::new();
    // `Reader::Whole` fetches the whole object for the first group, and keeps it here for the later groups.
    let mut whole = Vec::new();
    for lot in &errand.lots {
        let requests = match reader {
            Reader::FixedGap => joined(lot),
            Reader::Whole => slices(errand.size),
            Reader::OneByOne | Reader::Pool | Reader::Laneway => lot.clone(),
        };
        let mut bodies = match reader {
            Reader::Whole if !whole.is_empty() => std::mem::take(&mut whole),
            _ => fetch(site, &pool, &errand.key, requests).await?,
        };
        bodies.sort_by_key(|(request, _)| ends(request));
        came.extend(lot.iter().map(|range| cut(&bodies, range)));
        if reader == Reader::Whole {
            whole = bodies;
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    Ok((Found { seconds, tally: rival.tally() }, came))
}

/// Merges neighbours with at most [`GAP_MAX`] between them.
fn joined(ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut sorted = ranges.to_vec();
    sorted.sort_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in sorted {
        match joined.last_mut() {
            Some(last) if range.start <= last.end + GAP_MAX => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

fn slices(size: u64) -> Vec<Range<u64>> {
    (0..size.div_ceil(SLICE)).map(|n| n * SLICE..size.min((n + 1) * SLICE)).collect()
}

/// Sends all requests as soon as the pool permits.
async fn fetch(
    site: &Arc<Site>,
    pool: &Pool,
    key: &str,
    requests: Vec<Range<u64>>,
) -> Result<Vec<(Range<u64>, Bytes)>, Failure> {
    let mut fetching = JoinSet::new();
    for request in requests {
        let (site, pool, key) = (Arc::clone(site), pool.clone(), key.to_owned());
        fetching.spawn(async move {
            let mut taken = pool.take().await?;
            let body = one(&site, &key, &request, &mut taken.connection).await?;
            taken.give_back();
            Ok::<_, rival::Error>((request, body))
        });
    }
    let mut bodies = Vec::new();
    while let Some(fetched) = fetching.join_next().await {
        bodies.push(fetched.map_err(|_| Failure::Unfinished)??);
    }
    Ok(bodies)
}

async fn one(
    site: &Site,
    key: &str,
    range: &Range<u64>,
    connection: &mut Http1,
) -> Result<Bytes, rival::Error> {
    let mut body = Vec::with_capacity((range.end - range.start) as usize);
    let take = |bytes: &[u8]| {
        body.extend_from_slice(bytes);
        Ok(())
    };
    connection.fetch(site.get(key, Some(range)).await?, take).await?;
    Ok(body.into())
}

/// Cuts a range out of the bodies that contain it. The bodies are sorted by position. If bytes are missing, the result
/// is too short, and the later comparison with the expected bytes fails.
fn cut(bodies: &[(Range<u64>, Bytes)], range: &Range<u64>) -> Bytes {
    // If each range had its own request, bodies may overlap. Use the body of the request for exactly this range. Merged requests and slices
    // never overlap, and the search below relies on that.
    if let Ok(at) = bodies.binary_search_by_key(&ends(range), |(request, _)| ends(request)) {
        return bodies[at].1.clone();
    }
    let first = bodies.partition_point(|(request, _)| request.end <= range.start);
    let part = |(request, body): &(Range<u64>, Bytes)| {
        let clamp = |at: u64| (at.saturating_sub(request.start) as usize).min(body.len());
        body.slice(clamp(range.start)..clamp(range.end))
    };
    match bodies.get(first) {
        Some(only) if range.end <= only.0.end => part(only),
        _ => {
            let holding = bodies[first..].iter().take_while(|(request, _)| request.start < range.end);
            holding.flat_map(part).collect()
        }
    }
}

fn ends(range: &Range<u64>) -> (u64, u64) {
    (range.start, range.end)
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "the vector has one range, not its numbers")]
mod tests {
    use super::*;

    #[test]
    fn ranges_lie_in_the_object_and_are_the_same_in_every_run() {
        for size in [SIZE_MIN, 1 << 30] {
            for lots in [scattered(400, size), columns(size)] {
                assert!(lots.iter().flatten().all(|range| range.start < range.end && range.end <= size));
            }
            assert_eq!(scattered(9, size), scattered(9, size));
        }
        let lens: Vec<u64> = scattered(400, 1 << 30)[0].iter().map(|range| range.end - range.start).collect();
        assert!(lens.iter().all(|len| (LEN_MIN..=LEN_MAX).contains(len)));
    }

    #[test]
    fn a_table_has_a_footer_and_three_chunks_in_each_row_group() {
        let lots = columns(1 << 30);
        assert_eq!((lots[0].len(), lots[1].len()), (1, 192));
        assert_eq!(lots[1][0].end, lots[1][1].start, "the first two columns aren't adjacent");
        assert!(lots[1][1].end < lots[1][2].start && lots[1][2].end < lots[1][3].start);
    }

    #[test]
    fn neighbours_are_joined_over_a_mib_and_no_more() {
        let mib = 1 << 20;
        assert_eq!(joined(&[2 * mib + 1..3 * mib, 0..1, mib + 1..mib + 2]), [0..3 * mib]);
        assert_eq!(joined(&[0..1, mib + 2..mib + 3]).len(), 2);
    }

    #[test]
    fn a_range_is_cut_out_of_one_body_or_two() {
        let bodies = [(0..4, Bytes::from_static(b"abcd")), (4..6, Bytes::from_static(b"ef"))];
        assert_eq!(cut(&bodies, &(1..3)), "bc");
        assert_eq!(cut(&bodies, &(3..6)), "def");
        assert_eq!(cut(&bodies[..1], &(3..6)), "d");
        let overlapping = [(0..4, Bytes::from_static(b"abcd")), (1..2, Bytes::from_static(b"b"))];
        assert_eq!([cut(&overlapping, &(0..4)), cut(&overlapping, &(1..2))], ["abcd", "b"]);
    }
}
