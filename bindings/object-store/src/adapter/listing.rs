//! Converts the library's listings to object_store's, whose names are locations. Also lists page by page.

use std::time::SystemTime;

use async_trait::async_trait;
use futures_util::{Stream, StreamExt as _, TryStreamExt as _, future};
use laneway::{List, ListDir, Listed};

use super::convert::{e_tag, not_supported};
use super::object_store::list::{PaginatedListOptions, PaginatedListResult, PaginatedListStore};
use super::object_store::path::Path;
use super::object_store::{Error, ListResult, ObjectMeta, Result};
use super::{LanewayStore, nothing_listed};

/// Returns the prefix of the keys below a location. It is empty if no location is given.
pub(super) fn below(prefix: Option<&Path>) -> String {
    let prefix = prefix.map(Path::as_ref).unwrap_or_default();
    if prefix.is_empty() { String::new() } else { format!("{prefix}/") }
}

/// Converts an object's metadata. If the store gave no time, `last_modified` is the beginning of 1970.
pub(super) fn described(location: Path, meta: &laneway::ObjectMeta) -> ObjectMeta {
    ObjectMeta {
        location,
        last_modified: meta.updated.unwrap_or(SystemTime::UNIX_EPOCH).into(),
        size: meta.size,
        e_tag: e_tag(meta.version.as_ref()),
        version: None,
    }
}

/// Converts a listed object. Returns `None` for a folder marker, because no location can end in a slash.
pub(super) fn entry(meta: &laneway::ObjectMeta) -> Option<Result<ObjectMeta>> {
    let key = &meta.id.key;
    if key.is_empty() || key.ends_with('/') {
        return None;
    }
    Some(Path::parse(key).map(|location| described(location, meta)).map_err(Error::from))
}

/// Converts the error of a listing. A listing belongs to no single location, so the path is empty.
pub(super) fn listing_error(error: laneway::Error) -> Error {
    super::convert::error(&Path::default(), error)
}

pub(super) fn objects(list: List) -> impl Stream<Item = Result<ObjectMeta>> + Send + 'static {
    list.filter_map(|listed| {
        future::ready(match listed {
            Ok(meta) => entry(&meta),
            Err(error) => Some(Err(listing_error(error))),
        })
    })
}

/// Lists the objects and the prefixes directly below a location.
pub(super) async fn directory(mut list: ListDir) -> Result<ListResult> {
    let mut found = nothing_listed();
    while let Some(listed) = list.try_next().await.map_err(listing_error)? {
        match listed {
            Listed::Object(meta) => found.objects.extend(entry(&meta).transpose()?),
            Listed::Prefix(prefix) => found.common_prefixes.push(Path::parse(prefix)?),
            _ => {}
        }
    }
    Ok(found)
}

/// The default number of entries on a page, which is also that of GCS and S3.
const PAGE: usize = 1000;

#[async_trait]
impl PaginatedListStore for LanewayStore {
    /// A page's token is the last name on the page, so it never expires.
    async fn list_paginated(
        &self,
        prefix: Option<&str>,
        opts: PaginatedListOptions,
    ) -> Result<PaginatedListResult> {
        let PaginatedListOptions { offset, delimiter, max_keys, page_token, .. } = opts;
        let prefix = prefix.unwrap_or_default();
        let after = page_token.into_iter().chain(offset).max();
        let (mut result, mut last, mut count) = (nothing_listed(), None, 0);
        let max = max_keys.unwrap_or(PAGE);
        match delimiter.as_deref() {
            None => {
                let mut list = self.bucket().list(prefix);
                if let Some(after) = &after {
                    list = list.start_after(after);
                }
                while count < max
                    && let Some(meta) = list.try_next().await.map_err(listing_error)?
                {
                    count += 1;
                    result.objects.extend(entry(&meta).transpose()?);
                    last = Some(meta.id.key);
                }
            }
            Some("/") => {
                let mut list = self.bucket().list_dir(prefix);
                if let Some(after) = &after {
                    list = list.start_after(after);
                }
                while count < max
                    && let Some(listed) = list.try_next().await.map_err(listing_error)?
                {
                    count += 1;
                    let name = match listed {
                        Listed::Object(meta) => {
                            result.objects.extend(entry(&meta).transpose()?);
                            meta.id.key
                        }
                        Listed::Prefix(prefix) => {
                            result.common_prefixes.push(Path::parse(&prefix)?);
                            prefix
                        }
                        _ => continue,
                    };
                    last = last.max(Some(name));
                }
            }
            Some(other) => {
                return Err(not_supported(format!(
                    "Laneway can't list by the delimiter {other:?}, only by \"/\""
                )));
            }
        }
        Ok(PaginatedListResult { result, page_token: last.filter(|_| count == max) })
    }
}
