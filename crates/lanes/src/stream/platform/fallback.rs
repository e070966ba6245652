//! For systems about which nothing is known except that they have sockets. Everything is left to TCP.

use tokio::net::TcpStream;

use crate::stream::PathSignals;

#[derive(Debug, Default)]
pub(in crate::stream) struct BufferLocks;

/// Sets nothing, and so never has to be set again.
pub(in crate::stream) fn clamp(_tcp: &TcpStream, _locks: &mut BufferLocks, _bytes: u32) -> bool {
    true
}

/// On other systems, `SO_RCVLOWAT` isn't known to work with calls that wait for many sockets at once.
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

/// Written bytes may stay in the system's buffers for long, and no call tells how many.
impl PathSignals for SocketSignals {}
