//! The standard library's locks and atomics, by which threads share state. Modules that use only these to block a
//! thread also run under a scheduler that draws the order of threads (`crates/handovers`).

pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, atomic};
