//! Downloads with Laneway's library, as a program that has just started does.

use std::path::Path;
use std::time::Instant;

use laneway::{CopyRequest, Event, Location, Outcome, Verified};

use super::Found;
use crate::Failure;
use crate::rival::Tally;
use crate::site::Site;

pub(super) async fn download(site: &Site, key: &str, to: &Path) -> Result<Found, Failure> {
    let started = Instant::now();
    let client = site.laneway_by_tls()?;
    let source = Location::object(site.provider, site.bucket.clone(), key);
    let mut job = client.copy(CopyRequest::new(vec![source], Location::from(to)));
    let (mut checked, mut tally) = (None, Tally::default());
    while let Some(event) = job.next().await {
        match event {
            Event::Item(item) => match item.outcome {
                Outcome::Done { verified } => checked = Some(verified != Verified::Unverified),
                Outcome::Failed(error) => return Err(error.into()),
                _ => {}
            },
            Event::Done(summary) => {
                tally = Tally { requests: summary.requests, connections: summary.connections };
            }
            _ => {}
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    let verified = checked.ok_or(Failure::Unfinished)?;
    // Laneway computes the checksum while bytes arrive, so it needs no time after the transfer.
    Ok(Found { seconds, transfer_s: seconds, tally, verified })
}
