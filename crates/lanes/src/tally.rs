//! Counters for some of an engine's calls, apart from the others'.
//!
//! A call goes through layers that don't pass the tally on. So it is stored beside the future that the call runs in, as in
//! [`attempts`](crate::attempts).

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use futures_util::future::Either;

/// Counts the requests and bytes of some calls and jobs, apart from the engine's other work. Clones count together. Reading costs the calls
/// nothing.
///
/// Every attempt counts, even one that failed, was cancelled, or lost against its hedge. The last work of a dropped call may be counted a
/// moment later.
#[derive(Clone, Default)]
pub struct Tally(Arc<TallyCells>);

#[derive(Default)]
struct TallyCells {
    counts: [AtomicU64; Metric::ALL],
    /// Called with the number of bytes moved.
    watch: Option<Box<dyn Fn(u64) + Send + Sync>>,
    /// The tally that this one is a part of.
    outer: Option<Tally>,
}

/// A counted quantity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Metric {
    Connection,
    Handshake,
    Request,
    Retry,
    Throttle,
    Hedge,
    ByteSent,
    ByteLost,
    ByteReceived,
}

impl Metric {
    const ALL: usize = Self::ByteReceived as usize + 1;

    fn is_bytes(self) -> bool {
        matches!(self, Self::ByteSent | Self::ByteReceived)
    }
}

impl Tally {
    /// Returns a tally for a part of this one.
    #[must_use]
    pub fn part(&self) -> Self {
        Self(Arc::new(TallyCells { outer: Some(self.clone()), ..TallyCells::default() }))
    }

    /// A tally that reports progress to `watch`: body bytes moved so far, sent and received together. It reports each time that a
    /// connection has read bytes (up to 256 KiB) or the system has taken bytes to send (up to 64 KiB).
    ///
    /// `watch` runs on the engine's own threads and holds up all other requests there, so it must not block. Let it store the number, or
    /// wake a task. Connections that move bytes at the same time may report out of order, so the largest number counts. Bytes that a retry
    /// or a hedge moves again count again. If `watch` panics, the request fails.
    pub fn watched(watch: impl Fn(u64) + Send + Sync + 'static) -> Self {
        Self(Arc::new(TallyCells { watch: Some(Box::new(watch)), ..TallyCells::default() }))
    }

    /// Connections opened. They outlive requests and serve any caller. So each counts in one tally only: that of the last request to its
    /// server before it was dialled.
    pub fn connections(&self) -> u64 {
        self.read(Metric::Connection)
    }

    /// TLS handshakes of those connections.
    pub fn handshakes(&self) -> u64 {
        self.read(Metric::Handshake)
    }

    /// Requests sent, counting every attempt, those for credentials included.
    pub fn requests(&self) -> u64 {
        self.read(Metric::Request)
    }

    /// Attempts after the first.
    pub fn retries(&self) -> u64 {
        self.read(Metric::Retry)
    }

    /// Answers that asked to slow down.
    pub fn throttles(&self) -> u64 {
        self.read(Metric::Throttle)
    }

    /// Hedges: second requests for the answer of a slow first one.
    pub fn hedges(&self) -> u64 {
        self.read(Metric::Hedge)
    }

    /// Body bytes sent.
    pub fn bytes_sent(&self) -> u64 {
        self.read(Metric::ByteSent)
    }

    /// Body bytes sent by attempts that failed, as far as known. They have to be sent again.
    pub fn bytes_lost(&self) -> u64 {
        self.read(Metric::ByteLost)
    }

    /// Body bytes received.
    pub fn bytes_received(&self) -> u64 {
        self.read(Metric::ByteReceived)
    }

    fn read(&self, what: Metric) -> u64 {
        self.0.counts[what as usize].load(Relaxed)
    }

    pub(crate) fn add(&self, what: Metric, n: u64) {
        let mut tally = self;
        loop {
            tally.0.counts[what as usize].fetch_add(n, Relaxed);
            if let Some(watch) = tally.0.watch.as_ref().filter(|_| n > 0 && what.is_bytes()) {
                watch(tally.bytes_sent() + tally.bytes_received());
            }
            match &tally.0.outer {
                Some(outer) => tally = outer,
                None => return,
            }
        }
    }

    /// Returns whether both are the same tally, or both are `None`.
    pub(crate) fn is_same(one: Option<&Self>, other: Option<&Self>) -> bool {
        one.map(|tally| Arc::as_ptr(&tally.0)) == other.map(|tally| Arc::as_ptr(&tally.0))
    }
}

impl fmt::Debug for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tally")
            .field("connections", &self.connections())
            .field("handshakes", &self.handshakes())
            .field("requests", &self.requests())
            .field("retries", &self.retries())
            .field("throttles", &self.throttles())
            .field("hedges", &self.hedges())
            .field("bytes_sent", &self.bytes_sent())
            .field("bytes_received", &self.bytes_received())
            .finish()
    }
}

tokio::task_local! {
    static CURRENT: Tally;
}

/// Runs a future whose calls count in `tally`, or without one in the surrounding tally. Tasks that it spawns count elsewhere, unless they
/// get the [`current`] tally.
pub fn scope<F: Future>(tally: Option<Tally>, future: F) -> impl Future<Output = F::Output> {
    // Not an `async fn`, which would hold the future twice.
    match tally {
        Some(tally) => Either::Left(CURRENT.scope(tally, future)),
        None => Either::Right(future),
    }
}

/// Returns the tally of the surrounding [`scope`].
pub fn current() -> Option<Tally> {
    CURRENT.try_with(Tally::clone).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn calls_count_in_the_innermost_tally_and_in_those_that_it_is_a_part_of() {
        let (all, other) = (Tally::default(), Tally::default());
        let part = all.part();
        let ask = |times| async move {
            for _ in 0..times {
                tokio::task::yield_now().await;
                if let Some(tally) = current() {
                    tally.add(Metric::Request, 1);
                }
            }
        };
        let inner = async {
            ask(2).await;
            scope(Some(part.clone()), ask(3)).await;
            scope(None, ask(4)).await;
        };
        tokio::join!(scope(Some(all.clone()), inner), scope(Some(other.clone()), ask(5)), ask(6));
        assert_eq!((all.requests(), part.requests(), other.requests()), (9, 3, 5));
        assert!(current().is_none());
    }
}
