//! One direction of the way to one address: its own bottleneck, what is lost on it, and the machine's link before it.

use rand::Rng as _;
use rand::rngs::StdRng;

use super::queue::Queue;
use crate::simulator::wire::{Bottleneck, Nanos, Path, nanos};

#[derive(Debug)]
pub(super) struct Way {
    pub(super) half: Nanos,
    pub(super) wire: usize,
    pub(super) queue: Queue,
    pub(super) loss: f64,
    /// Packets until the next one is lost.
    until_lost: u64,
}

impl Way {
    pub(super) fn new(path: &Path, wire: usize, link: Bottleneck, random: &mut StdRng) -> Self {
        let loss = 1.0 - (1.0 - path.bottleneck.loss) * (1.0 - link.loss);
        let queue = Queue::new(path.bottleneck);
        let mut way = Self { half: nanos(path.rtt) / 2, wire, queue, loss, until_lost: u64::MAX };
        way.draw(random);
        way
    }

    /// Returns how many of so many packets come before one that is lost. Where that is none, the first of them is lost.
    pub(super) fn spares(&mut self, packets: u64, random: &mut StdRng) -> u64 {
        if self.until_lost == 0 {
            self.draw(random);
            return 0;
        }
        let spared = packets.min(self.until_lost);
        self.until_lost -= spared;
        spared
    }

    /// Draws how many packets get through until one is lost.
    fn draw(&mut self, random: &mut StdRng) {
        if self.loss > 0.0 {
            let chance: f64 = random.random_range(f64::MIN_POSITIVE..1.0);
            self.until_lost = (chance.ln() / (1.0 - self.loss).ln()) as u64;
        }
    }
}
