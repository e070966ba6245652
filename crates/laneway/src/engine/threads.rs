//! Thread primitives of the standard library. If a module blocks threads only through these, tests in
//! `crates/handovers` can run it under a scheduler that chooses the order of threads.

pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
pub(crate) use std::thread::Builder;
