//! Verbs that write objects: from memory, in numbered parts, or as a stream.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::FutureExt as _;
use laneway::{Bucket, Multipart, UploadedPart, Writer};
use tokio::io::AsyncWrite as _;

use crate::call::Work;
use crate::described::put_options;
use crate::failure::Failure;
use crate::handles::{Exclusive, HandleTarget, WriterState};
use crate::lent::Memory;
use crate::packed::{Packed, Unpacked};
use crate::{described, handles};

impl WriterState {
    fn writer(&mut self) -> Result<&mut Writer, Failure> {
        match self.failed.take() {
            Some(failed) => Err(failed),
            None => self.writer.as_mut().ok_or_else(Failure::closed),
        }
    }
}

/// Creates a writer, and returns its handle. It sends no request yet.
pub fn writer(bucket: &Bucket, from: &mut Unpacked<'_>) -> Result<u64, Failure> {
    let writer = bucket.writer(from.text()?);
    let writer = Some(writer.options(put_options(bucket.capabilities().versions, from)?));
    Ok(handles::keep(HandleTarget::Writer(Exclusive::new(
        bucket.client(),
        WriterState { writer, failed: None },
    ))))
}

/// Passes bytes to the writer until it would have to wait. Returns the number of bytes that the writer took.
pub fn write_now(writing: &Exclusive<WriterState>, bytes: &[u8]) -> usize {
    let Ok(mut writing) = writing.value.try_lock() else { return 0 };
    let mut taken = 0;
    while taken < bytes.len() {
        let Ok(writer) = writing.writer() else { break };
        let some = poll_fn(|context| Pin::new(&mut *writer).poll_write(context, &bytes[taken..]));
        match some.now_or_never() {
            Some(Ok(some)) => taken += some,
            Some(Err(error)) => {
                writing.failed = Some(failure(error));
                break;
            }
            None => break,
        }
    }
    taken
}

/// Writes bytes. Waits while too many written bytes are still unsent. Returns their number.
pub(super) fn write(writing: Arc<Exclusive<WriterState>>, memory: Memory) -> Work {
    let (client, bytes) = (writing.client.clone(), memory.into_bytes());
    Work::new(&client, async move {
        writing.value.lock().await.writer()?.write(&bytes).await?;
        let mut packed = Packed::default();
        packed.number(bytes.len() as u64);
        Ok(packed)
    })
}

pub(super) fn finish(writing: Arc<Exclusive<WriterState>>) -> Work {
    let client = writing.client.clone();
    Work::new(&client, async move {
        let mut writing = writing.value.lock().await;
        writing.writer()?;
        let writer = writing.writer.take().ok_or_else(Failure::closed)?;
        Ok(described::written(&writer.finish().await?))
    })
}

pub(super) fn abort(writing: Arc<Exclusive<WriterState>>) -> Work {
    let client = writing.client.clone();
    Work::new(&client, async move {
        let writer = writing.value.lock().await.writer.take();
        if let Some(writer) = writer {
            writer.abort().await;
        }
        Ok(Packed::default())
    })
}

/// Returns the library's error that an I/O error contains.
fn failure(error: io::Error) -> Failure {
    match error.downcast::<laneway::Error>() {
        Ok(inner) => inner.into(),
        Err(other) => Failure::usage(other.to_string()),
    }
}

pub(super) fn begin_multipart(bucket: &Bucket, from: &mut Unpacked<'_>) -> Result<Work, Failure> {
    let begin = bucket.begin_multipart(from.text()?);
    let begin = begin.options(put_options(bucket.capabilities().versions, from)?);
    Ok(Work::new(bucket.client(), async move {
        let mut packed = Packed::default();
        packed.text(&begin.await?.id());
        Ok(packed)
    }))
}

pub(super) fn put_part(bucket: &Bucket, from: &mut Unpacked<'_>, memory: Memory) -> Result<Work, Failure> {
    let upload = named_upload(bucket, from)?;
    // A number above `u32::MAX` becomes `u32::MAX`. The library refuses both numbers with the same error.
    let number = u32::try_from(from.number()?).unwrap_or(u32::MAX);
    let part = upload.part(number, memory.into_bytes());
    Ok(Work::new(bucket.client(), async move {
        let mut packed = Packed::default();
        packed.text(&part.await?.to_string());
        Ok(packed)
    }))
}

pub(super) fn complete_multipart(bucket: &Bucket, from: &mut Unpacked<'_>) -> Result<Work, Failure> {
    let upload = named_upload(bucket, from)?;
    let parts: Result<Vec<UploadedPart>, laneway::Error> = from.list()?.into_iter().map(str::parse).collect();
    let complete = upload.complete(parts?);
    Ok(Work::new(bucket.client(), async move { Ok(described::written(&complete.await?)) }))
}

pub(super) fn abort_multipart(bucket: &Bucket, from: &mut Unpacked<'_>) -> Result<Work, Failure> {
    let abort = named_upload(bucket, from)?.abort();
    Ok(Work::new(bucket.client(), async move {
        abort.await?;
        Ok(Packed::default())
    }))
}

/// Lists the keys and ids of the unfinished uploads below a prefix.
pub(super) fn list_parts(bucket: &Bucket, from: &mut Unpacked<'_>) -> Result<Work, Failure> {
    let uploads = bucket.list_multipart(from.text()?);
    Ok(Work::new(bucket.client(), async move {
        let mut packed = Packed::default();
        for upload in uploads.await? {
            packed.text(upload.key()).text(&upload.id());
        }
        Ok(packed)
    }))
}

fn named_upload(bucket: &Bucket, from: &mut Unpacked<'_>) -> Result<Multipart, Failure> {
    let (key, id) = (from.text()?, from.text()?);
    Ok(bucket.multipart(key, id)?)
}

pub(super) fn put(bucket: &Bucket, from: &mut Unpacked<'_>, memory: Memory) -> Result<Work, Failure> {
    let key = from.text()?;
    let options = put_options(bucket.capabilities().versions, from)?;
    let put = bucket.put(key, memory.into_bytes()).options(options);
    Ok(Work::new(bucket.client(), async move { Ok(described::written(&put.await?)) }))
}
