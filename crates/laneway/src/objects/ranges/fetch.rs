//! Carries out a plan: sends its requests, and assembles each range from the answers.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, TryStreamExt as _};
use laneway_store::{ErrorKind, Get, Got, ObjectId, Store, Version};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::path::Path;
use super::plan::{self, Group, Plan, Unreadable};
use super::prices::PriceList;
use crate::Error;
use crate::location::url;
use crate::transfer::download::range_writer::Pinned;

/// Requests of one call that may be under way at once. The dispatcher decides how many are on the wire. For
/// 100 requests and a round trip of 20 ms, it opens 52 HTTP/1.1 connections. When the limit was 128 and a
/// busy machine stretched the round trip, it once opened 69 for 392 requests.
const AT_ONCE: usize = 100;

/// The most bytes of results that may be under way or wait to be taken, if the caller takes results one by
/// one.
const WAITING_MAX: usize = 64 << 20;

/// The unit in which waiting bytes are counted.
const UNIT: u64 = 1024;

/// The shared limits of one call's objects.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    pub(super) requests: Arc<Semaphore>,
    waiting: Option<Arc<Semaphore>>,
}

impl Limits {
    /// Returns the limits for results that are wanted all together.
    pub(super) fn of_all() -> Self {
        Self { requests: Arc::new(Semaphore::new(AT_ONCE)), waiting: None }
    }

    /// Returns the limits for results that are taken as they come.
    pub(super) fn of_taken() -> Self {
        let waiting = Arc::new(Semaphore::new(WAITING_MAX / UNIT as usize));
        Self { waiting: Some(waiting), ..Self::of_all() }
    }

    /// Returns the same limits without counting waiting bytes, for a part of bytes that are counted already.
    fn without_waiting(&self) -> Self {
        Self { waiting: None, ..self.clone() }
    }

    /// Waits until this many more bytes may wait to be taken. A result above the limit waits until it is the
    /// only one.
    async fn room(&self, bytes: u64) -> Room {
        let waiting = self.waiting.as_ref()?;
        let units = bytes.div_ceil(UNIT).clamp(1, WAITING_MAX as u64 / UNIT) as u32;
        // The semaphore is never closed.
        Arc::clone(waiting).acquire_many_owned(units).await.ok().map(Arc::new)
    }
}

/// The permit that results hold until they are taken.
pub(super) type Room = Option<Arc<OwnedSemaphorePermit>>;

/// A range as it comes: its place in the request, its bytes, and the permit that they hold.
pub(super) type One = Result<(usize, Bytes, Room), Error>;

/// All ranges of an object, and the permit that they hold.
pub(super) type All = Result<(Vec<Bytes>, Room), Error>;

pub(super) struct Fetch<'a> {
    pub(super) store: &'a Store,
    pub(super) id: &'a ObjectId,
    pub(super) asked: &'a [Range<u64>],
    /// The version that the object must have.
    pub(super) version: Option<&'a Version>,
    /// The object's size in that version, if it is known.
    pub(super) size: Option<u64>,
    pub(super) prices: PriceList,
    pub(super) limits: &'a Limits,
}

/// Receives results: the place of a range in the request, its bytes, and the permit that they hold.
pub(super) trait Taker: Fn(usize, Bytes, Room) + Sync {}
impl<F: Fn(usize, Bytes, Room) + Sync> Taker for F {}

impl Fetch<'_> {
    /// Fetches every range, and hands each on as soon as it has arrived.
    ///
    /// # Errors
    /// The store's error; a range that can't be read; an object that was replaced meanwhile.
    pub(super) async fn each(&self, take: impl Taker) -> Result<(), Error> {
        self.carry_out(self.plan().await?, self.limits, take).await
    }

    /// Fetches every range, and returns all together.
    ///
    /// # Errors
    /// As [`each`](Self::each).
    pub(super) async fn all(&self) -> All {
        let (plan, pinned) = self.plan().await?;
        let room = self.limits.room(plan.groups.iter().map(Group::len).fold(0, u64::saturating_add)).await;
        let results: Vec<OnceLock<Bytes>> = self.asked.iter().map(|_| OnceLock::new()).collect();
        let take = |at: usize, bytes, _: Room| drop(results[at].set(bytes));
        self.carry_out((plan, pinned), &self.limits.without_waiting(), take).await?;
        // Every range was handed on.
        Ok((results.into_iter().map(|result| result.into_inner().unwrap_or_default()).collect(), room))
    }

    /// Returns the plan, and the object's version if it was given or had to be requested.
    pub(super) async fn plan(&self) -> Result<(Plan, Option<Pinned>), Error> {
        // If there is only one request, don't ask the engine about the path.
        let path = match plan::is_one_request(self.asked) {
            true => laneway_lanes::Path::default(),
            false => self.store.path(&self.id.bucket).await,
        };
        let path = Path::new(self.store.capabilities().protocol, path);
        let plan = |size| {
            plan::plan(self.asked, size, &path, &self.prices)
                .map_err(|unreadable| self.unreadable(unreadable, size))
        };
        let first = plan(self.size)?;
        if first.needs_size {
            let meta = self.store.head(self.id, self.version).await?;
            return Ok((plan(Some(meta.size))?, Some(Pinned::of(&meta))));
        }
        let known = self.size.map(|size| Pinned { size, version: self.version.cloned() });
        Ok((first, known))
    }

    async fn carry_out(
        &self,
        (plan, known): (Plan, Option<Pinned>),
        limits: &Limits,
        take: impl Taker,
    ) -> Result<(), Error> {
        plan.empty.iter().for_each(|at| take(*at, Bytes::new(), None));
        let requests = plan.groups.iter().map(|group| group.requests.len()).sum();
        let pinned = known.map_or_else(OnceLock::new, OnceLock::from);
        let bringing = RangeFetches { fetch: self, limits, pinned, requests };
        let groups: FuturesUnordered<_> =
            plan.groups.iter().map(|group| bringing.group(group, &take)).collect();
        groups.try_collect().await
    }

    pub(super) fn unreadable(&self, unreadable: Unreadable, size: Option<u64>) -> Error {
        let target = url(self.store.provider(), self.id);
        match (unreadable, size) {
            (Unreadable::Reversed(range), _) => {
                Error::invalid_range(target, format!("the range {range:?} ends before it begins"))
            }
            (Unreadable::Outside(range), Some(size)) => Error::invalid_range(
                target,
                format!("the range {range:?} lies outside the object's {size} bytes"),
            ),
            (Unreadable::Outside(range), None) => {
                Error::invalid_range(target, format!("the range {range:?} lies outside the object"))
            }
        }
    }
}

/// The requests of a plan under way.
struct RangeFetches<'a> {
    fetch: &'a Fetch<'a>,
    limits: &'a Limits,
    /// The version that all answers must have: the given one, or that of the first answer.
    pinned: OnceLock<Pinned>,
    /// The number of requests.
    requests: usize,
}

/// A range that several requests bring.
struct Assembled {
    bytes: Vec<u8>,
    missing: u64,
}

impl RangeFetches<'_> {
    async fn group(&self, group: &Group, take: &impl Taker) -> Result<(), Error> {
        let room = self.limits.room(group.len()).await;
        let mut assembled: Vec<Option<Assembled>> = group.asked.iter().map(|_| None).collect();
        let each = group.requests.iter().map(|request| self.bring(request.clone(), group));
        let mut answers: FuturesUnordered<_> = each.collect();
        while let Some(RangeAnswer { request, bytes, size }) = answers.try_next().await? {
            let is_mostly_wanted = group.wanted >= group.len() / 2;
            for ((at, asked), assembled) in group.asked.iter().zip(&mut assembled) {
                if asked.end <= request.start || request.end <= asked.start {
                    continue;
                }
                let asked = plan::within(asked, Some(size))
                    .map_err(|unreadable| self.fetch.unreadable(unreadable, Some(size)))?;
                let own = asked.start.max(request.start)..asked.end.min(request.end);
                let part = slice(&bytes, request.start, &own);
                if own == asked {
                    // Copy a small part, because a slice of the body would keep the whole body in memory.
                    let part = if is_mostly_wanted { part } else { Bytes::copy_from_slice(&part) };
                    take(*at, part, room.clone());
                    continue;
                }
                let whole = assembled.get_or_insert_with(|| Assembled {
                    bytes: vec![0; (asked.end - asked.start) as usize],
                    missing: asked.end - asked.start,
                });
                let offset = (own.start - asked.start) as usize;
                whole.bytes[offset..offset + part.len()].copy_from_slice(&part);
                whole.missing -= part.len() as u64;
                if whole.missing == 0 {
                    take(*at, std::mem::take(&mut whole.bytes).into(), room.clone());
                }
            }
        }
        Ok(())
    }

    /// Fetches the bytes of a request, cut at the object's end.
    async fn bring(&self, request: Range<u64>, group: &Group) -> Result<RangeAnswer, Error> {
        // The semaphore is never closed.
        let _slot = self.limits.requests.acquire().await;
        let memory = self.fetch.store.lanes().memory();
        let _held = memory.reserve((request.end - request.start) as usize).await;
        let version = self.pinned.get().and_then(|pinned| pinned.version.as_ref()).or(self.fetch.version);
        let got = match self.get(&request, version).await {
            Ok(got) => got,
            Err(error) if error.kind() == ErrorKind::InvalidRange => {
                let attempts = error.attempts();
                let outside = group.asked.iter().find(|(_, asked)| asked.start >= request.start);
                let Some((_, asked)) = outside else { return Err(error.into()) };
                return Err(self.fetch.unreadable(Unreadable::Outside(asked.clone()), None).after(attempts));
            }
            Err(error) => return Err(error.into()),
        };
        // The store code refuses an answer with another range than the requested one.
        let got = self.of_one_state(&request, got).await?;
        Ok(RangeAnswer { bytes: got.body, request, size: got.meta.size })
    }

    async fn get(
        &self,
        request: &Range<u64>,
        version: Option<&Version>,
    ) -> Result<Got, laneway_store::Error> {
        let Fetch { store, id, .. } = *self.fetch;
        let get = Get {
            range: Some(request.clone().into()),
            version,
            expected: Some(request.end - request.start),
            ..Get::new(id)
        };
        store.get(get).await
    }

    /// Checks that all answers have the version of the first one. All were requested at the same time,
    /// without a version. So Laneway repeats a request whose answer has another version, and names the first
    /// one. If the object was replaced, the store refuses that request.
    ///
    /// # Errors
    /// The store's error; `Precondition` if the object was replaced; an error if the store tells no version
    /// and there is more than one request.
    async fn of_one_state(&self, request: &Range<u64>, got: Got) -> Result<Got, Error> {
        let pinned = self.pinned.get_or_init(|| Pinned::of(&got.meta));
        if pinned.version.is_none() && self.requests > 1 {
            let message = "the store reports no version, so ranges could come from different versions of it";
            return Err(Error::integrity(url(self.fetch.store.provider(), self.fetch.id), message));
        }
        let got = match got.meta.version == pinned.version {
            true => got,
            false => self.get(request, pinned.version.as_ref()).await?,
        };
        pinned.check(&got.meta)?;
        Ok(got)
    }
}

/// The answer to a request, with the object's size.
struct RangeAnswer {
    request: Range<u64>,
    bytes: Bytes,
    size: u64,
}

/// Returns the bytes `own` of a body that begins at `start`, without copying them.
fn slice(body: &Bytes, start: u64, own: &Range<u64>) -> Bytes {
    let clamp = |at: u64| usize::try_from(at.saturating_sub(start)).unwrap_or(usize::MAX).min(body.len());
    body.slice(clamp(own.start)..clamp(own.end))
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn what_nobody_takes_bounds_what_is_read() {
        let limits = Limits::of_taken();
        let room = |mib: u64| limits.room(mib << 20).now_or_never();
        let first = room(40).expect("there is room");
        assert!(room(40).is_none());
        drop(first);
        let larger_than_all = room(1 << 20).expect("it waits alone");
        assert!(room(1).is_none());
        drop(larger_than_all);
        assert!(room(64).is_some());
    }

    #[test]
    fn what_is_wanted_all_together_waits_for_nobody() {
        let limits = Limits::of_all();
        assert!(matches!(limits.room(1 << 40).now_or_never(), Some(None)));
    }

    #[test]
    fn a_slice_shares_the_memory_of_its_body() {
        let body = Bytes::from(vec![7; 100]);
        let part = slice(&body, 1_000, &(1_010..1_030));
        assert_eq!((part.len(), part.as_ptr()), (20, body[10..].as_ptr()));
        assert_eq!(slice(&body, 1_000, &(1_090..2_000)).len(), 10, "bytes that were cut off are missing");
    }
}
