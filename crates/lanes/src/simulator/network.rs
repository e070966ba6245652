//! Both directions of the network: acknowledgements of what goes in one of them are packets of the other.

use super::link::{Arrived, Link, Place, Side};
use super::server::Server;
use super::wire::{Nanos, Wire};
use crate::dispatch::{AttemptId, LaneId};

#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) down: Link,
    pub(crate) up: Link,
}

impl Network {
    pub(crate) fn new(wires: &[Wire], servers: &[Server], seed: u64) -> Self {
        let link = |side| Link::new(side, wires, servers, seed);
        Self { down: link(Side::Down), up: link(Side::Up) }
    }

    /// When something happens by itself.
    pub(crate) fn next(&self) -> Option<Nanos> {
        [self.down.next(), self.up.next()].into_iter().flatten().min()
    }

    /// Does what is due first, at its time; what has arrived by it is added to `arrived`. Says in which direction that was.
    pub(crate) fn step(&mut self, arrived: &mut Vec<Arrived>) -> Side {
        let is_down = match (self.down.next(), self.up.next()) {
            (Some(down), Some(up)) => down <= up,
            (down, _) => down.is_some(),
        };
        let (link, side) = if is_down { (&mut self.down, Side::Down) } else { (&mut self.up, Side::Up) };
        link.step(arrived);
        let now = link.now();
        self.exchange(now);
        side
    }

    /// A body begins to be sent.
    pub(crate) fn begin(&mut self, now: Nanos, side: Side, place: Place, attempt: AttemptId, bytes: u64) {
        // The other end's acknowledgements go with it.
        self.link(side.other()).acknowledge(now, place.lane);
        self.exchange(now);
        self.link(side).begin(now, place, attempt, bytes);
    }

    /// A body stops before its end, in both directions.
    pub(crate) fn stop(&mut self, lane: LaneId, attempt: AttemptId) {
        self.down.stop(lane, attempt);
        self.up.stop(lane, attempt);
    }

    /// A connection is gone.
    pub(crate) fn close(&mut self, lane: LaneId) {
        self.down.close(lane);
        self.up.close(lane);
    }

    /// Returns how long a packet and its answer wait now in the queues on a path.
    pub(crate) fn delay(&self, now: Nanos, path: usize) -> Nanos {
        self.down.delay(now, path) + self.up.delay(now, path)
    }

    /// Returns how likely a packet on a path is lost in one of the directions by chance.
    pub(crate) fn loss(&self, path: usize) -> f64 {
        (self.down.loss(path) + self.up.loss(path)) / 2.0
    }

    fn link(&mut self, side: Side) -> &mut Link {
        match side {
            Side::Down => &mut self.down,
            Side::Up => &mut self.up,
        }
    }

    fn exchange(&mut self, now: Nanos) {
        for side in [Side::Down, Side::Up] {
            let link = self.link(side);
            let (to_carry, brought) = (link.acknowledgements(), link.brought());
            let other = self.link(side.other());
            to_carry.into_iter().for_each(|ack| other.carry(now, ack));
            brought.into_iter().for_each(|ack| other.acked(now, ack));
        }
    }
}
