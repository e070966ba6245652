//! Keeps a job's items going: as many small ones as the memory budget holds, a few large ones beside them.

use std::collections::VecDeque;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use laneway_lanes::Reservation;
use tokio::sync::mpsc;

use crate::work::Work;

/// Large items at once. Each keeps several slices or parts going, so that more would only hold files open.
const HEAVY_MAX: usize = 16;
/// Large items that wait for their turn before the search for more does. They must not keep small ones waiting.
const HEAVY_WAITING_MAX: usize = 4096;
/// Units between the search and the pump.
const UNITS_WAITING_MAX: usize = 16;
/// What an item under way is reckoned to hold besides its bytes: request, answer, names, futures. With the usual
/// budget of 64 MiB some 1600 items are under way, and 100,000 files of 1 KB go up in less than 96 MiB of resident memory.
pub(crate) const ITEM_COST: usize = 40 << 10;
/// Most small items that are begun together: they share one reservation and one trip to the file threads.
pub(crate) const GROUP_MAX: usize = 64;
/// Most bytes that a group of small items reserves, unless a single one is larger.
pub(crate) const GROUP_COST_MAX: usize = 2 << 20;

/// How long small items that are under way may still end when their job is cancelled.
const GRACE: Duration = Duration::from_secs(1);

/// Work that a search has found.
pub(crate) enum Unit {
    /// Items that need `cost` bytes of the memory budget. Given up by being dropped, a moment after the job is cancelled:
    /// they begin nothing in that time.
    Light { cost: usize, run: BoxFuture<'static, ()> },
    /// An item that reserves what it needs itself, and cleans up after itself when the job is cancelled.
    Heavy(BoxFuture<'static, ()>),
}

/// Where a search puts what it finds. An error means that the job was cancelled.
pub(crate) type Units = mpsc::Sender<Unit>;

/// The two ends between a search and [`pump`].
pub(crate) fn units() -> (Units, mpsc::Receiver<Unit>) {
    mpsc::channel(UNITS_WAITING_MAX)
}

/// Carries out units until there are no more, or the job is cancelled.
pub(crate) async fn pump(work: &Work, mut units: mpsc::Receiver<Unit>) {
    let memory = work.engine.lanes.memory();
    let mut light = FuturesUnordered::new();
    let mut heavy = FuturesUnordered::new();
    let mut heavy_waiting = VecDeque::new();
    let mut reserving: Option<BoxFuture<'_, (Reservation, BoxFuture<'static, ()>)>> = None;
    let mut is_open = true;
    let mut cancelled = std::pin::pin!(work.cancel.wait());
    loop {
        while heavy.len() < HEAVY_MAX
            && let Some(run) = heavy_waiting.pop_front()
        {
            heavy.push(run);
        }
        if !is_open && light.is_empty() && heavy.is_empty() && reserving.is_none() {
            return;
        }
        let takes_more = is_open && reserving.is_none() && heavy_waiting.len() < HEAVY_WAITING_MAX;
        tokio::select! {
            biased;
            () = &mut cancelled => break,
            Some(()) = light.next(), if !light.is_empty() => {}
            Some(()) = heavy.next(), if !heavy.is_empty() => {}
            (reservation, run) = ready(&mut reserving), if reserving.is_some() => {
                reserving = None;
                light.push(holding(reservation, run));
            }
            unit = units.recv(), if takes_more => match unit {
                Some(Unit::Light { cost, run }) => {
                    reserving = Some(Box::pin(async move { (memory.reserve(cost).await, run) }));
                }
                Some(Unit::Heavy(run)) => heavy_waiting.push_back(run),
                None => is_open = false,
            },
        }
    }
    drop((reserving, heavy_waiting, units));
    // A request whose answer nobody waits for may have been carried out all the same: what a job did could not be told.
    let ending = async {
        while !light.is_empty() {
            tokio::select! {
                Some(()) = light.next() => {}
                Some(()) = heavy.next(), if !heavy.is_empty() => {}
            }
        }
    };
    // Where none of them can be carried out, none is waited for.
    if work.is_heard() && !work.is_stopped() {
        let _ = tokio::time::timeout(GRACE, ending).await;
    }
    drop(light);
    while heavy.next().await.is_some() {}
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
