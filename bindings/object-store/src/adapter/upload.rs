//! Implements `MultipartUpload` with the library's writer.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use laneway::Writer;

use super::errors::error;
use super::names::e_tag;
use super::object_store::path::Path;
use super::object_store::{Error, MultipartUpload, PutPayload, PutResult, Result, UploadPart};
use super::put_result;

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
        let written = writer.finish().await.map_err(|e| error(&self.0.location, e))?;
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
