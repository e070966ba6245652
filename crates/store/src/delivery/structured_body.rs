//! Azure's structured bodies: the content of an answer in segments, each followed by the checksum that the service
//! computed while it sent the segment
//! (<https://learn.microsoft.com/rest/api/storageservices/structured-body-format>).
//!
//! All numbers are in little-endian order. A header of 13 bytes has the version (1), the length of the whole message, the
//! flags and the number of segments. Each segment has a header of 10 bytes with its number and length, its content, and
//! the CRC64/NVME of the content. The CRC64/NVME of the whole content follows the last segment.

use bytes::Bytes;
use crc_fast::{CrcAlgorithm, Digest};

/// The format's name in the header of requests and answers.
pub(crate) const FORMAT: &str = "XSM/1.0; properties=crc64";

const VERSION: u8 = 1;
/// The only flag: each segment and the whole message have a CRC64.
const CRC64_FLAG: u16 = 1;
const HEADER_LEN: usize = 13;
const SEGMENT_HEADER_LEN: usize = 10;
const CRC_LEN: usize = 8;

/// The length of everything around the content: per message, and per segment.
const MESSAGE_FRAME: u64 = (HEADER_LEN + CRC_LEN) as u64;
const SEGMENT_FRAME: u64 = (SEGMENT_HEADER_LEN + CRC_LEN) as u64;

/// The next part of a structured body, as a parser finds it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum BodyEvent<'b> {
    /// Bytes of the content, which aren't checked yet.
    Content(&'b [u8]),
    /// The checksum of a segment was right, and so all content before it is.
    Checked,
}

/// The reason why a structured body is wrong. A flipped bit can cause each of them, so another attempt may succeed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum StructuredBodyError {
    #[error("the structured body has the version {0}, but Laneway reads only version 1")]
    Version(u8),
    #[error("the structured body has the flags {0:#x}, but CRC64s were requested")]
    Flags(u16),
    #[error(
        "the structured body announces {message} bytes in {segments} segments, which contradicts the answer's headers and its content of {content} bytes"
    )]
    Length { message: u64, segments: u16, content: u64 },
    #[error("segment {found} of the structured body arrived instead of segment {expected}")]
    Number { expected: u16, found: u16 },
    #[error(
        "segment {number} of the structured body announces {len} bytes, but {left} bytes of content are left"
    )]
    SegmentLength { number: u16, len: u64, left: u64 },
    #[error("the CRC64 of the bytes in segment {number} is {ours:016x}, but the store sent {theirs:016x}")]
    Segment { number: u16, ours: u64, theirs: u64 },
    #[error("the CRC64 of the answer's bytes is {ours:016x}, but the store sent {theirs:016x}")]
    Message { ours: u64, theirs: u64 },
    #[error("the structured body has bytes after its end")]
    Excess,
    #[error("the structured body ended before its last checksum")]
    Truncated,
}

/// The part of a body that comes next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Region {
    Header,
    SegmentHeader,
    /// The content of a segment, with its number of missing bytes.
    Content(u64),
    SegmentCrc,
    MessageCrc,
    End,
}

/// Takes a structured body apart while it arrives. It copies only the numbers between the segments.
#[derive(Debug)]
pub(crate) struct StructuredBody {
    /// The length of the body according to the answer's headers, if they name it.
    body_len: Option<u64>,
    /// The bytes of content that no segment header has announced yet.
    unannounced: u64,
    content_len: u64,
    segments: u16,
    /// The number of the current segment. The first one has the number 1.
    number: u16,
    region: Region,
    /// The bytes of the current header or checksum that have arrived.
    frame: [u8; HEADER_LEN],
    filled: usize,
    segment: Digest,
    message: Digest,
}

impl StructuredBody {
    /// Begins a body whose content has `content_len` bytes. The whole body has `body_len` bytes, if that is known.
    pub(crate) fn new(content_len: u64, body_len: Option<u64>) -> Self {
        Self {
            body_len,
            unannounced: content_len,
            content_len,
            segments: 0,
            number: 0,
            region: Region::Header,
            frame: [0; HEADER_LEN],
            filled: 0,
            segment: Digest::new(CrcAlgorithm::Crc64Nvme),
            message: Digest::new(CrcAlgorithm::Crc64Nvme),
        }
    }

    /// Takes the next event from the start of `bytes`. Returns `None` once all of `bytes` are taken.
    ///
    /// # Errors
    /// A wrong checksum, or a body that contradicts itself.
    pub(crate) fn next<'b>(
        &mut self,
        bytes: &mut &'b [u8],
    ) -> Result<Option<BodyEvent<'b>>, StructuredBodyError> {
        loop {
            match self.region {
                Region::Content(0) => self.region = Region::SegmentCrc,
                Region::Content(left) => {
                    if bytes.is_empty() {
                        return Ok(None);
                    }
                    let len = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                    let (content, rest) = bytes.split_at(len);
                    *bytes = rest;
                    self.segment.update(content);
                    self.message.update(content);
                    self.region = Region::Content(left - len as u64);
                    return Ok(Some(BodyEvent::Content(content)));
                }
                Region::Header => {
                    let Some(header) = self.fill::<HEADER_LEN>(bytes) else { return Ok(None) };
                    self.region = self.begin(header)?;
                }
                Region::SegmentHeader => {
                    let Some(header) = self.fill::<SEGMENT_HEADER_LEN>(bytes) else { return Ok(None) };
                    self.region = Region::Content(self.begin_segment(header)?);
                }
                Region::SegmentCrc => {
                    let Some(theirs) = self.fill::<CRC_LEN>(bytes).map(u64::from_le_bytes) else {
                        return Ok(None);
                    };
                    let ours = self.segment.finalize();
                    if ours != theirs {
                        return Err(StructuredBodyError::Segment { number: self.number, ours, theirs });
                    }
                    self.segment.reset();
                    self.region = self.after_segment();
                    return Ok(Some(BodyEvent::Checked));
                }
                Region::MessageCrc => {
                    let Some(theirs) = self.fill::<CRC_LEN>(bytes).map(u64::from_le_bytes) else {
                        return Ok(None);
                    };
                    let ours = self.message.finalize();
                    if ours != theirs {
                        return Err(StructuredBodyError::Message { ours, theirs });
                    }
                    self.region = Region::End;
                }
                Region::End if bytes.is_empty() => return Ok(None),
                Region::End => return Err(StructuredBodyError::Excess),
            }
        }
    }

    /// Returns true if the body has ended with its last checksum.
    pub(crate) fn is_complete(&self) -> bool {
        self.region == Region::End
    }

    /// Collects the next `N` bytes, and returns them once all have arrived.
    fn fill<const N: usize>(&mut self, bytes: &mut &[u8]) -> Option<[u8; N]> {
        let len = (N - self.filled).min(bytes.len());
        let (now, rest) = bytes.split_at(len);
        self.frame[self.filled..self.filled + len].copy_from_slice(now);
        (*bytes, self.filled) = (rest, self.filled + len);
        if self.filled < N {
            return None;
        }
        self.filled = 0;
        Some(array(&self.frame))
    }

    fn begin(&mut self, header: [u8; HEADER_LEN]) -> Result<Region, StructuredBodyError> {
        let message = u64::from_le_bytes(array(&header[1..]));
        let (flags, segments) =
            (u16::from_le_bytes(array(&header[9..])), u16::from_le_bytes(array(&header[11..])));
        if header[0] != VERSION {
            return Err(StructuredBodyError::Version(header[0]));
        }
        if flags != CRC64_FLAG {
            return Err(StructuredBodyError::Flags(flags));
        }
        let content = self.content_len;
        let expected = content.checked_add(MESSAGE_FRAME + u64::from(segments) * SEGMENT_FRAME);
        let is_other = self.body_len.is_some_and(|len| len != message);
        if is_other || expected != Some(message) || (segments == 0 && content > 0) {
            return Err(StructuredBodyError::Length { message, segments, content });
        }
        self.segments = segments;
        Ok(self.after_segment())
    }

    fn begin_segment(&mut self, header: [u8; SEGMENT_HEADER_LEN]) -> Result<u64, StructuredBodyError> {
        let (found, len) = (u16::from_le_bytes(array(&header)), u64::from_le_bytes(array(&header[2..])));
        let expected = self.number + 1;
        if found != expected {
            return Err(StructuredBodyError::Number { expected, found });
        }
        let (left, is_last) = (self.unannounced, expected == self.segments);
        if len > left || (is_last && len != left) {
            return Err(StructuredBodyError::SegmentLength { number: found, len, left });
        }
        (self.number, self.unannounced) = (found, left - len);
        Ok(len)
    }

    fn after_segment(&self) -> Region {
        if self.number < self.segments { Region::SegmentHeader } else { Region::MessageCrc }
    }
}

/// Copies the first `N` bytes. `bytes` has at least as many.
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[..N]);
    array
}

/// Returns the content of a structured body in memory. If it has one segment, no byte is copied.
///
/// # Errors
/// A wrong checksum, or a body that contradicts itself.
pub(crate) fn content_of(body: &Bytes, content_len: u64) -> Result<Bytes, StructuredBodyError> {
    let mut structured = StructuredBody::new(content_len, None);
    let (mut left, mut one, mut more) = (&body[..], Bytes::new(), Vec::new());
    while let Some(event) = structured.next(&mut left)? {
        match event {
            BodyEvent::Content(content) if one.is_empty() => one = body.slice_ref(content),
            BodyEvent::Content(content) => {
                if more.is_empty() {
                    more.reserve(body.len());
                    more.extend_from_slice(&one);
                }
                more.extend_from_slice(content);
            }
            BodyEvent::Checked => {}
        }
    }
    match structured.is_complete() {
        true if more.is_empty() => Ok(one),
        true => Ok(more.into()),
        false => Err(StructuredBodyError::Truncated),
    }
}

/// The entry point of the fuzzer for structured bodies.
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing {
    use bytes::Bytes;

    use super::{BodyEvent, StructuredBody, content_of};

    /// Reads a structured body. The first eight bytes are the length of its content. The result must be the same for
    /// every length of the chunks in which the body arrives.
    pub fn structured_body(input: &[u8]) {
        let Some((content_len, body)) = input.split_first_chunk::<8>() else { return };
        let content_len = u64::from_le_bytes(*content_len);
        let whole = content_of(&Bytes::copy_from_slice(body), content_len).ok();
        for step in [1, 3, 100] {
            let mut structured = StructuredBody::new(content_len, None);
            let mut content = Vec::new();
            let mut take = |mut chunk: &[u8]| {
                while let Some(event) = structured.next(&mut chunk)? {
                    if let BodyEvent::Content(bytes) = event {
                        content.extend_from_slice(bytes);
                    }
                }
                Ok::<_, super::StructuredBodyError>(())
            };
            let is_right = body.chunks(step).try_for_each(&mut take).is_ok() && structured.is_complete();
            assert_eq!(whole.as_deref(), is_right.then_some(&content[..]), "in chunks of {step}");
        }
        if let Some(whole) = whole {
            assert_eq!(whole.len() as u64, content_len);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTENT: &[u8] = b"HelloWorld, in segments";

    fn crc(bytes: &[u8]) -> [u8; 8] {
        crc_fast::checksum(CrcAlgorithm::Crc64Nvme, bytes).to_le_bytes()
    }

    /// Returns a body with segments of these contents.
    fn body(segments: &[&[u8]]) -> Vec<u8> {
        let content = segments.concat();
        let len = content.len() + 21 + 18 * segments.len();
        let mut body = vec![1];
        body.extend((len as u64).to_le_bytes());
        body.extend([1, 0]);
        body.extend((segments.len() as u16).to_le_bytes());
        for (at, segment) in segments.iter().enumerate() {
            body.extend((at as u16 + 1).to_le_bytes());
            body.extend((segment.len() as u64).to_le_bytes());
            body.extend(*segment);
            body.extend(crc(segment));
        }
        body.extend(crc(&content));
        body
    }

    fn read(body: &[u8]) -> Result<Bytes, StructuredBodyError> {
        content_of(&Bytes::copy_from_slice(body), CONTENT.len() as u64)
    }

    fn segments() -> Vec<u8> {
        body(&[&CONTENT[..10], &CONTENT[10..11], &CONTENT[11..]])
    }

    #[test]
    fn the_content_is_the_same_however_the_body_arrives() {
        for segments in [segments(), body(&[CONTENT]), body(&[CONTENT, b""])] {
            for step in 1..segments.len() {
                let mut structured = StructuredBody::new(CONTENT.len() as u64, Some(segments.len() as u64));
                let (mut content, mut checked) = (Vec::new(), 0);
                for mut chunk in segments.chunks(step) {
                    while let Some(event) = structured.next(&mut chunk).unwrap() {
                        match event {
                            BodyEvent::Content(bytes) => content.extend_from_slice(bytes),
                            BodyEvent::Checked => checked = content.len(),
                        }
                    }
                }
                assert!(structured.is_complete());
                assert_eq!((&content[..], checked), (CONTENT, CONTENT.len()), "in chunks of {step}");
            }
            assert_eq!(read(&segments).unwrap(), CONTENT);
        }
    }

    #[test]
    fn the_content_of_one_segment_is_not_copied() {
        let body = Bytes::from(body(&[CONTENT]));
        let content = content_of(&body, CONTENT.len() as u64).unwrap();
        assert_eq!(content.as_ptr(), body[23..].as_ptr());
    }

    #[test]
    fn an_empty_content_has_one_segment_or_none() {
        for body in [body(&[]), body(&[b""])] {
            assert_eq!(content_of(&Bytes::from(body), 0).unwrap(), "");
        }
    }

    #[test]
    fn a_flipped_bit_anywhere_is_an_error() {
        let right = segments();
        for bit in 0..right.len() * 8 {
            let mut wrong = right.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&wrong).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_body_that_lies_about_its_lengths_is_an_error() {
        let right = segments();
        let set = |at: usize, value: u64| {
            let mut wrong = right.clone();
            wrong[at..at + 8].copy_from_slice(&value.to_le_bytes());
            read(&wrong).unwrap_err()
        };
        for len in [0, 1, 1 << 62, u64::MAX] {
            assert!(matches!(set(1, len), StructuredBodyError::Length { .. }), "{len}");
            assert!(
                matches!(
                    set(15, len),
                    StructuredBodyError::Segment { .. }
                        | StructuredBodyError::SegmentLength { .. }
                        | StructuredBodyError::Number { .. }
                ),
                "{len}"
            );
        }
        assert!(matches!(set(15, 24), StructuredBodyError::SegmentLength { len: 24, left: 23, .. }));
        for len in [u64::MAX, u64::MAX - 20, 1 << 62] {
            let error = content_of(&Bytes::from(right.clone()), len).unwrap_err();
            assert!(matches!(error, StructuredBodyError::Length { .. }), "{len}");
        }
    }

    #[test]
    fn segments_out_of_order_are_an_error() {
        let mut wrong = segments();
        wrong[13] = 2;
        assert_eq!(read(&wrong), Err(StructuredBodyError::Number { expected: 1, found: 2 }));
    }

    #[test]
    fn a_body_that_is_cut_off_or_too_long_is_an_error() {
        let right = segments();
        for len in 0..right.len() {
            assert!(read(&right[..len]).is_err(), "{len} bytes");
        }
        let longer = [&right[..], b"x"].concat();
        assert_eq!(read(&longer), Err(StructuredBodyError::Excess));
        let mut structured = StructuredBody::new(CONTENT.len() as u64, Some(right.len() as u64));
        let mut left = &longer[..];
        let error = std::iter::from_fn(|| structured.next(&mut left).transpose()).find_map(Result::err);
        assert_eq!(error, Some(StructuredBodyError::Excess));
        let mut structured = StructuredBody::new(CONTENT.len() as u64, Some(longer.len() as u64));
        assert!(matches!(structured.next(&mut &longer[..]), Err(StructuredBodyError::Length { .. })));
    }

    #[test]
    fn a_body_without_checksums_is_refused() {
        let mut wrong = segments();
        wrong[9] = 0;
        assert_eq!(read(&wrong), Err(StructuredBodyError::Flags(0)));
        wrong = segments();
        wrong[0] = 2;
        assert_eq!(read(&wrong), Err(StructuredBodyError::Version(2)));
    }
}
