//! Joins objects of one bucket into a new object. The store copies the bytes itself, so none pass through this
//! machine.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _, TryStreamExt as _, stream};
use laneway_store::{Checksums, Deletion, ObjectId, ObjectMeta, PartChecksums, PutOptions, Store, Version};

use crate::content::checksum::{Crc, RangeChecksums, written};
use crate::engine::settings::ClientState;
use crate::job::running::JobState;
use crate::location::url;
use crate::plan::requests_at_once;
use crate::transfer::copy::fill;
use crate::transfer::upload::{CONFLICTS_MAX, StoreUpload, begun};
use crate::{Error, Location};

/// If the call is cancelled while the store makes a temporary object, the maximum time to wait for the store's
/// answer. Without the answer, Laneway doesn't know the object's generation.
const TEMPORARY_GRACE: Duration = Duration::from_secs(5);

/// Joins the sources, in their order.
///
/// # Errors
/// The store's error. `ErrorKind::Usage` if these objects can't be joined. `ErrorKind::Integrity` if the new
/// object doesn't have the checksum of the joined sources. `ErrorKind::Cancelled`.
pub(crate) async fn compose(
    job: Arc<JobState>,
    sources: Vec<Location>,
    destination: Location,
    put: PutOptions,
) -> Result<ObjectMeta, Error> {
    let (store, ids, to) = places(&job.engine, &sources, &destination)?;
    // Box and collect the futures. For the futures of a lazy iterator, the compiler can't prove that they are
    // `Send`.
    let heads: Vec<_> = ids.iter().map(|id| store.head(id, None).boxed()).collect();
    let heads = stream::iter(heads).buffered(requests_at_once(job.engine.cores));
    let metas: Vec<ObjectMeta> = job.unless_cancelled(heads.try_collect::<Vec<_>>()).await??;
    let mut options = put;
    if options.content_type.is_none() {
        options.content_type = metas.first().and_then(|meta| meta.content_type.clone());
    }
    let crc32c = joined(&metas);
    let most = store.compose_max();
    let made = if most == 0 {
        by_parts(&job, store, &metas, &to, &options, crc32c).await?
    } else {
        // GCS requires that the sources have the storage class of the new object.
        if options.storage_class.is_none() {
            options.storage_class = metas.first().and_then(|meta| meta.storage_class.clone());
        }
        match metas.len() <= most {
            true => job.unless_cancelled(store.compose(&metas, &to, &options, &sums(crc32c))).await??,
            false => in_two_steps(&job, store, &metas, &to, &options, most).await?,
        }
    };
    match (crc32c, made.checksums.crc32c) {
        (Some(ours), Some(theirs)) if ours != theirs => {
            let (ours, theirs) = (written(&ours.to_be_bytes()), written(&theirs.to_be_bytes()));
            let message = format!("the crc32c of the sources is {ours}, but the store reports {theirs}");
            Err(Error::integrity(url(store.provider(), &to), message))
        }
        _ => Ok(made),
    }
}

/// Returns the store of all places, the ids of the sources, and the id of the destination.
fn places<'e>(
    engine: &'e ClientState,
    sources: &[Location],
    destination: &Location,
) -> Result<(&'e Store, Vec<ObjectId>, ObjectId), Error> {
    let object = |at: &Location| match at.as_object() {
        Some((provider, id)) if !id.key.is_empty() && !at.is_pattern() => Ok((provider, id)),
        _ => Err(Error::usage(at.to_string(), "is not an object in a store")),
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

/// Returns the CRC32C of all bytes, if the store reports the CRC32C of each source.
fn joined(metas: &[ObjectMeta]) -> Option<u32> {
    let mut whole = RangeChecksums::known(0, Crc::Crc32c, 0);
    for meta in metas {
        whole = whole.then(RangeChecksums::known(meta.size, Crc::Crc32c, meta.checksums.crc32c?.into()));
    }
    whole.crc32c
}

fn sums(crc32c: Option<u32>) -> Checksums {
    crc32c.map(Checksums::crc32c).unwrap_or_default()
}

/// Joins groups of sources into temporary objects, and then joins the temporary objects into the new object. The new
/// object appears only at the end.
async fn in_two_steps(
    job: &JobState,
    store: &Store,
    metas: &[ObjectMeta],
    to: &ObjectId,
    options: &PutOptions,
    most: usize,
) -> Result<ObjectMeta, Error> {
    if metas.len() > most * most {
        let why =
            format!("{} objects are too many to join at once; {} are allowed", metas.len(), most * most);
        return Err(Error::usage(url(store.provider(), to), why));
    }
    let tag = RandomState::new().build_hasher().finish();
    let mut temporary = PutOptions::default();
    temporary.storage_class = metas.first().and_then(|meta| meta.storage_class.clone());
    temporary.kms_key.clone_from(&options.kms_key);
    let mut groups = Vec::new();
    for (number, group) in metas.chunks(most).enumerate() {
        let part = ObjectId::new(&to.bucket, format!("{}.laneway-{tag:016x}.{number}", to.key));
        let temporary = &temporary;
        let made = async move {
            let made = part_of(job, store, group, &part, temporary).await;
            (part, made)
        };
        groups.push(made.boxed());
    }
    let made: Vec<(ObjectId, Result<ObjectMeta, Error>)> =
        stream::iter(groups).buffered(requests_at_once(job.engine.cores)).collect().await;
    let (mut parts, mut removed, mut failed) = (Vec::new(), Vec::new(), None);
    for (part, made) in made {
        // In a bucket that keeps versions, only a removal that names the generation removes the bytes.
        let version = |meta: &ObjectMeta| match meta.version {
            Some(Version::Generation(generation)) => Some(generation.to_string().into_boxed_str()),
            _ => None,
        };
        let may_exist = |error: &Error| {
            error.is_cancelled() || error.as_store().is_some_and(laneway_store::Error::is_uncertain)
        };
        let id = made.as_ref().ok().and_then(version);
        if made.as_ref().err().is_none_or(may_exist) {
            removed.push(Deletion { key: part.key, version: None, id });
        }
        match made {
            Ok(made) => parts.push(made),
            Err(error) => failed = failed.or(Some(error)),
        }
    }
    let whole = match failed {
        Some(error) => Err(error),
        None => {
            let sums = sums(joined(metas));
            let composed = job.unless_cancelled(store.compose(&parts, to, options, &sums)).await;
            composed.and_then(|composed| Ok(composed?))
        }
    };
    for removed in store.delete_many(&to.bucket, &removed).await {
        if let Err(error) = removed
            && !error.is_not_found()
        {
            tracing::warn!(%error, "a temporary object of a composition could not be removed and stays in the store");
        }
    }
    whole
}

/// Joins a group of sources into a temporary object. If the call is cancelled meanwhile, waits up to
/// [`TEMPORARY_GRACE`] for the store's answer.
async fn part_of(
    job: &JobState,
    store: &Store,
    group: &[ObjectMeta],
    part: &ObjectId,
    options: &PutOptions,
) -> Result<ObjectMeta, Error> {
    let sums = sums(joined(group));
    let mut composed = pin!(store.compose(group, part, options, &sums));
    if job.cancel.is_set() {
        return Err(Error::cancelled(""));
    }
    match job.unless_cancelled(&mut composed).await {
        Ok(made) => Ok(made?),
        Err(cancelled) => match tokio::time::timeout(TEMPORARY_GRACE, composed).await {
            Ok(made) => Ok(made?),
            Err(_) => Err(cancelled),
        },
    }
}

/// Joins the sources with a multipart upload. The store copies the sources' bytes into the parts of the upload.
async fn by_parts(
    job: &JobState,
    store: &Store,
    metas: &[ObjectMeta],
    to: &ObjectId,
    options: &PutOptions,
    crc32c: Option<u32>,
) -> Result<ObjectMeta, Error> {
    let rules = store.capabilities().parts;
    let too_small =
        metas.split_last().and_then(|(_, before)| before.iter().find(|meta| meta.size < rules.bytes_min));
    if let Some(meta) = too_small {
        let why =
            format!("the store joins objects of at least {} bytes, except for the last one", rules.bytes_min);
        return Err(Error::usage(url(store.provider(), &meta.id), why));
    }
    let sizes: Vec<u64> = metas.iter().map(|meta| meta.size).collect();
    let ranges = job.engine.copy_sizes.ranges_of_all(&sizes, rules);
    if ranges.len() as u64 > rules.count_max {
        let why = format!(
            "{} objects of {} bytes need more than {} parts",
            sizes.len(),
            sizes.iter().sum::<u64>(),
            rules.count_max
        );
        return Err(Error::usage(url(store.provider(), to), why));
    }
    let mut checked = true;
    let mut conflicts = 0;
    loop {
        let begin = async {
            match checked {
                true => store.begin(to, options).await,
                false => store.begin_unchecked(to, options).await,
            }
        };
        let upload = begun(job, store, begin, StoreUpload::Multipart).await??;
        let had_checksums = checked && upload.checksums != PartChecksums::None;
        let ranges = ranges.iter().map(|(at, range)| (&metas[*at].id, &metas[*at], range.clone())).collect();
        match fill(job, store, ranges, &upload, crc32c, &options.condition).await {
            // MinIO refuses to copy parts into an upload with checksums. Try again without them.
            Err(error)
                if had_checksums
                    && error.as_store().is_some_and(|error| error.is_invalid() || error.is_unsupported()) =>
            {
                checked = false;
            }
            Err(error) if error.is_conflict() && conflicts < CONFLICTS_MAX => conflicts += 1,
            filled => return filled,
        }
    }
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
