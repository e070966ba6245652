//! Whether and when an attempt is made again.

use std::time::Duration;

/// Attempts of one call, throttled ones left out of the count.
const ATTEMPTS_MAX: u32 = 6;

/// Throttled attempts of one call: a store that is only slow to admit work is waited for much longer than one that
/// fails.
const THROTTLED_MAX: u32 = 40;

/// Attempts that are made at once: those a server certainly did not process, and those that learned something.
const FREE_MAX: u32 = 10;

/// The first pause, doubled each time. AWS's and Google's clients start between 0.1 and 1 s.
const PAUSE_FIRST: Duration = Duration::from_millis(200);

/// The longest pause that we choose by ourselves.
const PAUSE_MAX: Duration = Duration::from_secs(20);

/// The longest `Retry-After` that is obeyed; a server that asks for more is taken to be down.
pub(crate) const RETRY_AFTER_MAX: Duration = Duration::from_secs(120);

/// How an attempt ended, as far as trying again depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Failure {
    /// Another attempt may help.
    Transient,
    /// The server asked to slow down, perhaps for so long.
    Throttled(Option<Duration>),
    /// Nothing was processed, or the call knows better now: at once.
    Free,
}

/// The attempts of one call.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    failed: u32,
    throttled: u32,
    free: u32,
}

impl Attempts {
    /// How long to wait before the next attempt, or `None` when there shall be none. `random` is uniform in 0..1.
    pub(crate) fn next(&mut self, failure: Failure, budget: &mut Budget, random: f64) -> Option<Duration> {
        match failure {
            Failure::Free => {
                self.free += 1;
                (self.free <= FREE_MAX).then_some(Duration::ZERO)
            }
            Failure::Throttled(after) => {
                self.throttled += 1;
                let asked = after.unwrap_or_default();
                let allowed = self.throttled < THROTTLED_MAX && asked <= RETRY_AFTER_MAX;
                allowed.then(|| asked.max(pause(self.throttled.min(6), random)))
            }
            Failure::Transient => {
                self.failed += 1;
                (self.failed < ATTEMPTS_MAX && budget.spend()).then(|| pause(self.failed, random))
            }
        }
    }
}

/// The pause after the `n`th failure: exponential, with half of it drawn at random so that clients that failed
/// together don't come back together.
fn pause(n: u32, random: f64) -> Duration {
    let full = PAUSE_FIRST.saturating_mul(1 << (n - 1).min(16)).min(PAUSE_MAX);
    full.mul_f64(0.5 + random / 2.0)
}

/// The process-wide bound on retries: when most of what is sent fails, trying again makes it worse. Counted in tenths of
/// a retry: a success gives one back, as in gRPC's throttle.
#[derive(Debug)]
pub(crate) struct Budget {
    tenths: u32,
}

impl Budget {
    /// Retries that may be made in a row without any success.
    const CAPACITY: u32 = 500;

    pub(crate) fn new() -> Self {
        Self { tenths: Self::CAPACITY * 10 }
    }

    pub(crate) fn succeed(&mut self) {
        self.tenths = (self.tenths + 1).min(Self::CAPACITY * 10);
    }

    fn spend(&mut self) -> bool {
        let left = self.tenths.checked_sub(10);
        self.tenths = left.unwrap_or(self.tenths);
        left.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_keep_half_of_themselves() {
        assert_eq!(pause(1, 1.0), PAUSE_FIRST);
        assert_eq!(pause(3, 0.0), PAUSE_FIRST * 2);
        assert_eq!(pause(30, 1.0), PAUSE_MAX);
    }

    #[test]
    fn a_call_ends_after_its_attempts() {
        let (mut attempts, mut budget) = (Attempts::default(), Budget::new());
        let made =
            (1..).take_while(|_| attempts.next(Failure::Transient, &mut budget, 0.5).is_some()).count();
        assert_eq!(made as u32, ATTEMPTS_MAX - 1);
    }

    #[test]
    fn retry_after_is_obeyed_unless_it_is_absurd() {
        let (mut attempts, mut budget) = (Attempts::default(), Budget::new());
        let mut after = |s| attempts.next(Failure::Throttled(Some(Duration::from_secs(s))), &mut budget, 0.0);
        assert_eq!(after(7), Some(Duration::from_secs(7)));
        assert_eq!(after(3600), None);
    }

    #[test]
    fn an_empty_budget_ends_retries_until_successes_refill_it() {
        let mut budget = Budget::new();
        while budget.spend() {}
        assert_eq!(Attempts::default().next(Failure::Transient, &mut budget, 0.0), None);
        (0..10).for_each(|_| budget.succeed());
        assert!(Attempts::default().next(Failure::Transient, &mut budget, 0.0).is_some());
    }

    #[test]
    fn unprocessed_requests_go_again_at_once_and_cost_no_budget() {
        let (mut attempts, mut budget) = (Attempts::default(), Budget { tenths: 0 });
        assert_eq!(attempts.next(Failure::Free, &mut budget, 0.0), Some(Duration::ZERO));
    }
}
