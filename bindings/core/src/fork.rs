//! Rules for hosts that fork, such as Python.
//!
//! A forked child has a copy of its parent's memory, but only the thread that forked. A lock that another thread held
//! then stays locked for ever in the child. So shared state follows one of two rules. Either threads lock it only while
//! they hold the host's global lock, which a forking thread holds too ([`Turns`]), or it is built without a lock
//! ([`Pile`]).

mod pile;

use std::process;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedMappedMutexGuard, OwnedMutexGuard};

pub use pile::Pile;

/// A value that only one call at a time may use, such as the reader of a file. Other calls wait for their turn. A
/// forked child has a copy of the value, unless a call was using the value at the time of the fork.
pub struct Turns<T>(Mutex<TurnState<T>>);

struct TurnState<T> {
    process: u32,
    value: Arc<tokio::sync::Mutex<Option<T>>>,
}

impl<T> Turns<T> {
    /// Wraps a value.
    pub fn new(value: T) -> Self {
        let value = Arc::new(tokio::sync::Mutex::new(Some(value)));
        Self(Mutex::new(TurnState { process: process::id(), value }))
    }

    /// Joins the queue of calls for the value. The caller must hold the host's global lock (Python's GIL). A thread
    /// that forks holds that lock too, so the mutex is never locked in the child. Returns `None` in a forked child if a
    /// call was using the value at the time of the fork.
    pub fn line(&self) -> Option<TurnTicket<T>> {
        let mut turn = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if turn.process != process::id() {
            let mut value = None;
            if let Ok(mut had) = turn.value.try_lock() {
                value = had.take();
                // Don't drop this guard. Releasing it would wake the parent's waiting calls. Waking them may need locks
                // that the parent's threads held at the fork.
                std::mem::forget(had);
            }
            let own = Arc::new(tokio::sync::Mutex::new(value));
            std::mem::forget(std::mem::replace(&mut turn.value, own));
            turn.process = process::id();
        }
        let is_lost = turn.value.try_lock().is_ok_and(|value| value.is_none());
        (!is_lost).then(|| TurnTicket(Arc::clone(&turn.value)))
    }
}

/// The value, while a call uses it.
pub type TurnGuard<T> = OwnedMappedMutexGuard<Option<T>, T>;

/// A call's position in the queue for the value.
pub struct TurnTicket<T>(Arc<tokio::sync::Mutex<Option<T>>>);

impl<T> TurnTicket<T> {
    /// Waits for the value. Returns `None` if this is a forked child that couldn't get the value.
    pub async fn turn(self) -> Option<TurnGuard<T>> {
        OwnedMutexGuard::try_map(self.0.lock_owned().await, Option::as_mut).ok()
    }

    /// Returns the value if no call is using it.
    pub fn at_once(self) -> Option<TurnGuard<T>> {
        OwnedMutexGuard::try_map(self.0.try_lock_owned().ok()?, Option::as_mut).ok()
    }
}
