//! Means by which threads share their state: the standard library's locks and numbers. Modules that take these from here, and nothing else
//! that blocks a thread, are also run under a scheduler that draws who goes on (`crates/handovers`).

pub(crate) use std::sync::{Mutex, MutexGuard, PoisonError, atomic};
