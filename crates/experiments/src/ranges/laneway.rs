//! Reads ranges with Laneway's library, as a program that has just started does.

use std::ops::Range;
use std::time::Instant;

use super::{Came, Found};
use crate::Failure;
use crate::rival::Tally;
use crate::site::Site;

pub(super) async fn read(site: &Site, key: &str, lots: &[Vec<Range<u64>>]) -> Result<Came, Failure> {
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
