//! Fetches a slice of an object completely, even if connections break.

use std::ops::Range;
use std::sync::Arc;

use laneway_lanes::attempts::note;
use laneway_store::{Breaks, ErrorKind, Get, GetSink, ObjectId, Route, Store};

use super::claims::Claims;
use super::range_writer::{ObjectPin, Output, RangeWriter};
use crate::content::checksum::{ChecksumSet, RangeChecksums};
use crate::local::folder::StagedFile;
use crate::location::url;
use crate::plan::SMALL_DOWNLOAD_MAX;
use crate::plan::slices::split;
use crate::{Error, Progress};

/// After this many consecutive answers without a new byte of a slice, the download fails.
const FRUITLESS_MAX: u32 = 3;

#[derive(Debug)]
pub(crate) enum SliceTarget {
    /// Writes the bytes to their offset in a file.
    File(Arc<StagedFile>),
    /// Collects the bytes in memory that the caller has reserved.
    Memory(Vec<u8>),
}

#[derive(Debug)]
pub(crate) struct Slice {
    end: u64,
    claims: Claims,
    into: SliceTarget,
}

impl Output for Slice {
    fn route(&self, at: u64) -> Route {
        let is_small = matches!(self.into, SliceTarget::Memory(_)) && self.end - at <= SMALL_DOWNLOAD_MAX;
        if is_small { Route::Stay } else { Route::Freight }
    }

    fn end(&self) -> u64 {
        self.end
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<u64, Error> {
        let take = (bytes.len() as u64).min(self.end - at);
        let own = &bytes[..take as usize];
        match &mut self.into {
            SliceTarget::File(staged) => {
                staged.write_at(own, at)?;
                self.claims.update(own, Some(staged));
            }
            SliceTarget::Memory(memory) => {
                memory.extend_from_slice(own);
                self.claims.update(own, None);
            }
        }
        Ok(take)
    }
}

impl RangeWriter<Slice> {
    pub(crate) fn new(
        range: Range<u64>,
        of: ObjectPin,
        wanted: ChecksumSet,
        into: SliceTarget,
        progress: Arc<Progress>,
    ) -> Arc<Self> {
        let slice = Slice { end: range.end, claims: Claims::new(range.start, wanted), into };
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

    /// Returns the checksums of the written bytes, and the bytes if they went to memory.
    pub(crate) fn finish(self: Arc<Self>) -> (RangeChecksums, Vec<u8>) {
        self.end(|slice| match &mut slice.into {
            SliceTarget::Memory(bytes) => (slice.claims.finish(None), std::mem::take(bytes)),
            SliceTarget::File(staged) => (slice.claims.finish(Some(staged)), Vec::new()),
        })
    }
}

impl<O: Output> RangeWriter<O> {
    /// Fetches the whole slice. If a connection breaks, continues from the last byte that arrived.
    ///
    /// # Errors
    /// The store's or the destination's error.
    pub(crate) async fn bring(self: &Arc<Self>, store: &Store, id: &ObjectId) -> Result<(), Error> {
        let (breaks, mut attempts, mut fruitless) = (Breaks::default(), 1, 0);
        let of = self.of();
        loop {
            let (at, end) = self.position();
            if at == end {
                return Ok(());
            }
            let sink = || -> Box<dyn GetSink> { Box::new(self.sink()) };
            let hedge = || self.hedge();
            let get = Get {
                id,
                range: Some((at..end).into()),
                version: of.as_ref().and_then(|of| of.version.as_ref()),
                unless: None,
                expected: Some(end - at),
                size: of.as_ref().map(|of| of.size),
                sink: Some(&sink),
                hedge: Some(&hedge),
                breaks: Some(&breaks),
            };
            let result = store.get(get).await;
            let (now_at, _) = self.position();
            fruitless = if now_at > at { 0 } else { fruitless + 1 };
            match result {
                Ok(_) => {}
                Err(e) if e.is_interrupted() && fruitless < FRUITLESS_MAX => {
                    attempts += 1;
                    note(attempts);
                }
                Err(e) if e.kind() == ErrorKind::InvalidRange && of.is_some() => {
                    let size = of.map_or(end, |of| of.size);
                    let message = format!(
                        "the store reported {size} bytes, but refuses to send those from {at} on: {e}"
                    );
                    return Err(Error::integrity(url(store.provider(), id), message).after(attempts));
                }
                Err(e) => return Err(Error::from(e).after(attempts)),
            }
            if fruitless >= FRUITLESS_MAX {
                let message = format!("the store sends no bytes from {at} on");
                return Err(Error::integrity(url(store.provider(), id), message));
            }
        }
    }
}
