//! Verbs for whole objects: metadata, copies, deletions, listings.

use std::sync::Arc;

use futures_util::{FutureExt as _, StreamExt as _, stream};
use laneway::{Bucket, Listed};

use crate::call::Work;
use crate::described::{put_options, version};
use crate::failure::Failure;
use crate::handles::{Exclusive, HandleTarget, OpenListing};
use crate::packed::{Packed, Unpacked};
use crate::{described, handles};

pub(super) fn copy(bucket: &Bucket, from: &mut Unpacked<'_>, is_rename: bool) -> Result<Work, Failure> {
    let (source, destination) = (from.text()?, from.text()?);
    let copy = match is_rename {
        true => bucket.rename(source, destination),
        false => bucket.copy(source, destination),
    };
    let into = handles::bucket(from.number()?)?;
    // The conditions apply to the destination of the copy.
    let put = put_options(into.capabilities().versions, from)?;
    let copy = copy.into(&into).options(put);
    Ok(Work::new(bucket.client(), async move { Ok(described::written(&copy.await?)) }))
}

pub(super) fn delete(bucket: &Bucket, from: &mut Unpacked<'_>) -> Result<Work, Failure> {
    let delete = bucket.delete(from.text()?);
    let delete = match from.maybe_text()? {
        Some(state) => delete.if_version(&version(bucket.capabilities().versions, state)?),
        None => delete,
    };
    Ok(Work::new(bucket.client(), async move {
        delete.await?;
        Ok(Packed::default())
    }))
}

/// Tries to delete all keys. The result has each key that couldn't be deleted, with its failure.
pub(super) fn delete_many(bucket: &Bucket, from: &mut Unpacked<'_>) -> Result<Work, Failure> {
    let keys: Vec<String> = from.list()?.into_iter().map(str::to_owned).collect();
    let mut outcomes = bucket.delete_many(stream::iter(keys));
    Ok(Work::new(bucket.client(), async move {
        let mut failures = Packed::default();
        while let Some((key, outcome)) = outcomes.next().await {
            if let Err(error) = outcome {
                failures.text(&key).all(&Failure::from(error).packed());
            }
        }
        Ok(failures)
    }))
}

pub(super) fn head(bucket: &Bucket, from: &mut Unpacked<'_>) -> Result<Work, Failure> {
    let head = bucket.head(from.text()?);
    Ok(Work::new(bucket.client(), async move {
        let mut packed = Packed::default();
        described::meta(&mut packed, &head.await?);
        Ok(packed)
    }))
}

/// The maximum number of objects that are returned at a time: two pages of a listing.
const SOME_MAX: usize = 2000;

/// Creates a listing, and returns its handle. It sends no request yet.
pub fn list(bucket: &Bucket, from: &mut Unpacked<'_>) -> Result<u64, Failure> {
    let mut list = bucket.list(from.text()?);
    if let Some(key) = from.maybe_text()? {
        list = list.start_after(key);
    }
    list = match from.number()? {
        0 => list,
        limit => list.limit(limit),
    };
    Ok(handles::keep(HandleTarget::List(Exclusive::new(bucket.client(), OpenListing { list, failed: None }))))
}

/// Returns the next objects of a listing. Waits for at least one object, and also returns those that have already
/// arrived. At the end of the listing, the result is empty.
pub(super) fn next_entries(listing: Arc<Exclusive<OpenListing>>) -> Work {
    let client = listing.client.clone();
    Work::new(&client, async move {
        let mut listing = listing.value.lock().await;
        if let Some(failed) = listing.failed.take() {
            return Err(failed.into());
        }
        let mut packed = Packed::default();
        let Some(first) = listing.list.next().await else { return Ok(packed) };
        described::meta(&mut packed, &first?);
        for _ in 1..SOME_MAX {
            match listing.list.next().now_or_never() {
                Some(Some(Ok(meta))) => described::meta(&mut packed, &meta),
                Some(Some(Err(error))) => {
                    listing.failed = Some(error);
                    break;
                }
                Some(None) | None => break,
            }
        }
        Ok(packed)
    })
}

/// Lists everything directly below a prefix.
pub(super) fn list_dir(bucket: &Bucket, from: &mut Unpacked<'_>) -> Result<Work, Failure> {
    let mut list = bucket.list_dir(from.text()?);
    if let Some(key) = from.maybe_text()? {
        list = list.start_after(key);
    }
    list = match from.number()? {
        0 => list,
        limit => list.limit(limit),
    };
    Ok(Work::new(bucket.client(), async move {
        let mut packed = Packed::default();
        while let Some(entry) = list.next().await {
            match entry? {
                Listed::Object(meta) => described::meta(packed.flag(true), &meta),
                Listed::Prefix(prefix) => drop(packed.flag(false).text(&prefix)),
                _ => {}
            }
        }
        Ok(packed)
    }))
}
