//! Thread primitives of the standard library. Modules that block threads only through these also run under a
//! scheduler that draws the order of threads (`crates/handovers`).

pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
pub(crate) use std::thread::Builder;
