//! A record of the requests on each lane (connection) over time, for runs of rivals and of Laneway.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use laneway::internal;
use laneway::internal::trace::{TraceEvent, TraceRecord};
use serde::{Deserialize, Serialize};

/// When a request of unknown size is sent, it counts as small. If it moves more bytes than this, it counts as part of a
/// large object.
const BULK_ABOVE: u64 = 1 << 20;

/// A run's activity on its connections. Times are seconds from the run's start.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub struct Trace {
    /// Requests in the order of their ends.
    pub spans: Vec<Span>,
    /// The intervals during which Laneway held back large transfers for small requests.
    pub held: Vec<(f64, f64)>,
}

/// A request on a connection.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Span {
    /// The connection's number, in the order of dialling.
    pub lane: u64,
    /// `Express` for a small object, `Freight` for a part of a large one.
    pub role: Role,
    /// The time when the request was sent.
    pub start_s: f64,
    /// The time when its answer was complete.
    pub end_s: f64,
    /// Body bytes in both directions.
    pub bytes: u64,
}

/// The kind of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// A small object.
    #[default]
    Express,
    /// A part of a large object.
    Freight,
}

impl Trace {
    /// Converts the records of Laneway's engine, with times since `epoch`. Omits unfinished requests.
    pub(crate) fn of_engine(moments: &[TraceRecord], epoch: Instant) -> Self {
        let mut trace = Self::default();
        let mut sent: HashMap<u64, Span> = HashMap::new();
        let mut held: HashMap<bool, f64> = HashMap::new();
        for TraceRecord { at, what } in moments {
            let at = at.saturating_duration_since(epoch).as_secs_f64();
            match what {
                TraceEvent::Sent { attempt, lane, role, bytes, .. } => {
                    let role = match role {
                        internal::Role::Express => Role::Express,
                        internal::Role::Freight => Role::Freight,
                    };
                    sent.insert(*attempt, Span { lane: *lane, role, start_s: at, end_s: at, bytes: *bytes });
                }
                TraceEvent::Yields { direction, rate } => {
                    let is_up = *direction == internal::Direction::Up;
                    match (rate, held.remove(&is_up)) {
                        (Some(_), since) => drop(held.insert(is_up, since.unwrap_or(at))),
                        (None, Some(since)) => trace.held.push((since, at)),
                        (None, None) => {}
                    }
                }
                // `TurnedFreight` isn't used: a lane can move to the freight threads for a small answer too, so the
                // event doesn't show the size of a request.
                TraceEvent::Dialled { .. }
                | TraceEvent::Opened { .. }
                | TraceEvent::Closed { .. }
                | TraceEvent::TurnedFreight { .. } => {}
                TraceEvent::Finished { attempt, bytes } => {
                    if let Some(span) = sent.remove(attempt) {
                        let bytes = span.bytes + bytes;
                        let role = if bytes > BULK_ABOVE { Role::Freight } else { span.role };
                        trace.spans.push(Span { end_s: at, bytes, role, ..span });
                    }
                }
            }
        }
        let end_s = trace.end_s();
        trace.held.extend(held.into_values().map(|since| (since, end_s)));
        trace
    }

    /// Returns the end of the last small request, or 0 if there was none.
    pub fn small_end_s(&self) -> f64 {
        let small = self.spans.iter().filter(|span| span.role == Role::Express);
        small.map(|span| span.end_s).fold(0.0, f64::max)
    }

    /// Returns the end of the last request, or 0 if there was none.
    pub fn end_s(&self) -> f64 {
        self.spans.iter().map(|span| span.end_s).fold(0.0, f64::max)
    }
}

/// Collects a rival's trace while it runs.
pub(crate) struct Tracer {
    epoch: Instant,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    trace: Trace,
    lanes: u64,
}

impl Tracer {
    /// Creates an empty trace, whose times are measured from now.
    pub(crate) fn start() -> Self {
        Self { epoch: Instant::now(), state: Mutex::default() }
    }

    /// Records that a connection was opened, and returns its number.
    pub(crate) fn opened(&self) -> u64 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.lanes += 1;
        state.lanes - 1
    }

    /// Records the end of a request that began at `start_s`.
    pub(crate) fn ended(&self, lane: u64, role: Role, start_s: f64, bytes: u64) {
        let span = Span { lane, role, start_s, end_s: self.now(), bytes };
        self.state.lock().unwrap_or_else(PoisonError::into_inner).trace.spans.push(span);
    }

    /// Returns the seconds since the start.
    pub(crate) fn now(&self) -> f64 {
        self.epoch.elapsed().as_secs_f64()
    }

    /// Returns the trace so far.
    pub(crate) fn trace(&self) -> Trace {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).trace.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use laneway::internal::Protocol;

    use super::*;

    #[test]
    fn an_engines_moments_become_spans() {
        let epoch = Instant::now();
        let at = |ms, what| TraceRecord { at: epoch + Duration::from_millis(ms), what };
        let role = internal::Role::Express;
        let sent =
            |attempt, lane| TraceEvent::Sent { attempt, lane, role, label: "GET /k".to_owned(), bytes: 1 };
        let moments = [
            at(0, TraceEvent::Dialled { lane: 0, role }),
            at(1, TraceEvent::Dialled { lane: 1, role }),
            at(10, TraceEvent::Opened { lane: 0, protocol: Protocol::H1 }),
            at(10, sent(5, 0)),
            at(11, TraceEvent::Closed { lane: 1 }),
            at(12, TraceEvent::TurnedFreight { attempt: 5 }),
            at(13, TraceEvent::Yields { direction: internal::Direction::Down, rate: Some(1000) }),
            at(14, TraceEvent::Yields { direction: internal::Direction::Down, rate: Some(2000) }),
            at(16, TraceEvent::Yields { direction: internal::Direction::Down, rate: None }),
            at(17, TraceEvent::Yields { direction: internal::Direction::Down, rate: Some(1000) }),
            at(20, TraceEvent::Finished { attempt: 5, bytes: 1 << 20 }),
            at(21, sent(6, 0)),
            at(30, TraceEvent::Closed { lane: 0 }),
        ];
        let trace = Trace::of_engine(&moments, epoch);
        assert_eq!((&trace.held, trace.small_end_s()), (&vec![(0.013, 0.016), (0.017, 0.02)], 0.0));
        let span = Span { lane: 0, role: Role::Freight, start_s: 0.01, end_s: 0.02, bytes: (1 << 20) + 1 };
        assert_eq!(trace.spans, [span]);
    }

    #[test]
    fn a_tracer_numbers_connections_and_keeps_requests() {
        let tracer = Tracer::start();
        assert_eq!((tracer.opened(), tracer.opened()), (0, 1));
        tracer.ended(1, Role::Express, 0.0, 7);
        let spans = tracer.trace().spans;
        assert_eq!((spans.len(), spans[0].lane, spans[0].bytes), (1, 1, 7));
    }
}
