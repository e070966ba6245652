//! Events for one listener of the host language: ends of calls, received ranges, log records, and requests for
//! credentials.

use std::collections::HashMap;
use std::sync::Arc;

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
const RANGE_FILLED: u64 = 6;

/// A level above that of every record: the listener wants none.
pub const NO_LEVEL: i32 = i32::MAX;

/// Gives up a range of a call, by its place.
type GiveUp = Arc<dyn Fn(usize) + Send + Sync>;

/// The events of one listener, and its calls under way.
pub struct Events {
    queue: Queue<Packed, Bell>,
    running: Mutex<HashMap<u64, Spawned>>,
    /// Calls that write ranges into the host's memory, with the functions that give up a range.
    filling: Mutex<HashMap<u64, GiveUp>>,
    /// The lowest level of records that the listener wants, see [`log`](crate::log).
    pub(crate) level: AtomicI32,
}

impl Default for Events {
    fn default() -> Self {
        let queue = Queue::new(Bell::default());
        let level = AtomicI32::new(NO_LEVEL);
        Self { queue, running: Mutex::default(), filling: Mutex::default(), level }
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

    /// Announces the end of a call. By now, the library no longer uses memory that was lent to the call.
    pub(crate) fn ended(&self, call: u64, answer: &Packed) {
        self.push(Packed::default().number(CALL_ENDED).number(call).all(answer));
    }

    /// Announces that a range of a call has arrived, and passes it as a body.
    pub(crate) fn range(&self, call: u64, place: usize, body: &Packed) {
        self.push(Packed::default().number(RANGE_CAME).number(call).number(place as u64).all(body));
    }

    /// Announces that `len` bytes of a range are in its lent memory. Nothing more is written there.
    pub(crate) fn filled(&self, call: u64, place: usize, len: usize) {
        let (place, len) = (place as u64, len as u64);
        self.push(Packed::default().number(RANGE_FILLED).number(call).number(place).number(len));
    }

    /// Registers the function that gives up single ranges of a call, until the returned value is dropped.
    pub(crate) fn filling(
        self: &Arc<Self>,
        call: u64,
        give_up: impl Fn(usize) + Send + Sync + 'static,
    ) -> PendingRanges {
        drop(lock(&self.filling).insert(call, Arc::new(give_up)));
        PendingRanges { events: Arc::clone(self), call }
    }

    /// Gives up a range of a call. After this returns, nothing is written to the range's memory.
    pub(crate) fn give_up(&self, call: u64, place: usize) {
        let give_up = lock(&self.filling).get(&call).cloned();
        if let Some(give_up) = give_up {
            give_up(place);
        }
    }

    /// Asks the host's provider for credentials.
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

/// A call whose ranges can be given up one by one.
pub(crate) struct PendingRanges {
    events: Arc<Events>,
    call: u64,
}

impl Drop for PendingRanges {
    fn drop(&mut self) {
        let give_up = lock(&self.events.filling).remove(&self.call);
        // Drop the function after the lock on the map is released.
        drop(give_up);
    }
}
