//! The limit on the bytes of buffers in use.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The number of bytes per permit of the semaphore. A caller can acquire at most 2^32 permits, which are 4 TiB.
const UNIT: usize = 1024;

/// A limit on the bytes of buffers that all users of an engine hold at once. Waiting reservations are served in order.
#[derive(Clone, Debug)]
pub struct MemoryBudget {
    semaphore: Arc<Semaphore>,
    total: usize,
}

/// A reserved part of the budget. Dropping it gives the bytes back.
#[derive(Debug)]
pub struct Reservation {
    _permit: Option<OwnedSemaphorePermit>,
}

impl MemoryBudget {
    /// Creates a budget of this many bytes.
    pub fn new(bytes: usize) -> Self {
        let units = bytes.div_ceil(UNIT).max(1);
        Self { semaphore: Arc::new(Semaphore::new(units)), total: units }
    }

    /// Waits until `bytes` are free and reserves them. If `bytes` is larger than the budget, the whole budget is reserved. Otherwise the
    /// caller would wait for ever.
    pub async fn reserve(&self, bytes: usize) -> Reservation {
        let units = bytes.div_ceil(UNIT).clamp(1, self.total) as u32;
        // The semaphore is never closed, so there is always a permit.
        Reservation { _permit: Arc::clone(&self.semaphore).acquire_many_owned(units).await.ok() }
    }

    /// Reserves `bytes` if they are free now.
    pub fn try_reserve(&self, bytes: usize) -> Option<Reservation> {
        let units = u32::try_from(bytes.div_ceil(UNIT).max(1)).ok()?;
        Arc::clone(&self.semaphore)
            .try_acquire_many_owned(units)
            .ok()
            .map(|p| Reservation { _permit: Some(p) })
    }

    /// Returns the number of bytes that are free now.
    pub fn available(&self) -> usize {
        self.semaphore.available_permits() * UNIT
    }
}
