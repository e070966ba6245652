//! Multipart uploads whose parts the caller numbers.

use laneway::{Bucket, Multipart, UploadedPart};

use crate::attributes::put_options;
use crate::call::Work;
use crate::described;
use crate::failure::Failure;
use crate::lent::Memory;
use crate::packed::{Packed, Unpacked};

pub(super) fn begin(bucket: &Bucket, from: &mut Unpacked<'_>) -> Result<Work, Failure> {
    let begin = bucket.begin_multipart(from.text()?);
    let begin = begin.options(put_options(bucket.capabilities().versions, from)?);
    Ok(Work::new(bucket.client(), async move {
        let mut packed = Packed::default();
        packed.text(&begin.await?.id());
        Ok(packed)
    }))
}

pub(super) fn part(bucket: &Bucket, from: &mut Unpacked<'_>, memory: Memory) -> Result<Work, Failure> {
    let upload = named(bucket, from)?;
    // A number that is too large for any part gets the same refusal.
    let number = u32::try_from(from.number()?).unwrap_or(u32::MAX);
    let part = upload.part(number, memory.into_bytes());
    Ok(Work::new(bucket.client(), async move {
        let mut packed = Packed::default();
        packed.text(&part.await?.to_string());
        Ok(packed)
    }))
}

pub(super) fn complete(bucket: &Bucket, from: &mut Unpacked<'_>) -> Result<Work, Failure> {
    let upload = named(bucket, from)?;
    let parts: Result<Vec<UploadedPart>, laneway::Error> = from.list()?.into_iter().map(str::parse).collect();
    let complete = upload.complete(parts?);
    Ok(Work::new(bucket.client(), async move { Ok(described::written(&complete.await?)) }))
}

pub(super) fn abort(bucket: &Bucket, from: &mut Unpacked<'_>) -> Result<Work, Failure> {
    let abort = named(bucket, from)?.abort();
    Ok(Work::new(bucket.client(), async move {
        abort.await?;
        Ok(Packed::default())
    }))
}

/// Lists unfinished uploads below a prefix, by key and id.
pub(super) fn list(bucket: &Bucket, from: &mut Unpacked<'_>) -> Result<Work, Failure> {
    let uploads = bucket.list_multipart(from.text()?);
    Ok(Work::new(bucket.client(), async move {
        let mut packed = Packed::default();
        for upload in uploads.await? {
            packed.text(upload.key()).text(&upload.id());
        }
        Ok(packed)
    }))
}

fn named(bucket: &Bucket, from: &mut Unpacked<'_>) -> Result<Multipart, Failure> {
    let (key, id) = (from.text()?, from.text()?);
    Ok(bucket.multipart(key, id)?)
}
