//! Counts of what some of an engine's calls ask for and move, counted apart from the others'.
//!
//! A call goes through layers that have no use for the tally; it is noted beside the future that the call runs in, as
//! [`attempts`](crate::attempts) are.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use futures_util::future::Either;

/// Counts what calls and jobs ask for and move, apart from what else the engine does meanwhile. Clones count together; reading
/// costs the calls nothing.
///
/// Every attempt counts, those too that failed, were cancelled, or lost against their hedge. What a call has been doing when it is
/// dropped may be counted a moment later.
#[derive(Clone, Default)]
pub struct Tally(Arc<TallyCells>);

#[derive(Default)]
struct TallyCells {
    counts: [AtomicU64; Metric::ALL],
    /// Is told how many bytes have moved.
    watch: Option<Box<dyn Fn(u64) + Send + Sync>>,
    /// The tally that counts the same and more.
    outer: Option<Tally>,
}

/// A thing that is counted.
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
    /// Another tally, for a part of what this one counts.
    #[must_use]
    pub fn part(&self) -> Self {
        Self(Arc::new(TallyCells { outer: Some(self.clone()), ..TallyCells::default() }))
    }

    /// A tally that reports progress to `watch`: body bytes moved so far, sent and received together. It reports each time that a
    /// connection has read some (up to 256 KiB) or the system has taken some to send (up to 64 KiB).
    ///
    /// It runs on the engine's own threads, where it holds up every other request. It must not block: let it store the number, or wake a
    /// task. Connections that move bytes at the same time may report out of order, so that the largest number counts. Bytes that a retry or
    /// a hedge moves again are counted again. Where it panics the request fails.
    pub fn watched(watch: impl Fn(u64) + Send + Sync + 'static) -> Self {
        Self(Arc::new(TallyCells { watch: Some(Box::new(watch)), ..TallyCells::default() }))
    }

    /// Connections that were opened. They outlive requests and serve whoever comes: one counts where the request belongs that was
    /// the last to come for its server before it was dialled, and nowhere else.
    pub fn connections(&self) -> u64 {
        self.read(Metric::Connection)
    }

    /// TLS handshakes of those connections.
    pub fn handshakes(&self) -> u64 {
        self.read(Metric::Handshake)
    }

    /// Requests sent, every attempt counted, those for credentials too.
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

    /// Hedges: second requests for what a slow first one is to bring.
    pub fn hedges(&self) -> u64 {
        self.read(Metric::Hedge)
    }

    /// Body bytes sent.
    pub fn bytes_sent(&self) -> u64 {
        self.read(Metric::ByteSent)
    }

    /// Body bytes that were sent by attempts which failed, as far as is known: they have to be sent again.
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

    /// Returns whether both are the same, or neither is any.
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

/// Runs a future whose calls are counted in `tally`; without one, wherever those around it are. Tasks that it spawns count
/// elsewhere, unless they are given what is [`current`].
pub fn scope<F: Future>(tally: Option<Tally>, future: F) -> impl Future<Output = F::Output> {
    // No `async fn`: that would hold the future twice.
    match tally {
        Some(tally) => Either::Left(CURRENT.scope(tally, future)),
        None => Either::Right(future),
    }
}

/// Where the calls of the surrounding [`scope`] are counted.
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
