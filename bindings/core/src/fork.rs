//! Rules for hosts that fork, such as Python.
//!
//! The child of a `fork` has its parent's memory, but none of its other threads. A lock that another thread held stays
//! locked for ever. So shared state follows one of two rules. Either threads lock it only while they hold the host's
//! own lock, which a forking thread also holds ([`Turns`]). Or it needs no lock ([`Pile`]).

mod pile;

use std::process;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedMappedMutexGuard, OwnedMutexGuard};

pub use pile::Pile;

/// A value that one call at a time uses, such as the position in a file or listing. Other calls wait for their turn. A
/// child of a `fork` also has the value, unless a call of its parent was using the value at that moment.
pub struct Turns<T>(Mutex<TurnState<T>>);

struct TurnState<T> {
    process: u32,
    value: Arc<tokio::sync::Mutex<Option<T>>>,
}

impl<T> Turns<T> {
    /// Returns the turns of a value.
    pub fn new(value: T) -> Self {
        let value = Arc::new(tokio::sync::Mutex::new(Some(value)));
        Self(Mutex::new(TurnState { process: process::id(), value }))
    }

    /// Joins the line. The caller must hold the host's global lock (Python's GIL). A thread that forks holds that lock
    /// too, so a child never finds this mutex locked. Returns `None` in a child whose parent had a call under way.
    pub fn line(&self) -> Option<Line<T>> {
        let mut turn = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if turn.process != process::id() {
            let mut value = None;
            if let Ok(mut had) = turn.value.try_lock() {
                value = had.take();
                // Releasing the parent's guard would wake waiting calls, which may need locks that the parent's
                // threads held.
                std::mem::forget(had);
            }
            let own = Arc::new(tokio::sync::Mutex::new(value));
            std::mem::forget(std::mem::replace(&mut turn.value, own));
            turn.process = process::id();
        }
        let is_lost = turn.value.try_lock().is_ok_and(|value| value.is_none());
        (!is_lost).then(|| Line(Arc::clone(&turn.value)))
    }
}

/// A value while a call uses it.
pub type Held<T> = OwnedMappedMutexGuard<Option<T>, T>;

/// A place in the line, where a call waits for its turn.
pub struct Line<T>(Arc<tokio::sync::Mutex<Option<T>>>);

impl<T> Line<T> {
    /// Waits for the value. Returns `None` if the value couldn't be passed to this child of a `fork`.
    pub async fn turn(self) -> Option<Held<T>> {
        OwnedMutexGuard::try_map(self.0.lock_owned().await, Option::as_mut).ok()
    }

    /// Returns the value, unless a call is using it.
    pub fn at_once(self) -> Option<Held<T>> {
        OwnedMutexGuard::try_map(self.0.try_lock_owned().ok()?, Option::as_mut).ok()
    }
}
