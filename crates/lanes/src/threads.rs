//! Re-exports locks and atomics of the standard library. `crates/handovers` replaces this module, to run other modules under a scheduler
//! that tries many interleavings of threads. The modules that run under this scheduler may block a thread only with the types of this
//! module.

pub(crate) use std::sync::{Mutex, MutexGuard, PoisonError, atomic};
