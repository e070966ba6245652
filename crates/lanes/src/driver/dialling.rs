//! One dial, from addresses to a connection that takes requests.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use super::{Addresses, Command, Connection, Opened};
use crate::dial::{Dialed, Dialer};
use crate::dispatch::{LaneId, Role};
use crate::error::{Error, Kind};
use crate::h1::H1;
use crate::h2::H2;
use crate::shared::Shared;
use crate::{Origin, Protocol, Scheme};

/// How long looked-up addresses are used: stores rotate theirs within minutes, and a burst of dials needs one lookup.
const ADDRESSES_FRESH: Duration = Duration::from_secs(30);

pub(super) struct Dial {
    pub(super) lane: LaneId,
    pub(super) role: Role,
    pub(super) turn: usize,
    pub(super) origin: Origin,
    pub(super) addresses: Addresses,
    pub(super) dialer: Arc<Dialer>,
    pub(super) shared: Arc<Shared>,
}

impl Dial {
    pub(super) async fn run(self) {
        // Whatever went wrong, no request was on its way yet.
        let outcome = self.open().await.map_err(Error::unsent);
        self.shared.tell(Command::Dialled { lane: self.lane, outcome });
    }

    async fn open(&self) -> Result<Opened, Error> {
        let dialed = self.connect().await?;
        let counts = &self.shared.counts;
        counts.connections.fetch_add(1, Relaxed);
        counts.handshakes.fetch_add(u64::from(self.origin.scheme == Scheme::Https), Relaxed);
        let Dialed { stream, protocol, rtt, progress, absolute_form } = dialed;
        let connection = match protocol {
            Protocol::H1 => {
                counts.connections_h1.fetch_add(1, Relaxed);
                Connection::H1(Box::new(H1::new(stream, progress, absolute_form)))
            }
            Protocol::H2 => {
                let shared = Arc::clone(&self.shared);
                let h2 = H2::open(stream, progress, self.lane, self.role, shared).await?;
                counts.connections_h2.fetch_add(1, Relaxed);
                Connection::H2(h2)
            }
        };
        let (lane, role, protocol) = (self.lane.0, self.role.name(), protocol.name());
        tracing::info!(lane, %role, %protocol, ?rtt, "connection opened to {}", self.origin);
        let open = counts.connections_open.fetch_add(1, Relaxed) + 1;
        counts.connections_peak.fetch_max(open, Relaxed);
        Ok(Opened { connection, rtt })
    }

    async fn connect(&self) -> Result<Dialed, Error> {
        let addresses = self.addresses().await?;
        // Bulk goes over h1 where it is offered: there each body has a window and a core of its own.
        let only = (self.role == Role::Freight).then_some(Protocol::H1);
        let reached = |rtt| self.shared.tell(Command::Reached { lane: self.lane, rtt });
        let dialed = self.dialer.dial(&self.origin, self.turn, only, &addresses, reached).await;
        let dialed = match dialed {
            Err(e) if only.is_some() && e.kind() == Kind::Tls => {
                // A server that speaks h2 alone ends such a handshake; it gets what it can.
                self.dialer.dial(&self.origin, self.turn, None, &addresses, reached).await
            }
            other => other,
        };
        if dialed.is_err() {
            *self.addresses.lock().await = None;
        }
        dialed
    }

    /// The origin's addresses; concurrent dials wait for one lookup.
    async fn addresses(&self) -> Result<Arc<[SocketAddr]>, Error> {
        let mut known = self.addresses.lock().await;
        if let Some((at, addresses)) = &*known
            && at.elapsed() < ADDRESSES_FRESH
        {
            return Ok(Arc::clone(addresses));
        }
        let found: Arc<[SocketAddr]> = self.dialer.resolve(&self.origin).await?.into();
        *known = Some((Instant::now(), Arc::clone(&found)));
        Ok(found)
    }
}
