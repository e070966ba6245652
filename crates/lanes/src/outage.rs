//! The outage of an origin: a time in which it answers none of our requests.
//!
//! Servers restart, networks change, and a front end answers 502 until its back ends are up. Such a failure concerns all requests to the
//! origin. So the length of an outage is measured per origin. If it lasts too long, all calls to the origin end together.

use std::time::{Duration, Instant};

use http::StatusCode;

use crate::threads::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use crate::threads::{Mutex, MutexGuard, PoisonError};

/// The target of two log events. The first says that an origin has answered no request for a second. The second says that this origin
/// answers again. Both have the fields `origin` and `is_away`. The first also has `cause` and `retry_for_ms`, and the second has
/// `after_ms`.
pub const ORIGIN: &str = "laneway::origin";

/// If the last failure is longer ago than this, no request was made meanwhile, and the next failure begins a new outage. The time is longer
/// than the sum of the longest pause between attempts and the usual no-progress timeout.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

/// If a request was sent less than this time ago, its answer can still come, so calls don't give up yet. In this time, a TLS handshake and
/// a request can be completed with any region.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// An outage that ends sooner is not reported.
const REPORTED_AFTER: Duration = Duration::from_secs(1);

/// Records an origin's signs of life. The receivers of its answers call it on any thread.
#[derive(Debug)]
pub(crate) struct Outage {
    born: Instant,
    /// The time of the last sign of life, in microseconds after `born`, plus one. 0 means that there was none yet.
    heard: AtomicU64,
    /// The time when the last request was put on a connection, in the same form as `heard`.
    sent: AtomicU64,
    /// True once the origin has answered with any status.
    has_answered: AtomicBool,
    /// The number of calls that wait for an answer or for their next attempt.
    asking: AtomicU64,
    state: Mutex<OutageState>,
}

/// A call that waits for an origin.
#[derive(Debug)]
pub(crate) struct OutageWaiter<'a>(&'a Outage);

impl Drop for OutageWaiter<'_> {
    fn drop(&mut self) {
        self.0.asking.fetch_sub(1, Relaxed);
    }
}

#[derive(Debug, Default)]
struct OutageState {
    /// The time when the silence began, and the time of the last failed attempt.
    away: Option<(Instant, Instant)>,
    is_reported: bool,
}

impl Outage {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            born: now,
            heard: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            asking: AtomicU64::new(0),
            has_answered: AtomicBool::new(false),
            state: Mutex::default(),
        }
    }

    /// Records an answer. Only some statuses are a sign of life.
    pub(crate) fn answered(&self, now: Instant, status: StatusCode) {
        self.has_answered.store(true, Relaxed);
        // These statuses mean that the server has failed, or that it refuses our requests for now.
        if !matches!(status.as_u16(), 408 | 429 | 500 | 502 | 503 | 504) {
            self.heard(now);
        }
    }

    /// Returns for how long calls retry. If the origin has never answered, it may not exist. In this case, returns the shorter of the two
    /// times.
    pub(crate) fn is_tried_for(&self, retry_for: Duration, unanswered: Duration) -> Duration {
        if self.has_answered.load(Relaxed) { retry_for } else { retry_for.min(unanswered) }
    }

    /// Counts a call as waiting for the origin, until the result is dropped.
    pub(crate) fn asked(&self) -> OutageWaiter<'_> {
        self.asking.fetch_add(1, Relaxed);
        OutageWaiter(self)
    }

    /// Returns the time of the last sign of life, or `None` if no call waits for the origin. `Some(None)` means that a call waits and there
    /// was no sign of life yet.
    pub(crate) fn awaited_since(&self) -> Option<Option<Instant>> {
        (self.asking.load(Relaxed) > 0).then(|| self.last_heard())
    }

    /// Records a sign of life.
    pub(crate) fn heard(&self, now: Instant) {
        self.heard.fetch_max(self.micros(now), Relaxed);
    }

    /// Records that a request is put on a connection.
    pub(crate) fn sent(&self, now: Instant) {
        self.sent.fetch_max(self.micros(now), Relaxed);
    }

    /// Returns whether there was a sign of life after `then`.
    pub(crate) fn heard_since(&self, then: Instant) -> bool {
        self.last_heard().is_some_and(|heard| heard > then)
    }

    /// Records an attempt that failed after a silence of `silent`.
    pub(crate) fn failed(&self, now: Instant, silent: Duration) {
        let heard = self.last_heard();
        let mut state = self.lock();
        let goes_on = |(since, last): &(Instant, Instant)| {
            heard.is_none_or(|heard| heard <= *since)
                && now.saturating_duration_since(*last) < FORGOTTEN_AFTER + silent
        };
        let since = match state.away.filter(goes_on) {
            Some((since, _)) => since,
            None => {
                let began = now.checked_sub(silent).unwrap_or(now);
                heard.map_or(began, |heard| heard.max(began).min(now))
            }
        };
        state.away = Some((since, now));
    }

    /// Returns how long the current outage has lasted, or zero if there is none.
    pub(crate) fn lasts(&self, now: Instant) -> Duration {
        let away = self.lock().away;
        let since = away.map(|(since, _)| since).filter(|since| !self.heard_since(*since));
        since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }

    /// Returns how much time calls have left for further attempts.
    pub(crate) fn left(&self, now: Instant, retry_for: Duration) -> Duration {
        let lasts = self.lasts(now);
        let sent = self.instant(&self.sent).map_or(Duration::MAX, |at| now.saturating_duration_since(at));
        // Calls get this extra time for a request in flight only once, no matter how many requests follow.
        let grace =
            ANSWER_WITHIN.min(retry_for / 4).saturating_sub(sent.max(lasts.saturating_sub(retry_for)));
        retry_for.saturating_sub(lasts).max(grace)
    }

    /// Returns whether the outage has lasted for as long as calls retry. If `retry_for` is zero, it returns false, because a single failure
    /// says nothing about the origin.
    pub(crate) fn is_given_up(&self, now: Instant, retry_for: Duration) -> bool {
        !retry_for.is_zero() && self.left(now, retry_for).is_zero()
    }

    /// Returns whether to report now that the origin is away. It returns true only once per outage.
    pub(crate) fn is_to_be_reported(&self, now: Instant) -> bool {
        let lasts = self.lasts(now);
        lasts >= REPORTED_AFTER && !std::mem::replace(&mut self.lock().is_reported, true)
    }

    /// Returns the length of a reported outage that has ended. It returns `Some` only once per outage.
    pub(crate) fn is_over(&self, now: Instant) -> Option<Duration> {
        let mut state = self.lock();
        let (since, _) = state.away.filter(|_| state.is_reported)?;
        if !self.heard_since(since) {
            return None;
        }
        state.is_reported = false;
        state.away = None;
        Some(now.saturating_duration_since(since))
    }

    fn last_heard(&self) -> Option<Instant> {
        self.instant(&self.heard)
    }

    fn micros(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.born).as_micros() as u64 + 1
    }

    fn instant(&self, micros: &AtomicU64) -> Option<Instant> {
        Some(self.born + Duration::from_micros(micros.load(Relaxed).checked_sub(1)?))
    }

    fn lock(&self) -> MutexGuard<'_, OutageState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    /// Reports an attempt that failed after `silent` seconds of silence, and returns the length of the outage.
    fn failed(outage: &Outage, now: Instant, silent: u64) -> Duration {
        outage.failed(now, secs(silent));
        outage.lasts(now)
    }

    #[test]
    fn it_lasts_from_the_first_failure_to_the_next_sign_of_life_whoever_fails() {
        let now = Instant::now();
        let outage = Outage::new(now);
        assert_eq!(failed(&outage, now, 0), Duration::ZERO);
        assert_eq!(failed(&outage, now + secs(7), 0), secs(7));
        assert_eq!(outage.lasts(now + secs(9)), secs(9));
        outage.heard(now + secs(10));
        assert_eq!(outage.lasts(now + secs(11)), Duration::ZERO);
        assert_eq!(failed(&outage, now + secs(12), 0), Duration::ZERO, "another begins");
    }

    #[test]
    fn nothing_is_given_up_while_a_request_may_be_answered_that_was_just_sent() {
        let now = Instant::now();
        let outage = Outage::new(now);
        outage.failed(now, Duration::ZERO);
        outage.sent(now + secs(119));
        assert!(!outage.is_given_up(now + secs(120), secs(120)));
        assert_eq!(outage.left(now + secs(120), secs(120)), secs(1));
        assert!(outage.is_given_up(now + secs(121), secs(120)));
        outage.sent(now + secs(122));
        assert!(outage.is_given_up(now + secs(122), secs(120)), "not for ever");
    }

    #[test]
    fn an_origin_that_has_never_answered_is_tried_for_a_shorter_time() {
        let now = Instant::now();
        let outage = Outage::new(now);
        assert_eq!(outage.is_tried_for(secs(120), secs(15)), secs(15));
        assert_eq!(outage.is_tried_for(secs(2), secs(15)), secs(2));
        outage.answered(now, StatusCode::BAD_GATEWAY);
        assert_eq!(outage.is_tried_for(secs(120), secs(15)), secs(120));
        assert!(!outage.heard_since(now - secs(1)), "it is not at work yet");
    }

    #[test]
    fn an_origin_is_given_up_when_it_was_away_for_as_long_as_is_tried_again() {
        let now = Instant::now();
        let outage = Outage::new(now);
        assert!(!outage.is_given_up(now, secs(120)), "no request was made");
        outage.failed(now, Duration::ZERO);
        assert!(!outage.is_given_up(now + secs(119), secs(120)));
        assert!(outage.is_given_up(now + secs(120), secs(120)));
        assert!(!outage.is_given_up(now + secs(120), Duration::ZERO), "nothing is tried again");
        outage.heard(now + secs(121));
        assert!(!outage.is_given_up(now + secs(122), secs(120)));
    }

    #[test]
    fn a_silence_counts_from_its_beginning_but_not_from_before_a_sign_of_life() {
        let now = Instant::now();
        let outage = Outage::new(now);
        assert_eq!(failed(&outage, now + secs(30), 30), secs(30));
        let outage = Outage::new(now);
        outage.heard(now + secs(20));
        assert_eq!(failed(&outage, now + secs(30), 30), secs(10));
    }

    #[test]
    fn what_nobody_has_asked_for_long_is_not_away_since_then() {
        let now = Instant::now();
        let outage = Outage::new(now);
        outage.failed(now, Duration::ZERO);
        assert_eq!(failed(&outage, now + secs(3600), 0), Duration::ZERO);
    }

    #[test]
    fn an_origin_is_awaited_while_calls_ask_it() {
        let now = Instant::now();
        let outage = Outage::new(now);
        assert_eq!(outage.awaited_since(), None);
        let (first, second) = (outage.asked(), outage.asked());
        assert_eq!(outage.awaited_since(), Some(None));
        outage.heard(now + secs(1));
        drop(first);
        assert_eq!(outage.awaited_since(), Some(Some(now + secs(1))));
        drop(second);
        assert_eq!(outage.awaited_since(), None);
    }

    #[test]
    fn each_change_is_reported_once_and_a_short_outage_not_at_all() {
        let now = Instant::now();
        let outage = Outage::new(now);
        outage.failed(now, Duration::ZERO);
        assert!(!outage.is_to_be_reported(now + REPORTED_AFTER / 2));
        assert!(outage.is_to_be_reported(now + REPORTED_AFTER) && !outage.is_to_be_reported(now + secs(5)));
        assert_eq!(outage.is_over(now + secs(5)), None);
        outage.heard(now + secs(6));
        assert_eq!((outage.is_over(now + secs(6)), outage.is_over(now + secs(7))), (Some(secs(6)), None));
    }
}
