//! Counters for some of an engine's calls.
//!
//! A call goes through layers that don't pass a tally on. So a task-local variable holds the tally, as in [`attempts`](crate::attempts).

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use futures_util::future::Either;

/// Counts the requests and bytes of some calls and jobs, without the engine's other work. Clones share their counters. Reading the counters
/// doesn't slow the calls down.
///
/// Every attempt is counted, even one that failed, was cancelled, or was slower than its hedge. After a call is dropped, its last bytes may
/// be counted a moment later.
#[derive(Clone, Default)]
pub struct Tally(Arc<TallyCells>);

#[derive(Default)]
struct TallyCells {
    counts: [AtomicU64; Metric::ALL],
    /// Called with the number of bytes moved.
    watch: Option<Box<dyn Fn(u64) + Send + Sync>>,
    /// The outer tally, if this tally counts only a part of the work. The outer tally also counts that part.
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
    /// Returns a new tally for a part of the work. `self` also counts that part.
    #[must_use]
    pub fn part(&self) -> Self {
        Self(Arc::new(TallyCells { outer: Some(self.clone()), ..TallyCells::default() }))
    }

    /// Creates a tally that calls `watch` with the body bytes moved so far, sent and received together. `watch` is called each time that a
    /// connection has read bytes (up to 256 KiB) or the system has taken bytes to send (up to 64 KiB).
    ///
    /// `watch` runs on the engine's own threads and delays all other requests there, so it must not block. Let it store the number, or wake
    /// a task. Connections on several threads may report out of order, so use the largest number. Bytes that a retry or a hedge moves again
    /// are counted again. If `watch` panics, the request fails.
    pub fn watched(watch: impl Fn(u64) + Send + Sync + 'static) -> Self {
        Self(Arc::new(TallyCells { watch: Some(Box::new(watch)), ..TallyCells::default() }))
    }

    /// Returns the number of opened connections. Requests of several tallies can share a connection. Only one tally counts it: that of the
    /// last request to its server before the connection was dialled.
    pub fn connections(&self) -> u64 {
        self.read(Metric::Connection)
    }

    /// Returns the number of TLS handshakes of the [connections](Self::connections) in this tally.
    pub fn handshakes(&self) -> u64 {
        self.read(Metric::Handshake)
    }

    /// Returns the number of sent requests. Every attempt is counted. Requests for credentials are included.
    pub fn requests(&self) -> u64 {
        self.read(Metric::Request)
    }

    /// Returns the number of repeated attempts, which are all attempts of each call except the first.
    pub fn retries(&self) -> u64 {
        self.read(Metric::Retry)
    }

    /// Returns the number of answers in which a server asked for fewer requests (429, for example).
    pub fn throttles(&self) -> u64 {
        self.read(Metric::Throttle)
    }

    /// Returns the number of hedges: second requests that were sent because the first was slow.
    pub fn hedges(&self) -> u64 {
        self.read(Metric::Hedge)
    }

    /// Returns the number of body bytes sent.
    pub fn bytes_sent(&self) -> u64 {
        self.read(Metric::ByteSent)
    }

    /// Returns the number of body bytes that failed attempts have sent, as far as it is known. These bytes have to be sent again.
    pub fn bytes_lost(&self) -> u64 {
        self.read(Metric::ByteLost)
    }

    /// Returns the number of body bytes received.
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

/// Runs a future whose calls are counted in `tally`. If `tally` is `None`, they are counted in the surrounding tally. Calls of tasks that
/// the future spawns are counted only if these tasks are run in a scope with the [`current`] tally.
pub fn scope<F: Future>(tally: Option<Tally>, future: F) -> impl Future<Output = F::Output> {
    // This isn't an `async fn`, because its state would contain the future twice.
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
