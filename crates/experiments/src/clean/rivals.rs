//! Rivals that delete one object per request or in batches, by known keys or by a listing.

use std::sync::Arc;
use std::time::Instant;

use laneway::Provider;
use tokio::task::JoinSet;

use super::Found;
use crate::Failure;
use crate::rival::pool::Pool;
use crate::rival::{Answer, Error, Protocol, Rival, all};
use crate::site::Site;

/// Maximum number of connections for sending batches.
const BATCH_CONNECTIONS: usize = 50;

pub(super) async fn one_by_one(site: &Arc<Site>, keys: Vec<String>, bound: usize) -> Result<Found, Failure> {
    let started = Instant::now();
    let rival = Rival::new(site, Protocol::H1);
    let pool = Pool::new(rival.clone(), Some(bound));
    let mut deletes = JoinSet::new();
    for key in keys {
        let (site, pool) = (Arc::clone(site), pool.clone());
        deletes.spawn(async move {
            let mut taken = pool.take().await?;
            taken.connection.send(site.delete(&key).await?).await?.succeeded()?;
            taken.give_back();
            Ok(())
        });
    }
    all(deletes).await?;
    Ok(Found { seconds: started.elapsed().as_secs_f64(), tally: rival.tally() })
}

pub(super) async fn batches(site: &Arc<Site>, keys: &[String]) -> Result<Found, Failure> {
    let started = Instant::now();
    let rival = Rival::new(site, Protocol::H1);
    let pool = Pool::new(rival.clone(), Some(BATCH_CONNECTIONS));
    let mut deletes = JoinSet::new();
    send_batches(site, &pool, keys, &mut deletes);
    none_refused(deletes).await?;
    Ok(Found { seconds: started.elapsed().as_secs_f64(), tally: rival.tally() })
}

/// Lists the prefix page by page. It deletes a page's objects while it requests the next page.
pub(super) async fn listed(site: &Arc<Site>, prefix: &str) -> Result<Found, Failure> {
    let started = Instant::now();
    let rival = Rival::new(site, Protocol::H1);
    let pool = Pool::new(rival.clone(), Some(BATCH_CONNECTIONS));
    let mut deletes = JoinSet::new();
    let mut token = None;
    loop {
        let mut taken = pool.take().await?;
        let answer = taken.connection.send(site.list(prefix, token.as_deref()).await?).await?.succeeded()?;
        taken.give_back();
        let (keys, next) = site.listed(&answer)?;
        send_batches(site, &pool, &keys, &mut deletes);
        match next {
            Some(next) => token = Some(next),
            None => break,
        }
    }
    none_refused(deletes).await?;
    Ok(Found { seconds: started.elapsed().as_secs_f64(), tally: rival.tally() })
}

/// The tasks that send batches. Each returns its number of failed deletes.
type Refused = JoinSet<Result<usize, Error>>;

fn send_batches(site: &Arc<Site>, pool: &Pool, keys: &[String], deletes: &mut Refused) {
    for batch in keys.chunks(site.delete_many_max()) {
        let (site, pool, batch) = (Arc::clone(site), pool.clone(), batch.to_vec());
        deletes.spawn(async move {
            let mut taken = pool.take().await?;
            let answer = taken.connection.send(site.delete_many(&batch).await?).await?.succeeded()?;
            taken.give_back();
            Ok(refusals(&site, &answer))
        });
    }
}

async fn none_refused(mut deletes: Refused) -> Result<(), Failure> {
    let mut refused = 0;
    while let Some(ended) = deletes.join_next().await {
        refused += ended.map_err(|_| Failure::Unfinished)??;
    }
    match refused {
        0 => Ok(()),
        _ => Err(Failure::Different(format!("the store refused {refused} of the deletes"))),
    }
}

/// Counts the failed deletes in the answer to a batch. A rough search is enough, because the objects left in the store
/// are counted too.
fn refusals(site: &Site, answer: &Answer) -> usize {
    let text = String::from_utf8_lossy(&answer.body);
    match site.provider {
        Provider::Gcs => text.matches("HTTP/1.1 4").count() + text.matches("HTTP/1.1 5").count(),
        _ => text.matches("<Error>").count(),
    }
}
