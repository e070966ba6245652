//! Servers, the paths to them, and what a program asks of them.

use super::link::congestion::Control;
use super::*;

/// Nanoseconds since the world began.
pub(super) type Nanos = u64;

pub(super) fn nanos(duration: Duration) -> Nanos {
    Nanos::try_from(duration.as_nanos()).unwrap_or(Nanos::MAX)
}

/// The machine's link: what it carries in each direction in bytes a second, how many bytes wait before it drops some, and which
/// part of the packets gets lost anyway.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wire {
    pub(super) rate: f64,
    pub(super) queue: u64,
    pub(super) loss: f64,
}

impl Wire {
    /// A link with a queue of 8 ms, but of 128 KiB at least, and without loss.
    pub(super) fn new(rate: f64) -> Self {
        Self { rate, queue: (rate * 0.008).max(131_072.0) as u64, loss: 0.0 }
    }

    /// As the rig's links are named: megabits a second, KiB, percent.
    pub(super) fn of(mbit: u64, queue_kib: u64, loss_percent: f64) -> Self {
        Self { rate: mbit as f64 * 125e3, queue: queue_kib << 10, loss: loss_percent / 100.0 }
    }
}

/// A server and the path to it. Rates are bytes a second.
#[derive(Clone, Debug)]
pub(super) struct Path {
    pub(super) rtt: Duration,
    /// What the path carries in each direction, and one stream of it.
    pub(super) rate: f64,
    pub(super) stream_rate: f64,
    pub(super) express: Protocol,
    pub(super) freight: Protocol,
    /// What a request takes beside the round trip.
    pub(super) service: Duration,
    /// The server's work for a handshake; it does one after the other.
    pub(super) handshake: Duration,
    pub(super) streams_max: usize,
    /// After so many answers the server closes a connection.
    pub(super) answers_max: usize,
    /// After so long it closes an idle one.
    pub(super) idle_max: Duration,
    pub(super) ending: Ending,
    pub(super) control: Control,
    pub(super) faults: Faults,
}

/// How it shows that a server has closed an idle connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ending {
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
pub(super) struct Faults {
    pub(super) dials_fail: u32,
    pub(super) resets: u32,
    pub(super) stalls: u32,
    /// HTTP/1.1: `Connection: close`. HTTP/2: GOAWAY.
    pub(super) drains: u32,
    pub(super) cancels: u32,
}

impl Path {
    pub(super) fn new(rtt_ms: u64, express: Protocol) -> Self {
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
    pub(super) fn with(self, faults: Faults) -> Self {
        Self { faults, ..self }
    }
}

/// What a program asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Want {
    pub(super) up: u64,
    pub(super) down: u64,
    /// Whether the dispatcher knows the answer's size.
    pub(super) known: bool,
    pub(super) origin: usize,
}

impl Want {
    pub(super) fn get(bytes: u64) -> Self {
        Self { up: 0, down: bytes, known: true, origin: 0 }
    }

    pub(super) fn put(bytes: u64) -> Self {
        Self { up: bytes, down: 0, known: true, origin: 0 }
    }

    pub(super) fn unknown(bytes: u64) -> Self {
        Self { known: false, ..Self::get(bytes) }
    }

    pub(super) fn of(self, origin: usize) -> Self {
        Self { origin, ..self }
    }

    pub(super) fn size(&self) -> Size {
        Size::new(self.up, self.known.then_some(self.down), !self.known || self.down > 0)
    }
}
