//! The body of a request: segments of memory and of files, in order.

use std::fs::File;
use std::sync::Arc;

use bytes::Bytes;

use crate::error::{Error, Kind};

/// A request body: its segments one after another. Cheap to clone, so that an attempt can be made again.
#[derive(Clone, Debug, Default)]
pub struct Body {
    segments: Vec<Segment>,
    len: u64,
}

/// One segment of a [`Body`].
#[derive(Clone, Debug)]
pub enum Segment {
    /// Bytes in memory.
    Memory(Bytes),
    /// A range of a file, read with `pread` as it is sent. Reading fewer bytes than `len` fails the request with
    /// [`Kind::Source`](crate::Kind::Source).
    File {
        /// The open file.
        file: Arc<File>,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u64,
    },
}

impl Body {
    /// No body.
    pub fn empty() -> Self {
        Self::default()
    }

    /// A range of a file.
    pub fn file(file: Arc<File>, offset: u64, len: u64) -> Self {
        Self::empty().and(Segment::File { file, offset, len })
    }

    /// This body with one more segment at its end.
    #[must_use]
    pub fn and(mut self, segment: impl Into<Segment>) -> Self {
        let segment = segment.into();
        self.len += segment.len();
        if !segment.is_empty() {
            self.segments.push(segment);
        }
        self
    }

    /// Length in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The segments in order; none of them is empty.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }
}

impl Segment {
    /// Length in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::File { len, .. } => *len,
        }
    }

    /// Returns whether the segment holds nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl From<Bytes> for Segment {
    fn from(bytes: Bytes) -> Self {
        Self::Memory(bytes)
    }
}

impl<T: Into<Bytes>> From<T> for Body {
    fn from(bytes: T) -> Self {
        Self::empty().and(bytes.into())
    }
}

/// Reads a range of a request body's file.
pub(crate) fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset).map_err(|e| match e.kind() {
        std::io::ErrorKind::UnexpectedEof => {
            Error::new(Kind::Source, "the file became shorter while it was read")
        }
        _ => Error::because(Kind::Source, "the file can't be read", e),
    })
}

/// The bytes of a body that lies in memory, one after the other in one buffer.
pub(crate) fn gathered(segments: &[Segment]) -> Option<Bytes> {
    if let [Segment::Memory(one)] = segments {
        return Some(one.clone());
    }
    let mut all = Vec::with_capacity(segments.iter().map(|s| s.len() as usize).sum());
    for segment in segments {
        let Segment::Memory(bytes) = segment else { return None };
        all.extend_from_slice(bytes);
    }
    Some(all.into())
}
