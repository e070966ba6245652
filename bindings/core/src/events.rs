//! Events for a listener in the host language: ends of calls, received ranges, log records, and requests for
//! credentials. A queue passes them from the engine's threads to one reader.

use std::collections::HashMap;
use std::io::{PipeWriter, Write as _};
use std::sync::Arc;

use laneway::Spawned;

use crate::packed::Packed;
use crate::threads::atomic::AtomicI32;
use crate::threads::{Condvar, Mutex, MutexGuard, PoisonError};

/// The kinds of events. The numbers never change, because the host's code has them too.
const CALL_ENDED: u64 = 1;
const RANGE_CAME: u64 = 2;
const CREDENTIALS_WANTED: u64 = 3;
const SAID: u64 = 4;
const PROVIDER_LEFT: u64 = 5;
const RANGE_FILLED: u64 = 6;

/// A level above the level of every record. A listener with this level gets no records.
pub const NO_LEVEL: i32 = i32::MAX;

/// A function that gives up a range of a call. Its argument is the range's index.
type GiveUp = Arc<dyn Fn(usize) + Send + Sync>;

/// The events of a listener, and its running calls.
pub struct Events {
    queue: Queue<Packed, Bell>,
    running: Mutex<HashMap<u64, Spawned>>,
    /// The calls that write ranges into the host's memory, each with the function that gives up one of its ranges.
    filling: Mutex<HashMap<u64, GiveUp>>,
    /// The lowest level of log records that the listener wants (see [`log`](crate::log)).
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
    /// Blocks until there are events or [`wake`](Self::wake) is called. Returns all events, each with its length in
    /// front.
    pub fn take(&self) -> Packed {
        self.queue.waker().wait();
        let mut events = Packed::default();
        for event in self.queue.take() {
            events.part(&event);
        }
        events
    }

    /// Makes the running call of [`take`](Self::take) return, or the next call if none is running.
    pub fn wake(&self) {
        self.queue.waker().wake();
    }

    fn push(&self, event: &mut Packed) {
        self.queue.push(std::mem::take(event));
    }

    /// Reports the end of a call. By now, the library no longer uses memory that was lent to the call.
    pub(crate) fn ended(&self, call: u64, answer: &Packed) {
        self.push(Packed::default().number(CALL_ENDED).number(call).all(answer));
    }

    /// Reports that a range of a call has arrived. `body` has its bytes.
    pub(crate) fn range(&self, call: u64, place: usize, body: &Packed) {
        self.push(Packed::default().number(RANGE_CAME).number(call).number(place as u64).all(body));
    }

    /// Reports that `len` bytes of a range are in the memory that was lent for it. Laneway writes no more bytes
    /// to that memory.
    pub(crate) fn filled(&self, call: u64, place: usize, len: usize) {
        let (place, len) = (place as u64, len as u64);
        self.push(Packed::default().number(RANGE_FILLED).number(call).number(place).number(len));
    }

    /// Registers a function that gives up single ranges of a call. Dropping the returned value removes it.
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

    /// Asks one of the host's providers for credentials.
    pub(crate) fn ask(&self, ask: u64, provider: u64, is_token: bool) {
        self.push(Packed::default().number(CREDENTIALS_WANTED).number(ask).number(provider).flag(is_token));
    }

    /// Reports that a provider of the host won't be asked again, so that the host can release it.
    pub(crate) fn left(&self, provider: u64) {
        self.push(Packed::default().number(PROVIDER_LEFT).number(provider));
    }

    /// Sends a log record of the engine.
    pub(crate) fn say(&self, level: i32, text: &str) {
        self.push(Packed::default().number(SAID).number(level.unsigned_abs().into()).text(text));
    }

    /// Returns the running calls. Other threads can't add or remove calls while the guard is held.
    pub fn running(&self) -> MutexGuard<'_, HashMap<u64, Spawned>> {
        lock(&self.running)
    }
}

/// The registration of a call whose ranges can be given up one by one.
pub(crate) struct PendingRanges {
    events: Arc<Events>,
    call: u64,
}

impl Drop for PendingRanges {
    fn drop(&mut self) {
        let give_up = lock(&self.events.filling).remove(&self.call);
        // Drop the function only after the map's lock is released, because it may own memory of the host.
        drop(give_up);
    }
}

/// A way to wake the reader of a queue.
pub trait Wake {
    /// Wakes the reader if it is waiting. Otherwise its next wait returns at once. This function must not block.
    fn wake(&self);
}

/// A queue. `W` is the way to wake its reader.
///
/// The engine's threads add items, and never wait for the host. The reader takes all items at once, so it wakes once for
/// all calls that are done by then.
#[derive(Debug)]
pub struct Queue<T, W> {
    items: Mutex<Vec<T>>,
    wake: W,
}

impl<T, W: Wake> Queue<T, W> {
    /// Creates an empty queue.
    pub fn new(wake: W) -> Self {
        Self { items: Mutex::new(Vec::new()), wake }
    }

    /// Adds an item, and wakes the reader if the queue was empty.
    pub fn push(&self, item: T) {
        let mut items = lock(&self.items);
        items.push(item);
        if items.len() == 1 {
            self.wake.wake();
        }
    }

    /// Takes all items, in the order in which they were pushed.
    pub fn take(&self) -> Vec<T> {
        std::mem::take(&mut *lock(&self.items))
    }

    /// Returns the way to wake the reader.
    pub fn waker(&self) -> &W {
        &self.wake
    }
}

/// A way to wake a thread that blocks in [`wait`](Self::wait).
#[derive(Debug, Default)]
pub struct Bell {
    has_rung: Mutex<bool>,
    rung: Condvar,
}

impl Bell {
    /// Blocks until the bell rings. Returns at once if it has rung since the last wait.
    pub fn wait(&self) {
        let mut has_rung = lock(&self.has_rung);
        while !*has_rung {
            has_rung = self.rung.wait(has_rung).unwrap_or_else(PoisonError::into_inner);
        }
        *has_rung = false;
    }
}

impl Wake for Bell {
    fn wake(&self) {
        *lock(&self.has_rung) = true;
        self.rung.notify_one();
    }
}

/// Wakes an event loop that watches the other end of a pipe, by writing one byte to the pipe.
impl Wake for PipeWriter {
    fn wake(&self) {
        // The write never blocks, because the pipe is never full: it holds at most one byte. Ignore an error, because
        // it means that the event loop has closed the other end.
        let _ = (&*self).write(&[0]);
    }
}

/// Locks a mutex. All mutexes that are locked with this function are held only briefly.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
