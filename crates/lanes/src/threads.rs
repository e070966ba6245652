//! Re-exports locks and atomics of the standard library. `crates/handovers` replaces this module, to run other modules under a scheduler
//! that tries many interleavings of threads. Those modules must block a thread only by the types from here.

pub(crate) use std::sync::{Mutex, MutexGuard, PoisonError, atomic};
