//! Dials: resolves an origin's name, and opens a connection to one of its addresses.

use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;

use super::{Driver, DriverCommand, DriverHandle, DynConnection, LaneSlot, LaneStage, OpenLane};
use crate::addresses::{Addresses, FAILED_FOR};
use crate::dispatch::{DispatchEvent, LaneId, OriginId, Role};
use crate::error::Error;
use crate::shared::CounterCells;
use crate::stream::Traffic;
use crate::tally::{Metric, Tally};
use crate::trace::TraceEvent;
use crate::{Origin, Scheme};

/// Opens connections, and chooses their protocol.
pub(crate) trait Transport: Send + Sync {
    /// Returns the addresses to which a dial for the origin may connect.
    ///
    /// # Errors
    /// [`Kind::Resolve`](crate::Kind::Resolve).
    fn resolve<'a>(&'a self, origin: &'a Origin) -> BoxFuture<'a, Result<Vec<SocketAddr>, Error>>;

    /// Opens a connection to one of the addresses, which are tried in this order. Stores in `tried` which of them failed.
    ///
    /// # Errors
    /// [`Kind::Connect`](crate::Kind::Connect), [`Kind::Certificate`](crate::Kind::Certificate), [`Kind::Tls`](crate::Kind::Tls) or
    /// [`Kind::Timeout`](crate::Kind::Timeout), each naming the host and the cause.
    fn open<'a>(
        &'a self,
        dial: &'a Dial,
        addresses: &'a [SocketAddr],
        tried: &'a mut DialReport,
    ) -> BoxFuture<'a, Result<NewConnection, Error>>;
}

/// A connection that has just been opened.
pub(crate) struct NewConnection {
    pub(crate) connection: Box<dyn DynConnection>,
    /// The round trip that the last handshake measured.
    pub(crate) rtt: Duration,
    /// The server's address.
    pub(crate) address: SocketAddr,
}

/// The addresses to avoid after a dial, which may have succeeded or failed.
#[derive(Debug, Default)]
pub(crate) struct DialReport {
    /// Addresses that accepted no connection, or were slower than one that was tried later.
    pub(crate) failed: Vec<SocketAddr>,
    /// The address that accepted the TCP connection, until the further handshakes have succeeded.
    pub(crate) half_open: Option<SocketAddr>,
}

impl Driver {
    pub(super) fn dial(&mut self, lane: LaneId, origin: OriginId, role: Role) {
        self.lanes.insert(lane, LaneSlot { origin, stage: LaneStage::Dialling });
        self.control.note(|| TraceEvent::Dialled { lane: lane.0, role });
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

    pub(super) fn dialled(&mut self, now: Instant, lane: LaneId, outcome: Result<NewConnection, Error>) {
        match outcome {
            Ok(NewConnection { connection, rtt, address }) => {
                let Some(dialled) = self.lanes.get_mut(&lane) else { return self.closed_one() };
                let protocol = connection.protocol();
                dialled.stage = LaneStage::Open(OpenLane {
                    address,
                    progress: Arc::clone(connection.progress()),
                    requests_max: connection.requests_max(),
                    connection: Some(connection),
                });
                self.control.note(|| TraceEvent::Opened { lane: lane.0, protocol });
                self.dispatcher.handle(now, DispatchEvent::Located { lane, address });
                self.dispatcher.handle(now, DispatchEvent::Opened { lane, protocol, rtt });
            }
            Err(error) => {
                tracing::info!(lane = lane.0, "no connection: {error}");
                self.control.note(|| TraceEvent::Closed { lane: lane.0 });
                if let Some(dialled) = self.lanes.get_mut(&lane) {
                    dialled.stage = LaneStage::Failed(error);
                }
                self.dispatcher.handle(now, DispatchEvent::DialFailed { lane });
                self.carry_out();
                self.lanes.remove(&lane);
            }
        }
    }
}

/// A connection that is being opened.
pub(crate) struct Dial {
    pub(crate) lane: LaneId,
    pub(crate) role: Role,
    pub(crate) origin: Origin,
    /// State that the origin's connections share.
    pub(crate) traffic: Arc<Traffic>,
    names: Arc<HostAddresses>,
    /// The tally in which the connection is counted.
    tally: Option<Tally>,
    control: Arc<DriverHandle>,
}

impl Dial {
    async fn run(self, transport: Arc<dyn Transport>) {
        // If this fails, no request was sent on the connection, so any request may be sent again.
        let outcome = self.open(&*transport).await.map_err(Error::unsent);
        self.control.tell(DriverCommand::Dialled { lane: self.lane, outcome });
    }

    async fn open(&self, transport: &dyn Transport) -> Result<NewConnection, Error> {
        let addresses = self.names.order(&self.origin, transport).await?;
        let mut tried = DialReport::default();
        let opened = transport.open(self, &addresses, &mut tried).await;
        self.names.note(&tried);
        let opened = opened?;
        let NewConnection { connection, rtt, address } = &opened;
        let (lane, role, protocol) = (self.lane.0, self.role.name(), connection.protocol().name());
        tracing::info!(lane, %role, %protocol, ?rtt, %address, "connection opened to {}", self.origin);
        let open = self.counts().connections_open.fetch_add(1, Relaxed) + 1;
        self.counts().connections_peak.fetch_max(open, Relaxed);
        Ok(opened)
    }

    /// Reports the round trip that the TCP handshake has measured.
    pub(crate) fn reached(&self, rtt: Duration) {
        self.control.tell(DriverCommand::Reached { lane: self.lane, rtt });
    }

    /// Counts the connection after its TLS handshake, before the first request.
    pub(crate) fn connected(&self) {
        let tally = self.tally.as_ref();
        self.counts().add(tally, Metric::Connection, 1);
        self.counts().add(tally, Metric::Handshake, u64::from(self.origin.scheme == Scheme::Https));
    }

    pub(crate) fn counts(&self) -> &CounterCells {
        &self.control.shared.counts
    }

    /// Returns a function that reports the end of the connection, for protocols that notice it themselves.
    pub(crate) fn ended(&self) -> impl FnOnce() + Send + 'static {
        let (lane, control) = (self.lane, Arc::clone(&self.control));
        move || control.tell(DriverCommand::Closed { lane })
    }
}

/// The addresses of an origin's name. If several dials need the resolver at once, they share one query.
#[derive(Debug, Default)]
pub(super) struct HostAddresses {
    addresses: Mutex<Addresses>,
    /// Locked during a query. It contains the time and the error of the resolver's last failure.
    asking: tokio::sync::Mutex<Option<(Instant, Error)>>,
}

impl HostAddresses {
    /// Returns the addresses for a new connection, in the order to try them.
    ///
    /// # Errors
    /// Returns the resolver's error if no addresses from an earlier answer are known.
    pub(super) async fn order(
        &self,
        origin: &Origin,
        transport: &dyn Transport,
    ) -> Result<Vec<SocketAddr>, Error> {
        let came = Instant::now();
        let mut failed = self.asking.lock().await;
        // Dials that waited for this query share its failure. Otherwise they would ask the resolver one after the other, and wait long if
        // it fails slowly.
        if let Some((_, error)) = failed.as_ref().filter(|(at, _)| *at >= came) {
            return Err(error.again());
        }
        let is_fresh = self.addresses().are_fresh(Instant::now());
        let found = if is_fresh { Ok(Vec::new()) } else { transport.resolve(origin).await };
        let (now, mut addresses) = (Instant::now(), self.addresses());
        match found {
            Ok(found) => {
                addresses.learn(now, found);
                Ok(addresses.order(now))
            }
            // If the resolver fails, use the addresses of its last answer.
            Err(error) => {
                let known = addresses.order(now);
                if known.is_empty() {
                    *failed = Some((now, error.again()));
                }
                Some(known).filter(|known| !known.is_empty()).ok_or(error)
            }
        }
    }

    /// Avoids the addresses that failed in a dial.
    pub(super) fn note(&self, tried: &DialReport) {
        let (now, mut addresses) = (Instant::now(), self.addresses());
        for address in tried.failed.iter().copied().chain(tried.half_open) {
            addresses.avoid(now, address, FAILED_FOR);
        }
    }

    pub(super) fn avoid(&self, now: Instant, address: SocketAddr, time: Duration) {
        self.addresses().avoid(now, address, time);
    }

    fn addresses(&self) -> MutexGuard<'_, Addresses> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Driver {
    /// Makes new connections avoid a lane's address for a while.
    pub(super) fn avoid(&self, now: Instant, lane: LaneId, time: Duration) {
        if let Some((origin, open)) = self.lanes.get(&lane).and_then(|lane| Some((lane.origin, lane.open()?)))
        {
            let address = open.address;
            tracing::debug!(lane = lane.0, %address, ?time, "new connections avoid this address");
            self.origins[origin.0].names.avoid(now, address, time);
        }
    }
}
