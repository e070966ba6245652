//! Multipart uploads whose ids and parts the caller keeps.

use bytes::Bytes;
use laneway::{Bucket, Multipart, UploadedPart};

use super::attributes::put_options;
use super::errors::error;
use super::names::e_tag;
use super::object_store::multipart::PartId;
use super::object_store::path::Path;
use super::object_store::{Error, MultipartId, PutMultipartOptions, PutPayload, PutResult, Result};
use super::put_result;

/// Begins an upload. Its id also tells the store's kind of checksums.
pub(in super::super) async fn create(
    bucket: &Bucket,
    path: &Path,
    opts: PutMultipartOptions,
) -> Result<MultipartId> {
    let PutMultipartOptions { tags, attributes, .. } = opts;
    let options = put_options(bucket.capabilities(), attributes, &tags)?;
    let upload = bucket.begin_multipart(path.as_ref()).options(options).await;
    Ok(upload.map_err(|e| error(path, e))?.id())
}

/// Uploads a part. object_store counts parts from 0, stores from 1.
pub(in super::super) async fn put_part(
    bucket: &Bucket,
    path: &Path,
    id: &MultipartId,
    index: usize,
    data: PutPayload,
) -> Result<PartId> {
    // A number that is too large for any part gets the same refusal.
    let number = u32::try_from(index).unwrap_or(u32::MAX).saturating_add(1);
    let part = upload(bucket, path, id)?.part(number, Bytes::from(data)).await;
    Ok(PartId { content_id: part.map_err(|e| error(path, e))?.to_string() })
}

/// Completes the object from the parts, in this order.
///
/// # Errors
/// Fails for a part that was sent under a different index.
pub(in super::super) async fn complete(
    bucket: &Bucket,
    path: &Path,
    id: &MultipartId,
    parts: Vec<PartId>,
) -> Result<PutResult> {
    let named = parts.iter().zip(1..).map(|(part, number)| {
        let uploaded: UploadedPart = part.content_id.parse().map_err(|e| error(path, e))?;
        if uploaded.number() == number {
            return Ok(uploaded);
        }
        let source =
            format!("part {} of the upload of {path} was sent as part {}", number - 1, uploaded.number() - 1);
        Err(Error::Generic { store: "Laneway", source: source.into() })
    });
    let named = named.collect::<Result<Vec<_>>>()?;
    let written = upload(bucket, path, id)?.complete(named).await.map_err(|e| error(path, e))?;
    Ok(put_result(e_tag(written.version.as_ref())))
}

/// Aborts an upload.
pub(in super::super) async fn abort(bucket: &Bucket, path: &Path, id: &MultipartId) -> Result<()> {
    upload(bucket, path, id)?.abort().await.map_err(|e| error(path, e))
}

fn upload(bucket: &Bucket, path: &Path, id: &MultipartId) -> Result<Multipart> {
    bucket.multipart(path.as_ref(), id).map_err(|e| error(path, e))
}
