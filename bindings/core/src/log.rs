//! Passes the engine's log records to listeners, for the host's own logging.

use std::collections::HashMap;
use std::fmt;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

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
        let mut text = RecordText(String::new());
        event.record(&mut text);
        self.0.take(*event.metadata().level(), text.0);
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
