//! Carries a plan out: sends its requests, and hands on what each range asked for is made of.

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
use crate::download::range_writer::Pinned;
use crate::location::url;

/// Requests of one call that may be under way at once. How many are on the wire is the dispatcher's decision, which opens 52
/// connections of HTTP/1.1 for so many at 20 ms: with 128, and a round trip that a busy machine stretched, it once opened 69 for 392.
const AT_ONCE: usize = 100;

/// Bytes of results that may wait to be taken, those that are still under way included, where they are taken one by one.
const WAITING_MAX: usize = 64 << 20;

/// The unit in which waiting bytes are counted.
const UNIT: u64 = 1024;

/// What the objects of one call share: how much of them is under way.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    pub(super) requests: Arc<Semaphore>,
    waiting: Option<Arc<Semaphore>>,
}

impl Limits {
    /// For results that are wanted all together.
    pub(super) fn of_all() -> Self {
        Self { requests: Arc::new(Semaphore::new(AT_ONCE)), waiting: None }
    }

    /// For results that are taken as they come.
    pub(super) fn of_taken() -> Self {
        let waiting = Arc::new(Semaphore::new(WAITING_MAX / UNIT as usize));
        Self { waiting: Some(waiting), ..Self::of_all() }
    }

    /// The same without counting what waits, for a part of what is counted already.
    fn without_waiting(&self) -> Self {
        Self { waiting: None, ..self.clone() }
    }

    /// Waits until so many bytes more may wait to be taken. More than may ever wait do so alone.
    async fn room(&self, bytes: u64) -> Room {
        let waiting = self.waiting.as_ref()?;
        let units = bytes.div_ceil(UNIT).clamp(1, WAITING_MAX as u64 / UNIT) as u32;
        // The semaphore is never closed.
        Arc::clone(waiting).acquire_many_owned(units).await.ok().map(Arc::new)
    }
}

/// What results hold until they are taken.
pub(super) type Room = Option<Arc<OwnedSemaphorePermit>>;

/// A range as it comes: its place among those asked for, its bytes, and what they hold until they are taken.
pub(super) type One = Result<(usize, Bytes, Room), Error>;

/// All ranges of an object, and what they hold until they are taken.
pub(super) type All = Result<(Vec<Bytes>, Room), Error>;

/// Ranges of one object.
pub(super) struct Fetch<'a> {
    pub(super) store: &'a Store,
    pub(super) id: &'a ObjectId,
    pub(super) asked: &'a [Range<u64>],
    /// The state that the object must be in.
    pub(super) version: Option<&'a Version>,
    /// The object's size in that state, if it is known.
    pub(super) size: Option<u64>,
    pub(super) prices: PriceList,
    pub(super) limits: &'a Limits,
}

/// Takes results: the place of a range among those asked for, its bytes, and what they hold until they are taken.
pub(super) trait Taker: Fn(usize, Bytes, Room) + Sync {}
impl<F: Fn(usize, Bytes, Room) + Sync> Taker for F {}

impl Fetch<'_> {
    /// Brings every range, each as soon as it is there.
    ///
    /// # Errors
    /// What the store says; a range that can't be read; an object that is replaced meanwhile.
    pub(super) async fn each(&self, take: impl Taker) -> Result<(), Error> {
        self.carry_out(self.plan().await?, self.limits, take).await
    }

    /// Brings every range, all together.
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

    /// The plan, and the state of the object where it had to be asked for or was given.
    pub(super) async fn plan(&self) -> Result<(Plan, Option<Pinned>), Error> {
        // The engine needn't be asked about the path where that changes nothing.
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
        let bringing = Bringing { fetch: self, limits, pinned, requests };
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
struct Bringing<'a> {
    fetch: &'a Fetch<'a>,
    limits: &'a Limits,
    /// The state that all answers must be of: what was given, or that of the first one.
    pinned: OnceLock<Pinned>,
    /// How many requests there are.
    requests: usize,
}

/// A range that several requests bring.
struct Assembled {
    bytes: Vec<u8>,
    missing: u64,
}

impl Bringing<'_> {
    async fn group(&self, group: &Group, take: &impl Taker) -> Result<(), Error> {
        let room = self.limits.room(group.len()).await;
        let mut assembled: Vec<Option<Assembled>> = group.asked.iter().map(|_| None).collect();
        let each = group.requests.iter().map(|request| self.bring(request.clone(), group));
        let mut answers: FuturesUnordered<_> = each.collect();
        while let Some(Answer { request, bytes, size }) = answers.try_next().await? {
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
                    // A small part of a body would keep all of it in memory.
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

    /// Brings the bytes of a request, cut off at the object's end.
    async fn bring(&self, request: Range<u64>, group: &Group) -> Result<Answer, Error> {
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
        // An answer of another range than the one that was asked for is refused by the store already.
        let got = self.of_one_state(&request, got).await?;
        Ok(Answer { bytes: got.body, request, size: got.meta.size })
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

    /// The first answer says which state all others must be of. Those were sent at the same time, so that one of another state
    /// is asked for again, in the first one's: if the object was replaced between the two, that is refused.
    ///
    /// # Errors
    /// What the store says, `Precondition` for an object that was replaced; where the store tells no version and there is more than
    /// one request.
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

/// What a request has brought of an object of a size.
struct Answer {
    request: Range<u64>,
    bytes: Bytes,
    size: u64,
}

/// The bytes `own` of a body that begins at `start`, without copying them.
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
        assert_eq!(slice(&body, 1_000, &(1_090..2_000)).len(), 10, "of what was cut off there is nothing");
    }
}
