//! The bodies of answers.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::Stream;
use http_body::{Body, Frame, SizeHint};
use s3s::StdError;
use s3s::stream::{ByteStream, RemainingLength};

use super::{RunningRequest, StructuredReader};
use crate::fault::body::BodyDamage;
use crate::objects::content::ContentReader;

/// The server's answer body.
pub(crate) struct ResponseBody {
    kind: ResponseKind,
    damage: Option<Box<BodyDamage>>,
    /// True if the answer doesn't announce the length, so that HTTP/1.1 sends the body in chunks.
    untold: bool,
    /// Kept until the body has been sent, so that the request is counted as running until then.
    under_way: Option<RunningRequest>,
}

enum ResponseKind {
    Whole(Option<Bytes>),
    Object(ContentReader),
    Structured(Box<StructuredReader>),
    Gunzipped(Box<Gunzip>),
    S3(s3s::Body),
}

impl ResponseBody {
    pub(crate) fn empty() -> ResponseBody {
        ResponseBody::of(ResponseKind::Whole(None))
    }

    pub(crate) fn whole(bytes: impl Into<Bytes>) -> ResponseBody {
        let bytes = bytes.into();
        ResponseBody::of(ResponseKind::Whole((!bytes.is_empty()).then_some(bytes)))
    }

    pub(crate) fn object(reader: ContentReader) -> ResponseBody {
        ResponseBody::of(ResponseKind::Object(reader))
    }

    pub(crate) fn structured(reader: StructuredReader) -> ResponseBody {
        ResponseBody::of(ResponseKind::Structured(Box::new(reader)))
    }

    /// Returns an object's body without announcing its length.
    pub(crate) fn chunked(reader: ContentReader) -> ResponseBody {
        ResponseBody { untold: true, ..ResponseBody::object(reader) }
    }

    /// Returns the same body without announcing its length.
    pub(crate) fn untold(self) -> ResponseBody {
        ResponseBody { untold: true, ..self }
    }

    /// Reads the body to its end, and returns all its bytes.
    pub(crate) async fn collect(mut self) -> Result<Vec<u8>, StdError> {
        let mut bytes = Vec::new();
        while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut self).poll_frame(cx)).await {
            if let Ok(data) = frame?.into_data() {
                bytes.extend_from_slice(&data);
            }
        }
        Ok(bytes)
    }

    pub(crate) fn gunzipped(reader: ContentReader) -> ResponseBody {
        ResponseBody::of(ResponseKind::Gunzipped(Box::new(Gunzip {
            reader,
            decoder: flate2::write::GzDecoder::new(Vec::new()),
            ended: false,
        })))
    }

    pub(crate) fn s3(body: s3s::Body) -> ResponseBody {
        ResponseBody::of(ResponseKind::S3(body))
    }

    fn of(kind: ResponseKind) -> ResponseBody {
        ResponseBody { kind, damage: None, untold: false, under_way: None }
    }

    /// Returns true if the whole body is in memory.
    pub(crate) fn is_whole(&self) -> bool {
        matches!(self.kind, ResponseKind::Whole(_))
    }

    pub(crate) fn with(mut self, damage: Option<Box<BodyDamage>>, under_way: RunningRequest) -> ResponseBody {
        self.damage = damage;
        self.under_way = Some(under_way);
        self
    }

    /// Returns the bytes, if the whole body is in memory.
    pub(crate) fn into_whole(self) -> Option<Bytes> {
        match self.kind {
            ResponseKind::Whole(bytes) => Some(bytes.unwrap_or_default()),
            _ => None,
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = StdError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StdError>>> {
        let this = &mut *self;
        if let Some(damage) = &mut this.damage {
            ready!(damage.poll_before(cx))?;
            if damage.ended() {
                return Poll::Ready(None);
            }
        }
        let frame = match &mut this.kind {
            ResponseKind::Whole(bytes) => bytes.take().map(|bytes| Ok(Frame::data(bytes))),
            ResponseKind::Object(reader) => {
                reader.next().map(|read| read.map(Frame::data).map_err(StdError::from))
            }
            ResponseKind::Structured(reader) => {
                reader.next().map(|read| read.map(Frame::data).map_err(StdError::from))
            }
            ResponseKind::Gunzipped(gunzip) => {
                gunzip.next().map(|read| read.map(Frame::data).map_err(StdError::from))
            }
            ResponseKind::S3(body) => ready!(Pin::new(body).poll_frame(cx)),
        };
        Poll::Ready(match (frame, &mut this.damage) {
            (Some(Ok(frame)), Some(damage)) => Some(Ok(frame.map_data(|bytes| damage.pass(bytes)))),
            (frame, _) => frame,
        })
    }

    fn is_end_stream(&self) -> bool {
        if self.damage.is_some() {
            return false;
        }
        match &self.kind {
            ResponseKind::Whole(bytes) => bytes.is_none(),
            ResponseKind::Object(reader) => reader.left() == 0,
            ResponseKind::Structured(reader) => reader.left() == 0,
            ResponseKind::Gunzipped(gunzip) => gunzip.ended,
            ResponseKind::S3(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        if self.untold {
            return SizeHint::default();
        }
        match &self.kind {
            ResponseKind::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            ResponseKind::Object(reader) => SizeHint::with_exact(reader.left()),
            ResponseKind::Structured(reader) => SizeHint::with_exact(reader.left()),
            ResponseKind::Gunzipped(_) => SizeHint::default(),
            ResponseKind::S3(body) => Body::size_hint(body),
        }
    }
}

/// An object's content as a stream, in the form that the crate `s3s` expects.
pub(crate) struct ObjectStream(pub(crate) ContentReader);

impl Stream for ObjectStream {
    type Item = Result<Bytes, StdError>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Ready(self.0.next().map(|read| read.map_err(StdError::from)))
    }
}

impl ByteStream for ObjectStream {
    fn remaining_length(&self) -> RemainingLength {
        RemainingLength::new_exact(self.0.left() as usize)
    }
}

/// Decompresses an object that is stored as gzip, for clients that don't accept it.
struct Gunzip {
    reader: ContentReader,
    decoder: flate2::write::GzDecoder<Vec<u8>>,
    ended: bool,
}

impl Gunzip {
    fn next(&mut self) -> Option<io::Result<Bytes>> {
        use std::io::Write;
        while !self.ended {
            let step = match self.reader.next() {
                Some(Ok(packed)) => self.decoder.write_all(&packed),
                Some(Err(error)) => Err(error),
                None => {
                    self.ended = true;
                    self.decoder.try_finish()
                }
            };
            if let Err(error) = step {
                self.ended = true;
                return Some(Err(error));
            }
            let unpacked = std::mem::take(self.decoder.get_mut());
            if !unpacked.is_empty() {
                return Some(Ok(unpacked.into()));
            }
        }
        None
    }
}
