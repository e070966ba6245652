//! The execution of a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::client::Client;
use super::{Errand, Found, Mover};
use crate::Failure;
use crate::latency::Latencies;
use crate::site::Site;

/// Executes a run: requests all objects at once. With arrivals, it moves large objects for as long as small ones arrive.
pub(super) async fn play(errand: Errand, site: Arc<Site>) -> Result<Found, Failure> {
    std::fs::create_dir_all(&errand.folder).map_err(Failure::File)?;
    let started = Instant::now();
    let client = Arc::new(Client::start(&errand, &site, started)?);
    let errand = Arc::new(errand);
    let enough = Arc::new(AtomicBool::new(false));
    let mut bulk = JoinSet::new();
    for n in 0..errand.large.len() {
        let (client, errand, enough) = (Arc::clone(&client), Arc::clone(&errand), Arc::clone(&enough));
        bulk.spawn(async move {
            let object = &errand.large[n];
            loop {
                client.transfer(&errand, object, true).await?;
                if errand.arrivals.is_empty() || enough.load(Relaxed) {
                    return Ok(());
                }
            }
        });
    }
    let mut small = JoinSet::new();
    for n in 0..errand.small.len() {
        let (client, errand) = (Arc::clone(&client), Arc::clone(&errand));
        small.spawn(async move {
            let mut issued = started;
            if let Some(at) = errand.arrivals.get(n) {
                issued += Duration::from_secs_f64(*at);
                tokio::time::sleep_until(issued.into()).await;
            }
            client.transfer(&errand, &errand.small[n], false).await?;
            Ok(issued.elapsed().as_secs_f64())
        });
    }
    let latencies = ends(&mut small, &mut bulk, !errand.arrivals.is_empty()).await?;
    let total_s = started.elapsed().as_secs_f64();
    let (tally, moved, trace) = client.end();
    let small_bytes: u64 = errand.small.iter().map(|object| object.size).sum();
    let bulk_bytes = moved.saturating_sub(small_bytes);
    // Let Laneway's large uploads finish, because an interrupted multipart upload would leave its parts in the store.
    enough.store(true, Relaxed);
    if errand.puts && errand.mover == Mover::Laneway {
        while bulk.join_next().await.is_some() {}
    }
    Ok(Found { small: Latencies::new(latencies), total_s, bulk_bytes, tally, trace })
}

/// Waits for the small objects. Also waits for the large ones, unless they are moved again and again (`endless`). The
/// first failure ends the run.
async fn ends(
    small: &mut JoinSet<Result<f64, Failure>>,
    bulk: &mut JoinSet<Result<(), Failure>>,
    endless: bool,
) -> Result<Vec<f64>, Failure> {
    let mut latencies = Vec::new();
    loop {
        tokio::select! {
            Some(ended) = small.join_next() => {
                latencies.push(ended.map_err(|_| Failure::Unfinished)??);
            }
            Some(ended) = bulk.join_next() => ended.map_err(|_| Failure::Unfinished)??,
            else => return Ok(latencies),
        }
        if endless && small.is_empty() {
            return Ok(latencies);
        }
    }
}
