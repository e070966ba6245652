//! Re-exports of the standard library's thread primitives. The tests in `crates/handovers` replace them, to
//! run modules under a scheduler that chooses the order of threads. So such a module must block threads only
//! through these primitives.

pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
pub(crate) use std::thread::Builder;
