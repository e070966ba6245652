//! Decides if and when an attempt is repeated.
//!
//! A call gives up when the origin has been silent for too long, and not after a certain number of attempts. A server that restarts is away
//! for seconds or minutes, no matter how many attempts fail meanwhile. But if a call fails while its origin serves other calls, the number
//! of the call's attempts is limited.

#[cfg(test)]
mod scenario;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::outage::Outage;

/// The limits for a call that fails while its origin serves other calls: the maximum number of attempts, and the minimum time over which
/// they are made.
const LONE_MAX: u32 = 8;
const LONE_FOR: Duration = Duration::from_secs(30);

/// The maximum number of throttled attempts of a call. It is larger than [`LONE_MAX`], because a store that throttles accepts the request
/// in the end.
const THROTTLED_MAX: u32 = 40;

/// The maximum number of retries without a pause. Such a retry follows an attempt that the server certainly didn't process, or an answer
/// that told the call a fact such as the bucket's region.
const FREE_MAX: u32 = 10;

/// The first pause. It doubles each time. AWS's and Google's clients start between 0.1 and 1 s.
const PAUSE_FIRST: Duration = Duration::from_millis(200);

/// The maximum pause after a failure. After an outage, the next attempt begins at most this long after the origin's return.
const PAUSE_MAX: Duration = Duration::from_secs(8);

/// The maximum pause that we choose ourselves after a throttle. The sixth pause is the first of this length.
const THROTTLED_PAUSE_MAX: Duration = Duration::from_millis(6400);

/// The maximum pause before a call asks again if it may make its next attempt. Meanwhile, other calls test if the origin answers again.
const TURN_PAUSE_MAX: Duration = Duration::from_secs(1);

/// The maximum `Retry-After` that Laneway obeys, unless `retry_for` is longer. If a server asks for more, the call fails.
pub(crate) const RETRY_AFTER_MAX: Duration = Duration::from_secs(120);

/// If a body broke off after at least this many bytes, the count of failures starts again. Fewer bytes don't count as progress, because
/// another request costs more than they are worth.
const PROGRESS_MIN: u64 = 256 << 10;

/// The kind of an attempt's failure. It decides if and when the next attempt is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AttemptFailure {
    /// Another attempt may help. The server was silent for this time before the failure.
    Transient { silent: Duration },
    /// The server asked for fewer requests. The pause is `Some` if the answer said how long to pause.
    Throttled(Option<Duration>),
    /// The server certainly didn't process the request. Retry at once.
    Unprocessed,
    /// The call has learned a fact that it needs, such as the bucket's region. Retry at once.
    Learned,
}

/// The limits of a call's attempts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryLimits<'a> {
    /// The origin's signs of life.
    pub(crate) outage: &'a Outage,
    /// The maximum silence of the origin.
    pub(crate) retry_for: Duration,
}

/// Counts the failed attempts of one call, and computes the pause before the next attempt.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failed: u32,
    throttled: u32,
    free: u32,
    /// The failures while the origin served other calls.
    lone: Option<FailureStreak>,
    last_failed: Option<Instant>,
}

#[derive(Debug)]
struct FailureStreak {
    /// The time of the first failure.
    since: Instant,
    count: u32,
    /// The total time of pauses and of the server's silences since the first failure. It doesn't include the time in which attempts wait
    /// for a lane or move bytes.
    lost: Duration,
}

impl Backoff {
    /// Returns how long to wait before the next attempt, or `None` if there must be no further attempt. `began` is the time when the
    /// failed attempt began. `random` is uniform in 0..1.
    pub(crate) fn next(
        &mut self,
        failure: AttemptFailure,
        began: Instant,
        now: Instant,
        bounds: RetryLimits<'_>,
        random: f64,
    ) -> Option<Duration> {
        let RetryLimits { outage, retry_for } = bounds;
        let silent = match failure {
            AttemptFailure::Learned => {
                self.free += 1;
                return (self.free <= FREE_MAX).then_some(Duration::ZERO);
            }
            AttemptFailure::Unprocessed => {
                self.free += 1;
                if self.free <= FREE_MAX {
                    return Some(Duration::ZERO);
                }
                Duration::ZERO
            }
            AttemptFailure::Transient { silent } => silent,
            AttemptFailure::Throttled(_) => Duration::ZERO,
        };
        let since = self.last_failed.replace(now).unwrap_or(began);
        // If the server was silent, only signs of life during the silence count. Earlier signs may be older than the outage.
        let is_lone = match silent.is_zero() {
            true => outage.heard_since(since),
            false => outage.heard_since(now.checked_sub(silent).map_or(since, |began| since.max(began))),
        };
        outage.failed(now, silent);
        let left = outage.left(now, retry_for);
        if left.is_zero() {
            return None;
        }
        if let AttemptFailure::Throttled(after) = failure {
            self.throttled += 1;
            let asked = after.unwrap_or_default();
            let allowed = self.throttled < THROTTLED_MAX && asked <= RETRY_AFTER_MAX.max(retry_for);
            return allowed.then(|| asked.max(pause(self.throttled, THROTTLED_PAUSE_MAX, random)));
        }
        self.failed += 1;
        // The silence is subtracted from the pause, because the caller has already waited during the silence.
        let pause = pause(self.failed, PAUSE_MAX, random).saturating_sub(silent);
        if is_lone {
            return self.next_alone(now, silent, pause, retry_for);
        }
        // The pause never exceeds the remaining time, so a last attempt can begin when the time ends.
        Some(pause.min(left))
    }

    /// Returns how long to wait after a failure while the origin served other calls.
    fn next_alone(
        &mut self,
        now: Instant,
        silent: Duration,
        pause: Duration,
        retry_for: Duration,
    ) -> Option<Duration> {
        let lone = match &mut self.lone {
            Some(lone) => {
                lone.lost += silent;
                lone
            }
            None => self.lone.insert(FailureStreak { since: now, count: 0, lost: Duration::ZERO }),
        };
        lone.count += 1;
        let (took, least) = (now.saturating_duration_since(lone.since), LONE_FOR.min(retry_for));
        if lone.count >= LONE_MAX && took >= least || lone.lost >= retry_for.max(LONE_FOR) {
            return None;
        }
        let is_last = lone.count + 1 >= LONE_MAX;
        let pause = if is_last { pause.max(least.saturating_sub(took)) } else { pause };
        lone.lost += pause;
        Some(pause)
    }
}

/// The decision about a call whose pause has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RetryTurn {
    Go,
    /// Other calls already test if the origin answers again. Wait for this time.
    Wait(Duration),
    /// The origin has been silent for too long.
    End,
}

impl RetryBudget {
    /// Decides if a failed call may make its next attempt. While an origin is silent, the retry budget limits the attempts. Otherwise
    /// thousands of calls could overload a server that is just starting.
    pub(crate) fn turn(
        &mut self,
        failed: Instant,
        now: Instant,
        bounds: RetryLimits<'_>,
        random: f64,
    ) -> RetryTurn {
        let may_spend = self.spend(now);
        if may_spend || bounds.outage.heard_since(failed) {
            return RetryTurn::Go;
        }
        if bounds.outage.left(now, bounds.retry_for).is_zero() {
            return RetryTurn::End;
        }
        RetryTurn::Wait(jittered(TURN_PAUSE_MAX, random))
    }
}

/// Returns the pause after the `n`th failure. It grows exponentially.
fn pause(n: u32, most: Duration, random: f64) -> Duration {
    jittered(PAUSE_FIRST.saturating_mul(1 << (n - 1).min(16)).min(most), random)
}

/// Makes half of a pause random, so that clients that failed at the same time don't retry at the same time.
fn jittered(pause: Duration, random: f64) -> Duration {
    pause.mul_f64(0.5 + random / 2.0)
}

/// The engine's limit on retries. If many requests fail, retries of all of them would add to the overload. A retry costs one token, and a
/// success returns a part of a token, as in gRPC's retry throttling. Tokens also come back with time. So a few retries are made even in a
/// long outage, and one of them finds that the outage has ended.
#[derive(Debug)]
pub(crate) struct RetryBudget {
    left: f64,
    filled: Option<Instant>,
}

impl RetryBudget {
    /// The maximum number of tokens. With a full budget, this many retries can be made in quick succession
    /// without a success.
    const CAPACITY: f64 = 500.0;

    /// The number of tokens that come back per second. It is so small that the retries don't burden a server that is down.
    const PER_SECOND: f64 = 10.0;

    /// The part of a token that a success returns. gRPC's example has the same value.
    const PER_SUCCESS: f64 = 0.1;

    pub(crate) fn new() -> Self {
        Self { left: Self::CAPACITY, filled: None }
    }

    pub(crate) fn succeed(&mut self) {
        self.left = (self.left + Self::PER_SUCCESS).min(Self::CAPACITY);
    }

    fn spend(&mut self, now: Instant) -> bool {
        let passed =
            self.filled.replace(now).map_or(Duration::ZERO, |then| now.saturating_duration_since(then));
        self.left = (self.left + passed.as_secs_f64() * Self::PER_SECOND).min(Self::CAPACITY);
        let has_one = self.left >= 1.0;
        self.left -= f64::from(u8::from(has_one));
        has_one
    }
}

/// The record of a body that breaks off several times. After each break, the caller requests the rest with another call.
#[derive(Debug, Default)]
pub struct Breaks(Mutex<Backoff>);

impl Breaks {
    /// Returns the record of the attempts. The record starts again if `came` bytes are enough progress.
    pub(crate) fn after(&self, came: u64) -> MutexGuard<'_, Backoff> {
        let mut attempts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if came >= PROGRESS_MIN {
            *attempts = Backoff::default();
        }
        attempts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BROKEN: AttemptFailure = AttemptFailure::Transient { silent: Duration::ZERO };
    const RETRY_FOR: Duration = Duration::from_secs(120);

    fn at(start: Instant, seconds: f64) -> Instant {
        start + Duration::from_secs_f64(seconds)
    }

    #[test]
    fn pauses_double_up_to_the_longest_and_keep_half_of_themselves() {
        assert_eq!(pause(1, PAUSE_MAX, 1.0), PAUSE_FIRST);
        assert_eq!(pause(3, PAUSE_MAX, 0.0), PAUSE_FIRST * 2);
        assert_eq!(pause(30, PAUSE_MAX, 1.0), PAUSE_MAX);
    }

    #[test]
    fn a_call_ends_when_nothing_has_come_for_as_long_as_is_retried() {
        let start = Instant::now();
        let mut now = start;
        let (outage, mut attempts) = (Outage::new(start), Backoff::default());
        let bounds = RetryLimits { outage: &outage, retry_for: RETRY_FOR };
        let mut made = 1;
        while let Some(pause) = attempts.next(BROKEN, now, now, bounds, 0.5) {
            now += pause;
            made += 1;
        }
        assert_eq!(now - start, RETRY_FOR, "the last attempt is made when the time is over");
        assert!((15..40).contains(&made), "{made}");
    }

    #[test]
    fn a_call_that_fails_alone_ends_after_eight_attempts_over_half_a_minute() {
        for random in [0.0, 0.5, 1.0] {
            let start = Instant::now();
            let mut now = start;
            let (outage, mut attempts) = (Outage::new(start), Backoff::default());
            let bounds = RetryLimits { outage: &outage, retry_for: RETRY_FOR };
            let mut made = 1;
            loop {
                outage.heard(now + Duration::from_millis(1));
                let failed = now + Duration::from_millis(2);
                let Some(pause) = attempts.next(BROKEN, now, failed, bounds, random) else { break };
                now = failed + pause;
                made += 1;
            }
            assert_eq!(made, LONE_MAX);
            assert!(now - start >= LONE_FOR && now - start < LONE_FOR * 2, "{:?}", now - start);
        }
    }

    /// Each attempt sends its body for minutes over a slow path, and two short outages interrupt the call.
    #[test]
    fn a_call_that_two_outages_break_far_apart_is_tried_again() {
        let start = Instant::now();
        let (outage, mut attempts) = (Outage::new(start), Backoff::default());
        let bounds = RetryLimits { outage: &outage, retry_for: RETRY_FOR };
        for minute in [5, 10, 15, 20, 25] {
            let failed = start + Duration::from_secs(60 * minute);
            outage.heard(failed - Duration::from_secs(1));
            let began = failed - Duration::from_secs(240);
            assert!(attempts.next(BROKEN, began, failed, bounds, 0.5).is_some(), "minute {minute}");
        }
    }

    #[test]
    fn a_silence_that_nobody_was_served_in_is_no_lone_failure() {
        let start = Instant::now();
        let (silent, mut attempts) = (Duration::from_secs(30), Backoff::default());
        let outage = Outage::new(start);
        let bounds = RetryLimits { outage: &outage, retry_for: RETRY_FOR };
        let mut fails = |heard: f64, at_second: f64| {
            outage.heard(at(start, heard));
            let failed = at(start, at_second);
            attempts.next(AttemptFailure::Transient { silent }, start, failed, bounds, 0.5);
            attempts.lone.as_ref().map_or(0, |lone| lone.count)
        };
        assert_eq!(fails(5.0, 40.0), 0);
        assert_eq!(fails(60.0, 100.0), 0);
        assert_eq!(fails(120.0, 140.0), 1, "others were served meanwhile");
    }

    #[test]
    fn nothing_is_retried_where_that_is_asked_for() {
        let now = Instant::now();
        let outage = Outage::new(now);
        let bounds = RetryLimits { outage: &outage, retry_for: Duration::ZERO };
        assert_eq!(Backoff::default().next(BROKEN, now, now, bounds, 0.0), None);
    }

    #[test]
    fn retry_after_is_obeyed_unless_it_is_absurd() {
        let now = Instant::now();
        let (outage, mut attempts) = (Outage::new(now), Backoff::default());
        let bounds = RetryLimits { outage: &outage, retry_for: RETRY_FOR };
        let mut after =
            |s| attempts.next(AttemptFailure::Throttled(Some(Duration::from_secs(s))), now, now, bounds, 0.0);
        assert_eq!(after(7), Some(Duration::from_secs(7)));
        assert_eq!(after(3600), None);
    }

    #[test]
    fn what_was_not_processed_goes_again_at_once_but_not_for_ever() {
        let now = Instant::now();
        let (outage, mut attempts) = (Outage::new(now), Backoff::default());
        let bounds = RetryLimits { outage: &outage, retry_for: RETRY_FOR };
        let mut next = |failure| attempts.next(failure, now, now, bounds, 0.0);
        for _ in 0..FREE_MAX {
            assert_eq!(next(AttemptFailure::Unprocessed), Some(Duration::ZERO));
        }
        assert_eq!(next(AttemptFailure::Unprocessed), Some(PAUSE_FIRST / 2), "then like any other failure");
        assert_eq!(next(AttemptFailure::Learned), None);
    }

    #[test]
    fn while_nothing_comes_calls_take_turns_and_when_something_does_all_go() {
        let start = Instant::now();
        let (outage, mut budget) = (Outage::new(start), RetryBudget::new());
        let bounds = RetryLimits { outage: &outage, retry_for: RETRY_FOR };
        outage.failed(start, Duration::ZERO);
        let mut go = |second: f64, calls: usize| {
            let turn = |_: &usize| budget.turn(start, at(start, second), bounds, 1.0) == RetryTurn::Go;
            (0..calls).filter(turn).count()
        };
        assert_eq!(go(1.0, 10_000), RetryBudget::CAPACITY as usize);
        assert_eq!(go(2.0, 10_000), RetryBudget::PER_SECOND as usize);
        outage.heard(at(start, 3.0));
        assert_eq!(go(3.0, 10_000), 10_000);
    }

    #[test]
    fn a_call_whose_turn_does_not_come_ends_with_the_outage_s_time() {
        let start = Instant::now();
        let outage = Outage::new(start);
        let mut budget = RetryBudget { left: 0.0, filled: None };
        let bounds = RetryLimits { outage: &outage, retry_for: RETRY_FOR };
        outage.failed(start, Duration::ZERO);
        assert_eq!(budget.turn(start, start, bounds, 1.0), RetryTurn::Wait(Duration::from_secs(1)));
        let mut budget = RetryBudget { left: 0.0, filled: None };
        assert_eq!(budget.turn(start, start + RETRY_FOR, bounds, 1.0), RetryTurn::End);
    }

    #[test]
    fn breaks_after_a_few_bytes_add_up_and_real_progress_resets_them() {
        let now = Instant::now();
        let outage = Outage::new(now);
        let bounds = RetryLimits { outage: &outage, retry_for: RETRY_FOR };
        let breaks = Breaks::default();
        let after = |came| breaks.after(came).next(BROKEN, now, now, bounds, 1.0);
        assert_eq!(after(7), Some(PAUSE_FIRST));
        assert_eq!(after(7), Some(PAUSE_FIRST * 2));
        assert_eq!(after(PROGRESS_MIN), Some(PAUSE_FIRST));
    }
}
