//! Reads an object, a range of it, or its metadata.

use std::time::SystemTime;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use laneway::dialect::VersionNames;
use laneway::{Bucket, Download, Get, Version};

use super::convert::{attributes, error, is_one_of, not_supported, version};
use super::get_result;
use super::listing::described;
use super::object_store::path::Path;
use super::object_store::{Attributes, Error, GetOptions, GetRange, GetResult, GetResultPayload, Result};

/// The maximum number of attempts to read an object and its metadata in the same version. Another writer may replace
/// the object between the two requests.
const ANSWERS_DIFFER_MAX: u32 = 16;

/// The conditions of a read that one request can express.
#[derive(Default)]
struct ReadCondition {
    version: Option<Version>,
    unless: Option<Version>,
    if_modified_since: Option<SystemTime>,
}

/// Reads an object, a range of it, or with `options.head` only its metadata.
pub(super) async fn get(bucket: &Bucket, location: &Path, options: GetOptions) -> Result<GetResult> {
    let key = location.as_ref();
    let failed = |e| error(location, e);
    let held = held(bucket, location, &options).await?;
    if options.head {
        let mut head = bucket.head(key);
        if let Some(version) = &held.version {
            head = head.if_version(version);
        }
        if let Some(version) = &held.unless {
            head = head.unless_version(version);
        }
        if let Some(time) = held.if_modified_since {
            head = head.if_modified_since(time);
        }
        let meta = head.await.map_err(failed)?;
        let range = match &options.range {
            Some(range) => range.as_range(meta.size).map_err(|e| generic(e.to_string()))?,
            None => 0..meta.size,
        };
        let (attributes, meta) = (attributes(&meta), described(location.clone(), &meta));
        let payload = GetResultPayload::Stream(stream::empty().boxed());
        return Ok(get_result(payload, meta, range, attributes));
    }
    let mut get = bucket.get(key);
    if let Some(version) = &held.version {
        get = get.if_version(version);
    }
    if let Some(version) = &held.unless {
        get = get.unless_version(version);
    }
    if let Some(time) = held.if_modified_since {
        get = get.if_modified_since(time);
    }
    get = match &options.range {
        None => get,
        Some(GetRange::Bounded(range)) => get.range(range.clone()),
        Some(GetRange::Offset(from)) => get.range(*from..),
        Some(GetRange::Suffix(bytes)) => get.last(*bytes),
    };
    let is_known = bucket.capabilities().get_tells_metadata || options.range.is_some();
    let (download, attributes) = match is_known {
        true => {
            let download = get.await.map_err(failed)?;
            let attributes = attributes(download.meta());
            (download, attributes)
        }
        false => with_metadata(bucket, location, &get).await?,
    };
    let meta = described(location.clone(), download.meta());
    let range = download.range();
    let at = location.clone();
    let payload = GetResultPayload::Stream(download.map_err(move |e| error(&at, e)).boxed());
    Ok(get_result(payload, meta, range, attributes))
}

/// Reads an object and requests its metadata at the same time. It tries again until both responses have the same
/// version.
async fn with_metadata(bucket: &Bucket, location: &Path, get: &Get) -> Result<(Download, Attributes)> {
    for _ in 0..ANSWERS_DIFFER_MAX {
        let head = bucket.head(location.as_ref());
        let (download, head) =
            futures_util::future::join(get.clone().into_future(), head.into_future()).await;
        let download = download.map_err(|e| error(location, e))?;
        match head {
            Ok(head) if head.version == download.meta().version => return Ok((download, attributes(&head))),
            Err(e) if !e.is_not_found() => return Err(error(location, e)),
            // Another writer has replaced or removed the object between the two requests.
            _ => {}
        }
    }
    let source = format!(
        "an object of {} was replaced by another writer during each attempt to read it",
        bucket.url()
    )
    .into();
    Err(Error::Precondition { path: location.to_string(), source })
}

/// Returns the conditions for the request. If one request can't express the caller's conditions, this function fetches
/// the metadata, checks them itself, and limits the read to that version.
async fn held(bucket: &Bucket, location: &Path, options: &GetOptions) -> Result<ReadCondition> {
    let GetOptions {
        if_match, if_none_match, if_modified_since, if_unmodified_since, version: number, ..
    } = options;
    let names = bucket.capabilities().versions;
    if let Some(number) = number {
        let generation = (names == VersionNames::Generation).then(|| version(names, number)).flatten();
        let generation = generation.ok_or_else(|| {
            not_supported("Laneway can read a given version only on GCS, where the version is a generation")
        });
        return Ok(ReadCondition { version: Some(generation?), ..ReadCondition::default() });
    }
    let is_single = |e_tag: &str| e_tag.trim() != "*" && !e_tag.contains(',');
    let single = |e_tag: &Option<String>| {
        e_tag.as_deref().filter(|e_tag| is_single(e_tag)).and_then(|e_tag| version(names, e_tag))
    };
    match (if_match, if_none_match, if_modified_since, if_unmodified_since) {
        (None, None, None, None) => return Ok(ReadCondition::default()),
        (Some(_), None, None, None) if single(if_match).is_some() => {
            return Ok(ReadCondition { version: single(if_match), ..ReadCondition::default() });
        }
        (None, Some(_), None, None) if single(if_none_match).is_some() => {
            return Ok(ReadCondition { unless: single(if_none_match), ..ReadCondition::default() });
        }
        (None, None, Some(time), None) => {
            return Ok(ReadCondition { if_modified_since: Some((*time).into()), ..ReadCondition::default() });
        }
        _ => {}
    }
    let meta = bucket.head(location.as_ref()).await.map_err(|e| error(location, e))?;
    let path = location.to_string();
    let whole_s =
        |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let changed_after =
        |time: SystemTime| meta.updated.is_some_and(|updated| whole_s(updated) > whole_s(time));
    // The conditions are checked in the order of RFC 9110 section 13.2.2.
    let is_other = if_match.as_ref().is_some_and(|list| !is_one_of(list, &meta));
    let is_newer = if_match.is_none() && if_unmodified_since.is_some_and(|time| changed_after(time.into()));
    if is_other || is_newer {
        let source = format!(
            "the object of {} doesn't meet the condition if_match or if_unmodified_since",
            bucket.url()
        )
        .into();
        return Err(Error::Precondition { path, source });
    }
    let is_same = if_none_match.as_ref().is_some_and(|list| is_one_of(list, &meta));
    let is_old = if_none_match.is_none() && if_modified_since.is_some_and(|time| !changed_after(time.into()));
    if is_same || is_old {
        let source = format!(
            "the object of {} hasn't changed, by the condition if_none_match or if_modified_since",
            bucket.url()
        )
        .into();
        return Err(Error::NotModified { path, source });
    }
    Ok(ReadCondition { version: meta.version, ..ReadCondition::default() })
}

fn generic(why: String) -> Error {
    Error::Generic { store: "Laneway", source: why.into() }
}
