//! A queue between the engine's threads and one reader of the host language.
//!
//! The engine's threads add items, and never wait for the host. They wake the reader when they add an item to an empty
//! queue. The reader then takes all items, so it wakes only once for all calls that are done by then.

use std::io::{PipeWriter, Write as _};

use crate::threads::{Condvar, Mutex, MutexGuard, PoisonError};

/// A way to wake the reader of a queue.
pub trait Wake {
    /// Wakes the reader if it is waiting. Otherwise its next wait returns at once. This function must not block.
    fn wake(&self);
}

/// A queue. `W` is the way to wake its reader.
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
