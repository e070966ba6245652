//! What an experiment leaves in a store: cleared away.

use bytes::Bytes;
use http::{Method, StatusCode};
use laneway::{Client, Event, ListRequest, Location, Outcome, RemoveRequest};

use crate::Failure;
use crate::rival::{Protocol, Rival};
use crate::site::Site;

/// How many objects lie under a prefix.
///
/// # Errors
/// What the store says.
pub(crate) async fn count(site: &Site, prefix: &str) -> Result<usize, Failure> {
    let client = Client::new(site.laneway_settings())?;
    let at = Location::object(site.provider, site.bucket.clone(), prefix);
    let mut listing = client.list(ListRequest { at, recursive: true });
    let mut count = 0;
    while let Some(entry) = listing.next().await {
        match entry {
            Ok(_) => count += 1,
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(count)
}

/// Removes everything under a prefix. Not being measured, it is done the fast way.
///
/// # Errors
/// The first failure; the rest is removed.
pub(crate) async fn clear(site: &Site, prefix: &str) -> Result<(), Failure> {
    let client = Client::new(site.laneway_settings())?;
    let targets = vec![Location::object(site.provider, site.bucket.clone(), prefix)];
    let mut job = client.remove(RemoveRequest { targets, recursive: true, dry_run: false });
    let mut failure = None;
    while let Some(event) = job.next().await {
        if let Event::Item(item) = event
            && let Outcome::Failed(error) = item.outcome
            // A rung that failed at its first request has left nothing.
            && !error.is_not_found()
        {
            failure = failure.or(Some(error));
        }
    }
    failure.map_or(Ok(()), |error| Err(error.into()))
}

/// Creates the site's bucket; whether it is new.
///
/// # Errors
/// What the server says.
pub(crate) async fn create_bucket(site: &Site) -> Result<bool, Failure> {
    let name = serde_json::json!({ "name": site.bucket }).to_string();
    let target = format!("{}?project=laneway-bench", site.buckets_target());
    let mut request = site.request(Method::POST, &target, name.into())?;
    let json = http::HeaderValue::from_static("application/json; charset=UTF-8");
    request.headers_mut().insert(http::header::CONTENT_TYPE, json);
    let answer = Rival::new(site, Protocol::H1).connect_h1().await?.send(request).await?;
    if answer.status == StatusCode::CONFLICT {
        return Ok(false);
    }
    answer.succeeded()?;
    Ok(true)
}

/// Removes the site's bucket, which has to be empty.
///
/// # Errors
/// What the server says.
pub(crate) async fn remove_bucket(site: &Site) -> Result<(), Failure> {
    let request = site.request(Method::DELETE, &site.bucket_target(), Bytes::new())?;
    Rival::new(site, Protocol::H1).connect_h1().await?.send(request).await?.succeeded()?;
    Ok(())
}
