//! A replacement for the standard library's threads.

pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard, atomic};
pub(crate) use shuttle::thread::Builder;
pub(crate) use std::sync::PoisonError;
