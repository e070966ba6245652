//! Replaces the standard library's threads, locks and atomics with those of [`shuttle`].

pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard, atomic};
pub(crate) use shuttle::thread::Builder;
pub(crate) use std::sync::PoisonError;
