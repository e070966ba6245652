//! Lists a prefix with Laneway's library.

use std::time::Instant;

use laneway::{Entry, ListRequest, Location};

use super::Found;
use crate::Failure;
use crate::rival::Tally;
use crate::site::Site;

pub(super) async fn list(site: &Site, prefix: &str, in_order: bool) -> Result<(usize, Found), Failure> {
    let started = Instant::now();
    let client = site.laneway(None)?;
    let at = Location::object(site.provider, site.bucket.clone(), prefix);
    let mut listing = client.list(ListRequest::new(at).recursive(true).in_order(in_order));
    let mut listed = 0;
    while let Some(entry) = listing.next().await {
        listed += usize::from(matches!(entry?, Entry::Object(_)));
    }
    let seconds = started.elapsed().as_secs_f64();
    let counters = client.counters();
    let tally = Tally { requests: counters.requests, connections: counters.connections };
    Ok((listed, Found { seconds, tally }))
}
