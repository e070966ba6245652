//! Bytes that the connections of one origin have moved, and the limits of bulk on them.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use super::carried::Carried;
use crate::dispatch::Rules;

/// Shared by all connections of an origin, closed ones included.
#[derive(Debug)]
pub(crate) struct Traffic {
    /// Bytes that have come, and bytes that the peers have acknowledged.
    pub(crate) carried: Arc<Carried>,
    /// Bytes that each connection with bulk to us may have outstanding; 0 leaves it to TCP.
    pub(crate) window: AtomicU32,
    /// Bytes that each connection that uploads bulk may have in its send buffer; 0 leaves it to TCP.
    pub(crate) send_buffer: AtomicU32,
    /// Bytes of such a connection's bulk that the kernel may take beyond what it may send at once.
    pub(crate) unsent: AtomicU32,
    /// Bytes a second that it may send; `u32::MAX` leaves it to TCP.
    pub(crate) pace: AtomicU32,
}

impl Default for Traffic {
    fn default() -> Self {
        Self {
            carried: Arc::default(),
            window: AtomicU32::new(0),
            send_buffer: AtomicU32::new(0),
            unsent: AtomicU32::new(Rules::CHOSEN.unsent_unknown),
            pace: AtomicU32::new(u32::MAX),
        }
    }
}
