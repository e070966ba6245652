//! Writes objects whose bytes are produced one after the other.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::FutureExt as _;
use laneway::{Bucket, Writer};
use tokio::io::AsyncWrite as _;

use crate::attributes::put_options;
use crate::call::Work;
use crate::described;
use crate::failure::Failure;
use crate::handles::{self, Object};
use crate::lent::Memory;
use crate::opened::{Exclusive, WriterState};
use crate::packed::{Packed, Unpacked};

impl WriterState {
    fn writer(&mut self) -> Result<&mut Writer, Failure> {
        match self.failed.take() {
            Some(failed) => Err(failed),
            None => self.writer.as_mut().ok_or_else(Failure::closed),
        }
    }
}

/// Returns the number of a new writer. It sends no request yet.
pub fn writer(bucket: &Bucket, from: &mut Unpacked<'_>) -> Result<u64, Failure> {
    let writer = bucket.writer(from.text()?);
    let writer = Some(writer.options(put_options(bucket.capabilities().versions, from)?));
    Ok(handles::keep(Object::Writer(Exclusive::new(bucket.client(), WriterState { writer, failed: None }))))
}

/// Takes as many bytes as the part in memory has room for. Returns their number.
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

/// Writes bytes, and waits while too many are under way. Returns their number.
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

/// Unwraps the library's error from an I/O error.
fn failure(error: io::Error) -> Failure {
    match error.downcast::<laneway::Error>() {
        Ok(inner) => inner.into(),
        Err(other) => Failure::usage(other.to_string()),
    }
}
