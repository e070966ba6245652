//! Reads ranges of objects. All bytes of a range are of one version. If an answer breaks off, the next request
//! continues after the last byte that arrived. If the object was replaced meanwhile, the read fails.

use std::ops::Range;
use std::sync::Arc;

use laneway_lanes::attempts::note;
use laneway_store::{Breaks, ErrorKind, Get, GetSink, ObjectId, Route, Store};

use super::checksum::{ChecksumHasher, ChecksumSet, RangeChecksums};
use super::range_writer::{ObjectPin, Output, RangeWriter};
use crate::location::url;
use crate::plan::SMALL_DOWNLOAD_MAX;
use crate::{Error, Progress};

/// After this many consecutive answers without a new byte of a range, the read fails.
const FRUITLESS_MAX: u32 = 3;

impl<O: Output> RangeWriter<O> {
    /// Fetches the whole range. If a connection breaks, continues from the last byte that arrived.
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

/// Reads a range of an object in a known version into memory. The caller has reserved the memory.
///
/// # Errors
/// The store's error; an object that was replaced.
pub(crate) async fn read_range(
    store: &Store,
    id: &ObjectId,
    (range, of): (Range<u64>, ObjectPin),
    wanted: ChecksumSet,
    progress: Arc<Progress>,
) -> Result<(RangeChecksums, Vec<u8>), Error> {
    let writer = RangeWriter::pinned(range.start, of, CollectedRange::new(&range, wanted), progress);
    writer.bring(store, id).await?;
    Ok(writer.finish())
}

/// The bytes of a range, in memory.
#[derive(Debug)]
pub(crate) struct CollectedRange {
    end: u64,
    bytes: Vec<u8>,
    hasher: ChecksumHasher,
}

impl CollectedRange {
    pub(crate) fn new(range: &Range<u64>, wanted: ChecksumSet) -> Self {
        let len = range.end - range.start;
        let (bytes, hasher) = (Vec::with_capacity(len as usize), ChecksumHasher::new(wanted));
        Self { end: range.end, bytes, hasher }
    }
}

impl Output for CollectedRange {
    fn route(&self, at: u64) -> Route {
        if self.end - at <= SMALL_DOWNLOAD_MAX { Route::Stay } else { Route::Freight }
    }

    fn end(&self) -> u64 {
        self.end
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<u64, Error> {
        let own = (bytes.len() as u64).min(self.end - at);
        let bytes = &bytes[..own as usize];
        self.bytes.extend_from_slice(bytes);
        self.hasher.update(bytes);
        Ok(own)
    }
}

impl RangeWriter<CollectedRange> {
    /// Returns the bytes that have arrived, with their checksums.
    pub(crate) fn finish(&self) -> (RangeChecksums, Vec<u8>) {
        self.end(|collected| {
            let empty = CollectedRange::new(&(0..0), ChecksumSet::default());
            let CollectedRange { bytes, hasher, .. } = std::mem::replace(collected, empty);
            (hasher.finish(), bytes)
        })
    }
}
