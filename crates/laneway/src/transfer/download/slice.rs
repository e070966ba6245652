//! A slice of a large object, which is written to its place in a file.

use std::ops::Range;
use std::sync::Arc;

use laneway_store::Route;

use super::claims::Claims;
use crate::content::checksum::{ChecksumSet, RangeChecksums};
use crate::content::range_writer::{ObjectPin, Output, RangeWriter};
use crate::local::folder::StagedFile;
use crate::plan::slices::split;
use crate::{Error, Progress};

/// A slice that is being fetched.
pub(crate) type SliceWriter = RangeWriter<Slice>;

#[derive(Debug)]
pub(crate) struct Slice {
    end: u64,
    claims: Claims,
    staged: Arc<StagedFile>,
}

impl Output for Slice {
    fn route(&self, _at: u64) -> Route {
        Route::Freight
    }

    fn end(&self) -> u64 {
        self.end
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<u64, Error> {
        let own = (bytes.len() as u64).min(self.end - at);
        let bytes = &bytes[..own as usize];
        self.staged.write_at(bytes, at)?;
        self.claims.update(bytes, &self.staged);
        Ok(own)
    }
}

impl SliceWriter {
    pub(crate) fn new(
        range: Range<u64>,
        of: ObjectPin,
        wanted: ChecksumSet,
        staged: Arc<StagedFile>,
        progress: Arc<Progress>,
    ) -> Arc<Self> {
        let slice = Slice { end: range.end, claims: Claims::new(range.start, wanted), staged };
        Self::pinned(range.start, of, slice, progress)
    }

    /// Cuts at most `most` bytes from the end of the range, and returns them for another stream.
    pub(crate) fn split(&self, most: u64) -> Option<Range<u64>> {
        self.cut(|at, slice| {
            let mut left = at..slice.end;
            let end = split(&mut left, most);
            slice.end = left.end;
            end
        })
    }

    /// Returns the checksums of the written bytes.
    pub(crate) fn finish(&self) -> RangeChecksums {
        self.end(|slice| slice.claims.finish(&slice.staged))
    }
}

#[cfg(test)]
mod tests {
    use laneway_store::{GetSink as _, ObjectId, ObjectMeta};

    use super::*;
    use crate::local::folder::Folder;
    use crate::location::relative::RelativePath;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_slice_that_is_split_stops_where_the_other_begins() {
        let (dir, size) = (tempfile::tempdir().unwrap(), 6 * MIB);
        let place = Folder::new(dir.path()).place(&RelativePath::new("f".into()).unwrap());
        let staged = Arc::new(place.stage(size).unwrap());
        let meta = ObjectMeta::new(ObjectId::new("b", "k"), size);
        let of = ObjectPin::of(&meta);
        let writer = SliceWriter::new(0..size, of, ChecksumSet::CRC32C, staged, Arc::default());
        let mut sink = writer.sink();
        sink.begin(&meta, 0..size).unwrap();
        assert_eq!(sink.write(&[7; 1000]).unwrap(), Route::Stay);
        assert_eq!(writer.split(size), Some(4 * MIB..size));
        assert_eq!(writer.split(MIB), None, "the end would be a small request");
        assert_eq!(sink.write(&[7; 6 << 20]).unwrap(), Route::Stop);
        assert_eq!(writer.finish(), RangeChecksums::of(&[7; 4 << 20], ChecksumSet::CRC32C));
    }
}
