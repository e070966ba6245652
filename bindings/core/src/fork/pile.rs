//! A stack without a lock.

#![expect(unsafe_code, reason = "a stack without a lock needs raw pointers")]

use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A stack of values. Any thread may add values at any time, and a thread takes all of them at once.
#[derive(Debug)]
pub struct Pile<T>(AtomicPtr<Node<T>>);

#[derive(Debug)]
struct Node<T> {
    value: T,
    next: *mut Node<T>,
}

impl<T: Send> Pile<T> {
    /// Returns an empty stack. Use it only in a `static`, because dropping the stack doesn't drop its values.
    pub const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Adds a value on top.
    pub fn lay_down(&self, value: T) {
        let node = Box::into_raw(Box::new(Node { value, next: self.0.load(Ordering::Relaxed) }));
        loop {
            // SAFETY: only this thread has the node until the exchange below succeeds.
            let next = unsafe { (*node).next };
            match self.0.compare_exchange_weak(next, node, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                // SAFETY: as above.
                Err(now) => unsafe { (*node).next = now },
            }
        }
    }

    /// Takes all values, in the order in which they were added.
    pub fn take(&self) -> Vec<T> {
        let mut values = Vec::new();
        if self.0.load(Ordering::Relaxed).is_null() {
            return values;
        }
        let mut next = self.0.swap(ptr::null_mut(), Ordering::Acquire);
        while !next.is_null() {
            // SAFETY: each node came from a `Box`, and after the swap only this thread has the nodes.
            let node = unsafe { Box::from_raw(next) };
            next = node.next;
            values.push(node.value);
        }
        values.reverse();
        values
    }
}

impl<T: Send> Default for Pile<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn gives_back_what_all_threads_laid_down_each_in_its_order() {
        const EACH: usize = 1000;
        let pile = Pile::new();
        let mut taken: Vec<(usize, usize)> = Vec::new();
        thread::scope(|scope| {
            let threads: Vec<_> = (0..3)
                .map(|thread| {
                    let pile = &pile;
                    scope.spawn(move || (0..EACH).for_each(|number| pile.lay_down((thread, number))))
                })
                .collect();
            while threads.iter().any(|thread| !thread.is_finished()) {
                taken.extend(pile.take());
            }
        });
        taken.extend(pile.take());
        for thread in 0..3 {
            let numbers = taken.iter().filter(|(of, _)| *of == thread).map(|(_, number)| *number);
            assert_eq!(numbers.collect::<Vec<_>>(), (0..EACH).collect::<Vec<_>>());
        }
    }
}
