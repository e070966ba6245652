//! Rules for hosts that fork, such as Python.
//!
//! A child of a `fork` has its parent's memory and none of its other threads. A lock that one of these held stays locked for ever. So whatever a
//! child may touch is either taken with the host's own lock held, which a thread that forks holds too ([`Turns`]), or has no lock ([`Pile`]).

mod pile;
mod turns;

pub use pile::Pile;
pub use turns::{Held, Line, Turns};
