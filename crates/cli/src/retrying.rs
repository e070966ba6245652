//! Prints that a server is away, and that it is back. Without these lines a run whose server takes no connections would say nothing
//! until it gives up.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use laneway_lanes::ORIGIN;
use laneway_quantity as quantity;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::stderr;

static HAS_REPORTED: AtomicBool = AtomicBool::new(false);

/// Whether an origin has been reported yet.
pub(crate) fn has_reported() -> bool {
    HAS_REPORTED.load(Relaxed)
}

/// Hears of origins that are away or back, and of nothing else: it costs a run no more than the lines that it prints. Each
/// change is one line, however many requests meet it.
#[derive(Debug)]
pub(crate) struct Notices;

/// The fields that a notice is made of.
#[derive(Default)]
struct Change {
    origin: String,
    is_away: bool,
    cause: String,
    retry_for: Duration,
    after: Duration,
}

impl Change {
    fn line(&self) -> String {
        match self.is_away {
            true => format!(
                "retrying: {}; for up to {} without an answer",
                self.cause,
                quantity::duration(self.retry_for)
            ),
            false => format!("{} answers again, after {}", self.origin, quantity::duration(self.after)),
        }
    }
}

impl Visit for Change {
    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "retry_for_ms" => self.retry_for = Duration::from_millis(value),
            "after_ms" => self.after = Duration::from_millis(value),
            _ => {}
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        if field.name() == "is_away" {
            self.is_away = value;
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "origin" => self.origin = format!("{value:?}"),
            "cause" => self.cause = format!("{value:?}"),
            _ => {}
        }
    }
}

impl Subscriber for Notices {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && metadata.target() == ORIGIN
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::WARN)
    }

    fn event(&self, event: &Event<'_>) {
        let mut change = Change::default();
        event.record(&mut change);
        HAS_REPORTED.store(true, Relaxed);
        stderr::line(&change.line());
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
    fn a_change_of_a_server_s_state_is_one_line() {
        let away = Change {
            is_away: true,
            cause: "http://h (127.0.0.1:1) can't be reached: refused".to_owned(),
            retry_for: Duration::from_secs(120),
            ..Change::default()
        };
        assert!(
            away.line().starts_with("retrying: http://h (127.0.0.1:1) can't be reached: refused; for up to ")
        );
        let back =
            Change { origin: "http://h".to_owned(), after: Duration::from_secs(6), ..Change::default() };
        assert!(back.line().starts_with("http://h answers again, after "), "{}", back.line());
    }
}
