//! Standstills of the machine, or of this process: a laptop that slept, a paused virtual machine, a stopped process.
//!
//! The other end of a connection goes on meanwhile, and forgets it.

use std::time::{Duration, Instant, SystemTime};

/// The interval in which the driver has to look while requests are under way, so that a stop shows as a look that comes late.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The shortest delay that is taken for a stop. A busy machine delays a thread by less, and no server drops a connection that was silent
/// for so short a time.
const STOP_MIN: Duration = Duration::from_secs(10);

/// The time for which a connection in use may stay silent after a stop: one that is alive is acknowledged within a few round
/// trips.
pub(crate) const GRACE: Duration = Duration::from_secs(3);

/// Compares clocks.
#[derive(Debug, Default)]
pub(crate) struct Standstill {
    last: Option<(Instant, SystemTime, bool)>,
}

impl Standstill {
    /// Takes a look; `is_watched` is whether the next one comes within [`LOOK_EVERY`]. Returns for how long everything
    /// stood still since the last one. The monotonic clock stops with a machine that sleeps, where the other goes on; of a
    /// process that is stopped both do.
    pub(crate) fn look(&mut self, now: Instant, wall: SystemTime, is_watched: bool) -> Option<Duration> {
        let (last, last_wall, was_watched) = self.last.replace((now, wall, is_watched))?;
        let ran = now.saturating_duration_since(last);
        let slept = wall.duration_since(last_wall).unwrap_or_default().saturating_sub(ran);
        let late = if was_watched { ran.saturating_sub(LOOK_EVERY) } else { Duration::ZERO };
        Some(slept.max(late)).filter(|stopped| *stopped >= STOP_MIN)
    }

    /// When the next look is due, where one is expected.
    pub(crate) fn next_look(&self) -> Option<Instant> {
        self.last.filter(|(_, _, is_watched)| *is_watched).map(|(last, ..)| last + LOOK_EVERY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what is found after the monotonic clock has gone on by so many seconds, and the wall's by so many.
    fn found(was_watched: bool, ran: u64, wall: u64) -> Option<Duration> {
        let (mut standstill, now, then) = (Standstill::default(), Instant::now(), SystemTime::now());
        assert_eq!(standstill.look(now, then, was_watched), None);
        standstill.look(now + Duration::from_secs(ran), then + Duration::from_secs(wall), was_watched)
    }

    #[test]
    fn a_machine_that_slept_shows_by_its_clocks() {
        assert_eq!(found(true, 1, 61), Some(Duration::from_secs(60)));
        assert_eq!(found(false, 3600, 3660), Some(Duration::from_secs(60)));
    }

    #[test]
    fn a_process_that_was_stopped_shows_by_a_look_that_comes_late() {
        assert_eq!(found(true, 61, 61), Some(Duration::from_secs(60)));
        assert_eq!(found(false, 61, 61), None, "nobody was to look");
    }

    #[test]
    fn a_busy_machine_and_a_clock_that_is_set_a_little_or_back_are_no_stop() {
        assert_eq!(found(true, 4, 4), None);
        assert_eq!(found(true, 1, 6), None);
        let (mut standstill, now, wall) = (Standstill::default(), Instant::now(), SystemTime::now());
        standstill.look(now, wall, true);
        assert_eq!(standstill.look(now + LOOK_EVERY, wall - Duration::from_secs(3600), true), None);
    }
}
