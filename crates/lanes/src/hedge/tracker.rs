//! The progress of a running attempt. The attempt's connection records it, and the hedge watch reads it.

use std::future::poll_fn;
use std::task::Poll;
use std::time::{Duration, Instant};

use futures_util::task::AtomicWaker;

use super::Alike;
use crate::threads::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// The progress of one attempt, and the signal to send a hedge.
#[derive(Debug)]
pub(crate) struct Tracker {
    pub(crate) alike: Alike,
    born: Instant,
    /// The times when the request was sent, its answer's head came, and bytes last moved. They are in microseconds after `born`, plus
    /// one. 0 means that it hasn't happened yet.
    sent: AtomicU64,
    head: AtomicU64,
    moved: AtomicU64,
    /// The longest time in which no byte came, in microseconds.
    silence: AtomicU64,
    /// The number of body bytes that have come.
    bytes: AtomicU64,
    /// True while the sink processes bytes. If no byte moves meanwhile, the sink is the cause, not the server.
    is_sinking: AtomicBool,
    is_whole: AtomicBool,
    is_wanted: AtomicBool,
    waker: AtomicWaker,
}

/// The state of a tracker at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrackerReading {
    pub(crate) sent: Instant,
    pub(crate) head: Option<Instant>,
    pub(crate) moved: Instant,
    pub(crate) silence: Duration,
    pub(crate) bytes: u64,
    pub(crate) is_sinking: bool,
    /// True if the answer is complete.
    pub(crate) is_whole: bool,
}

impl Tracker {
    pub(crate) fn new(now: Instant, alike: Alike) -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            alike,
            born: now,
            sent: zero(),
            head: zero(),
            moved: zero(),
            silence: zero(),
            bytes: zero(),
            is_sinking: AtomicBool::new(false),
            is_whole: AtomicBool::new(false),
            is_wanted: AtomicBool::new(false),
            waker: AtomicWaker::new(),
        }
    }

    /// Records that the request is sent.
    pub(crate) fn sent(&self, now: Instant) {
        let at = self.micros(now);
        self.sent.store(at, Relaxed);
        self.moved.store(at, Relaxed);
    }

    /// Records that the answer's head has come.
    pub(crate) fn head(&self, now: Instant) {
        self.came(now);
        self.head.store(self.micros(now), Relaxed);
    }

    /// Records that bytes of the body have come, and are passed to the sink.
    pub(crate) fn body(&self, now: Instant, bytes: usize) {
        self.came(now);
        self.bytes.fetch_add(bytes as u64, Relaxed);
        self.is_sinking.store(true, Relaxed);
    }

    /// Records that the sink has processed these bytes.
    pub(crate) fn sunk(&self, now: Instant) {
        self.moved.store(self.micros(now), Relaxed);
        self.is_sinking.store(false, Relaxed);
    }

    /// Records that the answer is complete.
    pub(crate) fn whole(&self) {
        self.is_whole.store(true, Relaxed);
    }

    fn came(&self, now: Instant) {
        let at = self.micros(now);
        let before = self.moved.swap(at, Relaxed);
        self.silence.fetch_max(at.saturating_sub(before), Relaxed);
    }

    /// Returns the present state. Returns `None` if the request wasn't sent yet.
    pub(crate) fn snapshot(&self) -> Option<TrackerReading> {
        Some(TrackerReading {
            sent: self.instant(&self.sent)?,
            head: self.instant(&self.head),
            moved: self.instant(&self.moved)?,
            silence: Duration::from_micros(self.silence.load(Relaxed)),
            bytes: self.bytes.load(Relaxed),
            is_sinking: self.is_sinking.load(Relaxed),
            is_whole: self.is_whole.load(Relaxed),
        })
    }

    /// Signals that a hedge is wanted.
    pub(crate) fn want_hedge(&self) {
        self.is_wanted.store(true, Relaxed);
        self.waker.wake();
    }

    /// Returns whether a hedge is or was wanted.
    pub(crate) fn is_hedged(&self) -> bool {
        self.is_wanted.load(Relaxed)
    }

    /// Resolves when a hedge is wanted.
    pub(crate) async fn hedge_wanted(&self) {
        poll_fn(|cx| {
            self.waker.register(cx.waker());
            if self.is_hedged() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    fn micros(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.born).as_micros() as u64 + 1
    }

    fn instant(&self, micros: &AtomicU64) -> Option<Instant> {
        let after = micros.load(Relaxed).checked_sub(1)?;
        Some(self.born + Duration::from_micros(after))
    }
}
