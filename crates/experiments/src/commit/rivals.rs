//! Rivals that change one object after another, or many at once over a pool of connections.

use std::sync::Arc;
use std::time::Instant;

use tokio::task::JoinSet;

use super::{Found, changed};
use crate::Failure;
use crate::rival::pool::Pool;
use crate::rival::{Error, Http1, Protocol, Rival, all};
use crate::site::Site;

pub(super) async fn one_by_one(site: &Site, keys: &[String]) -> Result<Found, Failure> {
    let started = Instant::now();
    let rival = Rival::new(site, Protocol::H1);
    let mut connection = rival.connect_h1().await?;
    for key in keys {
        if !connection.is_usable().await {
            connection = rival.connect_h1().await?;
        }
        change(site, key, &mut connection).await?;
    }
    Ok(Found { seconds: started.elapsed().as_secs_f64(), tally: rival.tally() })
}

pub(super) async fn pooled(site: &Arc<Site>, keys: &[String], bound: usize) -> Result<Found, Failure> {
    let started = Instant::now();
    let rival = Rival::new(site, Protocol::H1);
    let pool = Pool::new(rival.clone(), Some(bound));
    let mut changes = JoinSet::new();
    for key in keys {
        let (site, pool, key) = (Arc::clone(site), pool.clone(), key.clone());
        changes.spawn(async move {
            let mut taken = pool.take().await?;
            change(&site, &key, &mut taken.connection).await?;
            taken.give_back();
            Ok(())
        });
    }
    all(changes).await?;
    Ok(Found { seconds: started.elapsed().as_secs_f64(), tally: rival.tally() })
}

/// Reads an object, changes it and writes it back unless another client has changed it meanwhile.
async fn change(site: &Site, key: &str, connection: &mut Http1) -> Result<(), Error> {
    let answer = connection.send(site.get(key, None).await?).await?.succeeded()?;
    let version = site.version(&answer)?;
    let request = site.put(key, &changed(&answer.body), Some(&version)).await?;
    connection.send(request).await?.succeeded()?;
    Ok(())
}
