//! Rules for hosts that fork, such as Python.
//!
//! The child of a `fork` has its parent's memory, but none of its other threads. A lock that one of them held stays
//! locked for ever. So shared state follows one of two rules. Either a thread takes it only while it holds the host's
//! own lock, which a forking thread also holds ([`Turns`]). Or it needs no lock ([`Pile`]).

mod pile;
mod turns;

pub use pile::Pile;
pub use turns::{Held, Line, Turns};
