//! The bodies of requests. Documents are bodies that the server reads whole before it handles the request. The memory for
//! them is limited: the code that reads a document limits it to some megabytes, but each connection may send a hundred
//! documents at a time.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use s3s::StdError;

use super::aws_chunked::{FrameDecoder, Trailers};
use crate::fault::body::BodyDamage;

/// A client's request body.
pub(crate) struct RequestBody {
    kind: RequestKind,
    damage: Option<Box<BodyDamage>>,
    /// Removes `aws-chunked` frames.
    unframing: Option<Box<FrameDecoder>>,
    /// Counts the body's bytes as a document, if it is read whole.
    document: Option<Arc<IncomingDocument>>,
}

enum RequestKind {
    Incoming(Incoming),
    /// The complete body of a call inside a batch.
    Whole(Option<Bytes>),
}

impl RequestBody {
    pub(crate) fn incoming(body: Incoming, damage: Option<Box<BodyDamage>>) -> RequestBody {
        RequestBody { kind: RequestKind::Incoming(body), damage, unframing: None, document: None }
    }

    pub(crate) fn whole(bytes: Bytes) -> RequestBody {
        RequestBody { kind: RequestKind::Whole(Some(bytes)), damage: None, unframing: None, document: None }
    }

    /// Returns the same body. If there is a `document`, it counts the body's bytes.
    pub(crate) fn counted(self, document: Option<Arc<IncomingDocument>>) -> RequestBody {
        RequestBody { document, ..self }
    }

    /// Returns a body with `bytes`, which were read from this body. The bytes are counted until the new body is
    /// dropped.
    pub(crate) fn replaced(self, bytes: Bytes) -> RequestBody {
        RequestBody { kind: RequestKind::Whole(Some(bytes)), damage: None, unframing: None, ..self }
    }

    /// Removes the `aws-chunked` frames from `decoded` bytes of content. Also returns the [`Trailers`], which are
    /// filled at the body's end.
    pub(crate) fn unframed(self, decoded: u64) -> (RequestBody, Trailers) {
        let trailers = Trailers::default();
        let unframing = Some(Box::new(FrameDecoder::new(decoded, trailers.clone())));
        (RequestBody { unframing, ..self }, trailers)
    }

    /// Returns the number of bytes to expect, if the client announced it.
    pub(crate) fn expected(&self) -> Option<u64> {
        self.size_hint().exact()
    }

    /// Returns the next bytes, or `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Result<Bytes, StdError>> {
        loop {
            match std::future::poll_fn(|cx| Pin::new(&mut *self).poll_frame(cx)).await? {
                Err(error) => return Some(Err(error)),
                Ok(frame) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Some(Ok(bytes));
                    }
                }
            }
        }
    }

    /// Returns the whole body if it has at most `bytes_max` bytes, and `Ok(None)` if it has more.
    pub(crate) async fn collect(&mut self, bytes_max: usize) -> Result<Option<Bytes>, StdError> {
        let mut all = Vec::new();
        let mut first: Option<Bytes> = None;
        while let Some(bytes) = self.next().await {
            let bytes = bytes?;
            if all.len() + first.as_ref().map_or(0, Bytes::len) + bytes.len() > bytes_max {
                return Ok(None);
            }
            match first.take() {
                // Most bodies arrive as a single frame. It is returned as it is, without a copy.
                None if all.is_empty() => first = Some(bytes),
                kept => {
                    all.extend_from_slice(&kept.unwrap_or_default());
                    all.extend_from_slice(&bytes);
                }
            }
        }
        Ok(Some(first.unwrap_or_else(|| all.into())))
    }

    /// Returns the next bytes as the client sent them.
    fn poll_sent(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, StdError>>> {
        if let Some(damage) = &mut self.damage {
            ready!(damage.poll_before(cx))?;
        }
        let frame = match &mut self.kind {
            RequestKind::Incoming(body) => {
                ready!(Pin::new(body).poll_frame(cx)).map(|frame| frame.map_err(StdError::from))
            }
            RequestKind::Whole(bytes) => bytes.take().map(|bytes| Ok(Frame::data(bytes))),
        };
        // A body in memory was counted when it was read.
        if let (Some(document), Some(Ok(frame)), RequestKind::Incoming(_)) =
            (&self.document, &frame, &self.kind)
            && let Some(bytes) = frame.data_ref()
        {
            document.take(bytes.len())?;
        }
        Poll::Ready(match (frame, &mut self.damage) {
            (Some(Ok(frame)), Some(damage)) => Some(Ok(frame.map_data(|bytes| damage.pass(bytes)))),
            (frame, _) => frame,
        })
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = StdError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StdError>>> {
        let Some(mut unframing) = self.unframing.take() else { return self.poll_sent(cx) };
        let polled = unframing.poll(|| self.poll_sent(cx));
        self.unframing = Some(unframing);
        polled
    }

    fn is_end_stream(&self) -> bool {
        if self.unframing.is_some() {
            return false;
        }
        match &self.kind {
            RequestKind::Incoming(body) => body.is_end_stream() && self.damage.is_none(),
            RequestKind::Whole(bytes) => bytes.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        if self.unframing.is_some() {
            return SizeHint::default();
        }
        match &self.kind {
            RequestKind::Incoming(body) => Body::size_hint(body),
            RequestKind::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
        }
    }
}

/// The maximum number of bytes for all connections together, and for a single one. The largest documents of real
/// clients have about 6 MiB: a delete of a thousand keys of a kilobyte, with each character escaped.
const HELD_MAX: usize = 48 << 20;

const ON_CONNECTION_MAX: usize = 16 << 20;

/// Counts the bytes of documents in memory. Clones share the count.
#[derive(Debug, Clone, Default)]
pub(crate) struct DocumentBytes(Arc<AtomicUsize>);

impl DocumentBytes {
    fn add(&self, bytes: usize, most: usize) -> bool {
        self.0
            .fetch_update(Relaxed, Relaxed, |held| held.checked_add(bytes).filter(|held| *held <= most))
            .is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Relaxed);
    }
}

/// The error if the documents in memory exceed the limit.
#[derive(Debug, thiserror::Error)]
#[error("the request documents in memory exceed the store's limit")]
pub(crate) struct DocumentsTooLarge;

/// A document that is arriving. Its bytes are counted until this value is dropped.
#[derive(Debug)]
pub(crate) struct IncomingDocument {
    everywhere: DocumentBytes,
    on_connection: DocumentBytes,
    bytes: AtomicUsize,
}

impl IncomingDocument {
    pub(crate) fn new(everywhere: &DocumentBytes, on_connection: &DocumentBytes) -> IncomingDocument {
        let (everywhere, on_connection) = (everywhere.clone(), on_connection.clone());
        IncomingDocument { everywhere, on_connection, bytes: AtomicUsize::new(0) }
    }

    /// Counts more bytes of the document.
    pub(crate) fn take(&self, bytes: usize) -> Result<(), DocumentsTooLarge> {
        if !self.on_connection.add(bytes, ON_CONNECTION_MAX) {
            return Err(DocumentsTooLarge);
        }
        if !self.everywhere.add(bytes, HELD_MAX) {
            self.on_connection.give_back(bytes);
            return Err(DocumentsTooLarge);
        }
        self.bytes.fetch_add(bytes, Relaxed);
        Ok(())
    }
}

impl Drop for IncomingDocument {
    fn drop(&mut self) {
        let bytes = *self.bytes.get_mut();
        self.everywhere.give_back(bytes);
        self.on_connection.give_back(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_the_memory_of_each_connection_and_of_all_together() {
        let everywhere = DocumentBytes::default();
        let mut coming = Vec::new();
        for connection in 0..HELD_MAX / ON_CONNECTION_MAX {
            let held = DocumentBytes::default();
            let first = IncomingDocument::new(&everywhere, &held);
            assert!(first.take(ON_CONNECTION_MAX - 1).is_ok(), "{connection}");
            let second = IncomingDocument::new(&everywhere, &held);
            assert!(second.take(2).is_err() && second.take(1).is_ok(), "{connection}");
            coming.extend([first, second]);
        }
        let other = IncomingDocument::new(&everywhere, &DocumentBytes::default());
        assert!(other.take(1).is_err());
        coming.pop();
        assert!(other.take(1).is_ok() && other.take(1).is_err());
        drop((coming, other));
        assert_eq!(everywhere.0.load(Relaxed), 0);
    }
}
