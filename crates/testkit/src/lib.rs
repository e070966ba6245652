//! Shared code of the test suites: a store, trees of files, and a way to run the program.
//!
//! All functions panic if they fail, with the reason. They run only in tests, and a test whose preparation fails
//! has failed.

pub mod frames;
mod peer;
mod program;
mod system_calls;
mod tree;
mod wire;

pub use peer::{Asked, Peer, Played, Scripted, answer, connect, connect_tls};
pub use program::{Program, Run, Running};
pub use system_calls::{Blow, Call, Loss, SystemCalls, cut_power};
pub use tree::{
    AWKWARD_NAMES, Changes, claimed, differences, files_below, random_bytes, recorded_parts, seed_tree,
};
pub use wire::{Endpoint, Expected, Wire, config_for_faults, inverted, uploads_open};
