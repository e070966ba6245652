//! The endpoint's clock, whose time is used to sign requests. S3 refuses signatures that are 15 minutes off
//! (<https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html>, `RequestTimeTooSkewed`).

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

/// If S3 refuses a request without a reason and the clocks differ by at least this many seconds, Laneway assumes that
/// the clock is the cause. The answer to a HEAD never has a reason, because it has no body. The value is a minute less
/// than S3's tolerance.
const SKEW_SILENT_S: i64 = 14 * 60;

/// The tolerance in seconds when the `Date` headers of two answers are compared. A `Date` has whole seconds, and some
/// time has passed when Laneway reads it.
const DATES_DIFFER_S: i64 = 60;

/// This machine's clock, corrected by the `Date` headers of the endpoint's answers.
#[derive(Debug, Default)]
pub(super) struct Clock {
    ahead_s: AtomicI64,
}

impl Clock {
    /// Returns the endpoint's time for the local time `local`.
    pub(super) fn at(&self, local: SystemTime) -> SystemTime {
        let ahead_s = self.ahead_s.load(Ordering::Acquire);
        let ahead = Duration::from_secs(ahead_s.unsigned_abs());
        let corrected = if ahead_s < 0 { local.checked_sub(ahead) } else { local.checked_add(ahead) };
        corrected.unwrap_or(local)
    }

    /// Corrects the clock by the `Date` of an answer that refused a signature because of its time, or without a reason.
    /// Returns true if the request can succeed with a new signature. `date` is compared with this machine's uncorrected
    /// clock, because another request may already have made the correction.
    pub(super) fn correct(&self, date: SystemTime, local: SystemTime, is_silent: bool) -> bool {
        let ahead_s = seconds_between(local, date);
        if is_silent && ahead_s.abs() < SKEW_SILENT_S {
            return false;
        }
        if seconds_between(self.at(local), date).abs() >= DATES_DIFFER_S {
            self.ahead_s.store(ahead_s, Ordering::Release);
            tracing::info!(
                ahead_s,
                "this machine's clock differs from the store's, so requests are signed with the store's time"
            );
        }
        true
    }
}

fn seconds_between(from: SystemTime, to: SystemTime) -> i64 {
    let signed = |duration: Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    match to.duration_since(from) {
        Ok(later) => signed(later),
        Err(earlier) => -signed(earlier.duration()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_corrected_by_the_date_and_only_where_it_is_wrong() {
        let local = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let hour = Duration::from_secs(3600);
        for date in [local + hour, local - hour] {
            let clock = Clock::default();
            assert_eq!(clock.at(local), local);
            assert!(clock.correct(date, local, false));
            assert_eq!(clock.at(local), date);
            assert!(clock.correct(date + Duration::from_secs(5), local, false), "others of the same burst");
            assert_eq!(clock.at(local + hour), date + hour);
        }
    }

    #[test]
    fn a_silent_refusal_is_about_the_clock_only_where_that_is_far_off() {
        let (clock, local) = (Clock::default(), SystemTime::now());
        assert!(!clock.correct(local + Duration::from_secs(13 * 60), local, true));
        assert!(clock.correct(local + Duration::from_secs(16 * 60), local, true));
    }
}
