//! The receive window of a socket, and its low-water mark.
#![allow(
    unsafe_code,
    reason = "no safe crate sets TCP_WINDOW_CLAMP or SO_RCVLOWAT; SO_RCVBUF can't be given back to TCP's own tuning"
)]

use tokio::net::TcpStream;

/// Clamps what the peer may have on its way to us to `bytes`, 0 lifting the clamp. A wish: where it can't be had, small
/// answers wait a little longer behind bulk. Returns whether it lasts; else TCP lifts it when it gives the socket more
/// memory, which it is kept from only once it has given enough.
pub(super) fn clamp(tcp: &TcpStream, bytes: u32) -> bool {
    #[cfg(target_os = "linux")]
    {
        // linux/socket.h: the buffer's size is the program's, as if it had set it.
        const SOCK_RCVBUF_LOCK: u32 = 2;
        // At first TCP counts on half of a buffer being taken up by what is around the bytes.
        let is_enough = |size: usize| bytes > 0 && size >= 2 * bytes as usize;
        let lasts = socket2::SockRef::from(tcp).recv_buffer_size().is_ok_and(is_enough);
        set(tcp, libc::SOL_SOCKET, libc::SO_BUF_LOCK, if lasts { SOCK_RCVBUF_LOCK } else { 0 });
        set(tcp, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, if bytes == 0 { u32::MAX } else { bytes });
        lasts || bytes == 0
    }
    // Other systems have no such clamp.
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (tcp, bytes);
        true
    }
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// Two ends of a connection.
    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let here = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (here, listener.accept().await.unwrap().0)
    }

    #[tokio::test]
    async fn a_clamped_connection_is_not_given_more_memory() {
        let (mut here, mut there) = pair().await;
        assert!(clamp(&here, 16 * 1024));
        let before = socket2::SockRef::from(&here).recv_buffer_size().unwrap();
        let sending = tokio::spawn(async move {
            there.write_all(&vec![7; 8 << 20]).await.unwrap();
        });
        let mut received = Vec::new();
        here.read_to_end(&mut received).await.unwrap();
        sending.await.unwrap();
        assert_eq!(received.len(), 8 << 20);
        assert_eq!(socket2::SockRef::from(&here).recv_buffer_size().unwrap(), before);
    }

    #[tokio::test]
    async fn a_clamp_above_what_a_connection_has_does_not_keep_it_from_having_more() {
        let (here, _there) = pair().await;
        assert!(!clamp(&here, 1 << 30), "it has to be set again");
        assert!(clamp(&here, 0), "and is lifted for good");
    }
}
