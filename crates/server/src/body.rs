//! The bodies of requests and answers.

pub(crate) mod aws_chunked;
mod request;
mod response;
mod structured;

pub(crate) use self::request::{DocumentBytes, IncomingDocument};
pub(crate) use crate::counters::RunningRequest;
pub(crate) use request::RequestBody;
pub(crate) use response::{ObjectStream, ResponseBody};
pub(crate) use structured::StructuredReader;

/// The entry point of the fuzzer for `aws-chunked` bodies.
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing {
    use std::task::Poll;

    use bytes::Bytes;
    use http_body::Frame;

    use super::aws_chunked::{FrameDecoder, Trailers};

    /// Reads a body in `aws-chunked` frames. The first two bytes are the size of its content. The result must be the same
    /// for every length of the chunks in which the body arrives.
    pub fn aws_chunked(input: &[u8]) {
        let Some((decoded, body)) = input.split_first_chunk::<2>() else { return };
        let decoded = u64::from(u16::from_le_bytes(*decoded));
        let whole = read(decoded, body, body.len().max(1));
        for step in [1, 3, 100] {
            assert_eq!(read(decoded, body, step), whole, "in chunks of {step}");
        }
        if let Some((content, _)) = whole {
            assert_eq!(content.len() as u64, decoded);
        }
    }

    /// Returns the content and the number of trailers.
    fn read(decoded: u64, body: &[u8], step: usize) -> Option<(Vec<u8>, usize)> {
        let trailers = Trailers::default();
        let mut unframing = FrameDecoder::new(decoded, trailers.clone());
        let mut chunks = body.chunks(step);
        let mut content = Vec::new();
        loop {
            let next =
                || Poll::Ready(chunks.next().map(|chunk| Ok(Frame::data(Bytes::copy_from_slice(chunk)))));
            match unframing.poll(next) {
                Poll::Ready(Some(Ok(frame))) => content.extend_from_slice(&frame.into_data().expect("data")),
                Poll::Ready(Some(Err(_))) => return None,
                Poll::Ready(None) => break,
                Poll::Pending => panic!("there is always something"),
            }
        }
        Some((content, trailers.read()?.len()))
    }
}
