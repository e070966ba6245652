//! Locks and atomics of the standard library. Modules that take these from here, and block a thread by nothing else, also run under a
//! scheduler that draws which thread goes on (`crates/handovers`).

pub(crate) use std::sync::{Mutex, MutexGuard, PoisonError, atomic};
