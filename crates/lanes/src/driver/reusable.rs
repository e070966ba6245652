//! What becomes of a lane when a request on it has ended, and of the address it leads to.

use std::time::Duration;

use crate::addresses::{FAILED_FOR, SLOW_FOR};
use crate::error::{Error, Kind};
use crate::h1::H1;

/// How long nothing has come over an h2 connection that is taken for slow because a hedge on another was sooner: on a far path it rests
/// for a round trip between two flights.
const QUIET: Duration = Duration::from_millis(200);

/// A connection on which nothing has moved for so long was idle. Servers keep idle ones for a second or more.
pub(super) const RESTED: Duration = Duration::from_millis(500);

/// Whether a lane can be used again.
pub(crate) enum Reusable {
    No,
    /// It was too quiet under a request whose hedge was sooner.
    Slow,
    /// It was gone before the request came, most likely.
    Stale,
    /// It said nothing to a request that came after others: something on the path has forgotten it, most likely.
    Lost,
    /// It broke off or fell silent under its request.
    Broken,
    H1(Box<H1>),
    H2,
}

impl Reusable {
    /// Of an h1 connection whose request has failed. One that had served others before and brought nothing for this one had
    /// `rested` for a while: most likely the server closed it because it was idle, and the request crossed that.
    pub(super) fn after_h1(error: &Error, rested: Option<Duration>) -> Self {
        let was_idle = rested.is_some_and(|rested| rested >= RESTED);
        match error.kind() {
            Kind::Timeout if was_idle => Self::Lost,
            Kind::Timeout => Self::Broken,
            Kind::Interrupted if was_idle => Self::Stale,
            // Some servers close a connection after so many requests: no fault of its address.
            Kind::Interrupted if rested.is_none() && !error.is_unsent() => Self::Broken,
            _ => Self::No,
        }
    }

    /// Of an h2 connection that has moved nothing for `idle` when a request on it failed. One that moves nothing any more
    /// is not asked again: TCP itself would take a quarter of an hour.
    pub(super) fn after_h2(error: &Error, is_hedged: bool, idle: Duration, timeout: Duration) -> Self {
        match error.kind() {
            Kind::Interrupted if error.is_stale() => Self::Stale,
            Kind::Timeout if idle >= timeout => Self::Broken,
            // Cancelled because a hedge was sooner.
            Kind::Closed if is_hedged && idle >= QUIET => Self::Slow,
            _ => Self::H2,
        }
    }

    /// How long new connections leave its address out.
    pub(super) fn avoided_for(&self) -> Option<Duration> {
        match self {
            Self::Broken | Self::Lost => Some(FAILED_FOR),
            Self::Slow => Some(SLOW_FOR),
            Self::No | Self::Stale | Self::H1(_) | Self::H2 => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(30);

    fn error(kind: Kind) -> Error {
        Error::new(kind, "on purpose")
    }

    #[test]
    fn a_loser_on_a_quiet_connection_makes_its_address_slow_and_not_broken() {
        let after = |is_hedged, idle| Reusable::after_h2(&error(Kind::Closed), is_hedged, idle, TIMEOUT);
        let quiet = after(true, QUIET);
        assert!(matches!(quiet, Reusable::Slow));
        assert_eq!(quiet.avoided_for(), Some(SLOW_FOR));
        assert!(matches!(after(true, QUIET / 2), Reusable::H2), "others come on it");
        assert!(matches!(after(false, TIMEOUT), Reusable::H2), "the caller has gone");
    }

    #[test]
    fn an_h2_connection_that_is_silent_for_too_long_is_broken() {
        let after = |idle| Reusable::after_h2(&error(Kind::Timeout), false, idle, TIMEOUT);
        assert_eq!(after(TIMEOUT).avoided_for(), Some(FAILED_FOR));
        assert!(matches!(after(TIMEOUT / 2), Reusable::H2));
    }

    #[test]
    fn an_h1_connection_that_breaks_off_is_its_address_s_fault_unless_it_was_idle() {
        let after = |error: Error, rested| Reusable::after_h1(&error, rested).avoided_for();
        assert_eq!(after(error(Kind::Interrupted), None), Some(FAILED_FOR));
        let in_use = Some(RESTED / 2);
        assert!(matches!(Reusable::after_h1(&error(Kind::Interrupted), in_use), Reusable::No));
        assert_eq!(after(error(Kind::Interrupted), Some(RESTED)), None);
        assert!(matches!(Reusable::after_h1(&error(Kind::Interrupted), Some(RESTED)), Reusable::Stale));
        assert_eq!(after(error(Kind::Interrupted).unsent(), None), None);
        assert_eq!(
            after(error(Kind::Timeout), Some(RESTED)),
            Some(FAILED_FOR),
            "a closed one would have said so"
        );
        assert_eq!(after(error(Kind::Sink), None), None);
    }
}
