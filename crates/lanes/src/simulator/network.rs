//! Servers, the paths to them, and what a program asks of them.

use std::time::Duration;

use super::link::congestion::Control;
use crate::Protocol;
use crate::dispatch::Size;

/// Nanoseconds since the world began.
pub(crate) type Nanos = u64;

pub(crate) fn nanos(duration: Duration) -> Nanos {
    Nanos::try_from(duration.as_nanos()).unwrap_or(Nanos::MAX)
}

/// The machine's link: what it carries in each direction in bytes a second, how many bytes wait before it drops some, and which
/// part of the packets gets lost anyway.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wire {
    pub(crate) rate: f64,
    pub(crate) queue: u64,
    pub(crate) loss: f64,
}

impl Wire {
    /// A link with a queue of 8 ms, but of 128 KiB at least, and without loss.
    pub(crate) fn new(rate: f64) -> Self {
        Self { rate, queue: (rate * 0.008).max(131_072.0) as u64, loss: 0.0 }
    }

    /// As the rig's links are named: megabits a second, KiB, percent.
    pub(crate) fn of(mbit: u64, queue_kib: u64, loss_percent: f64) -> Self {
        Self { rate: mbit as f64 * 125e3, queue: queue_kib << 10, loss: loss_percent / 100.0 }
    }
}

/// A server and the path to it. Rates are bytes a second.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) rtt: Duration,
    /// What the path carries in each direction, and one stream of it.
    pub(crate) rate: f64,
    pub(crate) stream_rate: f64,
    pub(crate) express: Protocol,
    pub(crate) freight: Protocol,
    /// What a request takes beside the round trip.
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
    pub(crate) faults: Faults,
}

/// How it shows that a server has closed an idle connection.
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

/// How often something goes wrong, of 1000 dials or requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) dials_fail: u32,
    pub(crate) resets: u32,
    pub(crate) stalls: u32,
    /// HTTP/1.1: `Connection: close`. HTTP/2: GOAWAY.
    pub(crate) drains: u32,
    pub(crate) cancels: u32,
}

impl Path {
    pub(crate) fn new(rtt_ms: u64, express: Protocol) -> Self {
        Self {
            rtt: Duration::from_millis(rtt_ms),
            rate: f64::INFINITY,
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
            faults: Faults::default(),
        }
    }

    /// The same with these faults.
    pub(crate) fn with(self, faults: Faults) -> Self {
        Self { faults, ..self }
    }
}

/// What a program asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Want {
    pub(crate) up: u64,
    pub(crate) down: u64,
    /// Whether the dispatcher knows the answer's size.
    pub(crate) known: bool,
    pub(crate) origin: usize,
}

impl Want {
    pub(crate) fn get(bytes: u64) -> Self {
        Self { up: 0, down: bytes, known: true, origin: 0 }
    }

    pub(crate) fn put(bytes: u64) -> Self {
        Self { up: bytes, down: 0, known: true, origin: 0 }
    }

    pub(crate) fn unknown(bytes: u64) -> Self {
        Self { known: false, ..Self::get(bytes) }
    }

    pub(crate) fn of(self, origin: usize) -> Self {
        Self { origin, ..self }
    }

    pub(crate) fn size(&self) -> Size {
        Size::new(self.up, self.known.then_some(self.down), !self.known || self.down > 0)
    }
}
