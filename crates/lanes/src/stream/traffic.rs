//! What the connections of one origin have moved, and what bulk on them is held to.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use super::delivered::Delivered;
use crate::dispatch::UNSENT_UNKNOWN;

/// Shared by all connections of an origin, closed ones included.
#[derive(Debug)]
pub(crate) struct Traffic {
    received: AtomicU64,
    /// What the peers have acknowledged.
    pub(crate) delivered: Arc<Delivered>,
    /// What each connection that carries bulk to us may have outstanding; 0 leaves it to TCP.
    pub(crate) window: AtomicU32,
    /// What each connection that uploads bulk may have in its send buffer; 0 leaves it to TCP.
    pub(crate) send_buffer: AtomicU32,
    /// What the kernel may take of such a connection's bulk beyond what it may send at once.
    pub(crate) unsent: AtomicU32,
}

impl Default for Traffic {
    fn default() -> Self {
        Self {
            received: AtomicU64::new(0),
            delivered: Arc::default(),
            window: AtomicU32::new(0),
            send_buffer: AtomicU32::new(0),
            unsent: AtomicU32::new(UNSENT_UNKNOWN),
        }
    }
}

impl Traffic {
    /// Counts bytes that came out of a socket.
    pub(crate) fn read(&self, bytes: usize) {
        self.received.fetch_add(bytes as u64, Relaxed);
    }

    /// Bytes that have come, heads and what TLS adds among them.
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Relaxed)
    }
}
