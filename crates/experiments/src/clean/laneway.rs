//! Deletes with Laneway's library, given a prefix or the keys.

use std::time::Instant;

use futures_util::{StreamExt as _, stream};
use laneway::{Client, Event, Location, Outcome, RemoveRequest};

use super::Found;
use crate::Failure;
use crate::rival::Tally;
use crate::site::Site;

pub(super) async fn remove(site: &Site, prefix: &str) -> Result<Found, Failure> {
    let started = Instant::now();
    let client = site.laneway(None)?;
    let targets = vec![Location::object(site.provider, site.bucket.clone(), prefix)];
    let mut job = client.remove(RemoveRequest::new(targets).recursive(true));
    while let Some(event) = job.next().await {
        if let Event::Item(item) = event
            && let Outcome::Failed(error) = item.outcome
        {
            return Err(error.into());
        }
    }
    Ok(found(&client, started))
}

/// Removes the keys of a stream batch by batch.
pub(super) async fn keyed(site: &Site, keys: Vec<String>) -> Result<Found, Failure> {
    let started = Instant::now();
    let client = site.laneway(None)?;
    let bucket = client.bucket(&format!("{}://{}", site.provider.scheme(), site.bucket))?;
    let mut removed = bucket.delete_many(stream::iter(keys));
    while let Some((_, outcome)) = removed.next().await {
        outcome?;
    }
    Ok(found(&client, started))
}

fn found(client: &Client, started: Instant) -> Found {
    let seconds = started.elapsed().as_secs_f64();
    let counters = client.counters();
    let tally = Tally { requests: counters.requests, connections: counters.connections };
    Found { seconds, tally }
}
