//! The faults of the embedded store on this face: each meets each request that a store of object_store makes, and what was asked for is there
//! exactly, or an error of object_store's kind that has the library's as its source. No half of an object comes, or is left.
//!
//! What the library does then is shown by `crates/laneway/tests/fault_matrix`, dialect by dialect and protocol by protocol; here each
//! fault and request meet in one of those.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]
#![allow(clippy::duplicate_mod, reason = "one text for both versions")]

mod expectations;
mod matrix;
mod rig;
#[cfg(feature = "object_store_0_13")]
mod v0_13;
#[cfg(feature = "object_store_0_14")]
mod v0_14;

/// The versions' turns differ, so that they don't meet the same faults in the same dialect and protocol.
#[cfg(feature = "object_store_0_13")]
#[test]
fn every_fault_ends_in_exact_success_or_the_right_error_of_0_13() {
    matrix::run(0, v0_13::carry_out);
}

#[cfg(feature = "object_store_0_14")]
#[test]
fn every_fault_ends_in_exact_success_or_the_right_error_of_0_14() {
    matrix::run(1, v0_14::carry_out);
}
