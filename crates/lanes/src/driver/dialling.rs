//! Dials, from an origin's name to a connection that takes requests.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use super::names::Names;
use super::{Command, Connection, Control, Driver, Lane, Opened};
use crate::dial::{Dialed, Dialer, Tried};
use crate::dispatch::{Event, LaneId, OriginId, Role};
use crate::error::{Error, Kind};
use crate::h1::H1;
use crate::h2::H2;
use crate::stream::{Progress, Traffic};
use crate::tally::{Count, Tally};
use crate::trace::What;
use crate::{Origin, Protocol, Scheme};

impl Driver {
    pub(super) fn dial(&mut self, lane: LaneId, origin: OriginId, role: Role) {
        self.lanes.insert(lane, Lane::Dialling);
        self.control.note(|| What::Dialled { lane: lane.0, role });
        self.lane_origins.insert(lane, origin);
        tracing::debug!(lane = lane.0, role = role.name(), "dialling");
        let entry = &self.origins[origin.0];
        let dial = Dial {
            lane,
            role,
            origin: entry.origin.clone(),
            names: Arc::clone(&entry.names),
            traffic: Arc::clone(&entry.traffic),
            dialer: Arc::clone(&self.dialer),
            tally: entry.tally.clone(),
            control: Arc::clone(&self.control),
        };
        let home = match role {
            Role::Express => &self.control.express,
            Role::Freight => self.control.freight(lane.0),
        };
        home.spawn(dial.run());
    }

    pub(super) fn dialled(&mut self, now: Instant, lane: LaneId, outcome: Result<Opened, Error>) {
        match outcome {
            Ok(Opened { connection, rtt, address }) => {
                let (entry, protocol, progress) = match connection {
                    Connection::H1(c) => {
                        let progress = c.progress();
                        (Lane::H1(Some(c)), Protocol::H1, progress)
                    }
                    Connection::H2(c) => {
                        let (streams_max, progress) = (c.streams_max(), c.progress());
                        (Lane::H2 { connection: c, streams_max }, Protocol::H2, progress)
                    }
                };
                if !self.lanes.contains_key(&lane) {
                    self.closed_one();
                    return;
                }
                self.lanes.insert(lane, entry);
                self.lane_addresses.insert(lane, address);
                self.lane_progress.insert(lane, progress);
                self.control.note(|| What::Opened { lane: lane.0, protocol });
                self.dispatcher.handle(now, Event::Located { lane, address });
                self.dispatcher.handle(now, Event::Opened { lane, protocol, rtt });
            }
            Err(error) => {
                tracing::info!(lane = lane.0, "no connection: {error}");
                self.lanes.remove(&lane);
                self.control.note(|| What::Closed { lane: lane.0 });
                self.dial_errors.insert(lane, error);
                self.dispatcher.handle(now, Event::DialFailed { lane });
                self.carry_out();
                self.dial_errors.remove(&lane);
                self.lane_origins.remove(&lane);
            }
        }
    }
}

struct Dial {
    lane: LaneId,
    role: Role,
    origin: Origin,
    names: Arc<Names>,
    traffic: Arc<Traffic>,
    dialer: Arc<Dialer>,
    /// For whom it is dialled.
    tally: Option<Tally>,
    control: Arc<Control>,
}

impl Dial {
    async fn run(self) {
        // Whatever went wrong, no request was on its way yet.
        let outcome = self.open().await.map_err(Error::unsent);
        self.control.tell(Command::Dialled { lane: self.lane, outcome });
    }

    async fn open(&self) -> Result<Opened, Error> {
        let dialed = self.connect().await?;
        let counts = &self.control.shared.counts;
        let tally = self.tally.as_ref();
        counts.add(tally, Count::Connection, 1);
        counts.add(tally, Count::Handshake, u64::from(self.origin.scheme == Scheme::Https));
        let Dialed { stream, protocol, rtt, progress, address, absolute_form } = dialed;
        let connection = match protocol {
            Protocol::H2 => {
                let (lane, control) = (self.lane, Arc::clone(&self.control));
                let ended = move || control.tell(Command::Closed { lane });
                let h2 = H2::open(stream, progress, lane, self.role, ended).await?;
                counts.connections_h2.fetch_add(1, Relaxed);
                Connection::H2(h2)
            }
            _ => {
                counts.connections_h1.fetch_add(1, Relaxed);
                Connection::H1(Box::new(H1::new(stream, progress, absolute_form)))
            }
        };
        let (lane, role, protocol) = (self.lane.0, self.role.name(), protocol.name());
        tracing::info!(lane, %role, %protocol, ?rtt, %address, "connection opened to {}", self.origin);
        let open = counts.connections_open.fetch_add(1, Relaxed) + 1;
        counts.connections_peak.fetch_max(open, Relaxed);
        Ok(Opened { connection, rtt, address })
    }

    async fn connect(&self) -> Result<Dialed, Error> {
        let addresses = self.names.order(&self.origin, &self.dialer).await?;
        // Bulk goes over h1 where it is offered: there each body has a window and a core of its own.
        let only = (self.role == Role::Freight).then_some(Protocol::H1);
        let reached = |rtt| self.control.tell(Command::Reached { lane: self.lane, rtt });
        let progress = || {
            let progress = Progress::new(Arc::clone(&self.traffic));
            // From the first answer on the server may send no more ahead than it should.
            progress.receives(self.role);
            Arc::new(progress)
        };
        let mut tried = Tried::default();
        let dialed = self.dialer.dial(&self.origin, only, &addresses, &mut tried, progress(), reached).await;
        let dialed = match dialed {
            Err(e) if only.is_some() && e.kind() == Kind::Tls => {
                // A server that speaks h2 alone ends such a handshake; it gets what it can.
                self.dialer.dial(&self.origin, None, &addresses, &mut tried, progress(), reached).await
            }
            other => other,
        };
        self.names.note(&tried, dialed.is_ok());
        dialed
    }
}
