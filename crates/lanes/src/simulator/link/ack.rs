//! Acknowledgements of a receiver.

use super::sender::Sent;
use crate::dispatch::LaneId;

/// Blocks beyond a gap that fit beside the timestamps (RFC 2018).
pub(super) const BLOCKS: usize = 3;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Ack {
    pub(super) lane: LaneId,
    pub(super) path: usize,
    /// All before it has come.
    pub(super) received: u64,
    /// Blocks that have come beyond a gap, in their order; unneeded ones are empty.
    pub(super) blocks: [(u64, u64); BLOCKS],
    /// Up to where bytes are taken.
    pub(super) edge: u64,
}

impl Ack {
    /// Where the last byte lies that it says has come.
    pub(super) fn highest(&self) -> u64 {
        self.blocks.iter().map(|(_, to)| *to).fold(self.received, u64::max)
    }

    /// Returns what of a burst hasn't come, as far as this tells, in its order.
    pub(super) fn missing(&self, sent: Sent) -> impl Iterator<Item = Sent> {
        let (mut from, end) = (sent.from.max(self.received), sent.from + sent.bytes);
        let gaps = self.blocks.into_iter().chain([(u64::MAX, u64::MAX)]).map(move |(begins, ends)| {
            if ends <= from {
                return (from, from);
            }
            let gap = (from, begins.min(end).max(from));
            from = ends.max(from);
            gap
        });
        gaps.filter(|(from, to)| from < to).map(move |(from, to)| sent.between(from, to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_between_blocks_is_missing() {
        let ack = |received, blocks| Ack { lane: LaneId(0), path: 0, received, blocks, edge: 0 };
        let missing = |ack: Ack, from, bytes| {
            ack.missing(Sent::new(from, bytes)).map(|sent| (sent.from, sent.bytes)).collect::<Vec<_>>()
        };
        assert_eq!(missing(ack(100, [(0, 0); 3]), 50, 50), []);
        assert_eq!(missing(ack(100, [(0, 0); 3]), 50, 100), [(100, 50)]);
        assert_eq!(
            missing(ack(100, [(120, 130), (140, 150), (0, 0)]), 90, 100),
            [(100, 20), (130, 10), (150, 40)]
        );
        assert_eq!(missing(ack(100, [(120, 130), (140, 150), (0, 0)]), 122, 5), []);
        assert_eq!(missing(ack(100, [(120, 130), (140, 150), (0, 0)]), 145, 10), [(150, 5)]);
    }
}
