//! Multipart uploads for `MultipartStore`, whose caller keeps the ids of the upload and of its parts.

use bytes::Bytes;
use laneway::{Bucket, Multipart, UploadedPart};

use super::attributes::put_options;
use super::errors::error;
use super::names::e_tag;
use super::object_store::multipart::PartId;
use super::object_store::path::Path;
use super::object_store::{Error, MultipartId, PutMultipartOptions, PutPayload, PutResult, Result};
use super::put_result;

/// Begins an upload. The returned id also contains the kind of checksum that the store computes.
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

/// Uploads a part. object_store numbers parts from 0, and stores number them from 1.
pub(in super::super) async fn put_part(
    bucket: &Bucket,
    path: &Path,
    id: &MultipartId,
    index: usize,
    data: PutPayload,
) -> Result<PartId> {
    // An index above `u32::MAX` becomes the largest number. The library refuses it, because it is above every store's
    // limit.
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
