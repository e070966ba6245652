//! What is left of a program's engine after a `fork`.
//!
//! A child has none of its parent's threads, and may hold locks that those had taken, which nobody gives back. So a child
//! touches nothing that its parent's threads used: it neither looks at such values nor drops them, and makes its own.
//! Processes are distinguished by their numbers, so that a child which has its parent's number, in another namespace, goes unnoticed.

use std::fmt;
use std::pin::Pin;
use std::process;
use std::sync::OnceLock;
use std::task::{Context, Poll};

/// A value that is no business of a child's.
pub(crate) struct OfProcess<T> {
    process: u32,
    value: Option<T>,
}

impl<T> OfProcess<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { process: process::id(), value: Some(value) }
    }

    /// The value; `None` in a child of the process that made it.
    pub(crate) fn get(&self) -> Option<&T> {
        self.value.as_ref().filter(|_| self.process == process::id())
    }

    /// The same, taken out.
    pub(crate) fn into_inner(mut self) -> Option<T> {
        match self.process == process::id() {
            true => self.value.take(),
            // Kept from being dropped.
            false => None,
        }
    }

    /// The same to be changed.
    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        self.value.as_mut().filter(|_| self.process == process::id())
    }
}

impl<T> OfProcess<T> {
    /// What polling the value gives; `None` in a child, at once.
    pub(crate) fn poll_with<O>(&mut self, poll: impl FnOnce(&mut T) -> Poll<O>) -> Poll<Option<O>> {
        match self.get_mut() {
            Some(value) => poll(value).map(Some),
            None => Poll::Ready(None),
        }
    }
}

/// What a thread of this process completes; `None` in a child, where nobody ever does.
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

/// One value for each process that comes to use this, made where it is first asked for.
pub(crate) struct PerProcess<T> {
    of: OfProcess<T>,
    /// A child's, and so on for its children. Only the child sets it, so that no thread of a parent can have been about to.
    child: OnceLock<Box<Self>>,
}

impl<T: Default> PerProcess<T> {
    pub(crate) fn new() -> Self {
        Self { of: OfProcess::new(T::default()), child: OnceLock::new() }
    }

    /// This process's value.
    pub(crate) fn get(&self) -> &T {
        let mut generation = self;
        loop {
            match generation.of.get() {
                Some(value) => return value,
                // Nothing is awaited here that takes time: a child may fork, too.
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
