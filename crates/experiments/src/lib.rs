//! The measurements that Laneway comes from, as runnable benchmarks.
//!
//! Each experiment is a module with a plan, a `run` that blocks until it is done, and typed results; printing is the
//! program's. [`ladder`] is the first: many small files up, the five usual ways and Laneway's.
//!
//! The invariant: a rival is never handicapped. It is fresh but competent code over the crates that anybody would take,
//! its clock leaves out what a program can have done before (reading CA files, finding a token), and a row without
//! all its objects in the store is a failure and has no time.
//!
//! What this crate deliberately does not do: it shares no code with the engine that it measures. The rivals and the
//! counting of what arrived stand on hyper alone.

pub mod ladder;
