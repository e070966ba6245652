//! Shared by the test suites: a store, trees of files, and a way to run the program.
//!
//! All functions panic with the reason of a failure. They run only in tests, where a failed preparation is a failed
//! test.

mod bytes;
mod changes;
mod faulty;
pub mod frames;
mod journal;
mod peer;
mod power_cut;
mod program;
mod scripted;
mod system_calls;
mod tree;
mod wire;

pub use bytes::random_bytes;
pub use changes::Changes;
pub use faulty::{Expected, config_for_faults, inverted, uploads_open};
pub use journal::{claimed, recorded_parts};
pub use peer::{Peer, Played, connect, connect_tls};
pub use power_cut::{Loss, cut_power};
pub use program::{Program, Run, Running};
pub use scripted::{Asked, Scripted, answer};
pub use system_calls::{Blow, Call, SystemCalls};
pub use tree::{AWKWARD_NAMES, differences, files_below, seed_tree};
pub use wire::{Endpoint, Wire};
