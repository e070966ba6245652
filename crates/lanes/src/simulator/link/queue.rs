//! A bottleneck: bytes leave it at its rate and in the order in which they came.

use crate::simulator::network::Nanos;

#[derive(Debug)]
pub(crate) struct Queue {
    /// Bytes a second; infinite for what is no bottleneck.
    rate: f64,
    /// Bytes that may wait. What finds no room is dropped.
    room: f64,
    free_at: Nanos,
}

impl Queue {
    pub(crate) fn new(rate: f64, room: f64) -> Self {
        Self { rate, room, free_at: 0 }
    }

    /// When the last of these bytes has left; `None` where they are dropped.
    pub(crate) fn pass(&mut self, now: Nanos, bytes: u64) -> Option<Nanos> {
        if self.rate.is_infinite() {
            return Some(now);
        }
        let waiting = self.delay(now) as f64 * 1e-9 * self.rate;
        // However small the room is, one packet on its way fits.
        if waiting > 0.0 && waiting + bytes as f64 > self.room {
            return None;
        }
        self.free_at = self.free_at.max(now) + (bytes as f64 / self.rate * 1e9) as Nanos;
        Some(self.free_at)
    }

    /// How long what comes now waits.
    pub(crate) fn delay(&self, now: Nanos) -> Nanos {
        self.free_at.saturating_sub(now)
    }
}
