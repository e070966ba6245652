//! Passes the engine's log messages to Python's `logging`.
//!
//! The engine's threads write messages, but must not wait for the interpreter. So they put each message on a list
//! (`PILE`), which has no lock, because a `fork` could leave a lock held. Then they wake a thread that passes the
//! messages to the logger `laneway`. [`attend`] starts that thread.

#![expect(unsafe_code, reason = "threads read the handle of the logging thread without a lock")]

use std::process;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use laneway_bindings_core::fork::Pile;
use laneway_bindings_core::log::{LogSink, number_of, subscribe};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use tracing::Level;

use crate::error;

/// After this time, the logger's level is read again, because the program may have changed it.
const LEVEL_KEPT: Duration = Duration::from_millis(200);

/// The logger's level, as Python's number. Messages below it are dropped.
static LEVEL: AtomicU8 = AtomicU8::new(WARNING);
const WARNING: u8 = 30;

static PILE: Pile<(u8, String)> = Pile::new();

/// The thread that passes messages to Python, and the id of the process in which it runs. A forked child starts its
/// own.
static THREAD: AtomicPtr<Thread> = AtomicPtr::new(ptr::null_mut());
static PROCESS: AtomicU32 = AtomicU32::new(0);
static IS_OVER: AtomicBool = AtomicBool::new(false);

/// The number for the engine's trace level. Python has no name for a level below DEBUG (10).
const TRACE: u8 = 5;

/// Reads the logger's level, and starts the logging thread if it doesn't run. Calls happen often, so the level isn't
/// read again within [`LEVEL_KEPT`], unless `now` is true. The interpreter's lock must be held.
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
        subscribe(ToPython);
    }
    if let Ok(level) = effective(py) {
        LEVEL.store(level, Ordering::Relaxed);
    }
    if PROCESS.swap(process::id(), Ordering::Relaxed) != process::id() {
        let spawned = thread::Builder::new().name("laneway-logging".into()).spawn(hand_on);
        if let Ok(thread) = spawned {
            // There is one handle for each process. A handle is never freed, because another thread may be using it.
            THREAD.store(Box::into_raw(Box::new(thread.thread().clone())), Ordering::Release);
        }
    }
}

/// Ends the logging thread. The package calls this before the interpreter ends.
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

/// Runs on the logging thread: waits until it is woken, and passes the messages on the list to Python.
fn hand_on() {
    while !IS_OVER.load(Ordering::Relaxed) {
        thread::park();
        let lines = PILE.take();
        if lines.is_empty() || IS_OVER.load(Ordering::Relaxed) {
            continue;
        }
        let handed = Python::try_attach(|py| {
            for (level, text) in lines {
                // If a logging handler of the program fails, ignore it.
                let _ = logger(py).and_then(|logger| {
                    let text = error::in_python(py, &text)?;
                    logger.call_method1(intern!(py, "log"), (level, "%s", text))
                });
            }
        });
        if handed.is_none() {
            return;
        }
    }
}

fn wake() {
    let thread = THREAD.load(Ordering::Acquire);
    if !thread.is_null() && PROCESS.load(Ordering::Relaxed) == process::id() {
        // SAFETY: handles are never freed, and there is one for each process.
        unsafe { &*thread }.unpark();
    }
}

/// The receiver of the engine's messages. It puts them on the list, and wakes the logging thread.
struct ToPython;

impl LogSink for ToPython {
    fn wants(&self, level: Level) -> bool {
        number_of(level, TRACE) >= LEVEL.load(Ordering::Relaxed)
    }

    fn take(&self, level: Level, text: String) {
        PILE.lay_down((number_of(level, TRACE), text));
        wake();
    }
}
