//! The implementation for systems other than Linux. It sets no limits, and has no measurements.

use tokio::net::TcpStream;

use crate::stream::PathSignals;

#[derive(Debug, Default)]
pub(in crate::stream) struct BufferLocks;

/// Does nothing. It returns true so that the caller doesn't set the limit again and again.
pub(in crate::stream) fn clamp(_tcp: &TcpStream, _locks: &mut BufferLocks, _bytes: u32) -> bool {
    true
}

/// Does nothing. On other systems, we don't know if `SO_RCVLOWAT` works with calls that wait for many sockets, such as `kqueue`.
pub(in crate::stream) fn low_water(_tcp: &TcpStream, _bytes: u32) {}

pub(in crate::stream) fn send_buffer(_tcp: &TcpStream, _locks: &mut BufferLocks, _bytes: u32) {}

pub(in crate::stream) fn unsent(_tcp: &TcpStream, _bytes: u32) {}

pub(in crate::stream) fn pace(_tcp: &TcpStream, _rate: u32) {}

#[derive(Debug)]
pub(in crate::stream) struct SocketSignals;

impl SocketSignals {
    pub(in crate::stream) fn of(_tcp: &TcpStream) -> Self {
        Self
    }
}

/// All methods return `None`. So it isn't known how many written bytes are still in the system's buffers.
impl PathSignals for SocketSignals {}
