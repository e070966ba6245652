//! What is known of the way to an origin.

use std::time::Duration;

use crate::Protocol;

/// What connections to an origin have shown so far. Callers that weigh requests against bytes plan by it.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Path {
    /// The shortest round trip seen.
    pub round_trip: Option<Duration>,
    /// What the origin speaks, or is expected to.
    pub protocol: Option<Protocol>,
    /// The best rate at which bytes of all origins together came in the last ten seconds, a second.
    pub rate: Option<f64>,
    /// Whether bulk has filled the path, so that the rate is what it carries; else it carries at least so much.
    pub is_full: bool,
}
