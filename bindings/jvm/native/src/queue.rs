//! A queue of what has happened, that a thread of Java's takes from.

use std::collections::HashMap;

use laneway::Spawned;

use crate::packed::Packed;
use crate::threads::atomic::AtomicI32;
use crate::threads::{Condvar, Mutex, MutexGuard, PoisonError};

/// What a queue tells of, by the numbers that `dev.laneway.Engine` has.
const CALL_ENDED: u64 = 1;
const RANGE_CAME: u64 = 2;
const CREDENTIALS_WANTED: u64 = 3;
const SAID: u64 = 4;
const PROVIDER_LEFT: u64 = 5;

/// A level above all of slf4j's.
pub(crate) const NO_LEVEL: i32 = i32::MAX;

/// What has happened for a class loader, and its calls that are under way.
pub(crate) struct Queue {
    state: Mutex<State>,
    happened: Condvar,
    running: Mutex<HashMap<u64, Spawned>>,
    /// The least of slf4j's levels whose records are wanted.
    pub(crate) level: AtomicI32,
}

#[derive(Default)]
struct State {
    events: Packed,
    is_woken: bool,
}

impl Queue {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::default(),
            happened: Condvar::new(),
            running: Mutex::default(),
            level: AtomicI32::new(NO_LEVEL),
        }
    }

    /// What has happened since the last time; waits until something has.
    pub(crate) fn take(&self) -> Packed {
        let mut state = lock(&self.state);
        while state.events.is_empty() && !state.is_woken {
            state = self.happened.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.is_woken = false;
        std::mem::take(&mut state.events)
    }

    /// Ends a wait, this one or the next.
    pub(crate) fn wake(&self) {
        lock(&self.state).is_woken = true;
        self.happened.notify_one();
    }

    fn push(&self, event: &Packed) {
        lock(&self.state).events.part(event);
        self.happened.notify_one();
    }

    /// A call has ended, and nothing that was lent to it is used any more.
    pub(crate) fn ended(&self, call: u64, answer: &Packed) {
        self.push(Packed::default().number(CALL_ENDED).number(call).all(answer));
    }

    /// A range of a call is here, as a body.
    pub(crate) fn range(&self, call: u64, place: usize, body: &Packed) {
        self.push(Packed::default().number(RANGE_CAME).number(call).number(place as u64).all(body));
    }

    /// A provider of Java's is asked for credentials.
    pub(crate) fn ask(&self, ask: u64, provider: u64, is_token: bool) {
        self.push(Packed::default().number(CREDENTIALS_WANTED).number(ask).number(provider).flag(is_token));
    }

    /// A provider of Java's is asked no more.
    pub(crate) fn left(&self, provider: u64) {
        self.push(Packed::default().number(PROVIDER_LEFT).number(provider));
    }

    /// The engine has something to say.
    pub(crate) fn say(&self, level: i32, text: &str) {
        self.push(Packed::default().number(SAID).number(level.unsigned_abs().into()).text(text));
    }

    /// The calls that are under way, which others can't end meanwhile.
    pub(crate) fn running(&self) -> MutexGuard<'_, HashMap<u64, Spawned>> {
        lock(&self.running)
    }
}

/// All of these are held for moments.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
