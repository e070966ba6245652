//! Joins objects of one bucket to a new object. The store does it by itself, and no byte passes through this machine.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::Arc;

use futures_util::{FutureExt as _, StreamExt as _, TryStreamExt as _, stream};
use laneway_store::{Checksums, Condition, ObjectId, ObjectMeta, Part, PutOptions, Store};

use crate::content::checksum::{Crc, RangeChecksums, written};
use crate::engine::state::ClientState;
use crate::location::url;
use crate::{Error, Location};

/// Requests that are under way at once: HEADs of sources, and copies of parts.
const AT_ONCE: usize = 16;

/// Joins the sources, in their order.
///
/// # Errors
/// The store's error; `ErrorKind::Usage` for places that can't be joined; integrity if the new object has another
/// checksum than the sources together.
pub(crate) async fn compose(
    engine: Arc<ClientState>,
    sources: Vec<Location>,
    destination: Location,
    put: PutOptions,
) -> Result<ObjectMeta, Error> {
    let (store, ids, to) = places(&engine, &sources, &destination)?;
    // Boxed futures, because the compiler can't prove that those of a lazy iterator are `Send`.
    let heads: Vec<_> = ids.iter().map(|id| store.head(id, None).boxed()).collect();
    let metas: Vec<ObjectMeta> = stream::iter(heads).buffered(AT_ONCE).try_collect().await?;
    let mut options = put;
    if options.content_type.is_none() {
        options.content_type = metas.first().and_then(|meta| meta.content_type.clone());
    }
    let whole = joined(&metas);
    let sums = whole.map(Checksums::crc32c).unwrap_or_default();
    let made = match store.compose_max() {
        0 => by_parts(store, &metas, &to, &options, &sums).await?,
        most if metas.len() <= most => store.compose(&metas, &to, &options, &sums).await?,
        most => in_two_steps(store, &metas, &to, &options, (&sums, most)).await?,
    };
    match (whole, made.checksums.crc32c) {
        (Some(ours), Some(theirs)) if ours != theirs => {
            let (ours, theirs) = (written(&ours.to_be_bytes()), written(&theirs.to_be_bytes()));
            let message = format!("the crc32c of the sources is {ours}, but the store reports {theirs}");
            Err(Error::integrity(url(store.provider(), &to), message))
        }
        _ => Ok(made),
    }
}

/// Returns the one store of all places, and their names.
fn places<'e>(
    engine: &'e ClientState,
    sources: &[Location],
    destination: &Location,
) -> Result<(&'e Store, Vec<ObjectId>, ObjectId), Error> {
    let object = |at: &Location| match at.as_object() {
        Some((provider, id)) if !id.key.is_empty() && !at.is_pattern() => Ok((provider, id)),
        _ => Err(Error::usage(at.to_string(), "names no object in a store")),
    };
    let (provider, to) = object(destination)?;
    if to.version.is_some() {
        return Err(Error::usage(destination.to_string(), "a version can't be written"));
    }
    let mut ids = Vec::with_capacity(sources.len());
    for source in sources {
        let (of, id) = object(source)?;
        if of != provider || id.bucket != to.bucket {
            return Err(Error::usage(source.to_string(), "isn't in the bucket of the new object"));
        }
        ids.push(id);
    }
    if ids.is_empty() {
        return Err(Error::usage(destination.to_string(), "there is nothing to join"));
    }
    Ok((engine.store(provider)?, ids, to))
}

/// Returns the CRC32C of all bytes, if the store reports each source's.
fn joined(metas: &[ObjectMeta]) -> Option<u32> {
    let mut whole = RangeChecksums::known(0, Crc::Crc32c, 0);
    for meta in metas {
        whole = whole.then(RangeChecksums::known(meta.size, Crc::Crc32c, meta.checksums.crc32c?.into()));
    }
    whole.crc32c
}

/// Joins the sources in groups to temporary objects, and these to the new object. The new object appears only
/// at the end.
async fn in_two_steps(
    store: &Store,
    metas: &[ObjectMeta],
    to: &ObjectId,
    options: &PutOptions,
    (sums, most): (&Checksums, usize),
) -> Result<ObjectMeta, Error> {
    if metas.len() > most * most {
        let why =
            format!("{} objects are too many to join at once; {} are allowed", metas.len(), most * most);
        return Err(Error::usage(url(store.provider(), to), why));
    }
    let tag = RandomState::new().build_hasher().finish();
    let group = |(number, group): (usize, &[ObjectMeta])| {
        let part = ObjectId::new(&to.bucket, format!("{}.laneway-{tag:016x}.{number}", to.key));
        let group = group.to_vec();
        async move {
            let sums = joined(&group).map(Checksums::crc32c).unwrap_or_default();
            store.compose(&group, &part, &PutOptions::default(), &sums).await
        }
        .boxed()
    };
    let groups: Vec<_> = metas.chunks(most).enumerate().map(group).collect();
    let made: Vec<Result<ObjectMeta, laneway_store::Error>> =
        stream::iter(groups).buffered(AT_ONCE).collect().await;
    let (parts, failed): (Vec<_>, Vec<_>) = made.into_iter().partition(Result::is_ok);
    let parts: Vec<ObjectMeta> = parts.into_iter().flatten().collect();
    let whole = match failed.into_iter().find_map(Result::err) {
        Some(error) => Err(error),
        None => store.compose(&parts, to, options, sums).await,
    };
    for part in &parts {
        if let Err(error) = store.delete(&part.id, &Condition::None).await {
            tracing::warn!(%error, "a temporary object of a composition stays");
        }
    }
    Ok(whole?)
}

/// Joins the sources as the parts of an upload, which the store copies.
async fn by_parts(
    store: &Store,
    metas: &[ObjectMeta],
    to: &ObjectId,
    options: &PutOptions,
    sums: &Checksums,
) -> Result<ObjectMeta, Error> {
    let can = store.capabilities();
    let too_small =
        metas.split_last().and_then(|(_, before)| before.iter().find(|meta| meta.size < can.parts.bytes_min));
    if let Some(meta) = too_small {
        let why = format!(
            "the store joins objects of at least {} bytes, except for the last one",
            can.parts.bytes_min
        );
        return Err(Error::usage(url(store.provider(), &meta.id), why));
    }
    let most = can.copy_bytes_max.unwrap_or(can.parts.bytes_max).min(can.parts.bytes_max).max(1);
    let mut ranges = Vec::new();
    for meta in metas.iter().filter(|meta| meta.size > 0) {
        // Equal parts, so that none is below the smallest part.
        let part_len = meta.size.div_ceil(meta.size.div_ceil(most));
        for at in 0..meta.size.div_ceil(part_len) {
            ranges.push((meta, at * part_len..meta.size.min((at + 1) * part_len)));
        }
    }
    let upload = store.begin(to, options).await?;
    let sent = async {
        let mut copies = Vec::with_capacity(ranges.len());
        for (number, (meta, range)) in (1..).zip(ranges) {
            copies.push(store.part_copy(&upload, number, &meta.id, meta.version.as_ref(), range).boxed());
        }
        let parts: Vec<Part> = stream::iter(copies).buffered(AT_ONCE).try_collect().await?;
        store.complete(&upload, &parts, sums, &options.condition).await
    };
    let sent = sent.await;
    if sent.is_err()
        && let Err(error) = store.abort(&upload).await
    {
        tracing::warn!(%error, "a multipart upload stays behind unfinished");
    }
    Ok(sent?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_of_all_sources_follows_from_theirs() {
        let meta = |crc32c| {
            let mut meta = ObjectMeta::new(ObjectId::new("b", "k"), 3);
            meta.checksums.crc32c = crc32c;
            meta
        };
        let crc = |bytes: &[u8]| RangeChecksums::of(bytes, Crc::Crc32c.wanted()).crc32c;
        let both = [meta(crc(b"abc")), meta(crc(b"def"))];
        assert_eq!(joined(&both), crc(b"abcdef"));
        assert_eq!(joined(&[both[0].clone(), meta(None)]), None);
    }
}
