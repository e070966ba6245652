//! A bottleneck: packets leave it at its rate and in the order in which they came.

use crate::simulator::wire::{Bottleneck, Nanos};

#[derive(Debug)]
pub(super) struct Queue {
    rate: f64,
    room: f64,
    free_at: Nanos,
}

impl Queue {
    pub(super) fn new(bottleneck: Bottleneck) -> Self {
        Self { rate: bottleneck.rate, room: bottleneck.queue as f64, free_at: 0 }
    }

    /// Takes as many of these packets, of so many bytes each, as it has room for: how many, and when the last of them has left.
    pub(super) fn pass(&mut self, now: Nanos, packets: u64, each: f64) -> (u64, Nanos) {
        if self.rate.is_infinite() {
            return (packets, now);
        }
        let waiting = self.delay(now) as f64 * 1e-9 * self.rate;
        // However small the room is, one packet on its way fits.
        let least = u64::from(waiting == 0.0);
        let fit = (((self.room - waiting) / each).max(0.0) as u64).max(least).min(packets);
        if fit > 0 {
            self.free_at = self.free_at.max(now) + (fit as f64 * each / self.rate * 1e9) as Nanos;
        }
        (fit, self.free_at)
    }

    /// Returns how long what comes now waits.
    pub(super) fn delay(&self, now: Nanos) -> Nanos {
        self.free_at.saturating_sub(now)
    }
}
