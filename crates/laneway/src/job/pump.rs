//! Runs a job's items. The memory limit decides how many small items run at the same time. A few large items
//! run beside them.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use laneway_lanes::Reservation;
use tokio::sync::mpsc;

use crate::engine::runtime;
use crate::job::running::JobState;

/// The maximum number of concurrent large items. Each transfers several slices or parts at the same time, so
/// more items would only keep more files open.
const LARGE_MAX: usize = 16;
/// The maximum number of large items that wait for their turn. They wait in a queue of their own, so that the
/// search can go on to the small items behind them. When this many wait, the search pauses.
const LARGE_WAITING_MAX: usize = 4096;
/// The maximum number of units that the search has found and the pump hasn't taken yet.
const UNITS_WAITING_MAX: usize = 16;
/// The estimated memory in bytes of a running item, in addition to its content: request, answer, names and
/// futures. With the default limit of 64 MiB, about 1600 items run at the same time. An upload of 100,000
/// files of 1 KB then takes less than 96 MiB of resident memory.
pub(crate) const ITEM_COST: usize = 40 << 10;
const GROUP_MAX: usize = 64;
/// A group of small items is full once it reserves at least this many bytes.
const GROUP_COST_MAX: usize = 2 << 20;

/// A cancelled job waits at most this long for its running small items to end.
const GRACE: Duration = Duration::from_secs(1);

/// Items that a search has found.
pub(crate) enum Unit {
    /// Small items that start once `cost` bytes of memory are reserved. When the job is cancelled, started
    /// items may run for at most [`GRACE`], and are then dropped.
    Small { cost: usize, run: BoxFuture<'static, ()> },
    /// A large item. The item reserves its own memory. When the job is cancelled, the item removes its
    /// temporary files and ends by itself.
    Large(BoxFuture<'static, ()>),
}

/// The channel for the items that a search finds.
#[derive(Clone)]
pub(crate) struct Units(mpsc::Sender<Unit>);

/// The error of a search whose job was cancelled and takes no more units.
#[derive(Debug)]
pub(crate) struct CancelledJob;

/// Returns the channel through which a search sends units to [`pump`].
fn units() -> (Units, mpsc::Receiver<Unit>) {
    let (units, found) = mpsc::channel(UNITS_WAITING_MAX);
    (Units(units), found)
}

impl Units {
    /// Sends a unit to the pump, once there is room for it.
    ///
    /// # Errors
    /// If the job was cancelled.
    pub(crate) async fn send(&self, unit: Unit) -> Result<(), CancelledJob> {
        self.0.send(unit).await.map_err(|_| CancelledJob)
    }

    /// Sends small items, for which the pump reserves `cost` bytes of memory.
    ///
    /// # Errors
    /// Fails as [`send`](Self::send) does.
    pub(crate) async fn small(
        &self,
        cost: usize,
        run: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), CancelledJob> {
        self.send(Unit::Small { cost, run: Box::pin(run) }).await
    }

    /// Sends an item that reserves its own memory.
    ///
    /// # Errors
    /// Fails as [`send`](Self::send) does.
    pub(crate) async fn large(
        &self,
        run: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), CancelledJob> {
        self.send(Unit::Large(Box::pin(run))).await
    }
}

/// Small items that begin together. They share one reservation of memory and one task on the file threads.
#[derive(Debug)]
pub(crate) struct ItemGroup<T> {
    items: Vec<T>,
    cost: usize,
}

impl<T> ItemGroup<T> {
    pub(crate) fn new() -> Self {
        Self { items: Vec::new(), cost: 0 }
    }

    /// Adds an item that will hold `bytes` in memory.
    pub(crate) fn add(&mut self, item: T, bytes: u64) {
        self.items.push(item);
        self.cost += ITEM_COST + bytes as usize;
    }

    /// Returns whether the group is full, so that the caller must send it before it adds another item.
    pub(crate) fn is_full(&self) -> bool {
        self.items.len() >= GROUP_MAX || self.cost >= GROUP_COST_MAX
    }

    /// Takes the items out of the group.
    pub(crate) fn take(&mut self) -> Vec<T> {
        self.cost = 0;
        std::mem::take(&mut self.items)
    }

    /// Sends the group's items as one unit, if there are any.
    ///
    /// # Errors
    /// Fails as [`Units::send`] does.
    pub(crate) async fn send<F: Future<Output = ()> + Send + 'static>(
        &mut self,
        units: &Units,
        run: impl FnOnce(Vec<T>) -> F,
    ) -> Result<(), CancelledJob> {
        if self.items.is_empty() {
            return Ok(());
        }
        let cost = self.cost;
        units.small(cost, run(self.take())).await
    }
}

/// Runs a search and the items that it finds, until both have ended. Returns the search's result, or `None`
/// if the job was cancelled.
pub(crate) async fn pumped<T, F: Future<Output = T>>(
    job: &JobState,
    search: impl FnOnce(Units) -> F,
) -> Option<T> {
    let (units, found) = units();
    let searching = job.unless_cancelled(search(units));
    let (ended, ()) = tokio::join!(searching, pump(job, found));
    ended.ok().filter(|_| !job.cancel.is_set())
}

/// Does the same as [`pumped`] for a search that finds all items of the job. At the end of the search, the
/// job's progress shows that all items were found.
pub(crate) async fn pump_all<F: Future<Output = ()>>(job: &JobState, search: impl FnOnce(Units) -> F) {
    pumped(job, |units| async {
        search(units).await;
        job.progress.scanned();
    })
    .await;
}

/// Runs units until there are no more, or the job is cancelled.
async fn pump(job: &JobState, mut units: mpsc::Receiver<Unit>) {
    let memory = job.engine.lanes.memory();
    let mut small = FuturesUnordered::new();
    let mut large = FuturesUnordered::new();
    let mut large_waiting = VecDeque::new();
    let mut reserving: Option<BoxFuture<'_, (Reservation, BoxFuture<'static, ()>)>> = None;
    let mut is_open = true;
    let mut cancelled = std::pin::pin!(job.cancel.wait());
    let large_max = runtime::descriptors_allowed(LARGE_MAX);
    loop {
        while large.len() < large_max
            && let Some(run) = large_waiting.pop_front()
        {
            large.push(run);
        }
        if !is_open && small.is_empty() && large.is_empty() && reserving.is_none() {
            return;
        }
        let takes_more = is_open && reserving.is_none() && large_waiting.len() < LARGE_WAITING_MAX;
        tokio::select! {
            biased;
            () = &mut cancelled => break,
            Some(()) = small.next(), if !small.is_empty() => {}
            Some(()) = large.next(), if !large.is_empty() => {}
            (reservation, run) = ready(&mut reserving), if reserving.is_some() => {
                reserving = None;
                small.push(holding(reservation, run));
            }
            unit = units.recv(), if takes_more => match unit {
                Some(Unit::Small { cost, run }) => {
                    reserving = Some(Box::pin(async move { (memory.reserve(cost).await, run) }));
                }
                Some(Unit::Large(run)) => large_waiting.push_back(run),
                None => is_open = false,
            },
        }
    }
    drop((reserving, large_waiting, units));
    // If the job abandoned a request, the store might still carry it out, and the job couldn't report the
    // result. So wait a short time for the answers of the small items.
    let ending = async {
        while !small.is_empty() {
            tokio::select! {
                Some(()) = small.next() => {}
                Some(()) = large.next(), if !large.is_empty() => {}
            }
        }
    };
    // Don't wait if the caller has dropped the job, or if the job stopped because no item can succeed.
    if job.is_heard() && !job.is_stopped() {
        let _ = tokio::time::timeout(GRACE, ending).await;
    }
    drop(small);
    while large.next().await.is_some() {}
}

async fn holding(reservation: Reservation, run: BoxFuture<'static, ()>) {
    run.await;
    drop(reservation);
}

/// Waits for the future in the slot. If the slot is empty, waits forever, so callers must check it first.
pub(crate) async fn ready<T>(slot: &mut Option<BoxFuture<'_, T>>) -> T {
    match slot {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}
