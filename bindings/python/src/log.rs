//! What the engine has to say, as records of Python's `logging`.
//!
//! It is said by the engine's threads, which must not wait for the interpreter: they lay records on a pile without a lock, as a child of a
//! `fork` wants it, and wake a thread that hands them to the logger `laneway`. The thread is there once something is to be said.

#![expect(unsafe_code, reason = "a pile without a lock is made of raw pointers")]

use std::fmt::{self, Write as _};
use std::process;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// How long what the logger's level was is believed.
const LEVEL_KEPT: Duration = Duration::from_millis(200);

/// The least of Python's levels that is wanted.
static LEVEL: AtomicU8 = AtomicU8::new(WARNING);
const WARNING: u8 = 30;

static PILE: AtomicPtr<Line> = AtomicPtr::new(ptr::null_mut());

/// The thread that hands on, and the process that it is of. What a parent's was is let be.
static THREAD: AtomicPtr<Thread> = AtomicPtr::new(ptr::null_mut());
static PROCESS: AtomicU32 = AtomicU32::new(0);
static IS_OVER: AtomicBool = AtomicBool::new(false);

struct Line {
    level: u8,
    text: String,
    next: *mut Line,
}

/// Looks at the logger's level, and sees that there is a thread which hands on. Called where the interpreter's lock is held, and often:
/// what was seen lately is believed, unless `now` it matters.
pub(crate) fn attend(py: Python<'_>, now: bool) {
    static LOOKED: PyOnceLock<std::sync::Mutex<Option<Instant>>> = PyOnceLock::new();
    let looked = LOOKED.get_or_init(py, Default::default);
    let mut looked = looked.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if !now
        && looked.is_some_and(|looked| looked.elapsed() < LEVEL_KEPT)
        && PROCESS.load(Ordering::Relaxed) == process::id()
    {
        return;
    }
    let is_first = looked.replace(Instant::now()).is_none();
    if is_first {
        // Another subscriber of the process's, the program's own, goes before.
        let _ = tracing::subscriber::set_global_default(ToPython);
    }
    if let Ok(level) = effective(py) {
        LEVEL.store(level, Ordering::Relaxed);
    }
    if PROCESS.swap(process::id(), Ordering::Relaxed) != process::id() {
        let spawned = thread::Builder::new().name("laneway-logging".into()).spawn(hand_on);
        if let Ok(thread) = spawned {
            // One handle a process: whoever wakes the thread may be looking at it at any time.
            THREAD.store(Box::into_raw(Box::new(thread.thread().clone())), Ordering::Release);
        }
    }
}

/// Ends the thread, because the interpreter ends.
#[pyfunction]
pub(crate) fn end_logging() {
    IS_OVER.store(true, Ordering::Relaxed);
    wake();
}

fn effective(py: Python<'_>) -> PyResult<u8> {
    let level: i64 = logger(py)?.call_method0(intern!(py, "getEffectiveLevel"))?.extract()?;
    Ok(u8::try_from(level.max(0)).unwrap_or(u8::MAX))
}

fn logger(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static LOGGER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let made = || Ok::<_, PyErr>(py.import("logging")?.call_method1("getLogger", ("laneway",))?.unbind());
    Ok(LOGGER.get_or_try_init(py, made)?.bind(py))
}

/// What the thread does: sleeps, and hands on what lies there.
fn hand_on() {
    while !IS_OVER.load(Ordering::Relaxed) {
        thread::park();
        let lines = taken();
        if lines.is_empty() || IS_OVER.load(Ordering::Relaxed) {
            continue;
        }
        let handed = Python::try_attach(|py| {
            for (level, text) in lines {
                // A handler that fails is no business of the engine's.
                let _ = logger(py)
                    .and_then(|logger| logger.call_method1(intern!(py, "log"), (level, "%s", text)));
            }
        });
        if handed.is_none() {
            return;
        }
    }
}

/// The pile in the order in which it was laid.
fn taken() -> Vec<(u8, String)> {
    let mut lines = Vec::new();
    let mut next = PILE.swap(ptr::null_mut(), Ordering::Acquire);
    while !next.is_null() {
        // SAFETY: each line came out of a box, and the swap has made the whole pile this thread's.
        let line = unsafe { Box::from_raw(next) };
        next = line.next;
        lines.push((line.level, line.text));
    }
    lines.reverse();
    lines
}

fn lay_down(level: u8, text: String) {
    let line = Box::into_raw(Box::new(Line { level, text, next: PILE.load(Ordering::Relaxed) }));
    loop {
        // SAFETY: the line is this thread's alone until the exchange below succeeds.
        let next = unsafe { (*line).next };
        match PILE.compare_exchange_weak(next, line, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => break,
            // SAFETY: as above.
            Err(now) => unsafe { (*line).next = now },
        }
    }
    wake();
}

fn wake() {
    let thread = THREAD.load(Ordering::Acquire);
    if !thread.is_null() && PROCESS.load(Ordering::Relaxed) == process::id() {
        // SAFETY: handles are never freed, one a process.
        unsafe { &*thread }.unpark();
    }
}

/// The process's subscriber.
struct ToPython;

impl Subscriber for ToPython {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
            && metadata.target().starts_with("laneway")
            && level_of(metadata.level()) >= LEVEL.load(Ordering::Relaxed)
    }

    fn register_callsite(&self, _metadata: &'static Metadata<'static>) -> tracing::subscriber::Interest {
        // The logger's level may change.
        tracing::subscriber::Interest::sometimes()
    }

    fn new_span(&self, _attributes: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        lay_down(level_of(event.metadata().level()), text.0);
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

/// Python's number of a level. What tells of each packet has none there, and is below its least.
fn level_of(level: &Level) -> u8 {
    match *level {
        Level::ERROR => 40,
        Level::WARN => WARNING,
        Level::INFO => 20,
        Level::DEBUG => 10,
        Level::TRACE => 5,
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
