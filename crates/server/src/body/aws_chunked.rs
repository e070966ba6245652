//! Reads bodies in `aws-chunked` frames that have no signatures. SDKs send such frames over TLS, with the checksum in a
//! trailer, and they also occur in unsigned and presigned requests. Frames with signatures are read by the crate `s3s`.
//! <https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming-trailers.html>

use std::sync::{Arc, OnceLock};
use std::task::{Poll, ready};

use bytes::{Buf, Bytes};
use http::header::CONTENT_ENCODING;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body::Frame;
use s3s::StdError;

/// The maximum length in bytes of the line before a chunk. A line with a signature has about a hundred bytes.
const LINE_BYTES_MAX: usize = 1024;
/// The maximum number of bytes of all trailers together.
const TRAILER_BYTES_MAX: usize = 16 << 10;

/// Returns true if a body has frames that this module must remove.
pub(crate) fn is_framed(headers: &HeaderMap, is_signed: bool) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_announced = headers.contains_key("x-amz-decoded-content-length")
        || text(CONTENT_ENCODING.as_str()).split(',').any(|coding| coding.trim() == "aws-chunked");
    // If a signed request has the header `x-amz-content-sha256`, the header says whether the body has frames, and `s3s`
    // removes them.
    let is_decided = is_signed && !text("x-amz-content-sha256").is_empty();
    is_announced && !is_decided
}

/// The trailers of a body. They are available when the body has been read to its end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trailers(Arc<OnceLock<HeaderMap>>);

impl Trailers {
    pub(crate) fn read(&self) -> Option<&HeaderMap> {
        self.0.get()
    }
}

/// Removes the frames from a body.
pub(super) struct FrameDecoder {
    frames: FrameParser,
    pending: Bytes,
    trailers: Trailers,
}

impl FrameDecoder {
    /// Returns a reader for this many bytes of content. `trailers` receives the trailers at the end.
    pub(super) fn new(decoded: u64, trailers: Trailers) -> FrameDecoder {
        FrameDecoder { frames: FrameParser::new(decoded), pending: Bytes::new(), trailers }
    }

    /// Returns the next bytes of content. `sent` supplies the bytes as the client sent them, with the frames.
    pub(super) fn poll(
        &mut self,
        mut sent: impl FnMut() -> Poll<Option<Result<Frame<Bytes>, StdError>>>,
    ) -> Poll<Option<Result<Frame<Bytes>, StdError>>> {
        loop {
            match self.frames.take(&mut self.pending) {
                Err(malformed) => return Poll::Ready(Some(Err(malformed.into()))),
                Ok(Some(data)) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                Ok(None) => {}
            }
            match ready!(sent()) {
                Some(Ok(frame)) => self.pending = frame.into_data().unwrap_or_default(),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => {
                    return Poll::Ready(match self.frames.end() {
                        Ok(trailers) => {
                            // A reader may poll again after the end, and then the trailers are already set.
                            let _ = self.trailers.0.set(trailers);
                            None
                        }
                        Err(malformed) => Some(Err(malformed.into())),
                    });
                }
            }
        }
    }
}

/// The frames of a body, as far as they have arrived.
#[derive(Debug)]
struct FrameParser {
    state: FrameState,
    /// The beginning of a line whose end hasn't arrived yet.
    line: Vec<u8>,
    trailers: HeaderMap,
    trailer_bytes: usize,
    /// The number of bytes of content that haven't arrived yet.
    missing: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FrameState {
    Size,
    Data(u64),
    /// The line break after a chunk.
    DataEnd,
    Trailers,
    Over,
}

/// The reason why frames can't be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum FrameError {
    #[error("a chunk has no size")]
    Size,
    #[error("a chunk doesn't end where its size says")]
    End,
    #[error("a line is too long")]
    Line,
    #[error("a trailer can't be read")]
    Trailer,
    #[error("the body's length differs from x-amz-decoded-content-length")]
    Length,
}

impl FrameParser {
    fn new(decoded: u64) -> FrameParser {
        let (line, trailers) = (Vec::new(), HeaderMap::new());
        FrameParser { state: FrameState::Size, line, trailers, trailer_bytes: 0, missing: decoded }
    }

    /// Takes the next content from the received bytes, or returns `None` if they contain no more content.
    fn take(&mut self, bytes: &mut Bytes) -> Result<Option<Bytes>, FrameError> {
        while !bytes.is_empty() {
            if let FrameState::Data(left) = self.state {
                let data = bytes.split_to(bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX)));
                let len = data.len() as u64;
                self.missing = self.missing.checked_sub(len).ok_or(FrameError::Length)?;
                self.state = if len == left { FrameState::DataEnd } else { FrameState::Data(left - len) };
                return Ok(Some(data));
            }
            let Some(line) = self.line(bytes)? else { return Ok(None) };
            self.state = match self.state {
                FrameState::Size => match size(&line)? {
                    0 => FrameState::Trailers,
                    size => FrameState::Data(size),
                },
                FrameState::DataEnd if line.is_empty() => FrameState::Size,
                FrameState::Trailers if line.is_empty() => FrameState::Over,
                FrameState::Trailers => {
                    self.trailer(&line)?;
                    FrameState::Trailers
                }
                FrameState::DataEnd | FrameState::Data(_) | FrameState::Over => return Err(FrameError::End),
            };
        }
        Ok(None)
    }

    /// Takes the next complete line, without its line break.
    fn line(&mut self, bytes: &mut Bytes) -> Result<Option<Vec<u8>>, FrameError> {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(bytes.len());
        if self.line.len() + taken > LINE_BYTES_MAX {
            return Err(FrameError::Line);
        }
        self.line.extend_from_slice(&bytes[..taken]);
        bytes.advance(taken + usize::from(end.is_some()));
        if end.is_none() {
            return Ok(None);
        }
        let mut line = std::mem::take(&mut self.line);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Ok(Some(line))
    }

    fn trailer(&mut self, line: &[u8]) -> Result<(), FrameError> {
        self.trailer_bytes += line.len();
        let text = std::str::from_utf8(line).map_err(|_| FrameError::Trailer)?;
        let (name, value) = text.split_once(':').ok_or(FrameError::Trailer)?;
        let name = HeaderName::try_from(name.trim()).map_err(|_| FrameError::Trailer)?;
        let value = HeaderValue::try_from(value.trim()).map_err(|_| FrameError::Trailer)?;
        self.trailers.append(name, value);
        if self.trailer_bytes > TRAILER_BYTES_MAX { Err(FrameError::Line) } else { Ok(()) }
    }

    /// Returns the trailers, if the body is complete.
    fn end(&mut self) -> Result<HeaderMap, FrameError> {
        match self.state {
            FrameState::Over if self.missing == 0 => Ok(std::mem::take(&mut self.trailers)),
            FrameState::Over => Err(FrameError::Length),
            _ => Err(FrameError::End),
        }
    }
}

/// Parses the line before a chunk: its size in hexadecimal digits, which a semicolon and a signature may follow.
fn size(line: &[u8]) -> Result<u64, FrameError> {
    let text = std::str::from_utf8(line).map_err(|_| FrameError::Size)?;
    let digits = text.split(';').next().unwrap_or_default().trim();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(FrameError::Size);
    }
    u64::from_str_radix(digits, 16).map_err(|_| FrameError::Size)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(chunks: &[&[u8]], decoded: u64) -> Result<(Vec<u8>, HeaderMap), FrameError> {
        let mut frames = FrameParser::new(decoded);
        let mut content = Vec::new();
        for chunk in chunks {
            let mut bytes = Bytes::copy_from_slice(chunk);
            while let Some(data) = frames.take(&mut bytes)? {
                content.extend_from_slice(&data);
            }
        }
        Ok((content, frames.end()?))
    }

    const BODY: &[u8] =
        b"5\r\nhello\r\n7;chunk-signature=00\r\n, world\r\n0\r\nx-amz-checksum-crc32c:AAAAAA==\r\n\r\n";

    #[test]
    fn content_and_trailers_come_out_wherever_the_bytes_are_cut() {
        for cut in 0..=BODY.len() {
            let (content, trailers) = read(&[&BODY[..cut], &BODY[cut..]], 12).unwrap();
            assert_eq!(content, b"hello, world", "cut at {cut}");
            assert_eq!(trailers["x-amz-checksum-crc32c"], "AAAAAA==");
        }
    }

    #[test]
    fn a_body_that_is_not_what_it_says_is_refused() {
        let whole = |body: &[u8], decoded| read(&[body], decoded).map(|(content, _)| content);
        assert_eq!(whole(b"0\r\n\r\n", 0), Ok(Vec::new()));
        assert_eq!(whole(BODY, 11), Err(FrameError::Length));
        assert_eq!(whole(BODY, 13), Err(FrameError::Length));
        assert_eq!(whole(b"5\r\nhello\r\n", 5), Err(FrameError::End), "it broke off");
        assert_eq!(whole(b"5\r\nhello!\r\n0\r\n\r\n", 5), Err(FrameError::End));
        assert_eq!(whole(b"hello", 5), Err(FrameError::End));
        assert_eq!(whole(b"hello\r\n", 5), Err(FrameError::Size));
        assert_eq!(whole(b"0\r\nno trailer\r\n\r\n", 0), Err(FrameError::Trailer));
        assert_eq!(whole(b"0\r\n\r\nmore\r\n", 0), Err(FrameError::End));
        assert_eq!(whole(&[b'0'; 2000], 0), Err(FrameError::Line));
        assert_eq!(whole(b"fffffffffffffffff\r\n", 0), Err(FrameError::Size));
    }

    #[test]
    fn frames_that_a_signature_covers_are_left_to_who_checks_it() {
        let headers = |lines: &[(&'static str, &'static str)]| -> HeaderMap {
            let pair = |(name, value): &(&'static str, &'static str)| {
                (HeaderName::from_static(name), HeaderValue::from_static(value))
            };
            lines.iter().map(pair).collect()
        };
        let length = ("x-amz-decoded-content-length", "5");
        let streaming = ("x-amz-content-sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER");
        assert!(is_framed(&headers(&[length]), false) && is_framed(&headers(&[length, streaming]), false));
        assert!(is_framed(&headers(&[("content-encoding", "gzip, aws-chunked")]), true));
        assert!(!is_framed(&headers(&[length, streaming]), true));
        let whole = ("x-amz-content-sha256", "UNSIGNED-PAYLOAD");
        assert!(!is_framed(&headers(&[("content-encoding", "gzip, aws-chunked"), whole]), true));
        assert!(!is_framed(&headers(&[("content-encoding", "gzip")]), false));
    }
}
