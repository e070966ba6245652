//! In which order works of one role are sent: small before large, within bounds.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use super::WorkId;

/// How much later than a work of this many bytes a smaller one may come and still go first: a second for 1 MiB, 5 ms for
/// 4.7 KB. What takes long anyway can wait a little; nothing is overtaken for ever.
const PATIENCE_PER_MIB: Duration = Duration::from_secs(1);

/// Works that wait for a lane.
#[derive(Debug, Default)]
pub(super) struct Queue {
    works: BinaryHeap<Reverse<(Instant, u64, WorkId)>>,
    admitted: u64,
}

impl Queue {
    /// Admits an express work: its weight says what may overtake it.
    pub(super) fn push_by_size(&mut self, now: Instant, work: WorkId, weight: u64) {
        let patience = PATIENCE_PER_MIB.mul_f64(weight as f64 / f64::from(1 << 20));
        self.push_at(now + patience.min(10 * PATIENCE_PER_MIB), work);
    }

    /// Admits a freight work: slices are of one size, and go in turn.
    pub(super) fn push_in_turn(&mut self, now: Instant, work: WorkId) {
        self.push_at(now, work);
    }

    fn push_at(&mut self, at: Instant, work: WorkId) {
        self.admitted += 1;
        self.works.push(Reverse((at, self.admitted, work)));
    }

    /// The next work.
    pub(super) fn front(&self) -> Option<WorkId> {
        self.works.peek().map(|Reverse((_, _, work))| *work)
    }

    /// Takes the next work out.
    pub(super) fn pop(&mut self) -> Option<WorkId> {
        self.works.pop().map(|Reverse((_, _, work))| work)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.works.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(queue: &mut Queue) -> Vec<u64> {
        std::iter::from_fn(|| queue.pop()).map(|work| work.0).collect()
    }

    #[test]
    fn smaller_works_go_first_and_equal_ones_in_turn() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        for (work, weight) in [(0, 500_000), (1, 5_000), (2, 100_000), (3, 5_000)] {
            queue.push_by_size(now, WorkId(work), weight);
        }
        assert_eq!(order(&mut queue), [1, 3, 2, 0]);
    }

    #[test]
    fn nothing_is_overtaken_for_ever() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.push_by_size(now, WorkId(0), 1 << 20);
        queue.push_by_size(now + Duration::from_millis(900), WorkId(1), 1024);
        queue.push_by_size(now + Duration::from_millis(1100), WorkId(2), 1024);
        assert_eq!(order(&mut queue), [1, 0, 2]);
    }

    #[test]
    fn freight_goes_in_turn() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        for work in 0..100 {
            queue.push_in_turn(now, WorkId(work));
        }
        assert!(order(&mut queue).is_sorted());
    }
}
