//! Bodies in frames, for fuzzers.

use std::task::Poll;

use bytes::Bytes;
use http_body::Frame;

use super::aws_chunked::{Trailers, Unframing};

/// A body in the frames of `aws-chunked`, whose content has as many bytes as the first two say. However it is cut on its way, it is the same.
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

/// Content and number of trailers.
fn read(decoded: u64, body: &[u8], step: usize) -> Option<(Vec<u8>, usize)> {
    let trailers = Trailers::default();
    let mut unframing = Unframing::new(decoded, trailers.clone());
    let mut chunks = body.chunks(step);
    let mut content = Vec::new();
    loop {
        let next = || Poll::Ready(chunks.next().map(|chunk| Ok(Frame::data(Bytes::copy_from_slice(chunk)))));
        match unframing.poll(next) {
            Poll::Ready(Some(Ok(frame))) => content.extend_from_slice(&frame.into_data().expect("data")),
            Poll::Ready(Some(Err(_))) => return None,
            Poll::Ready(None) => break,
            Poll::Pending => panic!("there is always something"),
        }
    }
    Some((content, trailers.read()?.len()))
}
