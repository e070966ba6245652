//! The events of all listeners, by number. A class loader of a JVM is one listener; a thread of a C program may be
//! another.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use crate::events::Events;

static LISTENERS: LazyLock<RwLock<HashMap<u64, Arc<Events>>>> = LazyLock::new(RwLock::default);
static LAST: AtomicU64 = AtomicU64::new(0);

/// Opens the events of a new listener, and returns its number.
pub fn open() -> u64 {
    let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    LISTENERS.write().unwrap_or_else(PoisonError::into_inner).insert(number, Arc::default());
    number
}

/// Returns the events of a listener that [`open`] returned.
pub fn numbered(number: u64) -> Option<Arc<Events>> {
    LISTENERS.read().unwrap_or_else(PoisonError::into_inner).get(&number).cloned()
}

/// Returns the events of all listeners.
pub(crate) fn all() -> Vec<Arc<Events>> {
    LISTENERS.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
}
