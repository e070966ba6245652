//! Watches idle connections, and checks all connections after the machine was suspended. The driver notices as soon as the server closes an
//! idle connection, so the next request isn't sent on it.

use std::sync::{Arc, Weak};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant, SystemTime};

use rustc_hash::FxHashMap;
use tokio::sync::mpsc::UnboundedSender;

use super::{Driver, DriverCommand, LaneSlot};
use crate::dispatch::{DispatchEvent, LaneId, Rules};
use crate::stream::IoProgress;

/// A waker that reports to the driver that an idle connection has become readable. An idle connection has no task of its own, because each
/// new request would have to stop the task.
struct IdleWaker {
    lane: LaneId,
    commands: UnboundedSender<DriverCommand>,
}

impl Wake for IdleWaker {
    fn wake(self: Arc<Self>) {
        // This fails if the driver has ended.
        let _ = self.commands.send(DriverCommand::IdleReadable { lane: self.lane });
    }
}

impl Driver {
    /// Watches a lane's connection while it is idle. If it becomes readable, the server has closed it or sent unexpected bytes, so we close
    /// it. Multiplexed connections are always being read, and report their end themselves.
    pub(super) fn rest(&mut self, now: Instant, lane: LaneId) {
        let open = self.lanes.get_mut(&lane).and_then(LaneSlot::open_mut);
        let connection = open.and_then(|open| open.connection.as_mut());
        let Some(connection) = connection.filter(|held| !held.protocol().is_multiplexed()) else { return };
        let idle_waker = IdleWaker { lane, commands: self.control.commands.clone() };
        let waker = Waker::from(Arc::new(idle_waker));
        if connection.is_quiet(&mut Context::from_waker(&waker)) {
            return;
        }
        tracing::debug!(lane = lane.0, "closed by the server while idle");
        self.forget(lane);
        self.dispatcher.handle(now, DispatchEvent::Closed { lane });
        self.carry_out();
    }

    /// Checks if the machine or this process was suspended. If so, it closes idle connections. Connections in use are closed only if they
    /// make no progress within [`GRACE`].
    pub(super) fn look_for_a_standstill(&mut self, now: Instant) {
        let is_watched = self.dispatcher.attempts() > 0;
        let Some(stopped) = self.standstill.look(now, SystemTime::now(), is_watched) else { return };
        tracing::info!(?stopped, "this machine or process was suspended: closing idle connections");
        self.dispatcher.handle(now, DispatchEvent::Slept);
        self.carry_out();
        let suspects: Vec<_> = self
            .lanes
            .values()
            .filter_map(LaneSlot::open)
            .map(|open| Arc::downgrade(&open.progress))
            .collect();
        self.control.express.spawn(give_up_the_silent(suspects));
    }

    /// Closes connections whose first request has no answer, while other connections to the same origin get answers. A connection stays
    /// open if the server has acknowledged more bytes since the last check.
    pub(super) fn look_for_the_unserved(&mut self, now: Instant) {
        // With a bandwidth limit, Laneway itself makes pauses. So silence doesn't show that the server ignores the connection.
        let is_paced = self.control.shared.pace.is_some();
        if is_paced || self.unserved.0.is_some_and(|last| now < last + LOOK_EVERY) {
            return;
        }
        self.unserved.0 = Some(now);
        let silent = self.dispatcher.silent(now).filter_map(|lane| {
            let progress = &self.lanes.get(&lane)?.open()?.progress;
            (!progress.may_be_silent() && progress.idle(now) >= Rules::CHOSEN.silent_max)
                .then(|| (lane, progress.unacknowledged()))
        });
        let silent: FxHashMap<_, _> = silent.collect();
        for (lane, unacknowledged) in &silent {
            if self.unserved.1.get(lane) == Some(unacknowledged) {
                tracing::info!(
                    lane = lane.0,
                    "closing a connection without an answer, while others get answers"
                );
                self.dispatcher.handle(now, DispatchEvent::Unserved { lane: *lane });
                if let Some(open) = self.lanes.get(lane).and_then(LaneSlot::open) {
                    open.progress.give_up();
                }
            }
        }
        self.unserved.1 = silent;
    }
}

/// Closes those connections on which nothing has moved during the grace time.
async fn give_up_the_silent(suspects: Vec<Weak<IoProgress>>) {
    tokio::time::sleep(GRACE).await;
    let now = tokio::time::Instant::now().into_std();
    for progress in suspects.iter().filter_map(Weak::upgrade) {
        if progress.idle(now) >= GRACE {
            progress.give_up();
        }
    }
}

// Standstills of the machine or of this process: a laptop that slept, a paused virtual machine, or a stopped process. The server continues
// to run, and may close the connection meanwhile.

/// The interval of the driver's checks while there are requests. A check that comes much too late shows a standstill.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The minimum delay that counts as a standstill. A busy machine delays a thread by less, and no server drops a connection in less time.
const STOP_MIN: Duration = Duration::from_secs(10);

/// The time that a connection in use has to make progress after a standstill. A connection that still works gets an acknowledgement within
/// a few round trips.
pub(crate) const GRACE: Duration = Duration::from_secs(3);

/// Detects standstills by comparing two clocks.
#[derive(Debug, Default)]
pub(crate) struct Standstill {
    last: Option<(Instant, SystemTime, bool)>,
}

impl Standstill {
    /// Compares the clocks. `is_watched` says if the next call comes within [`LOOK_EVERY`]. Returns how long everything stood still since
    /// the last call. While a machine sleeps, the monotonic clock stops and the wall clock continues. While a process is stopped, both
    /// continue.
    pub(crate) fn look(&mut self, now: Instant, wall: SystemTime, is_watched: bool) -> Option<Duration> {
        let (last, last_wall, was_watched) = self.last.replace((now, wall, is_watched))?;
        let ran = now.saturating_duration_since(last);
        let slept = wall.duration_since(last_wall).unwrap_or_default().saturating_sub(ran);
        let late = if was_watched { ran.saturating_sub(LOOK_EVERY) } else { Duration::ZERO };
        Some(slept.max(late)).filter(|stopped| *stopped >= STOP_MIN)
    }

    /// Returns the time of the next check, if there must be one.
    pub(crate) fn next_look(&self) -> Option<Instant> {
        self.last.filter(|(_, _, is_watched)| *is_watched).map(|(last, ..)| last + LOOK_EVERY)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn after_a_stop_connections_in_use_have_three_seconds_to_show_life() {
        let [silent, alive, ended] = [(); 3].map(|()| Arc::new(IoProgress::new(Arc::default())));
        let moved = |progress: &IoProgress| progress.note_at(tokio::time::Instant::now().into_std());
        tokio::time::advance(Duration::from_secs(60)).await;
        let grace = tokio::spawn(give_up_the_silent([&silent, &alive, &ended].map(Arc::downgrade).into()));
        drop(ended);
        tokio::time::sleep(GRACE - Duration::from_millis(10)).await;
        assert!(!silent.is_given_up(), "the grace is not over");
        moved(&alive);
        grace.await.expect("it ends");
        assert!(silent.is_given_up() && !alive.is_given_up());
    }

    #[tokio::test(start_paused = true)]
    async fn what_moved_before_the_grace_began_and_not_since_is_given_up() {
        let progress = Arc::new(IoProgress::new(Arc::default()));
        tokio::time::advance(Duration::from_secs(60)).await;
        progress.note_at(tokio::time::Instant::now().into_std());
        give_up_the_silent(vec![Arc::downgrade(&progress)]).await;
        assert!(progress.is_given_up());
    }

    /// Returns the result of a check after the monotonic clock and the wall clock have advanced by `ran` and `wall` seconds.
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
        assert_eq!(found(false, 61, 61), None, "no look was due");
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
