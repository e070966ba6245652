//! The process-wide limit on bytes in flight.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The unit of reservations. With it, a semaphore's 32-bit permits reach 4 TiB.
const UNIT: usize = 1024;

/// Bytes of buffers that may be in flight at once, over all users of one engine. Waiting reservations are served in order.
#[derive(Clone, Debug)]
pub struct MemoryBudget {
    semaphore: Arc<Semaphore>,
    total: usize,
}

/// A part of the budget. It returns when this is dropped.
#[derive(Debug)]
pub struct Reservation {
    _permit: Option<OwnedSemaphorePermit>,
}

impl MemoryBudget {
    /// A budget of `bytes`.
    pub fn new(bytes: usize) -> Self {
        let units = bytes.div_ceil(UNIT).max(1);
        Self { semaphore: Arc::new(Semaphore::new(units)), total: units }
    }

    /// Waits until `bytes` are free and takes them. A request larger than the whole budget gets the whole budget, since it could never be
    /// met otherwise.
    pub async fn reserve(&self, bytes: usize) -> Reservation {
        let units = bytes.div_ceil(UNIT).clamp(1, self.total) as u32;
        // The semaphore is never closed. Without a permit the reservation would hold nothing.
        Reservation { _permit: Arc::clone(&self.semaphore).acquire_many_owned(units).await.ok() }
    }

    /// Takes `bytes` if they are free now.
    pub fn try_reserve(&self, bytes: usize) -> Option<Reservation> {
        let units = u32::try_from(bytes.div_ceil(UNIT).max(1)).ok()?;
        Arc::clone(&self.semaphore)
            .try_acquire_many_owned(units)
            .ok()
            .map(|p| Reservation { _permit: Some(p) })
    }

    /// Bytes that are free now.
    pub fn available(&self) -> usize {
        self.semaphore.available_permits() * UNIT
    }
}
