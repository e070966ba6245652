//! What the connections of one origin have moved, and what bulk on them is held to.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use super::carried::Carried;
use crate::dispatch::Rules;

/// Shared by all connections of an origin, closed ones included.
#[derive(Debug)]
pub(crate) struct Traffic {
    /// What has come, and what the peers have acknowledged.
    pub(crate) carried: Arc<Carried>,
    /// What each connection that carries bulk to us may have outstanding; 0 leaves it to TCP.
    pub(crate) window: AtomicU32,
    /// What each connection that uploads bulk may have in its send buffer; 0 leaves it to TCP.
    pub(crate) send_buffer: AtomicU32,
    /// What the kernel may take of such a connection's bulk beyond what it may send at once.
    pub(crate) unsent: AtomicU32,
    /// What it may send, in bytes a second; `u32::MAX` leaves it to TCP.
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
