//! Verbs that open objects, and read them in order or at any position.

use std::ops::Range;
use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _};
use laneway::{Bucket, Download, FilledRange, ObjectId, ObjectMeta};
use tokio::sync::Mutex;

use super::body;
use crate::call::{PendingAnswer, Work};
use crate::described::version;
use crate::failure::Failure;
use crate::handles::{Exclusive, HandleTarget, OpenObject};
use crate::lent::{LentMemory, Memory};
use crate::packed::{Packed, Unpacked};
use crate::{described, handles};

/// Reads bytes at a position. The host copies them to its own array. Returns fewer bytes at the end of the object.
pub(super) fn at(reader: &OpenObject, from: &mut Unpacked<'_>) -> Result<Work, Failure> {
    let (start, len) = (from.number()?, from.number()?);
    let read = reader.call(|reader| {
        let end = start.saturating_add(len).min(reader.size());
        (start < end).then(|| reader.read_range(start..end))
    });
    Ok(Work::new(&reader.client, async move {
        match read {
            Some(read) => Ok(body(read.await?)),
            None => Ok(body(Bytes::new())),
        }
    }))
}

/// Reads bytes at a position directly into the host's memory. Returns their number.
pub(super) fn into(reader: &OpenObject, from: &mut Unpacked<'_>, memory: Memory) -> Result<Work, Failure> {
    let start = from.number()?;
    let Memory::Lent(lent) = memory else { return Err(Failure::of_another_version()) };
    let read = reader.call(|reader| reader.read_into(start, lent));
    Ok(Work::new(&reader.client, async move {
        let (read, lent) = read.await?;
        drop(lent);
        let mut packed = Packed::default();
        packed.number(read as u64);
        Ok(packed)
    }))
}

/// Reads ranges, and sends each to the host as soon as it has arrived.
pub(super) fn ranges(
    reader: &OpenObject,
    from: &mut Unpacked<'_>,
    ending: &Arc<PendingAnswer>,
) -> Result<Work, Failure> {
    let (ranges, ending) = (asked(from)?, Arc::clone(ending));
    let mut coming = reader.call(|reader| reader.stream_ranges(ranges));
    Ok(Work::new(&reader.client, async move {
        while let Some(range) = coming.next().await {
            let (place, bytes) = range?;
            ending.range(place, &body(bytes));
        }
        Ok(Packed::default())
    }))
}

/// Reads each range into the memory that was lent for it, and tells the host as soon as the range is complete.
pub(super) fn ranges_into(
    reader: &OpenObject,
    from: &mut Unpacked<'_>,
    memory: Memory,
    ending: &Arc<PendingAnswer>,
) -> Result<Work, Failure> {
    let (ranges, ending) = (asked(from)?, Arc::clone(ending));
    let Memory::Several(lent) = memory else { return Err(Failure::of_another_version()) };
    if lent.len() != ranges.len() {
        return Err(Failure::of_another_version());
    }
    if !LentMemory::are_apart(&lent) {
        return Err(Failure::usage("two ranges were given the same memory; each needs its own"));
    }
    let coming = reader.call(|reader| reader.stream_ranges_into(ranges.into_iter().zip(lent)));
    let buffers = coming.buffers();
    let filling = ending.filling(move |place| drop(buffers.give_up(place)));
    // Rust drops the tuple's fields in this order. So dropping `coming` ends all writes first. Until then, the host can
    // still give up single ranges.
    let reading = (coming, filling);
    Ok(Work::new(&reader.client, async move {
        let mut reading = reading;
        while let Some(range) = reading.0.next().await {
            let FilledRange { place, bytes, buffer, .. } = range?;
            drop(buffer);
            ending.filled(place, bytes);
        }
        Ok(Packed::default())
    }))
}

fn asked(from: &mut Unpacked<'_>) -> Result<Vec<Range<u64>>, Failure> {
    (0..from.number()?).map(|_| Ok(from.number()?..from.number()?)).collect()
}

/// Reads bytes at a position with the reader that reads in order.
pub(super) fn next(reader: Arc<OpenObject>, from: &mut Unpacked<'_>) -> Result<Work, Failure> {
    let (position, len) = (from.number()?, from.number()?);
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    let client = reader.client.clone();
    Ok(Work::new(&client, async move {
        let mut in_order = reader.in_order.lock().await;
        in_order.set_position(position);
        Ok(body(in_order.chunk(len).await?))
    }))
}

/// Returns the next bytes if they have already arrived. If reading fails, returns `None`, and the next call reports the
/// failure.
pub fn read_now(reader: &OpenObject, position: u64, len: usize) -> Option<Bytes> {
    let mut in_order = reader.in_order.try_lock().ok()?;
    in_order.set_position(position);
    in_order.chunk(len).now_or_never()?.ok()
}

/// Discards all bytes that were read ahead, and stops the requests for them. Other reads continue.
pub fn drop_ahead(reader: &OpenObject) {
    let mut at_places = reader.at_places.lock().unwrap_or_else(PoisonError::into_inner);
    *at_places = at_places.again();
    drop(at_places);
    if let Ok(mut in_order) = reader.in_order.try_lock() {
        *in_order = in_order.again();
    }
}

pub(super) fn get_object(bucket: &Bucket, from: &mut Unpacked<'_>) -> Result<Work, Failure> {
    let mut get = bucket.get(from.text()?);
    // Start and end are encoded as in the Java class `dev.laneway.GetOptions`. If only the start is negative, `end` is
    // the number of bytes to read from the object's end. If both are negative, the call reads the whole object.
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
        let number = handles::keep(HandleTarget::Download(Exclusive::new(&client, download)));
        let mut packed = Packed::default();
        packed.number(number).all(&about);
        Ok(packed)
    }))
}

/// Returns the next bytes of a download. At its end, the result is empty.
pub(super) fn next_chunk(download: Arc<Exclusive<Download>>) -> Work {
    let client = download.client.clone();
    Work::new(&client, async move {
        let chunk = download.value.lock().await.chunk().await?;
        Ok(body(chunk.unwrap_or_default()))
    })
}

pub(super) fn open(bucket: &Bucket, from: &mut Unpacked<'_>) -> Result<Work, Failure> {
    let key = from.text()?;
    let state =
        |text: Option<&str>| text.map(|text| version(bucket.capabilities().versions, text)).transpose();
    let mut open = bucket.open(key);
    if from.flag()? {
        let _own_key = from.text()?;
        let mut known = ObjectMeta::new(ObjectId::new(bucket.name(), key), from.number()?);
        known.version = state(from.maybe_text()?)?;
        open = open.known(&known);
    }
    if let Some(version) = state(from.maybe_text()?)? {
        open = open.if_version(&version);
    }
    let open = match from.number()? {
        0 => open,
        footer => open.footer(footer),
    };
    let open = if from.flag()? { open.in_order() } else { open };
    let client = bucket.client().clone();
    Ok(Work::new(bucket.client(), async move {
        let reader = open.await?;
        let mut meta = Packed::default();
        described::meta(&mut meta, reader.meta());
        let (in_order, at_places) = (Mutex::new(reader.again()), std::sync::Mutex::new(reader));
        let number =
            handles::keep(HandleTarget::Reader(Arc::new(OpenObject { client, at_places, in_order })));
        let mut packed = Packed::default();
        packed.number(number).all(&meta);
        Ok(packed)
    }))
}
