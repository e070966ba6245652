//! Reads the sizes of the client's socket buffers. If they are small, they limit the bytes in flight.
//!
//! On loopback even a small buffer doesn't limit the rate, because bytes are acknowledged as soon as they are sent. But
//! Linux reports the buffer sizes of every socket of the machine (sock_diag(7)), so the simulated path can limit the
//! bytes in flight as a real path would. If the client is on another machine, or the system has no such interface,
//! there is no such limit.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};

use socket2::{Domain, Protocol, Socket, Type};

// These constants are from linux/netlink.h, linux/sock_diag.h and linux/inet_diag.h.
const AF_NETLINK: i32 = 16;
const NETLINK_SOCK_DIAG: i32 = 4;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_SKMEMINFO: u16 = 7;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IPPROTO_TCP: u8 = 6;
/// The length of a message's header, and of inet_diag's answer before its attributes.
const HEADER_BYTES: usize = 16;
const ANSWER_BYTES: usize = HEADER_BYTES + 72;
/// Offsets in an answer: the local port, and the bytes received and unread.
const PORT_AT: usize = HEADER_BYTES + 4;
const UNREAD_AT: usize = HEADER_BYTES + 56;
/// The offset of the receive window in struct tcp_info.
const RECEIVE_WINDOW_AT: usize = 64;
/// The offsets of SK_MEMINFO_RCVBUF and SK_MEMINFO_SNDBUF in the array of socket memory.
const RECEIVE_BUFFER_AT: usize = 4;
const SEND_BUFFER_AT: usize = 12;

/// On loopback, a window is larger than this unless the client has limited it.
const WINDOW_UNTOUCHED: usize = 60 << 10;

/// A connection to the kernel for queries about sockets.
#[derive(Debug)]
pub(crate) struct Kernel(Mutex<Socket>);

/// The socket buffers of a client, in bytes, as the kernel counts them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Buffers {
    receive_buffer: usize,
    /// The window that the client can announce when it has read everything.
    receive_window: usize,
    unread: usize,
    send_buffer: usize,
}

impl Buffers {
    /// Returns the maximum number of bytes that the client can have sent without an acknowledgement. A quarter of the
    /// send buffer is left out, because overhead takes a part of it, and the client may not have refilled another part
    /// yet.
    pub(crate) fn may_send(&self) -> usize {
        self.send_buffer / 4 * 3
    }

    /// Returns the maximum number of bytes in flight to the client. A window that the kernel manages is ignored while
    /// the client reads, because on loopback the kernel sizes it for a round trip of microseconds. The client itself
    /// has limited the window if it is much smaller than the buffer.
    pub(crate) fn may_receive(&self) -> usize {
        let is_small =
            self.receive_window < WINDOW_UNTOUCHED || self.receive_window <= self.receive_buffer / 8 * 5;
        let is_filling = self.unread > self.receive_window / 4;
        if is_small || is_filling { self.receive_window.saturating_sub(self.unread) } else { usize::MAX }
    }
}

impl Kernel {
    /// Opens the connection, or returns `None` if the system has no such interface.
    pub(crate) fn open() -> Option<Kernel> {
        if !cfg!(target_os = "linux") {
            return None;
        }
        let socket =
            Socket::new(Domain::from(AF_NETLINK), Type::DGRAM, Some(Protocol::from(NETLINK_SOCK_DIAG)));
        let socket = socket.ok()?;
        // The kernel has the answer ready as soon as it has accepted the query, so reading it never has to wait.
        socket.set_nonblocking(true).ok()?;
        Some(Kernel(Mutex::new(socket)))
    }

    /// Returns the buffers of the TCP socket on this machine that is connected from `near` to `far`.
    pub(crate) fn buffers(&self, near: SocketAddr, far: SocketAddr) -> Option<Buffers> {
        let mut socket = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        socket.write_all(&question(near, far)).ok()?;
        let mut answer = [0; 2048];
        let len = socket.read(&mut answer).ok()?;
        read(&answer[..len], near.port())
    }
}

fn question(near: SocketAddr, far: SocketAddr) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + 56);
    bytes.extend(u32::to_ne_bytes((HEADER_BYTES + 56) as u32));
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend(NLM_F_REQUEST.to_ne_bytes());
    // These bytes are the message's sequence number and the kernel's netlink port. Both are 0.
    bytes.extend([0; 8]);
    let attributes = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_SKMEMINFO - 1);
    let family = if near.is_ipv4() { AF_INET } else { AF_INET6 };
    bytes.extend([family, IPPROTO_TCP, attributes, 0]);
    // Match sockets in any state.
    bytes.extend([0xff; 4]);
    bytes.extend(near.port().to_be_bytes());
    bytes.extend(far.port().to_be_bytes());
    for end in [near, far] {
        let mut address = [0; 16];
        match end.ip() {
            IpAddr::V4(ip) => address[..4].copy_from_slice(&ip.octets()),
            IpAddr::V6(ip) => address.copy_from_slice(&ip.octets()),
        }
        bytes.extend(address);
    }
    // Interface 0 matches any network interface. The bytes after it mean that the query has no socket cookie.
    bytes.extend([0; 4]);
    bytes.extend([0xff; 8]);
    bytes
}

/// Parses the kernel's answer about the connection with this local port.
fn read(answer: &[u8], port: u16) -> Option<Buffers> {
    let word = |bytes: &[u8], at: usize| Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?) as usize);
    let half = |bytes: &[u8], at: usize| Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
    if half(answer, 4)? != SOCK_DIAG_BY_FAMILY || half(answer, PORT_AT)? != port.to_be() {
        return None;
    }
    let mut buffers = Buffers { unread: word(answer, UNREAD_AT)?, ..Buffers::default() };
    let mut attributes = answer.get(ANSWER_BYTES..word(answer, 0)?)?;
    while attributes.len() >= 4 {
        let len = usize::from(half(attributes, 0)?).max(4);
        let content = attributes.get(4..len)?;
        match half(attributes, 2)? {
            INET_DIAG_INFO => buffers.receive_window = word(content, RECEIVE_WINDOW_AT)?,
            INET_DIAG_SKMEMINFO => {
                buffers.receive_buffer = word(content, RECEIVE_BUFFER_AT)?;
                buffers.send_buffer = word(content, SEND_BUFFER_AT)?;
            }
            _ => {}
        }
        attributes = attributes.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    (buffers.send_buffer > 0 && buffers.receive_window > 0).then_some(buffers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_send_buffer_bounds_what_is_on_its_way() {
        let buffers = Buffers { send_buffer: 100_000, ..Buffers::default() };
        assert_eq!(buffers.may_send(), 75_000);
    }

    #[test]
    fn a_window_counts_where_it_is_kept_small_or_fills() {
        let untouched = Buffers { receive_buffer: 131_072, receive_window: 108_544, ..Buffers::default() };
        assert_eq!(untouched.may_receive(), usize::MAX);
        let filling = Buffers { unread: 60_000, ..untouched };
        assert_eq!(filling.may_receive(), 48_544);
        let clamped = Buffers { receive_buffer: 400_000, unread: 1000, ..untouched };
        assert_eq!(clamped.may_receive(), 107_544);
        let tiny = Buffers { receive_window: 32_768, ..untouched };
        assert_eq!(tiny.may_receive(), 32_768);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_kernel_tells_of_the_other_end_of_a_connection() {
        use std::net::{TcpListener, TcpStream};

        for listen in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(listen) else { continue };
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (mut server, near) = listener.accept().unwrap();
            let ours = socket2::SockRef::from(&client);
            ours.set_send_buffer_size(50_000).unwrap();
            ours.set_recv_buffer_size(40_000).unwrap();
            // All bytes of a write are available once the first of them have been read.
            server.write_all(&[7; 3000]).unwrap();
            (&client).read_exact(&mut [0; 1000]).unwrap();
            let kernel = Kernel::open().unwrap();
            let buffers = kernel.buffers(near, server.local_addr().unwrap()).unwrap();
            assert_eq!(buffers.send_buffer, ours.send_buffer_size().unwrap());
            assert_eq!(buffers.receive_buffer, ours.recv_buffer_size().unwrap());
            assert_eq!(buffers.unread, 2000);
            assert!(buffers.receive_window > 0);
            // No such connection exists.
            assert_eq!(kernel.buffers(server.local_addr().unwrap(), "127.0.0.1:1".parse().unwrap()), None);
        }
    }
}
