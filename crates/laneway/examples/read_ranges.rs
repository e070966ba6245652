//! Reads ranges of an object in one call: `read_ranges s3://bucket/key < ranges > bytes`. Each line of the input is a range: its
//! first byte and its length. The time and the number of requests go to standard error.

use std::error::Error;
use std::io::{self, Read as _, Write as _};
use std::ops::Range;
use std::time::Instant;

use laneway::Client;

fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).ok_or("usage: read_ranges s3://bucket/key < ranges > bytes")?;
    let (folder, key) = url.rsplit_once('/').ok_or("the URL names no object")?;
    let mut lines = String::new();
    io::stdin().read_to_string(&mut lines)?;
    let ranges = lines.lines().map(range).collect::<Result<Vec<_>, _>>()?;

    let started = Instant::now();
    let client = Client::from_env()?;
    let bytes = client.bucket(&format!("{folder}/"))?.get_ranges(key, ranges).call()?;
    let took = started.elapsed().as_secs_f64();

    let counters = client.counters();
    eprintln!("{took:.3} s, {} requests, {} connections", counters.requests, counters.connections);
    let mut out = io::stdout().lock();
    bytes.iter().try_for_each(|range| out.write_all(range))?;
    Ok(out.flush()?)
}

fn range(line: &str) -> Result<Range<u64>, Box<dyn Error>> {
    let (start, len) = line.split_once(' ').ok_or("a line needs the first byte and the length")?;
    let (start, len): (u64, u64) = (start.parse()?, len.trim().parse()?);
    Ok(start..start.checked_add(len).ok_or("the range is too long")?)
}
