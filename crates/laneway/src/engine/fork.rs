//! Values that a forked child must not use, because they belong to its parent.
//!
//! A forked child has a copy of its parent's memory, but none of the parent's other threads. If such a thread
//! held a lock at the fork, the lock is never released in the child. So a child neither reads nor drops
//! values that its parent's threads used. It makes new ones. This module recognises a child by its process
//! id. It doesn't recognise a child in another PID namespace whose id equals its parent's.

use std::fmt;
use std::pin::Pin;
use std::process;
use std::sync::OnceLock;
use std::task::{Context, Poll};

/// A value that only the process that made it may use. In a forked child it is neither readable nor dropped.
pub(crate) struct OfProcess<T> {
    process: u32,
    value: Option<T>,
}

impl<T> OfProcess<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { process: process::id(), value: Some(value) }
    }

    /// Returns the value, or `None` in a child of the process that made it.
    pub(crate) fn get(&self) -> Option<&T> {
        self.value.as_ref().filter(|_| self.process == process::id())
    }

    pub(crate) fn into_inner(mut self) -> Option<T> {
        match self.process == process::id() {
            true => self.value.take(),
            // This is a forked child, which must not drop the value. `Drop` forgets the value instead.
            false => None,
        }
    }

    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        self.value.as_mut().filter(|_| self.process == process::id())
    }
}

impl<T> OfProcess<T> {
    /// Polls the value. In a child of the process that made it, returns `None` at once.
    pub(crate) fn poll_with<O>(&mut self, poll: impl FnOnce(&mut T) -> Poll<O>) -> Poll<Option<O>> {
        match self.get_mut() {
            Some(value) => poll(value).map(Some),
            None => Poll::Ready(None),
        }
    }
}

/// In a forked child, completes with `None` at once, because the child lacks the thread that would wake the
/// future.
impl<F: Future + Unpin> Future for OfProcess<F> {
    type Output = Option<F::Output>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.get_mut().poll_with(|future| Pin::new(future).poll(context))
    }
}

impl<T> Drop for OfProcess<T> {
    fn drop(&mut self) {
        if self.process != process::id() {
            std::mem::forget(self.value.take());
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for OfProcess<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.get() {
            Some(value) => value.fmt(f),
            None => f.write_str("OfProcess(a parent's)"),
        }
    }
}

/// A separate value for each process. A forked child makes its own when it first needs one.
pub(crate) struct PerProcess<T> {
    of: OfProcess<T>,
    /// The value for a forked child. The child's value in turn holds the value for the child's own child, and
    /// so on. Only the child sets this field, so no thread of the parent can be setting it during the fork.
    child: OnceLock<Box<Self>>,
}

impl<T: Default> PerProcess<T> {
    pub(crate) fn new() -> Self {
        Self { of: OfProcess::new(T::default()), child: OnceLock::new() }
    }

    pub(crate) fn get(&self) -> &T {
        let mut generation = self;
        loop {
            match generation.of.get() {
                Some(value) => return value,
                // Making the value takes only a moment. If another thread forked in this moment,
                // `get_or_init` would never return in the child.
                None => generation = generation.child.get_or_init(|| Box::new(Self::new())),
            }
        }
    }
}

impl<T: Default + fmt::Debug> fmt::Debug for PerProcess<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}
