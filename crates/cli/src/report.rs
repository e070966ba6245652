//! Converts the library's events to text, in pure functions.
//!
//! The field names of the JSON lines are stable, because users' programs and the benchmarks parse them.

pub(crate) mod json;
pub(crate) mod line;
pub(crate) mod object;
pub(crate) mod stats;
