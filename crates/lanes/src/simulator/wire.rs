//! The machine's links, and the paths beyond them.

use std::time::Duration;

/// Nanoseconds since the world began.
pub(crate) type Nanos = u64;

pub(crate) fn nanos(duration: Duration) -> Nanos {
    Nanos::try_from(duration.as_nanos()).unwrap_or(Nanos::MAX)
}

/// Bytes of a body in a packet, and what stands around them on the wire: IPv4, TCP and its timestamps.
pub(crate) const MSS: u64 = 1448;
pub(crate) const HEADERS: u64 = 52;

/// Returns what so many bytes of bodies are on the wire.
pub(crate) fn on_wire(bytes: u64) -> u64 {
    bytes + bytes.div_ceil(MSS) * HEADERS
}

/// A place where packets wait: its rate in bytes a second (infinite without a bottleneck), its queue in bytes, and the part of the packets
/// that gets lost anyway.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Bottleneck {
    pub(crate) rate: f64,
    pub(crate) queue: u64,
    pub(crate) loss: f64,
}

impl Bottleneck {
    pub(crate) const NONE: Self = Self { rate: f64::INFINITY, queue: 0, loss: 0.0 };

    /// With a queue of 8 ms, but of 128 KiB at least, and without loss.
    pub(crate) fn new(rate: f64) -> Self {
        Self { rate, queue: (rate * 0.008).max(131_072.0) as u64, loss: 0.0 }
    }

    /// As the rig's links are named: megabits a second, KiB, percent.
    pub(crate) fn of(mbit: u64, queue_kib: u64, loss_percent: f64) -> Self {
        Self { rate: mbit as f64 * 125e3, queue: queue_kib << 10, loss: loss_percent / 100.0 }
    }
}

/// A link of the machine's. Several servers may lie behind one, or each behind its own.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Wire {
    pub(crate) down: Bottleneck,
    pub(crate) up: Bottleneck,
}

impl Wire {
    /// The same in both directions.
    pub(crate) fn both(bottleneck: Bottleneck) -> Self {
        Self { down: bottleneck, up: bottleneck }
    }
}

/// The way beyond the machine's link to one of a server's addresses, the same in both directions.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Path {
    pub(crate) rtt: Duration,
    pub(crate) bottleneck: Bottleneck,
}

impl Path {
    /// One that only takes its time.
    pub(crate) fn new(rtt: Duration) -> Self {
        Self { rtt, bottleneck: Bottleneck::NONE }
    }
}
