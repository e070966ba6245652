//! What a socket holds in each direction, and when it is readable.
#![allow(
    unsafe_code,
    reason = "no safe crate sets TCP_WINDOW_CLAMP, SO_RCVLOWAT, SO_BUF_LOCK or TCP_NOTSENT_LOWAT, or asks SIOCOUTQ; SO_RCVBUF can't be given back to TCP's own tuning"
)]

use tokio::net::TcpStream;

/// Which of a socket's buffers TCP doesn't give more memory to.
#[derive(Debug, Default)]
pub(super) struct Locks(#[cfg(target_os = "linux")] u32);

// linux/socket.h: the buffer's size is the program's, as if it had set it.
#[cfg(target_os = "linux")]
const SOCK_SNDBUF_LOCK: u32 = 1;
#[cfg(target_os = "linux")]
const SOCK_RCVBUF_LOCK: u32 = 2;

#[cfg(target_os = "linux")]
impl Locks {
    /// Locks a buffer or gives it back. Says whether it could: Linux can since 5.14.
    fn set(&mut self, tcp: &TcpStream, lock: u32, is_on: bool) -> bool {
        let locks = if is_on { self.0 | lock } else { self.0 & !lock };
        let could = set(tcp, libc::SOL_SOCKET, libc::SO_BUF_LOCK, locks);
        self.0 = if could { locks } else { self.0 };
        could
    }
}

/// Clamps what the peer may have on its way to us to `bytes`, 0 lifting the clamp. A wish: where it can't be had, small
/// answers wait a little longer behind bulk. Returns whether it lasts; else TCP lifts it when it gives the socket more
/// memory, which it is kept from only once it has given enough.
pub(super) fn clamp(tcp: &TcpStream, locks: &mut Locks, bytes: u32) -> bool {
    #[cfg(target_os = "linux")]
    {
        // At first TCP counts on half of a buffer being taken up by what is around the bytes.
        let is_enough = |size: usize| bytes > 0 && size >= 2 * bytes as usize;
        let lasts = socket2::SockRef::from(tcp).recv_buffer_size().is_ok_and(is_enough);
        let lasts = locks.set(tcp, SOCK_RCVBUF_LOCK, lasts) && lasts;
        set(tcp, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, if bytes == 0 { u32::MAX } else { bytes });
        lasts || bytes == 0
    }
    // Other systems have no such clamp.
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (tcp, locks, bytes);
        true
    }
}

/// Lets the socket be readable only once `bytes` have come, or its end. A wish, too: where it can't be had, bulk is read
/// in smaller chunks.
pub(super) fn low_water(tcp: &TcpStream, bytes: u32) {
    // Elsewhere it is not known to hold for what waits for many sockets at once.
    #[cfg(target_os = "linux")]
    set(tcp, libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes);
    #[cfg(not(target_os = "linux"))]
    let _ = (tcp, bytes);
}

/// Lets the send buffer hold at most `bytes`, sent and not acknowledged ones included; 0 gives it back to TCP's own
/// tuning. A wish, too: a kernel that can't give it back (Linux before 5.14), or allows much less (`net.core.wmem_max`), keeps
/// its own.
pub(super) fn send_buffer(tcp: &TcpStream, locks: &mut Locks, bytes: u32) {
    #[cfg(target_os = "linux")]
    {
        let is_set = bytes > 0 && locks.set(tcp, SOCK_SNDBUF_LOCK, true) && {
            // The kernel doubles what it is told, for its own structures, which bulk hardly needs.
            set(tcp, libc::SOL_SOCKET, libc::SO_SNDBUF, bytes / 2);
            socket2::SockRef::from(tcp).send_buffer_size().is_ok_and(|is| is >= bytes as usize / 16 * 15)
        };
        if !is_set {
            locks.set(tcp, SOCK_SNDBUF_LOCK, false);
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (tcp, locks, bytes);
}

/// Lets the kernel take at most `bytes` beyond what it may send at once; it wakes the writer at half of that. A wish, too.
pub(super) fn unsent(tcp: &TcpStream, bytes: u32) {
    #[cfg(target_os = "linux")]
    set(tcp, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, bytes);
    #[cfg(not(target_os = "linux"))]
    let _ = (tcp, bytes);
}

/// An open socket, as the kernel calls it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number(#[cfg(target_os = "linux")] libc::c_int);

impl Number {
    pub(super) fn of(tcp: &TcpStream) -> Self {
        #[cfg(target_os = "linux")]
        return Self(std::os::fd::AsRawFd::as_raw_fd(tcp));
        #[cfg(not(target_os = "linux"))]
        {
            let _ = tcp;
            Self()
        }
    }

    /// How many of the bytes that were written the peer has not acknowledged. Where that isn't known, all of them count
    /// as acknowledged.
    pub(super) fn unacknowledged(self) -> u64 {
        #[cfg(target_os = "linux")]
        {
            let mut bytes: libc::c_int = 0;
            // SAFETY: SIOCOUTQ, which is TIOCOUTQ by another name, writes a C int to where it is told, which lives through the
            // call. Of a socket that is closed it would be the answer for another one, which is of no harm to memory.
            let asked = unsafe { libc::ioctl(self.0, libc::TIOCOUTQ, std::ptr::from_mut(&mut bytes)) };
            if asked == 0 { u64::try_from(bytes).unwrap_or_default() } else { 0 }
        }
        #[cfg(not(target_os = "linux"))]
        0
    }
}

/// Sets an option that is a C int, and says whether it could.
#[cfg(target_os = "linux")]
fn set(tcp: &TcpStream, level: libc::c_int, name: libc::c_int, value: u32) -> bool {
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
    set == 0
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (near, far) = tokio::join!(TcpStream::connect(address), listener.accept());
        (near.unwrap(), far.unwrap().0)
    }

    fn sizes(tcp: &TcpStream) -> (usize, usize) {
        let tcp = socket2::SockRef::from(tcp);
        (tcp.recv_buffer_size().unwrap(), tcp.send_buffer_size().unwrap())
    }

    async fn pass(from: &mut TcpStream, to: &mut TcpStream, bytes: usize) {
        let (out, mut into) = (vec![7; bytes], vec![0; bytes]);
        let (sent, received) = tokio::join!(from.write_all(&out), to.read_exact(&mut into));
        sent.unwrap();
        received.unwrap();
    }

    #[tokio::test]
    async fn a_clamped_send_buffer_stays_as_small_and_grows_again_when_it_is_given_back() {
        let ((mut near, mut far), mut locks) = (pair().await, Locks::default());
        send_buffer(&near, &mut locks, 100_000);
        pass(&mut near, &mut far, 8 << 20).await;
        assert!((93_000..=100_000).contains(&sizes(&near).1), "{}", sizes(&near).1);
        send_buffer(&near, &mut locks, 0);
        pass(&mut near, &mut far, 8 << 20).await;
        assert!(sizes(&near).1 > 100_000, "{}", sizes(&near).1);
    }

    #[tokio::test]
    async fn a_clamped_window_is_not_widened_and_neither_is_the_send_buffer_beside_it() {
        let ((mut near, mut far), mut locks) = (pair().await, Locks::default());
        send_buffer(&near, &mut locks, 100_000);
        assert!(clamp(&near, &mut locks, 16 * 1024));
        let before = sizes(&near);
        pass(&mut far, &mut near, 8 << 20).await;
        pass(&mut near, &mut far, 8 << 20).await;
        assert_eq!(sizes(&near), before);
    }

    #[tokio::test]
    async fn a_clamp_above_what_a_connection_has_does_not_keep_it_from_having_more() {
        let ((near, _far), mut locks) = (pair().await, Locks::default());
        assert!(!clamp(&near, &mut locks, 1 << 30), "it has to be set again");
        assert!(clamp(&near, &mut locks, 0), "and is lifted for good");
    }
}
