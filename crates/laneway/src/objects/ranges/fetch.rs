//! Carries out a plan: sends the plan's requests, and assembles each range from the answers.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, TryStreamExt as _};
use laneway_store::{Get, ObjectId, Store, Version};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::path::PathEstimate;
use super::plan::{self, Plan, PriceList, RequestGroup, UnreadableRange};
use crate::content::range_writer::ObjectPin;
use crate::content::read::{ObjectBytes, collect};
use crate::location::url;
use crate::{Error, ErrorKind};

/// The maximum number of concurrent requests of one call. The dispatcher decides how many of them it sends.
/// For 100 requests and a round trip of 20 ms, it opens 52 HTTP/1.1 connections. With a limit of 128, it once
/// opened 69 connections for 392 requests, because the round trip was longer on a busy machine.
const AT_ONCE: usize = 100;

/// The maximum number of bytes that are being fetched or wait for the caller. This limit applies only if the
/// caller takes results one by one.
const WAITING_MAX: usize = 64 << 20;

/// The number of bytes that one permit of the semaphore for waiting results stands for.
const UNIT: u64 = 1024;

/// The limits that all objects of one call share.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    pub(super) requests: Arc<Semaphore>,
    waiting: Option<Arc<Semaphore>>,
}

impl Limits {
    /// Returns the limits for a call that returns all results together.
    pub(super) fn of_all() -> Self {
        Self { requests: Arc::new(Semaphore::new(AT_ONCE)), waiting: None }
    }

    /// Returns the limits for a stream whose results the caller takes one by one.
    pub(super) fn of_taken() -> Self {
        let waiting = Arc::new(Semaphore::new(WAITING_MAX / UNIT as usize));
        Self { waiting: Some(waiting), ..Self::of_all() }
    }

    /// Returns the same limits without the limit for waiting bytes. Used for an object's ranges if all their
    /// bytes were already counted together.
    fn without_waiting(&self) -> Self {
        Self { waiting: None, ..self.clone() }
    }

    /// Waits until this many more bytes may be fetched. If they are more than the limit, waits until no other
    /// bytes are being fetched or wait for the caller.
    async fn room(&self, bytes: u64) -> BytesPermit {
        let waiting = self.waiting.as_ref()?;
        let units = bytes.div_ceil(UNIT).clamp(1, WAITING_MAX as u64 / UNIT) as u32;
        // This can't fail, because the semaphore is never closed.
        Arc::clone(waiting).acquire_many_owned(units).await.ok().map(Arc::new)
    }
}

/// The permit for waiting bytes, which results hold until the caller takes them.
pub(super) type BytesPermit = Option<Arc<OwnedSemaphorePermit>>;

/// A range that has arrived: its index in the request, its bytes, and their permit.
pub(super) type RangeResult = Result<(usize, Bytes, BytesPermit), Error>;

/// The bytes of all ranges of an object, and their permit.
pub(super) type RangesResult = Result<(Vec<Bytes>, BytesPermit), Error>;

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

/// A function that receives results: the index of a range in the request, its bytes, and their permit.
pub(super) trait RangeTaker: Fn(usize, Bytes, BytesPermit) + Sync {}
impl<F: Fn(usize, Bytes, BytesPermit) + Sync> RangeTaker for F {}

impl Fetch<'_> {
    /// Fetches every range, and passes each to `take` as soon as it has arrived.
    ///
    /// # Errors
    /// The store's error; a range that can't be read; an object that was replaced during the call.
    pub(super) async fn each(&self, take: impl RangeTaker) -> Result<(), Error> {
        self.carry_out(self.plan().await?, self.limits, take).await
    }

    /// Fetches every range, and returns them all together.
    ///
    /// # Errors
    /// Fails as [`each`](Self::each) does.
    pub(super) async fn all(&self) -> RangesResult {
        let (plan, pinned) = self.plan().await?;
        let room =
            self.limits.room(plan.groups.iter().map(RequestGroup::len).fold(0, u64::saturating_add)).await;
        let results: Vec<OnceLock<Bytes>> = self.asked.iter().map(|_| OnceLock::new()).collect();
        let take = |at: usize, bytes, _: BytesPermit| drop(results[at].set(bytes));
        self.carry_out((plan, pinned), &self.limits.without_waiting(), take).await?;
        // `carry_out` has passed every range to `take`, so no result is missing.
        Ok((results.into_iter().map(|result| result.into_inner().unwrap_or_default()).collect(), room))
    }

    /// Returns the plan. Also returns the object's size and version, if the caller knows the size or the plan
    /// needed it.
    pub(super) async fn plan(&self) -> Result<(Plan, Option<ObjectPin>), Error> {
        // A plan with a single request needs no measurements, so don't ask the engine for its measurements of
        // the path.
        let path = match plan::is_one_request(self.asked) {
            true => laneway_lanes::Path::default(),
            false => self.store.path(&self.id.bucket).await,
        };
        let path = PathEstimate::new(self.store.capabilities().protocol, path);
        let plan = |size| {
            plan::plan(self.asked, size, &path, &self.prices)
                .map_err(|unreadable| self.unreadable(unreadable, size))
        };
        let first = plan(self.size)?;
        if first.needs_size {
            let meta = self.store.head(self.id, self.version).await?;
            return Ok((plan(Some(meta.size))?, Some(ObjectPin::of(&meta))));
        }
        let known = self.size.map(|size| ObjectPin { size, version: self.version.cloned() });
        Ok((first, known))
    }

    async fn carry_out(
        &self,
        (plan, known): (Plan, Option<ObjectPin>),
        limits: &Limits,
        take: impl RangeTaker,
    ) -> Result<(), Error> {
        plan.empty.iter().for_each(|at| take(*at, Bytes::new(), None));
        let requests = plan.groups.iter().map(|group| group.requests.len()).sum();
        let pinned = known.map_or_else(OnceLock::new, OnceLock::from);
        let bringing = RangeFetches { fetch: self, limits, pinned, requests };
        let groups: FuturesUnordered<_> =
            plan.groups.iter().map(|group| bringing.group(group, &take)).collect();
        groups.try_collect().await
    }

    pub(super) fn unreadable(&self, unreadable: UnreadableRange, size: Option<u64>) -> Error {
        let target = url(self.store.provider(), self.id);
        match (unreadable, size) {
            (UnreadableRange::Reversed(range), _) => {
                Error::invalid_range(target, format!("the range {range:?} ends before it begins"))
            }
            (UnreadableRange::Outside(range), Some(size)) => Error::invalid_range(
                target,
                format!("the range {range:?} lies outside the object's {size} bytes"),
            ),
            (UnreadableRange::Outside(range), None) => {
                Error::invalid_range(target, format!("the range {range:?} lies outside the object"))
            }
        }
    }
}

/// The requests of a plan that is being carried out.
struct RangeFetches<'a> {
    fetch: &'a Fetch<'a>,
    limits: &'a Limits,
    /// The version that all answers must have. If the caller gave none, it is that of the first answer.
    pinned: OnceLock<ObjectPin>,
    /// The number of requests in the plan.
    requests: usize,
}

/// A range whose bytes come from several requests.
struct RangeAssembly {
    bytes: Vec<u8>,
    missing: u64,
}

impl RangeFetches<'_> {
    async fn group(&self, group: &RequestGroup, take: &impl RangeTaker) -> Result<(), Error> {
        let room = self.limits.room(group.len()).await;
        let mut assembled: Vec<Option<RangeAssembly>> = group.asked.iter().map(|_| None).collect();
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
                    // If less than half of the body is wanted, copy the range. A slice would keep the whole
                    // body in memory.
                    let part = if is_mostly_wanted { part } else { Bytes::copy_from_slice(&part) };
                    take(*at, part, room.clone());
                    continue;
                }
                let whole = assembled.get_or_insert_with(|| RangeAssembly {
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

    /// Sends a request, and returns its bytes up to the object's end.
    async fn bring(&self, request: Range<u64>, group: &RequestGroup) -> Result<RangeAnswer, Error> {
        // This can't fail, because the semaphore is never closed.
        let _slot = self.limits.requests.acquire().await;
        let memory = self.fetch.store.lanes().memory();
        let _held = memory.reserve((request.end - request.start) as usize).await;
        let version = self.pinned.get().and_then(|pinned| pinned.version.as_ref()).or(self.fetch.version);
        let got = match self.get(&request, version).await {
            Ok(got) => got,
            Err(error) if error.kind() == ErrorKind::InvalidRange => {
                let attempts = error.attempts();
                let outside = group.asked.iter().find(|(_, asked)| asked.start >= request.start);
                let Some((_, asked)) = outside else { return Err(error) };
                return Err(self
                    .fetch
                    .unreadable(UnreadableRange::Outside(asked.clone()), None)
                    .after(attempts));
            }
            Err(error) => return Err(error),
        };
        // The answer's range needs no check here, because the store's code refuses an answer with a wrong
        // range.
        let got = self.of_one_state(&request, got).await?;
        Ok(RangeAnswer { bytes: got.bytes, request, size: got.meta.size })
    }

    async fn get(&self, request: &Range<u64>, version: Option<&Version>) -> Result<ObjectBytes, Error> {
        let Fetch { store, id, .. } = *self.fetch;
        let get = Get { version, expected: Some(request.end - request.start), ..Get::new(id) };
        collect(store, request.clone().into(), get).await
    }

    /// Checks that an answer has the same version as the first answer. All requests were sent at the same
    /// time, without a version. If an answer has another version, this method repeats the request, with the
    /// first answer's version as a condition. If the object was replaced, the store refuses the repeated
    /// request.
    ///
    /// # Errors
    /// The store's error; `Precondition` if the object was replaced; `Integrity` if there are several
    /// requests and the store reports no version.
    async fn of_one_state(&self, request: &Range<u64>, got: ObjectBytes) -> Result<ObjectBytes, Error> {
        let pinned = self.pinned.get_or_init(|| ObjectPin::of(&got.meta));
        if pinned.version.is_none() && self.requests > 1 {
            let message = "the store reports no version of the object, so Laneway could mix bytes of different versions";
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

/// The answer to a request, and the object's size that came with it.
struct RangeAnswer {
    request: Range<u64>,
    bytes: Bytes,
    size: u64,
}

/// Returns the bytes at the offsets `own` from a body that begins at the offset `start`, without copying
/// them.
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
