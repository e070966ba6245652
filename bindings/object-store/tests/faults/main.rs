//! The embedded store's faults through object_store's interface. Each fault affects each request that an object_store
//! store makes. The result must be exact, or an error of object_store's kind with the library's error as its source. No
//! operation may return or leave half of an object.
//!
//! `crates/laneway/tests/fault_matrix` tests the library itself in each dialect and protocol. Here each pair of fault
//! and request runs in only one dialect and protocol.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]
#![allow(clippy::duplicate_mod, reason = "one text for both versions")]

mod matrix;
mod rig;
#[cfg(feature = "object_store_0_13")]
mod v0_13;
#[cfg(feature = "object_store_0_14")]
mod v0_14;

/// The two tests pass different turns, so that they test the same fault in different dialects and protocols.
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
