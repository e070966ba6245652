//! Laneway's library, which is given a prefix.

use std::time::Instant;

use laneway::internal::trace::Trace as Recorder;
use laneway::{Event, Location, Outcome, RemoveRequest};

use super::Found;
use crate::Failure;
use crate::rival::Tally;
use crate::site::Site;
use crate::trace::Trace;

pub(super) async fn remove(site: &Site, prefix: &str) -> Result<Found, Failure> {
    let started = Instant::now();
    let recorder = Recorder::default();
    let client = site.laneway(Some(&recorder))?;
    let targets = vec![Location::object(site.provider, site.bucket.clone(), prefix)];
    let mut job = client.remove(RemoveRequest::new(targets).recursive(true));
    while let Some(event) = job.next().await {
        if let Event::Item(item) = event
            && let Outcome::Failed(error) = item.outcome
        {
            return Err(error.into());
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    let counters = client.counters();
    let tally = Tally { requests: counters.requests, connections: counters.connections };
    Ok(Found { seconds, tally, trace: Trace::of_engine(&recorder.moments(), started) })
}
