//! The bodies of requests.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use s3s::StdError;

use super::aws_chunked::{FrameDecoder, Trailers};
use super::documents::IncomingDocument;
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
