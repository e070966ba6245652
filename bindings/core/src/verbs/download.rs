//! Reads objects in order.

use std::sync::Arc;

use laneway::{Bucket, Download};

use super::body;
use crate::attributes::version;
use crate::call::Work;
use crate::described;
use crate::failure::Failure;
use crate::handles::{self, Object};
use crate::opened::Exclusive;
use crate::packed::{Packed, Unpacked};

pub(super) fn get(bucket: &Bucket, from: &mut Unpacked<'_>) -> Result<Work, Failure> {
    let mut get = bucket.get(from.text()?);
    // The format is that of `dev.laneway.GetOptions`. Without a start, the range is everything, or with an end the last
    // bytes.
    let (start, end) = (from.number()?.cast_signed(), from.number()?.cast_signed());
    get = match (u64::try_from(start), u64::try_from(end)) {
        (Ok(start), Ok(end)) if end == i64::MAX.unsigned_abs() => get.range(start..),
        (Ok(start), Ok(end)) => get.range(start..end),
        (Err(_), Ok(last)) => get.last(last),
        (_, Err(_)) => get,
    };
    if let Some(state) = from.maybe_text()? {
        get = get.if_version(&version(bucket.capabilities().versions, state)?);
    }
    if let Some(state) = from.maybe_text()? {
        get = get.unless_version(&version(bucket.capabilities().versions, state)?);
    }
    let client = bucket.client().clone();
    Ok(Work::new(bucket.client(), async move {
        let download = get.await?;
        let mut about = Packed::default();
        described::meta(&mut about, download.meta());
        about.number(download.range().start).number(download.range().end);
        let number = handles::keep(Object::Download(Exclusive::new(&client, download)));
        let mut packed = Packed::default();
        packed.number(number).all(&about);
        Ok(packed)
    }))
}

/// Returns the next bytes, or none at the end.
pub(super) fn chunk(download: Arc<Exclusive<Download>>) -> Work {
    let client = download.client.clone();
    Work::new(&client, async move {
        let chunk = download.value.lock().await.chunk().await?;
        Ok(body(chunk.unwrap_or_default()))
    })
}
