//! Says that requests are being tried again: a host that takes no connections would otherwise be silence until the
//! attempts run out.

use std::fmt;
use std::io::{self, IsTerminal as _};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use laneway_lanes::RETRY;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::stderr;

/// Where nobody watches, a request has to have been failing for so long before that is told. The last attempts of a
/// request begin later than this, however the pauses between them are drawn.
const PATIENCE: Duration = Duration::from_secs(1);
/// Thousands of requests that fail together are told of as rarely as one.
const PAUSE: Duration = Duration::from_secs(2);

static TOLD: AtomicBool = AtomicBool::new(false);

/// Whether anything has been told yet.
pub(crate) fn has_told() -> bool {
    TOLD.load(Relaxed)
}

/// Hears of attempts after the first, and of nothing else: it costs a run no more than the lines that it prints.
#[derive(Debug)]
pub(crate) struct Notices {
    pacing: Mutex<Pacing>,
}

impl Notices {
    pub(crate) fn new() -> Self {
        Self { pacing: Mutex::new(Pacing { watched: io::stderr().is_terminal(), last: None }) }
    }
}

/// Which attempts are told.
#[derive(Debug)]
struct Pacing {
    watched: bool,
    last: Option<Instant>,
}

impl Pacing {
    /// Whether an attempt is told whose request has been failing for `failing`.
    fn tells(&mut self, now: Instant, failing: Duration) -> bool {
        let is_long = self.watched || failing >= PATIENCE;
        let tells = is_long && self.last.is_none_or(|last| now.saturating_duration_since(last) >= PAUSE);
        if tells {
            self.last = Some(now);
        }
        tells
    }
}

/// The fields that a notice is made of.
#[derive(Default)]
struct Retry {
    attempt: u64,
    after: Duration,
    cause: String,
}

impl Visit for Retry {
    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "attempt" => self.attempt = value,
            "after_ms" => self.after = Duration::from_millis(value),
            _ => {}
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "cause" {
            self.cause = format!("{value:?}");
        }
    }
}

impl Subscriber for Notices {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && metadata.target() == RETRY
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::INFO)
    }

    fn event(&self, event: &Event<'_>) {
        let mut retry = Retry::default();
        event.record(&mut retry);
        let tells =
            self.pacing.lock().unwrap_or_else(PoisonError::into_inner).tells(Instant::now(), retry.after);
        if tells {
            TOLD.store(true, Relaxed);
            stderr::line(&format!("retrying: {}, attempt {}", retry.cause, retry.attempt));
        }
    }

    // No span is enabled.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_is_told_at_once_and_a_log_after_a_while_each_now_and_then() {
        let start = Instant::now();
        let told = |watched: bool| {
            let mut pacing = Pacing { watched, last: None };
            let tenths = [0u64, 2, 5, 12, 25, 50, 51, 52];
            tenths
                .map(|t| pacing.tells(start + Duration::from_millis(t * 100), Duration::from_millis(t * 100)))
        };
        assert_eq!(told(true), [true, false, false, false, true, true, false, false]);
        assert_eq!(told(false), [false, false, false, true, false, true, false, false]);
    }
}
