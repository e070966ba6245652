//! Rivals that read one range after another, use a pool, merge neighbours by a fixed rule, or read the whole object.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use tokio::task::JoinSet;

use super::{Came, Errand, Reader};
use crate::Failure;
use crate::counted::Found;
use crate::rival::pool::Pool;
use crate::rival::{Error, Http1, Protocol, Rival};
use crate::site::Site;

/// Ranges are merged into one request if the gap between them has at most this many bytes. The `object_store` crate
/// uses the same value.
const GAP_MAX: u64 = 1 << 20;

/// Size of the slices in which the whole object is read.
const SLICE: u64 = 8 << 20;

pub(super) async fn read(reader: Reader, site: &Arc<Site>, errand: &Errand) -> Result<Came, Failure> {
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
            Ok::<_, Error>((request, body))
        });
    }
    let mut bodies = Vec::new();
    while let Some(fetched) = fetching.join_next().await {
        bodies.push(fetched.map_err(|_| Failure::Unfinished)??);
    }
    Ok(bodies)
}

async fn one(site: &Site, key: &str, range: &Range<u64>, connection: &mut Http1) -> Result<Bytes, Error> {
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
