//! Azure's structured bodies: content in segments, each followed by its checksum
//! (<https://learn.microsoft.com/rest/api/storageservices/structured-body-format>). All numbers are in little-endian order.

use std::io;

use bytes::{BufMut as _, Bytes, BytesMut};
use crc_fast::{CrcAlgorithm, Digest};

use crate::objects::content::ContentReader;

/// The bytes of content in each segment but the last. The service's own clients use this size too.
const SEGMENT_BYTES: u64 = 4 << 20;
/// The lengths of the message's header, of a segment's header, and of a checksum.
const HEADER_BYTES: u64 = 13;
const SEGMENT_HEADER_BYTES: u64 = 10;
const CRC_BYTES: u64 = 8;

/// Reads content as a structured body. The checksums are computed while the content is sent.
#[derive(Debug)]
pub(crate) struct StructuredReader {
    content: ContentReader,
    /// Content that was read, and that belongs to a later segment.
    read_ahead: Bytes,
    /// The bytes of the body that weren't returned yet.
    left: u64,
    segment_bytes: u64,
    segments: u16,
    /// The number of the segment that comes next or is being sent. The first one has the number 1.
    number: u16,
    /// The bytes of content that no segment header has announced yet, and those that the current segment lacks.
    unannounced: u64,
    segment_left: u64,
    next: NextFrame,
    segment: Digest,
    message: Digest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextFrame {
    Header,
    SegmentHeader,
    Content,
    SegmentCrc,
    MessageCrc,
    End,
}

impl StructuredReader {
    pub(crate) fn new(content: ContentReader) -> StructuredReader {
        let len = content.left();
        // The number of segments has 16 bits, so very long content has longer segments.
        let segment_bytes = SEGMENT_BYTES.max(len.div_ceil(u64::from(u16::MAX)));
        let segments = len.div_ceil(segment_bytes).max(1) as u16;
        let frames = HEADER_BYTES + u64::from(segments) * (SEGMENT_HEADER_BYTES + CRC_BYTES) + CRC_BYTES;
        let digest = || Digest::new(CrcAlgorithm::Crc64Nvme);
        StructuredReader {
            content,
            read_ahead: Bytes::new(),
            left: len + frames,
            segment_bytes,
            segments,
            number: 1,
            unannounced: len,
            segment_left: 0,
            next: NextFrame::Header,
            segment: digest(),
            message: digest(),
        }
    }

    /// Returns the number of bytes that haven't been read yet.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Returns the next bytes, never empty, or `None` at the end.
    pub(crate) fn next(&mut self) -> Option<io::Result<Bytes>> {
        let mut frames = BytesMut::new();
        loop {
            self.next = match self.next {
                NextFrame::Header => {
                    frames.put_u8(1);
                    frames.put_u64_le(self.left);
                    frames.put_u16_le(1);
                    frames.put_u16_le(self.segments);
                    NextFrame::SegmentHeader
                }
                NextFrame::SegmentHeader => {
                    self.segment_left = self.unannounced.min(self.segment_bytes);
                    self.unannounced -= self.segment_left;
                    frames.put_u16_le(self.number);
                    frames.put_u64_le(self.segment_left);
                    NextFrame::Content
                }
                NextFrame::Content if self.segment_left == 0 => NextFrame::SegmentCrc,
                NextFrame::Content if frames.is_empty() => {
                    let read = self.read_content()?;
                    self.left -= read.as_ref().map_or(0, |bytes| bytes.len() as u64);
                    return Some(read);
                }
                NextFrame::SegmentCrc => {
                    frames.put_u64_le(self.segment.finalize_reset());
                    let is_last = self.number == self.segments;
                    self.number = self.number.wrapping_add(1);
                    if is_last { NextFrame::MessageCrc } else { NextFrame::SegmentHeader }
                }
                NextFrame::MessageCrc => {
                    frames.put_u64_le(self.message.finalize());
                    NextFrame::End
                }
                NextFrame::Content | NextFrame::End => break,
            };
        }
        self.left = self.left.saturating_sub(frames.len() as u64);
        (!frames.is_empty()).then(|| Ok(frames.freeze()))
    }

    /// Returns the next bytes of the current segment's content.
    fn read_content(&mut self) -> Option<io::Result<Bytes>> {
        if self.read_ahead.is_empty() {
            match self.content.next()? {
                Ok(bytes) => self.read_ahead = bytes,
                Err(error) => return Some(Err(error)),
            }
        }
        let len = self.segment_left.min(self.read_ahead.len() as u64);
        let bytes = self.read_ahead.split_to(len as usize);
        self.segment_left -= len;
        self.segment.update(&bytes);
        self.message.update(&bytes);
        Some(Ok(bytes))
    }
}
