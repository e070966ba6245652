//! Sends an object through a resumable session, chunk after chunk in order.

use std::sync::Arc;

use laneway_lanes::Segment;
use laneway_store::{Appended, Body, ObjectMeta, Resumable};

use super::journal::StoreUpload;
use super::parts::{Input, PartsUpload, PutOutcome, ReadyPart};
use super::unfinished::begun;
use crate::Error;
use crate::content::checksum::{ChecksumSet, RangeChecksums};
use crate::plan::parts::CHUNK_UNIT;

/// Laneway gives up a session after this many consecutive requests of which the store has kept no byte.
const FRUITLESS_MAX: u32 = 3;

impl PartsUpload<'_> {
    /// Sends an object through a new session, chunk after chunk. `size` is the object's length in bytes, if
    /// it is known.
    ///
    /// # Errors
    /// Fails as [`send`](Parts::send) does.
    pub(super) async fn new_session<I: Input>(
        &self,
        size: Option<u64>,
        input: &I,
    ) -> Result<PutOutcome, Error> {
        let session = self.store.resumable_begin(self.id, size, self.options, None);
        let session = begun(self.job, self.store, session, StoreUpload::Session).await??;
        self.begun(StoreUpload::Session(session.clone())).await;
        self.session(&session, 0, input).await
    }

    /// Continues a session. The store already has the object's bytes below `offset`.
    ///
    /// # Errors
    /// Fails as [`send`](Parts::send) does.
    pub(super) async fn session<I: Input>(
        &self,
        session: &Resumable,
        offset: u64,
        input: &I,
    ) -> Result<PutOutcome, Error> {
        let sent = self.job.unless_cancelled(self.chunks(session, offset, input)).await.and_then(|sent| sent);
        let (meta, whole) = self.settle(&StoreUpload::Session(session.clone()), sent).await?;
        self.compare(meta, whole.len, &whole.checksums()).await
    }

    async fn chunks<I: Input>(
        &self,
        session: &Resumable,
        offset: u64,
        input: &I,
    ) -> Result<(ObjectMeta, RangeChecksums), Error> {
        let mut whole = RangeChecksums::of(b"", ChecksumSet::CRC32C);
        loop {
            // Don't read ahead to find the last part. Several uploads could deadlock if each held one part
            // and waited for memory for the next.
            let part = match input.next().await? {
                Some(begun) => input.prepare(begun, ChecksumSet::CRC32C).await?,
                None => ReadyPart {
                    body: Body::empty(),
                    run: RangeChecksums::of(b"", ChecksumSet::CRC32C),
                    is_last: true,
                    held: None,
                },
            };
            let start = whole.len;
            whole = whole.then(part.run);
            if part.is_last {
                input.check(&whole).await?;
            }
            if whole.len > offset || part.is_last {
                if let Some(meta) = self.chunk(session, start, &whole, offset, &part).await? {
                    return Ok((meta, whole));
                }
                if let Some(unfinished) = self.unfinished {
                    unfinished.stands_at(whole.len);
                }
            }
            match self.unfinished.filter(|_| whole.len <= offset) {
                Some(_) => self.resumed(part.run.len),
                None => self.moved(part.run.len),
            }
        }
    }

    /// Sends those bytes of a chunk that the store doesn't have yet. Repeats this until the store has the
    /// whole chunk. `whole` has the checksums of all bytes up to the chunk's end.
    async fn chunk(
        &self,
        session: &Resumable,
        start: u64,
        whole: &RangeChecksums,
        offset: u64,
        part: &ReadyPart,
    ) -> Result<Option<ObjectMeta>, Error> {
        let (end, is_last) = (whole.len, part.is_last);
        // Always send from a multiple of the unit, even if the store's offset lies between two multiples. The
        // store skips the bytes that it already has
        // (<https://cloud.google.com/storage/docs/performing-resumable-uploads#resume-upload>).
        let aligned = |offset: u64| offset - (offset - start) % CHUNK_UNIT;
        let (mut at, mut fruitless) = (aligned(offset.clamp(start, end)), 0);
        loop {
            let rest = tail(&part.body, at - start);
            let appended = match self.store.resumable_append(session, at, rest, is_last).await {
                // The session no longer answers, but it may have completed the object. So check whether the
                // object exists.
                Err(error) if is_last && error.is_uncertain() => {
                    return self.made(whole).await.map(Some).map_err(|_| error.into());
                }
                appended => appended.map_err(|error| error.of_write(&self.options.condition))?,
            };
            match appended {
                Appended::Finished(meta) if is_last => return Ok(Some(*meta)),
                Appended::Ended if is_last => return self.made(whole).await.map(Some),
                Appended::Finished(_) | Appended::Ended => {
                    return Err(self.wrong("ended before Laneway had sent all of its bytes"));
                }
                Appended::Continue { next_offset } if next_offset == end && !is_last => return Ok(None),
                Appended::Continue { next_offset } if next_offset < at || next_offset > end => {
                    return Err(self.wrong("lost bytes that the store had already confirmed"));
                }
                Appended::Continue { next_offset } => {
                    let next = aligned(next_offset);
                    fruitless = if next > at { 0 } else { fruitless + 1 };
                    at = next;
                }
            }
            if fruitless >= FRUITLESS_MAX {
                return Err(self.wrong("makes no progress: the store keeps none of the bytes"));
            }
        }
    }
}

impl PartsUpload<'_> {
    /// Returns the object of a session that was completed, although no answer reported this. If the object at
    /// the destination has other bytes, another writer may have written it. So this returns an error and
    /// doesn't remove the object.
    async fn made(&self, whole: &RangeChecksums) -> Result<ObjectMeta, Error> {
        let meta = self.store.head(self.id, None).await?;
        match meta.size == whole.len && meta.checksums.crc32c == whole.crc32c {
            true => Ok(meta),
            false => Err(self.wrong("has ended, but the object differs from the bytes that Laneway sent")),
        }
    }
}

fn tail(body: &Body, mut skip: u64) -> Body {
    let mut rest = Body::empty();
    for segment in body.segments() {
        let dropped = skip.min(segment.len());
        skip -= dropped;
        rest = rest.and(match segment {
            Segment::Memory(bytes) => Segment::Memory(bytes.slice(dropped as usize..)),
            Segment::File { file, offset, len } => {
                Segment::File { file: Arc::clone(file), offset: offset + dropped, len: len - dropped }
            }
        });
    }
    rest
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn a_chunk_of_which_the_store_kept_a_part_is_gone_on_with_behind_it() {
        let body = Body::from(Bytes::from_static(b"0123")).and(Bytes::from_static(b"456"));
        let text = |body: &Body| {
            let bytes = body.segments().iter().map(|segment| match segment {
                Segment::Memory(bytes) => bytes.to_vec(),
                Segment::File { .. } => Vec::new(),
            });
            bytes.collect::<Vec<_>>().concat()
        };
        for skip in 0..=7 {
            assert_eq!(text(&tail(&body, skip as u64)), b"0123456"[skip..]);
        }
    }
}
