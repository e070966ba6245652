//! State of a program's engine across a `fork`.
//!
//! A child has none of its parent's threads. It may hold locks that those had taken, which are never
//! released. So a child touches nothing that its parent's threads used. It neither reads nor drops such
//! values, and makes its own. Processes are distinguished by their ids. A child in another namespace with its
//! parent's id goes unnoticed.

use std::fmt;
use std::pin::Pin;
use std::process;
use std::sync::OnceLock;
use std::task::{Context, Poll};

/// A value that a child process must not touch.
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

    /// Takes the value out.
    pub(crate) fn into_inner(mut self) -> Option<T> {
        match self.process == process::id() {
            true => self.value.take(),
            // The child must not drop it.
            false => None,
        }
    }

    /// Returns the value for changes.
    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        self.value.as_mut().filter(|_| self.process == process::id())
    }
}

impl<T> OfProcess<T> {
    /// Polls the value. Returns `None` at once in a child.
    pub(crate) fn poll_with<O>(&mut self, poll: impl FnOnce(&mut T) -> Poll<O>) -> Poll<Option<O>> {
        match self.get_mut() {
            Some(value) => poll(value).map(Some),
            None => Poll::Ready(None),
        }
    }
}

/// Completes when a thread of this process completes it. In a child nothing would, so it is `None` there.
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

/// One value for each process, which is made when that process first needs it.
pub(crate) struct PerProcess<T> {
    of: OfProcess<T>,
    /// The child's value, which holds its children's, and so on. Only the child sets it, so no thread of a
    /// parent can have been about to.
    child: OnceLock<Box<Self>>,
}

impl<T: Default> PerProcess<T> {
    pub(crate) fn new() -> Self {
        Self { of: OfProcess::new(T::default()), child: OnceLock::new() }
    }

    /// Returns this process's value.
    pub(crate) fn get(&self) -> &T {
        let mut generation = self;
        loop {
            match generation.of.get() {
                Some(value) => return value,
                // Nothing here waits for long: a child may fork, too.
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
