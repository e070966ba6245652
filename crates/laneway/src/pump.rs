//! Keeps a job's items going: as many small ones as the memory budget holds, a few large ones beside them.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use laneway_lanes::Reservation;
use tokio::sync::mpsc;

use crate::descriptors;
use crate::running::Running;

/// Large items at once. Each keeps several slices or parts going, so that more would only hold files open.
const LARGE_MAX: usize = 16;
/// Large items that wait for their turn before the search for more does. They must not keep small ones waiting.
const LARGE_WAITING_MAX: usize = 4096;
/// Units between the search and the pump.
const UNITS_WAITING_MAX: usize = 16;
/// What an item under way is reckoned to hold besides its bytes: request, answer, names, futures. With the usual
/// budget of 64 MiB some 1600 items are under way, and 100,000 files of 1 KB go up in less than 96 MiB of resident memory.
pub(crate) const ITEM_COST: usize = 40 << 10;
/// Most small items that are begun together.
const GROUP_MAX: usize = 64;
/// Most bytes that a group of small items reserves, unless a single one is larger.
const GROUP_COST_MAX: usize = 2 << 20;

/// How long small items that are under way may still end when their job is cancelled.
const GRACE: Duration = Duration::from_secs(1);

/// Items that a search has found.
pub(crate) enum Unit {
    /// Items that need `cost` bytes of the memory budget. Given up by being dropped, a moment after the job is cancelled:
    /// they begin nothing in that time.
    Small { cost: usize, run: BoxFuture<'static, ()> },
    /// An item that reserves what it needs itself, and cleans up after itself when the job is cancelled.
    Large(BoxFuture<'static, ()>),
}

/// Where a search puts what it finds.
#[derive(Clone)]
pub(crate) struct Units(mpsc::Sender<Unit>);

/// The job takes no more units.
#[derive(Debug)]
pub(crate) struct Cancelled;

/// The two ends between a search and [`pump`].
fn units() -> (Units, mpsc::Receiver<Unit>) {
    let (units, found) = mpsc::channel(UNITS_WAITING_MAX);
    (Units(units), found)
}

impl Units {
    /// Sends a unit on its way, once there is room for it.
    ///
    /// # Errors
    /// When the job was cancelled.
    pub(crate) async fn send(&self, unit: Unit) -> Result<(), Cancelled> {
        self.0.send(unit).await.map_err(|_| Cancelled)
    }

    /// Sends small items on their way that need `cost` bytes of the memory budget.
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

    /// Sends an item on its way that reserves what it needs itself.
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

/// Small items that are begun together: they share one reservation and one trip to the file threads.
#[derive(Debug)]
pub(crate) struct Group<T> {
    items: Vec<T>,
    cost: usize,
}

impl<T> Group<T> {
    pub(crate) fn new() -> Self {
        Self { items: Vec::new(), cost: 0 }
    }

    /// Adds an item of which `bytes` will be held in memory.
    pub(crate) fn add(&mut self, item: T, bytes: u64) {
        self.items.push(item);
        self.cost += ITEM_COST + bytes as usize;
    }

    /// Whether it is to be sent before another item is added.
    pub(crate) fn is_full(&self) -> bool {
        self.items.len() >= GROUP_MAX || self.cost >= GROUP_COST_MAX
    }

    /// Takes its items out.
    pub(crate) fn take(&mut self) -> Vec<T> {
        self.cost = 0;
        std::mem::take(&mut self.items)
    }

    /// Sends its items on their way as one unit, if there are any.
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

/// Runs a search, and what it finds, to the end of both; `None` where the job was cancelled meanwhile: a search that is given up has nothing to
/// tell.
pub(crate) async fn pumped<T, F: Future<Output = T>>(
    job: &Running,
    search: impl FnOnce(Units) -> F,
) -> Option<T> {
    let (units, found) = units();
    let searching = job.unless_cancelled(search(units));
    let (ended, ()) = tokio::join!(searching, pump(job, found));
    ended.ok().filter(|_| !job.cancel.is_set())
}

/// The same for a search that finds everything there is to be done.
pub(crate) async fn pump_all<F: Future<Output = ()>>(job: &Running, search: impl FnOnce(Units) -> F) {
    pumped(job, |units| async {
        search(units).await;
        job.progress.scanned();
    })
    .await;
}

/// Carries out units until there are no more, or the job is cancelled.
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
    // A request whose answer nobody waits for may have been carried out all the same: what a job did could not be reported.
    let ending = async {
        while !small.is_empty() {
            tokio::select! {
                Some(()) = small.next() => {}
                Some(()) = large.next(), if !large.is_empty() => {}
            }
        }
    };
    // Where none of them can be carried out, none is waited for.
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

/// Polls what is there; the caller has looked that something is.
pub(crate) async fn ready<T>(slot: &mut Option<BoxFuture<'_, T>>) -> T {
    match slot {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}
