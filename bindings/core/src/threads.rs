//! The locks and atomics that this crate uses, from the standard library. A module that uses only these can also be
//! tested under a scheduler that randomises the order of threads (`crates/handovers`).

pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, atomic};
