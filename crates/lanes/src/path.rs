//! The way to an origin, as far as it is known.

use std::time::Duration;

use crate::Protocol;

/// The path that connections to an origin have shown so far. Callers that weigh requests against bytes plan by it.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Path {
    /// The shortest round trip seen.
    pub round_trip: Option<Duration>,
    /// The protocol that the origin speaks, or is expected to.
    pub protocol: Option<Protocol>,
    /// The best rate at which bytes of all origins together came in the last ten seconds, a second.
    pub rate: Option<f64>,
    /// True if bulk has filled the path, so that the rate is what it carries; else it carries at least so much.
    pub is_full: bool,
}
