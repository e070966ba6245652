//! The queues, one for each class loader. What threads hand over to each other is in these, and not here.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use crate::queue::Queue;

static QUEUES: LazyLock<RwLock<HashMap<u64, Arc<Queue>>>> = LazyLock::new(RwLock::default);
static LAST: AtomicU64 = AtomicU64::new(0);

/// A queue of its own for a class loader.
pub(crate) fn open() -> u64 {
    let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
    QUEUES.write().unwrap_or_else(PoisonError::into_inner).insert(number, Arc::new(Queue::new()));
    number
}

/// The queue of a number that [`open`] gave.
pub(crate) fn numbered(number: u64) -> Option<Arc<Queue>> {
    QUEUES.read().unwrap_or_else(PoisonError::into_inner).get(&number).cloned()
}

/// All queues that there are.
pub(crate) fn all() -> Vec<Arc<Queue>> {
    QUEUES.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
}
