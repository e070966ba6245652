//! A system of which no more is known than that it has sockets: everything is left to its TCP.

use tokio::net::TcpStream;

use crate::stream::PathSignals;

#[derive(Debug, Default)]
pub(in crate::stream) struct BufferLocks;

/// Nothing is clamped, and stays so.
pub(in crate::stream) fn clamp(_tcp: &TcpStream, _locks: &mut BufferLocks, _bytes: u32) -> bool {
    true
}

/// Elsewhere `SO_RCVLOWAT` is not known to hold for what waits for many sockets at once.
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

/// Written bytes may lie in the system's buffers for long, and nothing says how many do.
impl PathSignals for SocketSignals {}
