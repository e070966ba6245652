//! What the store holds afterwards: looked at through a client of its own, and cleared away.

use std::collections::HashSet;

use bytes::Bytes;
use http::{Method, StatusCode};
use laneway::{Client, Event, Location, Outcome, Provider, RemoveRequest};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use super::result::Failure;
use super::rival::{self, Http1, Protocol, Rival};
use super::site::Site;
use super::work::Work;

/// A page of a listing.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Page {
    items: Vec<Listed>,
    next_page_token: String,
}

#[derive(Deserialize)]
struct Listed {
    name: String,
    /// A number in quotes, as the JSON API writes 64-bit numbers.
    size: String,
}

/// Compares what lies under the work's prefix with what should: every name, and its size.
///
/// # Errors
/// [`Failure::Wrong`]; a listing that fails.
pub(super) async fn check(work: &Work) -> Result<(), Failure> {
    let mut wanted: HashSet<String> = work.files.names().iter().map(|name| work.key(name)).collect();
    let mut wrong = 0;
    let mut connection = Rival::new(&work.site, Protocol::H1).connect_h1().await?;
    let mut token = String::new();
    loop {
        let page = list(&mut connection, work, &token).await?;
        for object in page.items {
            let right = object.size.parse() == Ok(work.files.size()) && wanted.remove(&object.name);
            wrong += usize::from(!right);
        }
        if page.next_page_token.is_empty() {
            break;
        }
        token = page.next_page_token;
    }
    let count = work.files.names().len();
    if wanted.is_empty() && wrong == 0 {
        return Ok(());
    }
    Err(Failure::Wrong { right: count - wanted.len(), wanted: count, size: work.files.size(), wrong })
}

async fn list(connection: &mut Http1, work: &Work, token: &str) -> Result<Page, Failure> {
    let encode = |text| utf8_percent_encode(text, NON_ALPHANUMERIC);
    let mut target = format!("{}/o?prefix={}", work.site.bucket_target(), encode(&work.prefix));
    if !token.is_empty() {
        target += &format!("&pageToken={}", encode(token));
    }
    let request = work.site.request(Method::GET, &target, Bytes::new())?;
    let answer = connection.send(request).await?.succeeded()?;
    Ok(serde_json::from_slice(&answer.body).map_err(|e| rival::Error::Answer(Box::new(e)))?)
}

/// Removes everything under a prefix. Not being measured, it is done the fast way.
///
/// # Errors
/// The first failure; the rest is removed.
pub(super) async fn clear(site: &Site, prefix: &str) -> Result<(), Failure> {
    let client = Client::new(site.laneway_settings())?;
    let targets = vec![Location::object(Provider::Gcs, site.bucket.clone(), prefix)];
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
pub(super) async fn create_bucket(site: &Site) -> Result<bool, Failure> {
    let name = serde_json::json!({ "name": site.bucket }).to_string();
    let target = format!("{}?project=laneway-ladder", site.buckets_target());
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
pub(super) async fn remove_bucket(site: &Site) -> Result<(), Failure> {
    let request = site.request(Method::DELETE, &site.bucket_target(), Bytes::new())?;
    Rival::new(site, Protocol::H1).connect_h1().await?.send(request).await?.succeeded()?;
    Ok(())
}
