//! The implementation for Linux.
#![allow(
    unsafe_code,
    reason = "no safe crate sets TCP_WINDOW_CLAMP, SO_RCVLOWAT, SO_BUF_LOCK, SO_MAX_PACING_RATE or TCP_NOTSENT_LOWAT, or asks SIOCOUTQ, SO_MEMINFO or TCP_INFO; SO_RCVBUF can't be given back to TCP's own tuning"
)]

use std::os::fd::AsRawFd;
use std::time::Duration;

use tokio::net::TcpStream;

use crate::dispatch::{Direction, TcpSample};
use crate::stream::PathSignals;

/// The locks on a socket's buffers. TCP doesn't resize a locked buffer.
#[derive(Debug, Default)]
pub(in crate::stream) struct BufferLocks(u32);

// From linux/socket.h. A buffer with this lock keeps its size, as if the program had set it.
const SOCK_SNDBUF_LOCK: u32 = 1;
const SOCK_RCVBUF_LOCK: u32 = 2;

// From linux/sock_diag.h: the index of the memory used by received bytes that the program hasn't read, including overhead.
const SK_MEMINFO_RMEM_ALLOC: usize = 0;

// From linux/tcp.h: indexes of 32-bit words in the struct tcp_info.
const TCPI_SND_MSS: usize = 4;
const TCPI_SACKED: usize = 7;
const TCPI_LAST_DATA_SENT: usize = 11;
const TCPI_LAST_DATA_RECV: usize = 13;
const TCPI_RTT: usize = 17;
const TCPI_RCV_RTT: usize = 23;
const TCPI_TOTAL_RETRANS: usize = 25;
const TCPI_RCV_OOOPACK: usize = 56;

impl BufferLocks {
    /// Locks or unlocks a buffer. Returns whether the kernel supports this, as Linux does since 5.14.
    fn set(&mut self, tcp: &TcpStream, lock: u32, is_on: bool) -> bool {
        let locks = if is_on { self.0 | lock } else { self.0 & !lock };
        let could = set(tcp, libc::SOL_SOCKET, libc::SO_BUF_LOCK, locks);
        self.0 = if could { locks } else { self.0 };
        could
    }
}

pub(in crate::stream) fn clamp(tcp: &TcpStream, locks: &mut BufferLocks, bytes: u32) -> bool {
    // For a new connection, TCP assumes that overhead takes half of a buffer.
    let is_enough = |size: usize| bytes > 0 && size >= 2 * bytes as usize;
    let lasts = socket2::SockRef::from(tcp).recv_buffer_size().is_ok_and(is_enough);
    let lasts = locks.set(tcp, SOCK_RCVBUF_LOCK, lasts) && lasts;
    set(tcp, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, if bytes == 0 { u32::MAX } else { bytes });
    lasts || bytes == 0
}

pub(in crate::stream) fn low_water(tcp: &TcpStream, bytes: u32) {
    set(tcp, libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes);
}

/// If the kernel can't unlock the buffer later (before 5.14), or allows only a much smaller one (`net.core.wmem_max`), this sets no limit.
pub(in crate::stream) fn send_buffer(tcp: &TcpStream, locks: &mut BufferLocks, bytes: u32) {
    let is_set = bytes > 0 && locks.set(tcp, SOCK_SNDBUF_LOCK, true) && {
        // The kernel doubles the given size, to have room for its own structures. Bulk needs little room for them, so pass half of the
        // wanted size.
        set(tcp, libc::SOL_SOCKET, libc::SO_SNDBUF, bytes / 2);
        socket2::SockRef::from(tcp).send_buffer_size().is_ok_and(|is| is >= bytes as usize / 16 * 15)
    };
    if !is_set {
        locks.set(tcp, SOCK_SNDBUF_LOCK, false);
    }
}

pub(in crate::stream) fn unsent(tcp: &TcpStream, bytes: u32) {
    set(tcp, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, bytes);
}

pub(in crate::stream) fn pace(tcp: &TcpStream, rate: u32) {
    set_word(tcp, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, rate.cast_signed());
}

/// The file descriptor of an open socket.
#[derive(Debug)]
pub(in crate::stream) struct SocketSignals(libc::c_int);

impl SocketSignals {
    pub(in crate::stream) fn of(tcp: &TcpStream) -> Self {
        Self(tcp.as_raw_fd())
    }

    /// Estimates how many bytes after a lost packet the peer has received, from its selective acknowledgements (RFC 2018).
    fn beyond_a_gap(&self) -> u64 {
        let info = self.option::<{ TCPI_SACKED + 1 }>(libc::IPPROTO_TCP, libc::TCP_INFO);
        info.map_or(0, |info| u64::from(info[TCPI_SACKED]) * u64::from(info[TCPI_SND_MSS]))
    }

    /// Returns the first words of a socket option that is a structure of 32-bit words.
    fn option<const WORDS: usize>(&self, level: libc::c_int, name: libc::c_int) -> Option<[u32; WORDS]> {
        let mut words = [0_u32; WORDS];
        let mut len = size_of_val(&words) as libc::socklen_t;
        // SAFETY: the kernel writes at most `len` bytes to `words`, which lives through the call, and any bytes are valid words. If the
        // socket were closed, the result might be about another socket, which doesn't affect memory safety.
        let asked = unsafe { libc::getsockopt(self.0, level, name, words.as_mut_ptr().cast(), &raw mut len) };
        (asked == 0).then_some(words)
    }
}

impl PathSignals for SocketSignals {
    /// Returns half of the memory that the bytes use, because TCP itself first assumes that the other half is overhead. The number of
    /// segments can't be used instead, because merged segments count as one. A network card or the host of a virtual machine merges
    /// segments.
    fn waiting(&self) -> Option<u64> {
        let memory = self.option::<{ SK_MEMINFO_RMEM_ALLOC + 1 }>(libc::SOL_SOCKET, libc::SO_MEMINFO)?;
        Some(u64::from(memory[SK_MEMINFO_RMEM_ALLOC]) / 2)
    }

    fn unacknowledged(&self) -> Option<u64> {
        let mut bytes: libc::c_int = 0;
        // SAFETY: SIOCOUTQ, which has the same number as TIOCOUTQ, writes a C int to the pointer's target, which lives through the call. If
        // the socket were closed, the result might be about another socket, which doesn't affect memory safety.
        let asked = unsafe { libc::ioctl(self.0, libc::TIOCOUTQ, std::ptr::from_mut(&mut bytes)) };
        let bytes = if asked == 0 { u64::try_from(bytes).unwrap_or_default() } else { 0 };
        Some(bytes.saturating_sub(self.beyond_a_gap()))
    }

    fn resent(&self) -> Option<u64> {
        let info = self.option::<{ TCPI_TOTAL_RETRANS + 1 }>(libc::IPPROTO_TCP, libc::TCP_INFO)?;
        Some(info[TCPI_TOTAL_RETRANS].into())
    }

    fn flow(&self, direction: Direction) -> Option<TcpSample> {
        let info = self.option::<{ TCPI_RCV_OOOPACK + 1 }>(libc::IPPROTO_TCP, libc::TCP_INFO)?;
        let [round_trip, quiet, disordered] = match direction {
            Direction::Down => [TCPI_RCV_RTT, TCPI_LAST_DATA_RECV, TCPI_RCV_OOOPACK],
            Direction::Up => [TCPI_RTT, TCPI_LAST_DATA_SENT, TCPI_TOTAL_RETRANS],
        };
        Some(TcpSample {
            round_trip: Duration::from_micros(info[round_trip].into()),
            quiet: Duration::from_millis(info[quiet].into()),
            // For downloads, kernels before 5.4 leave this at zero.
            disordered: info[disordered].into(),
        })
    }
}

/// Sets an option that is a C int. Returns whether the kernel accepted it.
fn set(tcp: &TcpStream, level: libc::c_int, name: libc::c_int, value: u32) -> bool {
    set_word(tcp, level, name, libc::c_int::try_from(value).unwrap_or(libc::c_int::MAX))
}

fn set_word(tcp: &TcpStream, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> bool {
    let len = size_of_val(&value) as libc::socklen_t;
    // SAFETY: the descriptor is open while `tcp` is borrowed; `value` is a C int, lives through the call, and `len` is its size.
    let set =
        unsafe { libc::setsockopt(tcp.as_raw_fd(), level, name, std::ptr::from_ref(&value).cast(), len) };
    if set != 0 {
        tracing::debug!(level, name, error = %std::io::Error::last_os_error(), "a socket option can't be set");
    }
    set == 0
}

#[cfg(test)]
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
    async fn a_clamped_send_buffer_stays_small_until_it_is_given_back() {
        let ((mut near, mut far), mut locks) = (pair().await, BufferLocks::default());
        send_buffer(&near, &mut locks, 100_000);
        pass(&mut near, &mut far, 8 << 20).await;
        assert!((93_000..=100_000).contains(&sizes(&near).1), "{}", sizes(&near).1);
        send_buffer(&near, &mut locks, 0);
        pass(&mut near, &mut far, 8 << 20).await;
        assert!(sizes(&near).1 > 100_000, "{}", sizes(&near).1);
    }

    #[tokio::test]
    async fn a_clamped_window_and_its_send_buffer_are_not_widened() {
        let ((mut near, mut far), mut locks) = (pair().await, BufferLocks::default());
        send_buffer(&near, &mut locks, 100_000);
        assert!(clamp(&near, &mut locks, 16 * 1024));
        let before = sizes(&near);
        pass(&mut far, &mut near, 8 << 20).await;
        pass(&mut near, &mut far, 8 << 20).await;
        assert_eq!(sizes(&near), before);
    }

    #[tokio::test]
    async fn a_clamp_above_what_a_connection_has_does_not_keep_it_from_having_more() {
        let ((near, _far), mut locks) = (pair().await, BufferLocks::default());
        assert!(!clamp(&near, &mut locks, 1 << 30), "it has to be set again");
        assert!(clamp(&near, &mut locks, 0), "and is lifted for good");
    }
}
