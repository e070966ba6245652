//! Deletes objects.

use futures_util::{StreamExt as _, stream};
use laneway::Bucket;

use crate::attributes::version;
use crate::call::Work;
use crate::failure::Failure;
use crate::packed::{Packed, Unpacked};

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

/// Tries to delete all keys, and packs failures by key.
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
