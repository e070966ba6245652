//! Events for one listener of the host language: ends of calls, received ranges, log records, and requests for
//! credentials.

use std::collections::HashMap;

use laneway::Spawned;

use crate::packed::Packed;
use crate::queue::{Bell, Queue, Wake as _, lock};
use crate::threads::atomic::AtomicI32;
use crate::threads::{Mutex, MutexGuard};

/// The kinds of events. The numbers never change.
const CALL_ENDED: u64 = 1;
const RANGE_CAME: u64 = 2;
const CREDENTIALS_WANTED: u64 = 3;
const SAID: u64 = 4;
const PROVIDER_LEFT: u64 = 5;

/// A level above that of every record.
pub const NO_LEVEL: i32 = i32::MAX;

/// The events of one listener, and its calls under way.
pub struct Events {
    queue: Queue<Packed, Bell>,
    running: Mutex<HashMap<u64, Spawned>>,
    /// The lowest level of records that the listener wants, see [`log`](crate::log).
    pub(crate) level: AtomicI32,
}

impl Default for Events {
    fn default() -> Self {
        let queue = Queue::new(Bell::default());
        Self { queue, running: Mutex::default(), level: AtomicI32::new(NO_LEVEL) }
    }
}

impl Events {
    /// Blocks until an event occurs or [`wake`](Self::wake) is called. Takes all events, each after its length.
    pub fn take(&self) -> Packed {
        self.queue.waker().wait();
        let mut events = Packed::default();
        for event in self.queue.take() {
            events.part(&event);
        }
        events
    }

    /// Ends the current wait, or else the next one.
    pub fn wake(&self) {
        self.queue.waker().wake();
    }

    fn push(&self, event: &mut Packed) {
        self.queue.push(std::mem::take(event));
    }

    /// Announces the end of a call. Nothing that was lent to it is used any more.
    pub(crate) fn ended(&self, call: u64, answer: &Packed) {
        self.push(Packed::default().number(CALL_ENDED).number(call).all(answer));
    }

    /// Announces a range of a call that has arrived, as a body.
    pub(crate) fn range(&self, call: u64, place: usize, body: &Packed) {
        self.push(Packed::default().number(RANGE_CAME).number(call).number(place as u64).all(body));
    }

    /// Requests credentials from the host's provider.
    pub(crate) fn ask(&self, ask: u64, provider: u64, is_token: bool) {
        self.push(Packed::default().number(CREDENTIALS_WANTED).number(ask).number(provider).flag(is_token));
    }

    /// Announces that the host's provider won't be asked again.
    pub(crate) fn left(&self, provider: u64) {
        self.push(Packed::default().number(PROVIDER_LEFT).number(provider));
    }

    /// Announces a log record of the engine.
    pub(crate) fn say(&self, level: i32, text: &str) {
        self.push(Packed::default().number(SAID).number(level.unsigned_abs().into()).text(text));
    }

    /// Returns the calls under way. Other threads can't end them while the guard is held.
    pub fn running(&self) -> MutexGuard<'_, HashMap<u64, Spawned>> {
        lock(&self.running)
    }
}
