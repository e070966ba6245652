//! The receive window of a socket.
#![allow(
    unsafe_code,
    reason = "no safe crate sets TCP_WINDOW_CLAMP; SO_RCVBUF can't be given back to TCP's own tuning"
)]

use tokio::net::TcpStream;

/// Clamps what the peer may have on its way to us to `bytes`, 0 lifting the clamp. A wish: where it can't be had, small
/// answers wait a little longer behind bulk.
#[cfg(target_os = "linux")]
pub(super) fn clamp(tcp: &TcpStream, bytes: u32) {
    use std::os::fd::AsRawFd;

    let value =
        if bytes == 0 { libc::c_int::MAX } else { libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX) };
    let len = size_of_val(&value) as libc::socklen_t;
    // SAFETY: the descriptor is open as long as `tcp` is borrowed; `value` is a C int, lives through the call, and `len`
    // is its size.
    let set = unsafe {
        libc::setsockopt(
            tcp.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_WINDOW_CLAMP,
            std::ptr::from_ref(&value).cast(),
            len,
        )
    };
    if set != 0 {
        tracing::debug!(error = %std::io::Error::last_os_error(), "the receive window can't be clamped");
    }
}

/// Other systems have no such clamp.
#[cfg(not(target_os = "linux"))]
pub(super) fn clamp(_: &TcpStream, _: u32) {}
