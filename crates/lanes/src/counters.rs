//! Counters of what the engine has done so far.

use crate::Distribution;

/// A snapshot of an engine's counters. All of them count from the engine's start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// TCP connections that were established.
    pub connections: u64,
    /// Most connections open at once.
    pub connections_peak: u64,
    /// Connections open now.
    pub connections_open: u64,
    /// TLS handshakes that were completed.
    pub handshakes: u64,
    /// Connections that speak HTTP/1.1.
    pub connections_h1: u64,
    /// Connections that speak HTTP/2.
    pub connections_h2: u64,
    /// Requests sent, every attempt counted.
    pub requests: u64,
    /// Attempts after the first.
    pub retries: u64,
    /// Answers that asked to slow down.
    pub throttles: u64,
    /// Hedges sent.
    pub hedges: u64,
    /// Body bytes sent.
    pub bytes_sent: u64,
    /// Body bytes received.
    pub bytes_received: u64,
    /// TCP segments that this machine has sent again, as of the last reading. Linux only; 0 elsewhere.
    pub segments_resent: u64,
}

/// The time that answered requests had to wait, since the engine's start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Times {
    /// From sending a request's first byte to its answer's head.
    pub first_byte: Distribution,
    /// From handing a request in to sending it: the wait for a lane.
    pub queued: Distribution,
}
