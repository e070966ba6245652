//! Checks the objects in the store after a method's run, with a client of its own.

use std::collections::HashSet;

use bytes::Bytes;
use http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use super::work::Work;
use crate::Failure;
use crate::rival::{self, Http1, Protocol, Rival};

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

/// Compares the objects under the work's prefix with the expected names and sizes.
///
/// # Errors
/// Returns [`Failure::Wrong`] if they differ, or the error of the listing.
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
