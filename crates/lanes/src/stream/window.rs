//! The receive window of a socket, and its low-water mark.
#![allow(
    unsafe_code,
    reason = "no safe crate sets TCP_WINDOW_CLAMP or SO_RCVLOWAT; SO_RCVBUF can't be given back to TCP's own tuning"
)]

use tokio::net::TcpStream;

/// Clamps what the peer may have on its way to us to `bytes`, 0 lifting the clamp. A wish: where it can't be had, small
/// answers wait a little longer behind bulk.
pub(super) fn clamp(tcp: &TcpStream, bytes: u32) {
    #[cfg(target_os = "linux")]
    set(tcp, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, if bytes == 0 { u32::MAX } else { bytes });
    // Other systems have no such clamp.
    #[cfg(not(target_os = "linux"))]
    let _ = (tcp, bytes);
}

/// Lets the socket be readable only once `bytes` have come, or its end. A wish, too: where it can't be had, bulk is read
/// in smaller pieces.
pub(super) fn low_water(tcp: &TcpStream, bytes: u32) {
    // Elsewhere it is not known to hold for what waits for many sockets at once.
    #[cfg(target_os = "linux")]
    set(tcp, libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes);
    #[cfg(not(target_os = "linux"))]
    let _ = (tcp, bytes);
}

/// Sets an option that is a C int.
#[cfg(target_os = "linux")]
fn set(tcp: &TcpStream, level: libc::c_int, name: libc::c_int, value: u32) {
    use std::os::fd::AsRawFd;

    let value = libc::c_int::try_from(value).unwrap_or(libc::c_int::MAX);
    let len = size_of_val(&value) as libc::socklen_t;
    // SAFETY: the descriptor is open as long as `tcp` is borrowed; `value` is a C int, lives through the call, and `len`
    // is its size.
    let set =
        unsafe { libc::setsockopt(tcp.as_raw_fd(), level, name, std::ptr::from_ref(&value).cast(), len) };
    if set != 0 {
        tracing::debug!(level, name, error = %std::io::Error::last_os_error(), "a socket option can't be set");
    }
}
