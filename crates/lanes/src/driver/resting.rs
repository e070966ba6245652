//! Connections that nobody uses: that one ends is seen when it does, and not when the next request is about to go on it.

use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::{Instant, SystemTime};

use tokio::sync::mpsc::UnboundedSender;

use super::{Command, Driver, Lane};
use crate::dispatch::{Event, LaneId};
use crate::standstill::GRACE;

/// Tells the driver that something has come on a connection that nobody uses. The connection is left where it is: a task of
/// its own would have to be stopped whenever a request takes it.
struct Stir {
    lane: LaneId,
    commands: UnboundedSender<Command>,
}

impl Wake for Stir {
    fn wake(self: Arc<Self>) {
        // After the driver's end nobody listens.
        let _ = self.commands.send(Command::Stirred { lane: self.lane });
    }
}

impl Driver {
    /// Watches a lane's connection if nobody uses it. What has come on it is its end, or nothing that was asked for: it is
    /// closed. HTTP/2 connections tell of their end themselves.
    pub(super) fn rest(&mut self, now: Instant, lane: LaneId) {
        let Some(Lane::H1(Some(connection))) = self.lanes.get_mut(&lane) else { return };
        let stir = Stir { lane, commands: self.shared.commands.clone() };
        let waker = Waker::from(Arc::new(stir));
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
        let is_watched = self.dispatcher.works() > 0;
        let Some(stopped) = self.standstill.look(now, SystemTime::now(), is_watched) else { return };
        tracing::info!(?stopped, "everything stood still: idle connections are closed");
        self.dispatcher.handle(now, Event::Slept);
        self.carry_out();
        let suspects: Vec<_> = self.lane_progress.values().map(Arc::downgrade).collect();
        self.shared.express.spawn(async move {
            tokio::time::sleep(GRACE).await;
            for progress in suspects.iter().filter_map(std::sync::Weak::upgrade) {
                if progress.idle(Instant::now()) >= GRACE {
                    progress.give_up();
                }
            }
        });
    }
}
