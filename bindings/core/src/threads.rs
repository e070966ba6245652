//! The standard library's locks and atomics, by which threads share state. A module that blocks threads only by
//! these types can also be tested under a scheduler that draws the order of threads (`crates/handovers`).

pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, atomic};
