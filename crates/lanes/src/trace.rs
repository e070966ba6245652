//! A record of which attempt was sent when on which lane, for plots and for questions about a single run.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::Protocol;
use crate::dispatch::{Direction, Role};

/// Most moments that a recorder keeps; what comes later is not recorded. A request makes two of about 100 bytes.
const MOMENTS_MAX: usize = 1 << 20;

/// Collects an engine's moments while it is in [`Config::trace`](crate::Config::trace). Clones share what is collected.
#[derive(Clone, Default)]
pub struct Trace(Arc<Mutex<Vec<TraceRecord>>>);

/// One thing that happened to a lane.
#[derive(Clone, PartialEq, Debug)]
pub struct TraceRecord {
    /// When.
    pub at: Instant,
    /// The event.
    pub what: TraceEvent,
}

/// An event. Lanes and attempts are named by numbers that an engine never uses again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TraceEvent {
    /// A connection is being dialled.
    Dialled {
        /// Its lane.
        lane: u64,
        /// The role that it is for.
        role: Role,
    },
    /// The connection takes requests.
    Opened {
        /// Its lane.
        lane: u64,
        /// The protocol that it speaks.
        protocol: Protocol,
    },
    /// A request goes out.
    Sent {
        /// The request.
        attempt: u64,
        /// On which lane.
        lane: u64,
        /// As what.
        role: Role,
        /// Method and path, without the query, which may hold a signature.
        label: String,
        /// Bytes of its body.
        bytes: u64,
    },
    /// The answer's sink asked for a freight thread; its lane, an HTTP/1.1 one, is freight from now on.
    TurnedFreight {
        /// The request.
        attempt: u64,
    },
    /// The request has ended, well or not.
    Finished {
        /// The request.
        attempt: u64,
        /// Bytes of the answer's body; 0 for one that failed.
        bytes: u64,
    },
    /// All bulk of a direction may move at another rate: small requests come first.
    Yields {
        /// The direction.
        direction: Direction,
        /// Bytes a second; `None` is as many as the path carries.
        rate: Option<u64>,
    },
    /// The connection, or the attempt to open it, has ended.
    Closed {
        /// Its lane.
        lane: u64,
    },
}

impl Trace {
    /// Returns what has been collected so far, in order.
    pub fn moments(&self) -> Vec<TraceRecord> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn note(&self, what: TraceEvent) {
        let mut moments = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The time is taken under the lock, so that moments stand in its order.
        if moments.len() < MOMENTS_MAX {
            moments.push(TraceRecord { at: Instant::now(), what });
        }
    }
}

impl std::fmt::Debug for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Trace({} moments)", self.0.lock().unwrap_or_else(PoisonError::into_inner).len())
    }
}
