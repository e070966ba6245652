//! Connections that nobody uses: that one ends is seen when it does, and not when the next request is about to go on it.

use std::sync::{Arc, Weak};
use std::task::{Context, Wake, Waker};
use std::time::{Instant, SystemTime};

use rustc_hash::FxHashMap;
use tokio::sync::mpsc::UnboundedSender;

use super::{Command, Driver, Lane};
use crate::dispatch::{Event, LaneId, Rules};
use crate::standstill::{GRACE, LOOK_EVERY};
use crate::stream::Progress;

/// Tells the driver that something has come on a connection that nobody uses. The connection is left where it is: a task of
/// its own would have to be stopped whenever a request takes it.
struct IdleWaker {
    lane: LaneId,
    commands: UnboundedSender<Command>,
}

impl Wake for IdleWaker {
    fn wake(self: Arc<Self>) {
        // After the driver's end nobody listens.
        let _ = self.commands.send(Command::IdleReadable { lane: self.lane });
    }
}

impl Driver {
    /// Watches a lane's connection if nobody uses it. What has come on it is its end, or nothing that was asked for: it is
    /// closed. Multiplexed connections are read all the time, and tell of their end themselves.
    pub(super) fn rest(&mut self, now: Instant, lane: LaneId) {
        let open = self.lanes.get_mut(&lane).and_then(Lane::open_mut);
        let connection = open.and_then(|open| open.connection.as_mut());
        let Some(connection) = connection.filter(|held| !held.protocol().is_multiplexed()) else { return };
        let idle_waker = IdleWaker { lane, commands: self.control.commands.clone() };
        let waker = Waker::from(Arc::new(idle_waker));
        if connection.is_quiet(&mut Context::from_waker(&waker)) {
            return;
        }
        tracing::debug!(lane = lane.0, "closed by the server while idle");
        self.forget(lane);
        self.dispatcher.handle(now, Event::Closed { lane });
        self.carry_out();
    }

    /// Looks whether the machine has stood still. Idle connections are not used again then, and those in use get a moment to
    /// show that they are alive.
    pub(super) fn look_for_a_standstill(&mut self, now: Instant) {
        let is_watched = self.dispatcher.attempts() > 0;
        let Some(stopped) = self.standstill.look(now, SystemTime::now(), is_watched) else { return };
        tracing::info!(?stopped, "everything stood still: idle connections are closed");
        self.dispatcher.handle(now, Event::Slept);
        self.carry_out();
        let suspects: Vec<_> =
            self.lanes.values().filter_map(Lane::open).map(|open| Arc::downgrade(&open.progress)).collect();
        self.control.express.spawn(give_up_the_silent(suspects));
    }

    /// Gives up connections that are silent under their first request while others to the same origin answer. What the server
    /// acknowledges bit by bit is on its way yet.
    pub(super) fn look_for_the_unserved(&mut self, now: Instant) {
        // Under a limit of bandwidth the pauses are Laneway's own.
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
                tracing::info!(lane = lane.0, "given up: it is silent while others are answered");
                self.dispatcher.handle(now, Event::Unserved { lane: *lane });
                if let Some(open) = self.lanes.get(lane).and_then(Lane::open) {
                    open.progress.give_up();
                }
            }
        }
        self.unserved.1 = silent;
    }
}

/// Gives up those connections on which nothing has moved when the grace is over.
async fn give_up_the_silent(suspects: Vec<Weak<Progress>>) {
    tokio::time::sleep(GRACE).await;
    let now = tokio::time::Instant::now().into_std();
    for progress in suspects.iter().filter_map(Weak::upgrade) {
        if progress.idle(now) >= GRACE {
            progress.give_up();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn after_a_stop_connections_in_use_have_three_seconds_to_show_life() {
        let [silent, alive, ended] = [(); 3].map(|()| Arc::new(Progress::new(Arc::default())));
        let moved = |progress: &Progress| progress.note_at(tokio::time::Instant::now().into_std());
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
        let progress = Arc::new(Progress::new(Arc::default()));
        tokio::time::advance(Duration::from_secs(60)).await;
        progress.note_at(tokio::time::Instant::now().into_std());
        give_up_the_silent(vec![Arc::downgrade(&progress)]).await;
        assert!(progress.is_given_up());
    }
}
