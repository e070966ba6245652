//! Finds the end of an answer's body (RFC 9112, section 6.3).

use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{Method, StatusCode};

use crate::ResponseHead;
use crate::error::{Error, Kind};

/// The maximum length of a line with a chunk's size and extensions, and of a line of the trailers.
const LINE_MAX: usize = 16 * 1024;

/// The maximum number of bytes of chunk extensions and trailers in one body. If there are more, the answer is an error. Laneway ignores
/// extensions and trailers. So without this limit, a server could send them for ever, without a byte of the body.
const ASIDE_MAX: usize = 64 * 1024;

/// The maximum length of a chunk's size line without extensions: sixteen digits and the line end. Further bytes count as extensions.
const SIZE_LINE: usize = 18;

/// The marking of a body's end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Framing {
    Sized(u64),
    Chunked,
    UntilClose,
}

impl Framing {
    pub(super) fn of(method: &Method, head: &ResponseHead) -> Result<Self, Error> {
        let bodiless = [StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED];
        if method == Method::HEAD || bodiless.contains(&head.status) {
            return Ok(Self::Sized(0));
        }
        let broken =
            |why: &str| Error::new(Kind::Protocol, format!("the answer has a malformed length: {why}"));
        if let Some(coding) = head.headers.get_all(TRANSFER_ENCODING).iter().next_back() {
            let last = coding.to_str().ok().and_then(|v| v.rsplit(',').next()).map(str::trim);
            return match last {
                Some(last) if last.eq_ignore_ascii_case("chunked") => Ok(Self::Chunked),
                _ => Ok(Self::UntilClose),
            };
        }
        let mut lengths = head.headers.get_all(CONTENT_LENGTH).iter();
        let Some(first) = lengths.next() else { return Ok(Self::UntilClose) };
        if lengths.any(|other| other != first) {
            return Err(broken("two different values of Content-Length"));
        }
        let length = first
            .to_str()
            .ok()
            .filter(|v| v.bytes().all(|b| b.is_ascii_digit()))
            .and_then(|v| v.parse().ok());
        length.map(Self::Sized).ok_or_else(|| broken("Content-Length isn't a number"))
    }
}

/// Decodes the bytes of a chunked body that aren't data: sizes, extensions, line ends and trailers.
#[derive(Debug, Default)]
pub(super) struct ChunkDecoder {
    state: ChunkState,
    line: Vec<u8>,
    /// The number of bytes of extensions and trailers so far.
    aside: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum ChunkState {
    #[default]
    Size,
    Data(u64),
    /// The line end after a chunk's data.
    DataEnd,
    Trailer,
    Done,
}

impl ChunkDecoder {
    /// Returns the number of bytes left of the current chunk, or 0 at the end of the body. Returns `None` if [`feed`](Self::feed) must be
    /// called first.
    pub(super) fn left(&self) -> Option<u64> {
        match self.state {
            ChunkState::Data(left) => Some(left),
            ChunkState::Done => Some(0),
            _ => None,
        }
    }

    /// Records that bytes of the current chunk were consumed.
    pub(super) fn took(&mut self, bytes: u64) {
        if let ChunkState::Data(left) = &mut self.state {
            *left -= bytes;
            if *left == 0 {
                self.state = ChunkState::DataEnd;
            }
        }
    }

    /// Consumes at most one line of framing from `read`, and returns its length in bytes.
    pub(super) fn feed(&mut self, read: &[u8]) -> Result<usize, Error> {
        let broken = || Error::new(Kind::Protocol, "the answer's chunked body is malformed");
        let used = read.iter().position(|b| *b == b'\n').map_or(read.len(), |at| at + 1);
        self.line.extend_from_slice(&read[..used]);
        let aside = match self.state {
            ChunkState::Trailer => self.line.len(),
            _ => self.line.len().saturating_sub(SIZE_LINE),
        };
        if self.line.len() > LINE_MAX || self.aside + aside > ASIDE_MAX {
            return Err(Error::new(
                Kind::Protocol,
                "the extensions or trailers of the answer's chunks are too long",
            ));
        }
        if !self.line.ends_with(b"\n") {
            return Ok(used);
        }
        self.aside += aside;
        let empty = matches!(self.line.as_slice(), b"\r\n" | b"\n");
        self.state = match self.state {
            ChunkState::DataEnd if empty => ChunkState::Size,
            ChunkState::Trailer if empty => ChunkState::Done,
            ChunkState::Trailer => ChunkState::Trailer,
            ChunkState::Size => match httparse::parse_chunk_size(&self.line) {
                Ok(httparse::Status::Complete((_, 0))) => ChunkState::Trailer,
                Ok(httparse::Status::Complete((_, size))) => ChunkState::Data(size),
                _ => return Err(broken()),
            },
            _ => return Err(broken()),
        };
        self.line.clear();
        Ok(used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(bytes: &[u8], step: usize) -> Result<Vec<u8>, Error> {
        let (mut chunked, mut out, mut at) = (ChunkDecoder::default(), Vec::new(), 0);
        loop {
            let read = &bytes[at..bytes.len().min(at + step)];
            match chunked.left() {
                Some(0) => return Ok(out),
                Some(left) => {
                    let taken = read.len().min(left as usize);
                    out.extend_from_slice(&read[..taken]);
                    chunked.took(taken as u64);
                    at += taken;
                }
                None => at += chunked.feed(read)?,
            }
            assert!(at < bytes.len() || chunked.left() == Some(0), "ran out");
        }
    }

    #[test]
    fn chunks_arrive_whole_however_they_are_split() {
        let body = b"4\r\nWiki\r\n6;ext=1\r\npedia \r\nE\r\nin \r\n\r\nchunks.\r\n0\r\nTrailer: x\r\n\r\n";
        for step in 1..body.len() {
            assert_eq!(decode(body, step).unwrap(), b"Wikipedia in \r\n\r\nchunks.");
        }
    }

    #[test]
    fn a_chunk_longer_than_its_size_is_refused() {
        assert!(decode(b"2\r\nabc\r\n0\r\n\r\n", 64).is_err());
        assert!(decode(b"zz\r\n\r\n", 64).is_err());
    }

    #[test]
    fn trailers_and_extensions_are_bounded_in_total() {
        let trailers = |n| format!("1\r\na\r\n0\r\n{}\r\n", "Trailer: some value\r\n".repeat(n));
        assert!(decode(trailers(100).as_bytes(), 64).is_ok());
        assert!(decode(trailers(4000).as_bytes(), 64).is_err());
        let extended = |n| format!("{}0\r\n\r\n", format!("1;{}\r\na\r\n", "x".repeat(1000)).repeat(n));
        assert_eq!(decode(extended(60).as_bytes(), 64).unwrap().len(), 60);
        assert!(decode(extended(70).as_bytes(), 64).is_err());
        // The sizes of chunks don't count as extensions, even if there are many.
        assert_eq!(
            decode(format!("{}0\r\n\r\n", "1\r\na\r\n".repeat(90_000)).as_bytes(), 64).unwrap().len(),
            90_000
        );
    }

    #[test]
    fn two_different_lengths_are_refused() {
        let mut headers = http::HeaderMap::new();
        headers.append(CONTENT_LENGTH, http::HeaderValue::from_static("1"));
        headers.append(CONTENT_LENGTH, http::HeaderValue::from_static("2"));
        let head = ResponseHead { status: StatusCode::OK, headers };
        assert!(Framing::of(&Method::GET, &head).is_err());
        assert_eq!(Framing::of(&Method::HEAD, &head).unwrap(), Framing::Sized(0));
    }
}
