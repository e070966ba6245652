//! An object sent piece by piece: a multipart upload with its parts in parallel, or a resumable session, chunk after
//! chunk, where a store has no multipart or a precondition is asked for that its multipart can't keep.

use std::future::Future;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use laneway_lanes::{Reservation, Segment};
use laneway_store::{
    Appended, Body, Checksums, CompositeCrc32c, Condition, Multipart, ObjectId, ObjectMeta, Part, Provider,
    PutOptions, Resumable, Store,
};

use super::verify;
use crate::Error;
use crate::checksum::{Run, Wanted, composite_crc32c};
use crate::location::url;
use crate::plan::parts::PARTS_MAX;
use crate::plan::pieces_in_flight;
use crate::pump::ready;
use crate::work::{Moved, Work};

/// How often a chunk is sent again of which the store has kept nothing.
const FRUITLESS_MAX: u32 = 3;

/// Where pieces come from.
pub(crate) trait Input: Send + Sync {
    /// A piece that was taken and is still to be made ready.
    type Begun: Send;

    /// Takes the next piece; `None` at the end. Called once at a time. All pieces but the last are multiples of
    /// 256 KiB, which resumable sessions demand, and of at least 5 MiB, which multipart uploads do.
    fn next(&self) -> impl Future<Output = Result<Option<Self::Begun>, Error>> + Send;

    /// Makes a piece ready. Several are made ready at once.
    fn piece(&self, begun: Self::Begun) -> impl Future<Output = Result<Piece, Error>> + Send;

    /// Checks, before the object comes into being, that the pieces belong together; `whole` is what all of them are.
    fn check(&self, whole: &Run) -> impl Future<Output = Result<(), Error>> + Send;
}

/// A piece that can be sent.
pub(crate) struct Piece {
    pub(crate) body: Body,
    pub(crate) run: Run,
    /// Whether it is known to be the last one. A stream that ends where a piece ends shows it only afterwards.
    pub(crate) is_last: bool,
    /// Memory that the body stands on.
    pub(crate) held: Option<Arc<Reservation>>,
}

/// An object as its pieces made it.
pub(crate) struct Parts<'a> {
    pub(crate) work: &'a Work,
    pub(crate) store: &'a Store,
    pub(crate) id: &'a ObjectId,
    pub(crate) options: &'a PutOptions,
}

impl Parts<'_> {
    /// Sends an object of `size` bytes, if that is known, and compares what the store then has.
    ///
    /// # Errors
    /// What the store or the input says. Nothing is left behind in the store then.
    pub(crate) async fn send<I: Input>(&self, size: Option<u64>, input: &I) -> Result<Moved, Error> {
        // The XML API of GCS takes no preconditions.
        let is_conditional = self.store.provider() == Provider::Gcs && !self.options.condition.is_none();
        if is_conditional || !self.store.supports_multipart() {
            return self.resumable(size, input).await;
        }
        let begun = self.work.unless_cancelled(self.store.begin(self.id, self.options)).await?;
        match begun {
            Ok(upload) => match self.multipart(&upload, input).await {
                Ok(moved) => Ok(moved),
                Err(error) => {
                    if let Err(e) = self.store.abort(&upload).await {
                        tracing::warn!(error = %e, "a multipart upload stays behind unfinished");
                    }
                    Err(error)
                }
            },
            Err(e) if e.is_unsupported() => self.resumable(size, input).await,
            Err(e) => Err(e.into()),
        }
    }

    async fn multipart<I: Input>(&self, upload: &Multipart, input: &I) -> Result<Moved, Error> {
        let at_once = pieces_in_flight(self.work.engine.cores);
        let mut next: Option<BoxFuture<'_, Result<Option<I::Begun>, Error>>> = None;
        let mut running = FuturesUnordered::new();
        let mut parts: Vec<(Part, Run)> = Vec::new();
        let (mut number, mut is_ended) = (0, false);
        let mut cancelled = std::pin::pin!(self.work.cancel.wait());
        loop {
            if !is_ended && next.is_none() && running.len() < at_once {
                next = Some(Box::pin(input.next()));
            }
            if next.is_none() && running.is_empty() {
                break;
            }
            tokio::select! {
                biased;
                () = &mut cancelled => return Err(self.cancelled()),
                taken = ready(&mut next), if next.is_some() => {
                    next = None;
                    match taken? {
                        Some(_) if u64::from(number) >= PARTS_MAX => {
                            return Err(self.wrong("has more parts than a multipart upload may"));
                        }
                        Some(begun) => {
                            number += 1;
                            running.push(self.part(upload, number, input, begun));
                        }
                        None => is_ended = true,
                    }
                }
                Some(part) = running.next(), if !running.is_empty() => parts.push(part?),
            }
        }
        drop((next, running));
        parts.sort_by_key(|(part, _)| part.number);
        let whole = parts.iter().fold(Run::of(b"", Wanted::CRC32C), |whole, (_, run)| whole.then(*run));
        input.check(&whole).await?;
        let crcs = parts.iter().filter_map(|(_, run)| run.crc32c);
        let composite = CompositeCrc32c { value: composite_crc32c(crcs), parts: number };
        let parts: Vec<Part> = parts.into_iter().map(|(part, _)| part).collect();
        let sums = Checksums { crc32c: whole.crc32c, parts: Some(composite), ..Checksums::default() };
        let known = Checksums { parts: None, ..sums.clone() };
        let meta = self.store.complete(upload, &parts, &known, &self.options.condition).await?;
        self.compare(meta, whole.len, &sums).await
    }

    async fn part<I: Input>(
        &self,
        upload: &Multipart,
        number: u32,
        input: &I,
        begun: I::Begun,
    ) -> Result<(Part, Run), Error> {
        let piece = input.piece(begun).await?;
        let part = self.store.part(upload, number, piece.body, piece.run.crc32c.unwrap_or_default()).await?;
        drop(piece.held);
        self.work.progress.moved(piece.run.len);
        Ok((part, piece.run))
    }

    async fn resumable<I: Input>(&self, size: Option<u64>, input: &I) -> Result<Moved, Error> {
        let session =
            self.work.unless_cancelled(self.store.resumable_begin(self.id, size, self.options, None));
        let session = session.await??;
        let sent = self.work.unless_cancelled(self.chunks(&session, input)).await.and_then(|sent| sent);
        match sent {
            Ok((meta, whole)) => self.compare(meta, whole.len, &whole.checksums()).await,
            Err(error) => {
                if let Err(e) = self.store.resumable_cancel(&session).await {
                    tracing::warn!(error = %e, "a resumable upload stays behind unfinished");
                }
                Err(error)
            }
        }
    }

    async fn chunks<I: Input>(&self, session: &Resumable, input: &I) -> Result<(ObjectMeta, Run), Error> {
        let mut whole = Run::of(b"", Wanted::CRC32C);
        loop {
            // No look-ahead to find the last piece: whoever holds a piece and waits for memory for the next one can
            // wait for ever beside others that do the same.
            let piece = match input.next().await? {
                Some(begun) => input.piece(begun).await?,
                None => Piece {
                    body: Body::empty(),
                    run: Run::of(b"", Wanted::CRC32C),
                    is_last: true,
                    held: None,
                },
            };
            let start = whole.len;
            whole = whole.then(piece.run);
            if piece.is_last {
                input.check(&whole).await?;
            }
            if let Some(meta) = self.chunk(session, start, piece.body, piece.is_last).await? {
                return Ok((meta, whole));
            }
            self.work.progress.moved(piece.run.len);
        }
    }

    /// Sends one chunk until the store has all of it.
    async fn chunk(
        &self,
        session: &Resumable,
        start: u64,
        body: Body,
        is_last: bool,
    ) -> Result<Option<ObjectMeta>, Error> {
        let end = start + body.len();
        let (mut at, mut fruitless) = (start, 0);
        loop {
            let rest = tail(&body, at - start);
            match self.store.resumable_append(session, at, rest, is_last).await? {
                Appended::Finished(meta) if is_last => return Ok(Some(*meta)),
                Appended::Finished(_) => return Err(self.wrong("was finished before all of it was sent")),
                Appended::Continue { next_offset } if next_offset == end && !is_last => return Ok(None),
                Appended::Continue { next_offset } if next_offset < at || next_offset > end => {
                    return Err(self.wrong("lost bytes that the store had already taken"));
                }
                Appended::Continue { next_offset } => {
                    fruitless = if next_offset > at { 0 } else { fruitless + 1 };
                    at = next_offset;
                }
            }
            if fruitless >= FRUITLESS_MAX {
                return Err(self.wrong("makes no progress: the store keeps none of what it is sent"));
            }
        }
    }

    /// Compares what the store has with what was sent. An object that differs is taken back.
    async fn compare(&self, meta: ObjectMeta, size: u64, sums: &Checksums) -> Result<Moved, Error> {
        let tells = |meta: &ObjectMeta| meta.checksums.crc32c.is_some() || meta.checksums.parts.is_some();
        let meta = match tells(&meta) {
            true => meta,
            // Completing doesn't return the checksum everywhere.
            false => self.store.head(self.id, meta.version.as_ref()).await?,
        };
        match verify(self.store, &meta, size, sums) {
            Ok(verified) => Ok(Moved { bytes: size, attempts: 1, verified }),
            Err(error) => {
                withdraw(self.store, &meta).await;
                Err(error)
            }
        }
    }

    fn wrong(&self, what: &str) -> Error {
        Error::integrity(url(self.store.provider(), self.id), format!("the upload {what}"))
    }

    fn cancelled(&self) -> Error {
        Error::cancelled(url(self.store.provider(), self.id))
    }
}

/// Removes an object that turned out to be wrong, provided that nobody has replaced it meanwhile.
async fn withdraw(store: &Store, meta: &ObjectMeta) {
    let condition = match (&meta.version, store.provider()) {
        (Some(version), Provider::Gcs) => Condition::Matches(version.clone()),
        // Not every S3 server takes a condition on a delete, so that it could remove another's object.
        _ => return,
    };
    if let Err(e) = store.delete(&meta.id, &condition).await {
        tracing::warn!(error = %e, "an object with the wrong checksum could not be removed");
    }
}

/// A body without its first `skip` bytes.
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
