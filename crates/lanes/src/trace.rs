//! Records when each attempt was sent, and on which lane, for plots and for the analysis of a single run.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::Protocol;
use crate::dispatch::{Direction, Role};

/// The maximum number of events that a trace keeps. Later events are dropped. A request makes two events of about 100 bytes each.
const MOMENTS_MAX: usize = 1 << 20;

/// Collects the events of all engines whose [`Config::trace`](crate::LanesConfig::trace) is this trace. Clones share the collected events.
#[derive(Clone, Default)]
pub struct Trace(Arc<Mutex<Vec<TraceRecord>>>);

/// An event, with its time.
#[derive(Clone, PartialEq, Debug)]
pub struct TraceRecord {
    /// The time of the event.
    pub at: Instant,
    /// The event.
    pub what: TraceEvent,
}

/// An event. An engine never reuses the numbers of lanes and attempts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TraceEvent {
    /// A connection is being dialled.
    Dialled {
        /// The lane of the connection.
        lane: u64,
        /// The role of the connection.
        role: Role,
    },
    /// The connection is ready for requests.
    Opened {
        /// The lane of the connection.
        lane: u64,
        /// The protocol that it speaks.
        protocol: Protocol,
    },
    /// A request is sent.
    Sent {
        /// The request.
        attempt: u64,
        /// The lane.
        lane: u64,
        /// The role of the lane for this request.
        role: Role,
        /// Method and path, without the query, which may hold a signature.
        label: String,
        /// The size of its body in bytes.
        bytes: u64,
    },
    /// The answer's sink asked for a freight thread. If the lane uses HTTP/1.1, it is a freight lane from now on.
    TurnedFreight {
        /// The request.
        attempt: u64,
    },
    /// The request has ended, successfully or not.
    Finished {
        /// The request.
        attempt: u64,
        /// The size of the answer's body in bytes. 0 if the request failed.
        bytes: u64,
    },
    /// The rate limit for all bulk of a direction has changed. Bulk (requests above 1 MiB) is limited while small requests are outstanding.
    Yields {
        /// The direction.
        direction: Direction,
        /// The limit in bytes per second. `None` means no limit.
        rate: Option<u64>,
    },
    /// The connection has ended, or couldn't be opened.
    Closed {
        /// The lane of the connection.
        lane: u64,
    },
}

impl Trace {
    /// Returns the events so far, in order.
    pub fn moments(&self) -> Vec<TraceRecord> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn note(&self, what: TraceEvent) {
        let mut moments = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The time is read while the lock is held, so that events are in order.
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
