//! A record of when each attempt was sent on which lane, for plots and for the analysis of a single run.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::Protocol;
use crate::dispatch::{Direction, Role};

/// Most events that a recorder keeps. Later ones are not recorded. A request makes two, of about 100 bytes each.
const MOMENTS_MAX: usize = 1 << 20;

/// Collects an engine's events while it is in [`Config::trace`](crate::Config::trace). Clones share the collection.
#[derive(Clone, Default)]
pub struct Trace(Arc<Mutex<Vec<TraceRecord>>>);

/// An event, with its time.
#[derive(Clone, PartialEq, Debug)]
pub struct TraceRecord {
    /// When.
    pub at: Instant,
    /// The event.
    pub what: TraceEvent,
}

/// An event. An engine never reuses the numbers of lanes and attempts.
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
    /// A request is sent.
    Sent {
        /// The request.
        attempt: u64,
        /// The lane.
        lane: u64,
        /// The role that it is sent in.
        role: Role,
        /// Method and path, without the query, which may hold a signature.
        label: String,
        /// Bytes of its body.
        bytes: u64,
    },
    /// The answer's sink asked for a freight thread. Its HTTP/1.1 lane is freight from now on.
    TurnedFreight {
        /// The request.
        attempt: u64,
    },
    /// The request has ended, well or not.
    Finished {
        /// The request.
        attempt: u64,
        /// Bytes of the answer's body. 0 if the request failed.
        bytes: u64,
    },
    /// All bulk of a direction may move at this rate from now on, because small requests come first.
    Yields {
        /// The direction.
        direction: Direction,
        /// Bytes a second. `None` means no limit.
        rate: Option<u64>,
    },
    /// The connection, or the attempt to open it, has ended.
    Closed {
        /// Its lane.
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
        // The time is taken under the lock, so that events are in order.
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
