//! In which order attempts of one role are sent: small before large, within bounds.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

use super::rules::Rules;
use super::{AttemptId, Direction, Role};

/// Attempts of one role and direction that wait for a lane.
#[derive(Debug, Default)]
pub(super) struct Queue(BinaryHeap<Reverse<(Instant, AttemptId)>>);

impl Queue {
    /// Admits an express attempt: its weight says what may overtake it.
    pub(super) fn push_by_size(&mut self, now: Instant, attempt: AttemptId, weight: u64, rules: &Rules) {
        let timeout = rules.overtaken_for.mul_f64(weight as f64 / f64::from(1 << 20));
        self.push_at(now + timeout.min(10 * rules.overtaken_for), attempt);
    }

    /// Admits a freight attempt: slices are of one size, and go in turn.
    pub(super) fn push_in_turn(&mut self, now: Instant, attempt: AttemptId) {
        self.push_at(now, attempt);
    }

    fn push_at(&mut self, at: Instant, attempt: AttemptId) {
        self.0.push(Reverse((at, attempt)));
    }

    /// The next attempt, and when it is due before others.
    fn front(&self) -> Option<(Instant, AttemptId)> {
        self.0.peek().map(|Reverse(front)| *front)
    }

    /// Takes the next attempt out.
    fn pop(&mut self) -> Option<AttemptId> {
        self.0.pop().map(|Reverse((_, attempt))| attempt)
    }
}

/// The queues of an origin. Each direction has its own, since what can't go in one keeps nobody from going in the other.
#[derive(Debug, Default)]
pub(super) struct Queues([[Queue; 2]; 2]);

impl Queues {
    pub(super) fn of(&mut self, role: Role, direction: Direction) -> &mut Queue {
        &mut self.0[role as usize][direction as usize]
    }

    pub(super) fn is_empty(&self, role: Role) -> bool {
        Direction::BOTH.into_iter().all(|direction| !self.wait(role, direction))
    }

    /// Whether any wait to go in the direction.
    pub(super) fn wait(&self, role: Role, direction: Direction) -> bool {
        self.0[role as usize][direction as usize].front().is_some()
    }

    /// The next attempt of a role, and its direction.
    pub(super) fn front(&self, role: Role) -> Option<(Direction, AttemptId)> {
        self.front_that(role, |_| true)
    }

    /// The same of those whose direction may be gone in.
    pub(super) fn front_that(
        &self,
        role: Role,
        may_go: impl Fn(Direction) -> bool,
    ) -> Option<(Direction, AttemptId)> {
        let front = |direction: Direction| {
            let front = self.0[role as usize][direction as usize].front();
            front.filter(|_| may_go(direction)).map(|front| (front, direction))
        };
        let first = Direction::BOTH.into_iter().filter_map(front).min_by_key(|(front, _)| *front);
        first.map(|((_, attempt), direction)| (direction, attempt))
    }

    /// Takes the next attempt of a role out.
    pub(super) fn pop(&mut self, role: Role) -> Option<AttemptId> {
        let (direction, _) = self.front(role)?;
        self.pop_of(role, direction)
    }

    /// Takes the next one out that goes in this direction.
    pub(super) fn pop_of(&mut self, role: Role, direction: Direction) -> Option<AttemptId> {
        self.of(role, direction).pop()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn order(queue: &mut Queue) -> Vec<u64> {
        std::iter::from_fn(|| queue.pop()).map(|attempt| attempt.0).collect()
    }

    #[test]
    fn smaller_attempts_go_first_and_equal_ones_in_turn() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        for (attempt, weight) in [(0, 500_000), (1, 5_000), (2, 100_000), (3, 5_000)] {
            queue.push_by_size(now, AttemptId(attempt), weight, &Rules::CHOSEN);
        }
        assert_eq!(order(&mut queue), [1, 3, 2, 0]);
    }

    #[test]
    fn nothing_is_overtaken_for_ever() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        queue.push_by_size(now, AttemptId(0), 1 << 20, &Rules::CHOSEN);
        queue.push_by_size(now + Duration::from_millis(900), AttemptId(1), 1024, &Rules::CHOSEN);
        queue.push_by_size(now + Duration::from_millis(1100), AttemptId(2), 1024, &Rules::CHOSEN);
        assert_eq!(order(&mut queue), [1, 0, 2]);
    }

    #[test]
    fn freight_goes_in_turn() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        for attempt in 0..100 {
            queue.push_in_turn(now, AttemptId(attempt));
        }
        assert!(order(&mut queue).is_sorted());
    }
}
