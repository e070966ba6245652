//! Reads ranges of objects. All bytes of a range are of one version. If an answer breaks off, the next request
//! continues after the last byte that arrived. If the object was replaced meanwhile, the read fails.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use laneway_lanes::attempts::{note, note_another};
use laneway_store::{Breaks, ErrorKind, Get, GetRange, GetSink, Got, ObjectId, ObjectMeta, Route, Store};

use super::checksum::{ChecksumHasher, ChecksumSet, RangeChecksums};
use super::range_writer::{ObjectPin, Output, RangeWriter};
use crate::location::url;
use crate::plan::SMALL_DOWNLOAD_MAX;
use crate::{Error, Progress};

/// After this many consecutive answers that broke off before the store's checksum of written bytes, these bytes
/// stay unchecked, and the next request begins after them.
const UNCHECKED_MAX: u32 = 2;

/// After this many consecutive answers without a new byte of a range, the read fails.
const FRUITLESS_MAX: u32 = 3;

impl<O: Output> RangeWriter<O> {
    /// Fetches the whole range of an object in a known version.
    ///
    /// # Errors
    /// Fails as [`fetch`](Self::fetch) does.
    pub(crate) async fn bring(self: &Arc<Self>, store: &Store, id: &ObjectId) -> Result<(), Error> {
        self.fetch(store, Get::new(id)).await.map(drop)
    }

    /// Fetches the whole range. If the version is unknown, sends the request `first`. If an answer breaks off,
    /// requests the rest, in the version of the first answer. If the store reports no version, requests all
    /// bytes again. Returns the answer if `first` brought everything.
    ///
    /// # Errors
    /// The store's or the destination's error; an object that was replaced.
    pub(crate) async fn fetch(self: &Arc<Self>, store: &Store, first: Get<'_>) -> Result<Option<Got>, Error> {
        let (id, breaks) = (first.id, Breaks::default());
        let (mut attempts, mut fruitless, mut farthest) = (0, 0, self.reached());
        loop {
            let rest = self.rest();
            let get = match &rest {
                Some((range, _)) if range.is_empty() => return Ok(None),
                Some((range, of)) => Get {
                    range: Some(range.clone().into()),
                    version: of.version.as_ref(),
                    expected: Some(range.end - range.start),
                    size: Some(of.size),
                    ..Get::new(id)
                },
                None => first.clone(),
            };
            let result = self.attempt(store, Get { breaks: Some(&breaks), ..get }).await;
            let reached = self.reached();
            fruitless = if reached > farthest { 0 } else { fruitless + 1 };
            farthest = farthest.max(reached);
            if fruitless >= UNCHECKED_MAX && self.unchecked().is_some() {
                self.give_up_checks();
                fruitless = 0;
            }
            match (result, rest) {
                // A hedge may have brought all that it was sent for, but the destination has grown meanwhile.
                (Ok(got), None) => match self.rest() {
                    Some((rest, _)) if !rest.is_empty() => {}
                    _ => return Ok(Some(got)),
                },
                (Ok(_), Some(_)) => {}
                (Err(e), _) if e.is_interrupted() && fruitless < FRUITLESS_MAX => {
                    attempts += e.attempts();
                    note(attempts + 1);
                }
                (Err(e), Some((range, of))) if e.kind() == ErrorKind::InvalidRange => {
                    let message = format!(
                        "the store reported {} bytes, but refuses to send those from {} on: {e}",
                        of.size, range.start
                    );
                    let attempts = attempts + e.attempts();
                    return Err(Error::integrity(url(store.provider(), id), message).after(attempts));
                }
                (Err(e), _) => {
                    let attempts = attempts + e.attempts();
                    return Err(Error::from(e).after(attempts));
                }
            }
            if fruitless >= FRUITLESS_MAX {
                let message = format!("the store sends no bytes from {} on", self.position().0);
                return Err(Error::integrity(url(store.provider(), id), message));
            }
        }
    }

    /// Requests the bytes again that an answer has brought without the store's checksum of them, because it
    /// ended within a segment. Gives up after several answers without progress, and the bytes stay unchecked.
    ///
    /// # Errors
    /// Fails as [`fetch`](Self::fetch) does.
    pub(crate) async fn check_rest(
        self: &Arc<Self>,
        store: &Store,
        id: &ObjectId,
    ) -> Result<(), laneway_store::Error> {
        let mut fruitless = 0;
        while let Some((range, of)) = self.unchecked()
            && fruitless < FRUITLESS_MAX
        {
            let (before, len) = (range.start, range.end - range.start);
            let get = Get {
                range: Some(range.into()),
                version: of.version.as_ref(),
                expected: Some(len),
                size: Some(of.size),
                ..Get::new(id)
            };
            match self.attempt(store, get).await {
                Err(e) if !e.is_interrupted() => return Err(e),
                _ => {}
            }
            let is_further = self.unchecked().is_none_or(|(range, _)| range.start > before);
            fruitless = if is_further { 0 } else { fruitless + 1 };
        }
        Ok(())
    }

    /// Sends one request, whose body goes to this writer. A body that breaks off is an error.
    ///
    /// # Errors
    /// The store's or the destination's error.
    pub(crate) async fn attempt(
        self: &Arc<Self>,
        store: &Store,
        get: Get<'_>,
    ) -> Result<Got, laneway_store::Error> {
        let sink = || -> Box<dyn GetSink> { Box::new(self.sink()) };
        let hedge = || self.hedge();
        store.get(Get { sink: Some(&sink), hedge: Some(&hedge), ..get }).await
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
    let mut damaged = DamagedReads::default();
    loop {
        let (output, progress) = (CollectedRange::new(&range, wanted), Arc::clone(&progress));
        let writer = RangeWriter::pinned(range.start, of.clone(), output, progress);
        match writer.bring(store, id).await {
            Ok(()) => return Ok(writer.finish()),
            Err(error) => {
                writer.take_back();
                damaged.again(error)?;
            }
        }
    }
}

/// Counts the reads whose bytes were damaged on their way.
#[derive(Debug, Default)]
pub(crate) struct DamagedReads(u32);

impl DamagedReads {
    /// Permits another read after the first one with damaged bytes.
    ///
    /// # Errors
    /// The error of the read, if there must be no other read.
    pub(crate) fn again(&mut self, error: Error) -> Result<(), Error> {
        if !error.is_mismatch() {
            return Err(error);
        }
        self.0 += 1;
        if self.0 > 1 {
            return Err(error.for_good());
        }
        tracing::debug!(%error, "the bytes were damaged on their way, so they are fetched once more");
        note_another();
        Ok(())
    }
}

/// Reads a range of an object into memory, and returns it with the object's metadata. The caller has reserved
/// the memory. The range is of the version that `get` names, or else of the version of the first answer.
///
/// # Errors
/// The store's error; an object that was replaced.
pub(crate) async fn collect(store: &Store, range: GetRange, get: Get<'_>) -> Result<ObjectBytes, Error> {
    let mut damaged = DamagedReads::default();
    let (writer, got) = loop {
        let writer = RangeWriter::of_any(CollectedRange::of_any(range.clone()), Arc::default());
        match writer.fetch(store, Get { range: Some(range.clone()), ..get.clone() }).await {
            Ok(got) => break (writer, got),
            Err(error) => damaged.again(error)?,
        }
    };
    let (described, bytes) =
        writer.end(|collected| (collected.described.take(), std::mem::take(&mut collected.bytes)));
    // The store refuses a range of an empty object. No answer begins then.
    let described = described.or_else(|| got.map(|got| Box::new((got.meta, got.range.start))));
    match described.map(|described| *described) {
        Some((meta, start)) => Ok(ObjectBytes { meta, start, bytes: bytes.into() }),
        None => Err(Error::integrity(url(store.provider(), get.id), "the answer describes no object")),
    }
}

/// Bytes of an object, and the metadata that came with them.
#[derive(Debug)]
pub(crate) struct ObjectBytes {
    pub(crate) meta: ObjectMeta,
    /// The offset of the first byte.
    pub(crate) start: u64,
    pub(crate) bytes: Bytes,
}

/// The bytes of a range, in memory.
#[derive(Debug)]
pub(crate) struct CollectedRange {
    /// The requested range, if the object's size was unknown.
    asked: Option<GetRange>,
    end: u64,
    bytes: Vec<u8>,
    hasher: ChecksumHasher,
    /// The object's metadata and the offset of the range's first byte, from the first answer.
    described: Option<Box<(ObjectMeta, u64)>>,
}

impl CollectedRange {
    /// Returns the memory for a range of an object whose size and version are known.
    pub(crate) fn new(range: &Range<u64>, wanted: ChecksumSet) -> Self {
        let len = range.end - range.start;
        let (bytes, hasher) = (Vec::with_capacity(len as usize), ChecksumHasher::new(wanted));
        Self { asked: None, end: range.end, bytes, hasher, described: None }
    }

    /// Cuts the range at this offset.
    #[cfg(test)]
    pub(super) fn cut(&mut self, end: u64) {
        self.end = end;
    }

    fn of_any(asked: GetRange) -> Self {
        Self { asked: Some(asked), ..Self::new(&(0..0), ChecksumSet::default()) }
    }
}

impl Output for CollectedRange {
    fn begin(&mut self, meta: &ObjectMeta) {
        let Some(asked) = &self.asked else { return };
        let range = asked.within(meta.size);
        self.end = range.end;
        self.bytes = Vec::with_capacity((range.end - range.start) as usize);
        self.described = Some(Box::new((meta.clone(), range.start)));
    }

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
        self.end_checked(|collected, is_checked| {
            let empty = ChecksumHasher::new(ChecksumSet::default());
            let hasher = std::mem::replace(&mut collected.hasher, empty);
            (hasher.finish().checked(is_checked), std::mem::take(&mut collected.bytes))
        })
    }
}
