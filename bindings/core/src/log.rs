//! Passes the engine's log records to listeners, for the host's own logging.

use std::collections::HashMap;
use std::fmt;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};
use std::time::Duration;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::events::{Events, NO_LEVEL};

/// A receiver of log records. Its methods are called on the engine's threads, and must not block.
pub trait LogSink: Send + Sync + 'static {
    /// Returns whether records of this level are wanted. The answer may change at any time.
    fn wants(&self, level: Level) -> bool;

    /// Receives a record.
    fn take(&self, level: Level, text: String);
}

/// Makes a sink the `tracing` subscriber of the process, unless the process already has one.
pub fn subscribe(sink: impl LogSink) {
    let _ = tracing::subscriber::set_global_default(Subscription(sink));
}

/// Returns a number for a level, as Python and other languages use it: 40 for errors, then 30, 20 and 10. For `TRACE`,
/// returns `least`.
pub fn number_of(level: Level, least: u8) -> u8 {
    match level {
        Level::ERROR => 40,
        Level::WARN => 30,
        Level::INFO => 20,
        Level::DEBUG => 10,
        Level::TRACE => least,
    }
}

/// Sets the lowest level of the records that a listener gets, as a number from [`number_of`]. 0 also includes `TRACE`.
pub fn attend(events: &Events, level: i32) {
    subscribe(ToListeners);
    events.level.store(level, Ordering::Relaxed);
    let levels = listeners().into_iter().map(|events| events.level.load(Ordering::Relaxed));
    LEAST.store(levels.min().unwrap_or(NO_LEVEL), Ordering::Relaxed);
}

/// The lowest level that any listener wants.
static LEAST: AtomicI32 = AtomicI32::new(NO_LEVEL);

/// Passes records to each listener that wants their level.
struct ToListeners;

impl LogSink for ToListeners {
    fn wants(&self, level: Level) -> bool {
        i32::from(number_of(level, 0)) >= LEAST.load(Ordering::Relaxed)
    }

    fn take(&self, level: Level, text: String) {
        let level = number_of(level, 0).into();
        for events in listeners() {
            if level >= events.level.load(Ordering::Relaxed) {
                events.say(level, &text);
            }
        }
    }
}

struct Subscription<S>(S);

impl<S: LogSink> Subscriber for Subscription<S> {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && metadata.target().starts_with("laneway") && self.0.wants(*metadata.level())
    }

    fn register_callsite(&self, _metadata: &'static Metadata<'static>) -> tracing::subscriber::Interest {
        // `wants` may return another result later, so tracing must not cache its result.
        tracing::subscriber::Interest::sometimes()
    }

    fn new_span(&self, _attributes: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let text = match event.metadata().target() {
            ORIGIN => {
                let mut change = OriginChange::default();
                event.record(&mut change);
                change.line()
            }
            _ => {
                let mut text = RecordText(String::new());
                event.record(&mut text);
                text.0
            }
        };
        self.0.take(*event.metadata().level(), text);
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

/// The text of a record: the message, followed by the fields.
struct RecordText(String);

impl Visit for RecordText {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string never fails.
        let _ = match field.name() {
            "message" => {
                let rest = std::mem::take(&mut self.0);
                write!(self.0, "{value:?}{rest}")
            }
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}

/// The target of records about origins that don't answer, or answer again (`laneway_lanes::ORIGIN`).
const ORIGIN: &str = "laneway::origin";

/// The fields of a record about an origin that doesn't answer, or answers again.
#[derive(Default)]
struct OriginChange {
    origin: String,
    is_away: bool,
    cause: String,
    millis: u64,
}

impl OriginChange {
    fn line(&self) -> String {
        let (origin, seconds) = (&self.origin, Duration::from_millis(self.millis).as_secs_f64());
        match self.is_away {
            // Most causes name the origin.
            true if self.cause.contains(origin) => format!("retrying for up to {seconds} s: {}", self.cause),
            true => format!("retrying for up to {seconds} s: {origin}: {}", self.cause),
            false => format!("{origin} answers again, after {seconds} s"),
        }
    }
}

impl Visit for OriginChange {
    fn record_u64(&mut self, field: &Field, value: u64) {
        if matches!(field.name(), "retry_for_ms" | "after_ms") {
            self.millis = value;
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

/// The events of all listeners, by number. For example, a JVM has one listener for each class loader that loads the
/// binding. In a C program, each thread can have a listener.
static LISTENERS: LazyLock<RwLock<HashMap<u64, Arc<Events>>>> = LazyLock::new(RwLock::default);
static LAST: AtomicU64 = AtomicU64::new(0);

/// Creates a listener, and returns its number.
pub fn open_listener() -> u64 {
    let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    LISTENERS.write().unwrap_or_else(PoisonError::into_inner).insert(number, Arc::default());
    number
}

/// Returns the events of a listener, by its number.
pub fn listener(number: u64) -> Option<Arc<Events>> {
    LISTENERS.read().unwrap_or_else(PoisonError::into_inner).get(&number).cloned()
}

/// Returns the events of all listeners.
fn listeners() -> Vec<Arc<Events>> {
    LISTENERS.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_reported_as_a_sentence() {
        let mut away = OriginChange {
            origin: "http://h:1".to_owned(),
            is_away: true,
            cause: "http://h:1: can't connect".to_owned(),
            millis: 15_000,
        };
        assert_eq!(away.line(), "retrying for up to 15 s: http://h:1: can't connect");
        away.cause = "the server answered 503".to_owned();
        assert_eq!(away.line(), "retrying for up to 15 s: http://h:1: the server answered 503");
        (away.is_away, away.millis) = (false, 2500);
        assert_eq!(away.line(), "http://h:1 answers again, after 2.5 s");
    }
}
