//! Listings, whose names are locations.

use std::time::SystemTime;

use futures_util::{Stream, StreamExt as _, TryStreamExt as _, future};
use laneway::{List, ListDir, Listed};

use super::names::e_tag;
use super::nothing_listed;
use super::object_store::path::Path;
use super::object_store::{Error, ListResult, ObjectMeta, Result};

/// What keys below a location begin with; everything without one.
pub(super) fn below(prefix: Option<&Path>) -> String {
    let prefix = prefix.map(Path::as_ref).unwrap_or_default();
    if prefix.is_empty() { String::new() } else { format!("{prefix}/") }
}

/// An object as object_store describes it; a time that the store doesn't tell is 1970.
pub(super) fn described(location: Path, meta: &laneway::ObjectMeta) -> ObjectMeta {
    ObjectMeta {
        location,
        last_modified: meta.updated.unwrap_or(SystemTime::UNIX_EPOCH).into(),
        size: meta.size,
        e_tag: e_tag(meta.version.as_ref()),
        version: None,
    }
}

/// An entry of a listing; `None` for the mark of a folder, which no location can name.
pub(super) fn entry(meta: &laneway::ObjectMeta) -> Option<Result<ObjectMeta>> {
    let key = &meta.id.key;
    if key.is_empty() || key.ends_with('/') {
        return None;
    }
    Some(Path::parse(key).map(|location| described(location, meta)).map_err(Error::from))
}

/// A failure of a listing, which is about no location.
pub(super) fn listing_error(error: laneway::Error) -> Error {
    super::errors::error(&Path::default(), error)
}

pub(super) fn objects(list: List) -> impl Stream<Item = Result<ObjectMeta>> + Send + 'static {
    list.filter_map(|listed| {
        future::ready(match listed {
            Ok(meta) => entry(&meta),
            Err(error) => Some(Err(listing_error(error))),
        })
    })
}

/// What lies directly below a location.
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
