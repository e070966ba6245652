//! Runs a job's items: as many small ones as the memory budget holds, and a few large ones beside them.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use laneway_lanes::Reservation;
use tokio::sync::mpsc;

use crate::engine::descriptors;
use crate::job::running::Running;

/// The most large items at once. Each has several slices or parts under way, so more items would only keep
/// more files open.
const LARGE_MAX: usize = 16;
/// Number of large items that may wait for their turn, so that they don't delay the small items behind them.
/// Beyond this number, the search waits.
const LARGE_WAITING_MAX: usize = 4096;
/// The most units that may wait between the search and the pump.
const UNITS_WAITING_MAX: usize = 16;
/// The estimated memory of an item under way besides its bytes: request, answer, names, futures. With the
/// default budget of 64 MiB, some 1600 items are under way, and 100,000 files of 1 KB upload in less than 96
/// MiB of resident memory.
pub(crate) const ITEM_COST: usize = 40 << 10;
const GROUP_MAX: usize = 64;
/// The most bytes that a group of small items reserves, unless a single item is larger.
const GROUP_COST_MAX: usize = 2 << 20;

/// The time that small items under way get to end when their job is cancelled.
const GRACE: Duration = Duration::from_secs(1);

/// Items that a search has found.
pub(crate) enum Unit {
    /// Items that need `cost` bytes of the memory budget. They are dropped at most [`GRACE`] after the job is
    /// cancelled, and begin nothing in that time.
    Small { cost: usize, run: BoxFuture<'static, ()> },
    /// An item that reserves its own memory, and cleans up after itself when the job is cancelled.
    Large(BoxFuture<'static, ()>),
}

/// The channel for the items that a search finds.
#[derive(Clone)]
pub(crate) struct Units(mpsc::Sender<Unit>);

/// The job takes no more units.
#[derive(Debug)]
pub(crate) struct Cancelled;

/// Returns the two ends between a search and [`pump`].
fn units() -> (Units, mpsc::Receiver<Unit>) {
    let (units, found) = mpsc::channel(UNITS_WAITING_MAX);
    (Units(units), found)
}

impl Units {
    /// Sends a unit, once there is room for it.
    ///
    /// # Errors
    /// If the job was cancelled.
    pub(crate) async fn send(&self, unit: Unit) -> Result<(), Cancelled> {
        self.0.send(unit).await.map_err(|_| Cancelled)
    }

    /// Sends small items that need `cost` bytes of the memory budget.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub(crate) async fn small(
        &self,
        cost: usize,
        run: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), Cancelled> {
        self.send(Unit::Small { cost, run: Box::pin(run) }).await
    }

    /// Sends an item that reserves its own memory.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub(crate) async fn large(
        &self,
        run: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), Cancelled> {
        self.send(Unit::Large(Box::pin(run))).await
    }
}

/// Small items that begin together. They share one reservation and one trip to the file threads.
#[derive(Debug)]
pub(crate) struct Group<T> {
    items: Vec<T>,
    cost: usize,
}

impl<T> Group<T> {
    pub(crate) fn new() -> Self {
        Self { items: Vec::new(), cost: 0 }
    }

    /// Adds an item that will hold `bytes` in memory.
    pub(crate) fn add(&mut self, item: T, bytes: u64) {
        self.items.push(item);
        self.cost += ITEM_COST + bytes as usize;
    }

    /// Returns whether the group must be sent before another item is added.
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
    /// As [`Units::send`].
    pub(crate) async fn send<F: Future<Output = ()> + Send + 'static>(
        &mut self,
        units: &Units,
        run: impl FnOnce(Vec<T>) -> F,
    ) -> Result<(), Cancelled> {
        if self.items.is_empty() {
            return Ok(());
        }
        let cost = self.cost;
        units.small(cost, run(self.take())).await
    }
}

/// Runs a search and the items that it finds until both end. Returns `None` if the job was cancelled
/// meanwhile, because an abandoned search has no result.
pub(crate) async fn pumped<T, F: Future<Output = T>>(
    job: &Running,
    search: impl FnOnce(Units) -> F,
) -> Option<T> {
    let (units, found) = units();
    let searching = job.unless_cancelled(search(units));
    let (ended, ()) = tokio::join!(searching, pump(job, found));
    ended.ok().filter(|_| !job.cancel.is_set())
}

/// Does the same as [`pumped`] for a search that finds all items of the job.
pub(crate) async fn pump_all<F: Future<Output = ()>>(job: &Running, search: impl FnOnce(Units) -> F) {
    pumped(job, |units| async {
        search(units).await;
        job.progress.scanned();
    })
    .await;
}

/// Runs units until there are no more, or the job is cancelled.
async fn pump(job: &Running, mut units: mpsc::Receiver<Unit>) {
    let memory = job.engine.lanes.memory();
    let mut small = FuturesUnordered::new();
    let mut large = FuturesUnordered::new();
    let mut large_waiting = VecDeque::new();
    let mut reserving: Option<BoxFuture<'_, (Reservation, BoxFuture<'static, ()>)>> = None;
    let mut is_open = true;
    let mut cancelled = std::pin::pin!(job.cancel.wait());
    let large_max = descriptors::allowed(LARGE_MAX);
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
    // A store may carry out an abandoned request, and then the job couldn't report it. So give small items
    // time to get their answers.
    let ending = async {
        while !small.is_empty() {
            tokio::select! {
                Some(()) = small.next() => {}
                Some(()) = large.next(), if !large.is_empty() => {}
            }
        }
    };
    // Don't wait if the job has stopped because no item can succeed.
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

/// Polls the future in the slot. The caller has checked that there is one.
pub(crate) async fn ready<T>(slot: &mut Option<BoxFuture<'_, T>>) -> T {
    match slot {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}
