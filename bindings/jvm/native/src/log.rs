//! What the engine has to say, for slf4j: each class loader's queue gets the records of its own logger's level.

use std::fmt::{self, Write as _};
use std::sync::atomic::{AtomicI32, Ordering};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::queue::{NO_LEVEL, Queue};
use crate::queues;

/// The least level that any queue wants.
static LEAST: AtomicI32 = AtomicI32::new(NO_LEVEL);

/// Sets from which of slf4j's levels on a queue wants records.
pub(crate) fn attend(queue: &Queue, level: i32) {
    // Another subscriber of the process's goes before.
    let _ = tracing::subscriber::set_global_default(ToJava);
    queue.level.store(level, Ordering::Relaxed);
    let levels = queues::all().into_iter().map(|queue| queue.level.load(Ordering::Relaxed));
    LEAST.store(levels.min().unwrap_or(NO_LEVEL), Ordering::Relaxed);
}

/// The process's subscriber.
struct ToJava;

impl Subscriber for ToJava {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
            && metadata.target().starts_with("laneway")
            && level_of(metadata.level()) >= LEAST.load(Ordering::Relaxed)
    }

    fn register_callsite(&self, _metadata: &'static Metadata<'static>) -> tracing::subscriber::Interest {
        // Loggers' levels may change.
        tracing::subscriber::Interest::sometimes()
    }

    fn new_span(&self, _attributes: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let level = level_of(event.metadata().level());
        let mut text = Text(String::new());
        event.record(&mut text);
        for queue in queues::all() {
            if level >= queue.level.load(Ordering::Relaxed) {
                queue.say(level, &text.0);
            }
        }
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

/// slf4j's number of a level.
fn level_of(level: &Level) -> i32 {
    match *level {
        Level::ERROR => 40,
        Level::WARN => 30,
        Level::INFO => 20,
        Level::DEBUG => 10,
        Level::TRACE => 0,
    }
}

/// The message, and its fields behind it.
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // A string takes whatever is written.
        let _ = match field.name() {
            "message" => {
                let rest = std::mem::take(&mut self.0);
                write!(self.0, "{value:?}{rest}")
            }
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}
