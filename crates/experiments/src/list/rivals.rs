//! Rivals that list page by page. One method requests the next page early. Another method knows the names of all
//! folders, and lists all folders at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use tokio::task::JoinSet;

use super::Found;
use crate::Failure;
use crate::rival::pool::Pool;
use crate::rival::{Answer, Error, Protocol, Rival, all};
use crate::site::Site;

/// Number of connections that list folders.
const CONNECTIONS: usize = 16;

pub(super) async fn chain(site: &Arc<Site>, prefix: &str) -> Result<(usize, Found), Failure> {
    let started = Instant::now();
    let rival = Rival::new(site, Protocol::H1);
    let pool = Pool::new(rival.clone(), Some(1));
    let listed = pages(site, &pool, prefix).await?;
    Ok((listed, found(&rival, started)))
}

async fn pages(site: &Site, pool: &Pool, prefix: &str) -> Result<usize, Error> {
    let (mut listed, mut token) = (0, None);
    loop {
        let answer = page(site, pool, prefix, token.as_deref()).await?;
        let (keys, next) = site.listed(&answer)?;
        listed += keys.len();
        match next {
            Some(next) => token = Some(next),
            None => return Ok(listed),
        }
    }
}

async fn page(site: &Site, pool: &Pool, prefix: &str, token: Option<&str>) -> Result<Answer, Error> {
    let mut taken = pool.take().await?;
    let answer = taken.connection.send(site.list(prefix, token).await?).await?.succeeded()?;
    taken.give_back();
    Ok(answer)
}

/// Lists page by page, but parses the keys of each page in a separate task. The next request needs only the page's
/// token, so it doesn't wait for the parsing.
pub(super) async fn ahead(site: &Arc<Site>, prefix: &str) -> Result<(usize, Found), Failure> {
    let started = Instant::now();
    let rival = Rival::new(site, Protocol::H1);
    let pool = Pool::new(rival.clone(), Some(1));
    let listed = Arc::new(AtomicUsize::new(0));
    let (mut readers, mut token) = (JoinSet::new(), None);
    loop {
        let answer = page(site, &pool, prefix, token.as_deref()).await?;
        token = site.next_page(&answer)?;
        let (site, listed) = (Arc::clone(site), Arc::clone(&listed));
        readers.spawn(async move {
            listed.fetch_add(site.listed(&answer)?.0.len(), Relaxed);
            Ok(())
        });
        if token.is_none() {
            break;
        }
    }
    all(readers).await?;
    Ok((listed.load(Relaxed), found(&rival, started)))
}

pub(super) async fn folders(site: &Arc<Site>, folders: Vec<String>) -> Result<(usize, Found), Failure> {
    let started = Instant::now();
    let rival = Rival::new(site, Protocol::H1);
    let pool = Pool::new(rival.clone(), Some(CONNECTIONS));
    let listed = Arc::new(AtomicUsize::new(0));
    let mut chains = JoinSet::new();
    for folder in folders {
        let (site, pool, listed) = (Arc::clone(site), pool.clone(), Arc::clone(&listed));
        chains.spawn(async move {
            listed.fetch_add(pages(&site, &pool, &folder).await?, Relaxed);
            Ok(())
        });
    }
    all(chains).await?;
    Ok((listed.load(Relaxed), found(&rival, started)))
}

fn found(rival: &Rival, started: Instant) -> Found {
    Found { seconds: started.elapsed().as_secs_f64(), tally: rival.tally() }
}
