//! What calls use one after the other: a file's position, a listing's place.

use std::process;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use tokio::sync::{OwnedMappedMutexGuard, OwnedMutexGuard};

use crate::error;

/// A value that one call at a time has; others wait for their turn. A child of a `fork` has it too, unless a call of its parent's had
/// it at that moment.
pub(crate) struct Turns<T>(Mutex<Turn<T>>);

struct Turn<T> {
    process: u32,
    value: Arc<tokio::sync::Mutex<Option<T>>>,
}

impl<T> Turns<T> {
    pub(crate) fn new(value: T) -> Self {
        let value = Arc::new(tokio::sync::Mutex::new(Some(value)));
        Self(Mutex::new(Turn { process: process::id(), value }))
    }

    /// The line to stand in. The interpreter's lock is held, as by whoever forks, so that no child finds this one's own lock taken.
    ///
    /// # Errors
    /// In a child whose parent had a call under way.
    pub(crate) fn line(&self, _py: Python<'_>) -> PyResult<Line<T>> {
        let mut turn = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if turn.process != process::id() {
            let mut value = None;
            if let Ok(mut had) = turn.value.try_lock() {
                value = had.take();
                // Giving it back would wake whoever waits, with locks that the parent's threads may have held.
                std::mem::forget(had);
            }
            let own = Arc::new(tokio::sync::Mutex::new(value));
            std::mem::forget(std::mem::replace(&mut turn.value, own));
            turn.process = process::id();
        }
        let is_lost = turn.value.try_lock().is_ok_and(|value| value.is_none());
        match is_lost {
            true => Err(error::closed("it is closed, or was being used when this process was forked")),
            false => Ok(Line(Arc::clone(&turn.value))),
        }
    }
}

/// A value while a call has it.
pub(crate) type Held<T> = OwnedMappedMutexGuard<Option<T>, T>;

/// Where a call waits for its turn.
pub(crate) struct Line<T>(Arc<tokio::sync::Mutex<Option<T>>>);

impl<T> Line<T> {
    /// The value; `None` where a child of a `fork` could not have it.
    pub(crate) async fn turn(self) -> Option<Held<T>> {
        OwnedMutexGuard::try_map(self.0.lock_owned().await, Option::as_mut).ok()
    }

    /// The value, unless a call has it.
    pub(crate) fn at_once(self) -> Option<Held<T>> {
        OwnedMutexGuard::try_map(self.0.try_lock_owned().ok()?, Option::as_mut).ok()
    }
}
