//! Moves objects with Laneway's library, with one client for all objects.

use std::time::Instant;

use laneway::internal::trace::Trace as Recorder;
use laneway::{CopyRequest, Event, Location, Outcome, Provider};

use super::client::Job;
use crate::Failure;
use crate::rival::Tally;
use crate::site::Site;
use crate::trace::Trace;

pub(super) struct Laneway {
    client: laneway::Client,
    provider: Provider,
    bucket: String,
    recorder: Recorder,
    epoch: Instant,
}

impl Laneway {
    pub(super) fn start(site: &Site, epoch: Instant) -> Result<Self, Failure> {
        let recorder = Recorder::default();
        let client = site.laneway(Some(&recorder))?;
        Ok(Self { client, provider: site.provider, bucket: site.bucket.clone(), recorder, epoch })
    }

    pub(super) async fn copy(&self, job: &Job<'_>, puts: bool) -> Result<(), Failure> {
        let object = Location::object(self.provider, self.bucket.clone(), job.key.clone());
        let file = Location::from(job.file);
        let (from, to) = if puts { (file, object) } else { (object, file) };
        let mut running = self.client.copy(CopyRequest::new(vec![from], to));
        let mut done = false;
        while let Some(event) = running.next().await {
            if let Event::Item(item) = event {
                match item.outcome {
                    Outcome::Done { .. } => done = true,
                    Outcome::Failed(error) => return Err(error.into()),
                    _ => {}
                }
            }
        }
        if done { Ok(()) } else { Err(Failure::Unfinished) }
    }

    pub(super) fn end(&self) -> (Tally, u64, Trace) {
        let counters = self.client.counters();
        let tally = Tally { requests: counters.requests, connections: counters.connections };
        let moved = counters.bytes_sent + counters.bytes_received;
        (tally, moved, Trace::of_engine(&self.recorder.moments(), self.epoch))
    }
}
