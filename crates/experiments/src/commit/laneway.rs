//! Laneway's store, as a table format stands on it: every object by itself, all at once.

use std::sync::Arc;
use std::time::Instant;

use laneway::trace::Trace as Recorder;
use laneway_lanes::Lanes;
use laneway_store::{Body, Checksums, Condition, Get, ObjectId, PutOptions, Store};
use tokio::task::JoinSet;

use super::{Found, changed};
use crate::Failure;
use crate::rival::Tally;
use crate::site::Site;
use crate::trace::Trace;

pub(super) async fn all_at_once(site: &Arc<Site>, keys: &[String]) -> Result<Found, Failure> {
    let started = Instant::now();
    let recorder = Recorder::default();
    let (config, settings) = site.laneway_parts(&recorder);
    let lanes = Lanes::start(config).map_err(|e| Failure::Process(e.to_string()))?;
    let store = Store::new(site.provider, &settings, lanes.clone())?;
    let mut changes = JoinSet::new();
    for key in keys {
        let (store, id) = (store.clone(), ObjectId::new(site.bucket.clone(), key.clone()));
        changes.spawn(async move { change(&store, &id).await });
    }
    while let Some(ended) = changes.join_next().await {
        ended.map_err(|_| Failure::Unfinished)??;
    }
    let seconds = started.elapsed().as_secs_f64();
    let counters = lanes.counters();
    let tally = Tally { requests: counters.requests, connections: counters.connections };
    Ok(Found { seconds, tally, trace: Trace::of_engine(&recorder.moments(), started) })
}

async fn change(store: &Store, id: &ObjectId) -> Result<(), Failure> {
    let got = store.get(Get::new(id)).await?;
    let version = got.meta.version.ok_or_else(|| Failure::Different(format!("{id}: has no version")))?;
    let content = changed(&got.body);
    let sum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, &content) as u32;
    let options = PutOptions { condition: Condition::Matches(version), ..PutOptions::default() };
    let body = Body::from(bytes::Bytes::from(content));
    store.put(id, body, &Checksums::crc32c(sum), &options).await?;
    Ok(())
}
