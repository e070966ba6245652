//! Multipart uploads: `MultipartUpload`, which uses the library's writer, and `MultipartStore`, whose caller keeps the
//! ids of the upload and of its parts.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use laneway::{Bucket, Multipart, UploadedPart, Writer};

use super::convert::{e_tag, error, put_options, upload_error};
use super::object_store::multipart::PartId;
use super::object_store::path::Path;
use super::object_store::{
    Error, MultipartId, MultipartUpload, PutMultipartOptions, PutPayload, PutResult, Result, UploadPart,
};
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

/// The received parts, and the writer that takes them in order. No task runs in the background. A caller that awaits a
/// part also writes the parts before it.
pub(super) struct Upload(Arc<SharedUpload>);

struct SharedUpload {
    location: Path,
    /// The parts that the writer hasn't taken yet.
    parts: Mutex<WaitingParts>,
    writer: tokio::sync::Mutex<WriteProgress>,
}

#[derive(Default)]
struct WaitingParts {
    payloads: VecDeque<PutPayload>,
    /// The number of parts that `put_part` has received.
    came: usize,
}

struct WriteProgress {
    /// `None` once the upload has ended or failed.
    writer: Option<Writer>,
    /// The number of parts that the writer has taken.
    written: usize,
}

impl Upload {
    pub(super) fn new(location: Path, writer: Writer) -> Self {
        let writer = tokio::sync::Mutex::new(WriteProgress { writer: Some(writer), written: 0 });
        Self(Arc::new(SharedUpload { location, parts: Mutex::default(), writer }))
    }
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upload").field("location", &self.0.location).finish_non_exhaustive()
    }
}

impl SharedUpload {
    fn ended(&self) -> Error {
        let source = format!(
            "the upload of {} has ended or failed, or the future of one of its parts was dropped before it was done",
            self.location
        );
        Error::Generic { store: "Laneway", source: source.into() }
    }

    /// Writes the received parts until this number of them is written. If a write fails or its future is dropped, the
    /// upload takes no further parts, because its bytes would have a gap.
    async fn write_until(&self, writing: &mut WriteProgress, number: usize) -> Result<()> {
        while writing.written < number {
            let mut writer = writing.writer.take().ok_or_else(|| self.ended())?;
            let next = self.parts.lock().unwrap_or_else(PoisonError::into_inner).payloads.pop_front();
            for bytes in next.iter().flatten() {
                writer.write(bytes).await.map_err(|e| error(&self.location, e))?;
            }
            writing.writer = Some(writer);
            writing.written += 1;
        }
        Ok(())
    }
}

#[async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let number = {
            let mut parts = self.0.parts.lock().unwrap_or_else(PoisonError::into_inner);
            parts.payloads.push_back(data);
            parts.came += 1;
            parts.came
        };
        let shared = Arc::clone(&self.0);
        Box::pin(async move {
            let mut writing = shared.writer.lock().await;
            shared.write_until(&mut writing, number).await
        })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let came = self.0.parts.lock().unwrap_or_else(PoisonError::into_inner).came;
        let mut writing = self.0.writer.lock().await;
        self.0.write_until(&mut writing, came).await?;
        let writer = writing.writer.take().ok_or_else(|| self.0.ended())?;
        let written = writer.finish().await.map_err(|e| upload_error(&self.0.location, e))?;
        Ok(put_result(e_tag(written.version.as_ref())))
    }

    async fn abort(&mut self) -> Result<()> {
        let writer = self.0.writer.lock().await.writer.take();
        if let Some(writer) = writer {
            writer.abort().await;
        }
        Ok(())
    }
}
