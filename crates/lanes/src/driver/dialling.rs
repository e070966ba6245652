//! Dials, from an origin's name to a connection that takes requests.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;

use super::names::Names;
use super::{Carrier, Command, Control, Driver, Lane, LaneStage, OpenLane};
use crate::dispatch::{Event, LaneId, OriginId, Role};
use crate::error::Error;
use crate::shared::Counts;
use crate::stream::Traffic;
use crate::tally::{Count, Tally};
use crate::trace::What;
use crate::{Origin, Scheme};

/// A way to open connections. It chooses what they speak.
pub(crate) trait Transport: Send + Sync {
    /// Returns the addresses that a dial to the origin may connect to.
    ///
    /// # Errors
    /// [`Kind::Resolve`](crate::Kind::Resolve).
    fn resolve<'a>(&'a self, origin: &'a Origin) -> BoxFuture<'a, Result<Vec<SocketAddr>, Error>>;

    /// Opens a connection to one of the addresses, which it tries in this order; `tried` takes how each of them did.
    ///
    /// # Errors
    /// [`Kind::Connect`](crate::Kind::Connect), [`Kind::Certificate`](crate::Kind::Certificate), [`Kind::Tls`](crate::Kind::Tls) or
    /// [`Kind::Timeout`](crate::Kind::Timeout), each naming the host and the cause.
    fn open<'a>(
        &'a self,
        dial: &'a Dial,
        addresses: &'a [SocketAddr],
        tried: &'a mut Tried,
    ) -> BoxFuture<'a, Result<Opened, Error>>;
}

/// A connection that has just been opened.
pub(crate) struct Opened {
    pub(crate) connection: Box<dyn Carrier>,
    /// The round trip as the last handshake flight saw it.
    pub(crate) rtt: Duration,
    /// Where it leads.
    pub(crate) address: SocketAddr,
}

/// A dial's findings about addresses, however it ended.
#[derive(Debug, Default)]
pub(crate) struct Tried {
    /// Those that took no connection, or not before another one did that was begun later.
    pub(crate) failed: Vec<SocketAddr>,
    /// The one that did, until the handshakes above that connection are over.
    pub(crate) half_open: Option<SocketAddr>,
}

impl Driver {
    pub(super) fn dial(&mut self, lane: LaneId, origin: OriginId, role: Role) {
        self.lanes.insert(lane, Lane { origin, stage: LaneStage::Dialling });
        self.control.note(|| What::Dialled { lane: lane.0, role });
        tracing::debug!(lane = lane.0, role = role.name(), "dialling");
        let entry = &self.origins[origin.0];
        let dial = Dial {
            lane,
            role,
            origin: entry.origin.clone(),
            names: Arc::clone(&entry.names),
            traffic: Arc::clone(&entry.traffic),
            tally: entry.tally.clone(),
            control: Arc::clone(&self.control),
        };
        let home = match role {
            Role::Express => &self.control.express,
            Role::Freight => self.control.freight(lane.0),
        };
        home.spawn(dial.run(Arc::clone(&self.transport)));
    }

    pub(super) fn dialled(&mut self, now: Instant, lane: LaneId, outcome: Result<Opened, Error>) {
        match outcome {
            Ok(Opened { connection, rtt, address }) => {
                let Some(dialled) = self.lanes.get_mut(&lane) else { return self.closed_one() };
                let protocol = connection.protocol();
                dialled.stage = LaneStage::Open(OpenLane {
                    address,
                    progress: Arc::clone(connection.progress()),
                    requests_max: connection.requests_max(),
                    connection: Some(connection),
                });
                self.control.note(|| What::Opened { lane: lane.0, protocol });
                self.dispatcher.handle(now, Event::Located { lane, address });
                self.dispatcher.handle(now, Event::Opened { lane, protocol, rtt });
            }
            Err(error) => {
                tracing::info!(lane = lane.0, "no connection: {error}");
                self.control.note(|| What::Closed { lane: lane.0 });
                if let Some(dialled) = self.lanes.get_mut(&lane) {
                    dialled.stage = LaneStage::Failed(error);
                }
                self.dispatcher.handle(now, Event::DialFailed { lane });
                self.carry_out();
                self.lanes.remove(&lane);
            }
        }
    }
}

/// A connection that is being opened: for whom, and who hears of it.
pub(crate) struct Dial {
    pub(crate) lane: LaneId,
    pub(crate) role: Role,
    pub(crate) origin: Origin,
    /// State that the origin's connections share.
    pub(crate) traffic: Arc<Traffic>,
    names: Arc<Names>,
    /// For whom it is dialled.
    tally: Option<Tally>,
    control: Arc<Control>,
}

impl Dial {
    async fn run(self, transport: Arc<dyn Transport>) {
        // Whatever went wrong, no request was on its way yet.
        let outcome = self.open(&*transport).await.map_err(Error::unsent);
        self.control.tell(Command::Dialled { lane: self.lane, outcome });
    }

    async fn open(&self, transport: &dyn Transport) -> Result<Opened, Error> {
        let addresses = self.names.order(&self.origin, transport).await?;
        let mut tried = Tried::default();
        let opened = transport.open(self, &addresses, &mut tried).await;
        self.names.note(&tried);
        let opened = opened?;
        let Opened { connection, rtt, address } = &opened;
        let (lane, role, protocol) = (self.lane.0, self.role.name(), connection.protocol().name());
        tracing::info!(lane, %role, %protocol, ?rtt, %address, "connection opened to {}", self.origin);
        let open = self.counts().connections_open.fetch_add(1, Relaxed) + 1;
        self.counts().connections_peak.fetch_max(open, Relaxed);
        Ok(opened)
    }

    /// Says how far the server is, as the first handshake has shown it.
    pub(crate) fn reached(&self, rtt: Duration) {
        self.control.tell(Command::Reached { lane: self.lane, rtt });
    }

    /// Counts a connection, which is secured, before anything is spoken on it.
    pub(crate) fn connected(&self) {
        let tally = self.tally.as_ref();
        self.counts().add(tally, Count::Connection, 1);
        self.counts().add(tally, Count::Handshake, u64::from(self.origin.scheme == Scheme::Https));
    }

    pub(crate) fn counts(&self) -> &Counts {
        &self.control.shared.counts
    }

    /// Returns what has to be called when the connection has ended, where its protocol tells that.
    pub(crate) fn ended(&self) -> impl FnOnce() + Send + 'static {
        let (lane, control) = (self.lane, Arc::clone(&self.control));
        move || control.tell(Command::Closed { lane })
    }
}
