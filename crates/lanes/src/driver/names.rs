//! The addresses of an origin's name, and the one question to the resolver that all dials wait for.

use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{Driver, Transport, Tried};
use crate::Origin;
use crate::addresses::{Addresses, FAILED_FOR};
use crate::dispatch::LaneId;
use crate::error::Error;

#[derive(Debug, Default)]
pub(super) struct Names {
    addresses: Mutex<Addresses>,
    /// Held while the resolver is asked: when it failed last, and how.
    asking: tokio::sync::Mutex<Option<(Instant, Error)>>,
}

impl Names {
    /// The addresses for a new connection, in the order in which they are to be tried.
    ///
    /// # Errors
    /// The resolver's, where nothing is known from before.
    pub(super) async fn order(
        &self,
        origin: &Origin,
        transport: &dyn Transport,
    ) -> Result<Vec<SocketAddr>, Error> {
        let came = Instant::now();
        let mut failed = self.asking.lock().await;
        // Dials that came while it was asked get the answer that it gave. A resolver that fails slowly would keep all of them waiting one
        // after the other.
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
            // A resolver that is out of order is no reason to give up what was reached before.
            Err(error) => {
                let known = addresses.order(now);
                if known.is_empty() {
                    *failed = Some((now, error.again()));
                }
                Some(known).filter(|known| !known.is_empty()).ok_or(error)
            }
        }
    }

    /// Takes note of how the addresses of a dial did.
    pub(super) fn note(&self, tried: &Tried) {
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
    /// Leaves the address that a lane leads to out of new connections for a while.
    pub(super) fn avoid(&self, now: Instant, lane: LaneId, time: Duration) {
        if let Some((origin, open)) = self.lanes.get(&lane).and_then(|lane| Some((lane.origin, lane.open()?)))
        {
            let address = open.address;
            tracing::debug!(lane = lane.0, %address, ?time, "address left out");
            self.origins[origin.0].names.avoid(now, address, time);
        }
    }
}
