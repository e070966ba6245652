//! Lists a bucket.

use std::sync::Arc;

use futures_util::{FutureExt as _, StreamExt as _};
use laneway::{Bucket, Listed};

use crate::call::Work;
use crate::described;
use crate::failure::Failure;
use crate::handles::{self, Object};
use crate::opened::{Exclusive, Listing};
use crate::packed::{Packed, Unpacked};

/// The most objects passed on at a time, if that many have arrived: two pages.
const SOME_MAX: usize = 2000;

/// Returns the number of a new listing. It sends no request yet.
pub fn list(bucket: &Bucket, from: &mut Unpacked<'_>) -> Result<u64, Failure> {
    let mut list = bucket.list(from.text()?);
    if let Some(key) = from.maybe_text()? {
        list = list.start_after(key);
    }
    list = match from.number()? {
        0 => list,
        limit => list.limit(limit),
    };
    Ok(handles::keep(Object::List(Exclusive::new(bucket.client(), Listing { list, failed: None }))))
}

/// Returns the next objects: all that have arrived and at least one, or none at the end.
pub(super) fn some(listing: Arc<Exclusive<Listing>>) -> Work {
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
