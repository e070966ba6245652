//! Changes all objects at once with Laneway's library. Each object takes one `get` and one `put`, as in the library of
//! a table format.

use std::sync::Arc;
use std::time::Instant;

use laneway::Bucket;
use tokio::task::JoinSet;

use super::{Found, changed};
use crate::Failure;
use crate::rival::Tally;
use crate::site::Site;

pub(super) async fn all_at_once(site: &Arc<Site>, keys: &[String]) -> Result<Found, Failure> {
    let started = Instant::now();
    let client = site.laneway(None)?;
    let bucket = client.bucket(&format!("{}://{}", site.provider.scheme(), site.bucket))?;
    let mut changes = JoinSet::new();
    for key in keys {
        let (bucket, key) = (bucket.clone(), key.clone());
        changes.spawn(async move { change(&bucket, &key).await });
    }
    while let Some(ended) = changes.join_next().await {
        ended.map_err(|_| Failure::Unfinished)??;
    }
    let seconds = started.elapsed().as_secs_f64();
    let counters = client.counters();
    let tally = Tally { requests: counters.requests, connections: counters.connections };
    Ok(Found { seconds, tally })
}

async fn change(bucket: &Bucket, key: &str) -> Result<(), Failure> {
    let got = bucket.get(key).await?;
    let version = got.meta().version.clone();
    let version =
        version.ok_or_else(|| Failure::Different(format!("the store reports no version of {key}")))?;
    let content = changed(&got.bytes().await?);
    bucket.put(key, content).if_version(&version).await?;
    Ok(())
}
