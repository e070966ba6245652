//! Servers: what they speak, how they fail, and the paths to their addresses.

use std::time::Duration;

use super::link::congestion::Control;
use super::wire::{Bottleneck, Path};
use crate::Protocol;

/// Half of the 32 MiB of `tcp_rmem` that Linux has since 6.16; before it was 6 MiB.
pub(crate) const WINDOW_MAX: u64 = 16 << 20;
pub(crate) const WINDOW_MAX_BEFORE: u64 = 3 << 20;

/// A server and the paths to it.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    /// One to each of its addresses, which new connections take in turn.
    pub(crate) paths: Vec<Path>,
    /// The machine's link that it lies behind.
    pub(crate) wire: usize,
    /// Bytes a second that it sends or takes on one stream.
    pub(crate) stream_rate: f64,
    pub(crate) express: Protocol,
    pub(crate) freight: Protocol,
    /// The time that a request takes beside the round trip.
    pub(crate) service: Duration,
    /// The server's work for a handshake; it does one after the other.
    pub(crate) handshake: Duration,
    pub(crate) streams_max: usize,
    /// After so many answers the server closes a connection.
    pub(crate) answers_max: usize,
    /// After so long it closes an idle one.
    pub(crate) idle_max: Duration,
    pub(crate) ending: Ending,
    pub(crate) control: Control,
    /// Bytes that either end takes at most beyond what its program has read.
    pub(crate) window_max: u64,
    pub(crate) faults: Faults,
}

/// The sign that a server has closed an idle connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// When the next request is about to go on it.
    Found,
    /// When it comes.
    Seen,
    /// The next request is answered by a reset.
    Reset,
    /// The next request is never answered.
    Silence,
}

/// Faults, in 1000 dials or requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) dials_fail: u32,
    pub(crate) resets: u32,
    pub(crate) stalls: u32,
    /// HTTP/1.1: `Connection: close`. HTTP/2: GOAWAY.
    pub(crate) drains: u32,
    pub(crate) cancels: u32,
}

impl Server {
    /// One at the end of one path without a bottleneck.
    pub(crate) fn new(rtt_ms: u64, express: Protocol) -> Self {
        Self {
            paths: vec![Path::new(Duration::from_millis(rtt_ms))],
            wire: 0,
            stream_rate: 90e6,
            express,
            freight: Protocol::H1,
            service: Duration::from_millis(2),
            handshake: Duration::from_micros(500),
            streams_max: 100,
            answers_max: usize::MAX,
            idle_max: Duration::MAX,
            ending: Ending::Found,
            control: Control::Rate,
            window_max: WINDOW_MAX,
            faults: Faults::default(),
        }
    }

    /// The same with these faults.
    pub(crate) fn with(self, faults: Faults) -> Self {
        Self { faults, ..self }
    }

    /// The same at the end of these paths.
    pub(crate) fn at(self, paths: Vec<Path>) -> Self {
        Self { paths, ..self }
    }

    /// The same where the path carries so many bytes a second.
    pub(crate) fn behind(mut self, rate: f64) -> Self {
        self.paths[0].bottleneck = Bottleneck::new(rate);
        self
    }
}
