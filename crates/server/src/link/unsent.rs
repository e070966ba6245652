//! Finds out if the kernel still has bytes to send. A reset would discard them, so a fault after N bytes must wait
//! until the first N bytes have been sent. Linux shows the unsent bytes in `/proc/net/tcp`. On other systems, the fault
//! waits for a fixed time, which is long enough for a client that reads.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::TcpStream;

const PAUSE: Duration = Duration::from_millis(2);
/// After this many pauses, the connection is reset anyway. Otherwise a client that reads nothing would delay the reset
/// for ever.
const PAUSES_MAX: u32 = 500;

/// The wait if the number of unsent bytes can't be found out, for example without `/proc`. On loopback, bytes reach a
/// client that reads within microseconds.
const UNKNOWN: Duration = Duration::from_millis(100);

/// Waits until all written bytes have been acknowledged, but at most a second. If the number of unsent bytes can't be
/// found out, it waits for [`UNKNOWN`].
pub(crate) async fn sent(socket: &TcpStream) {
    let (Ok(local), Ok(peer)) = (socket.local_addr(), socket.peer_addr()) else { return };
    for _ in 0..PAUSES_MAX {
        tokio::time::sleep(PAUSE).await;
        let table = if local.is_ipv4() { "/proc/net/tcp" } else { "/proc/net/tcp6" };
        let Ok(table) = std::fs::read_to_string(table) else { return tokio::time::sleep(UNKNOWN).await };
        if unsent(&table, local, peer).is_none_or(|bytes| bytes == 0) {
            return;
        }
    }
}

/// Returns the number of bytes in one connection's send queue, from a table such as `/proc/net/tcp`.
fn unsent(table: &str, local: SocketAddr, peer: SocketAddr) -> Option<u64> {
    let (local, peer) = (written(local), written(peer));
    table.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let same = words.next() == Some(&local) && words.next() == Some(&peer);
        let queues = words.nth(1).filter(|_| same)?;
        u64::from_str_radix(queues.split(':').next()?, 16).ok()
    })
}

/// Returns an address in the format of that table: hexadecimal words in the machine's byte order.
fn written(addr: SocketAddr) -> String {
    let octets = match addr.ip() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let words = octets.chunks_exact(4).map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
    let words: String = words.map(|word| format!("{word:08X}")).collect();
    format!("{words}:{:04X}", addr.port())
}

#[cfg(all(test, target_endian = "little"))]
mod tests {
    use super::*;

    #[test]
    fn the_queue_of_the_right_connection_is_found() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when\n\
             0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000\n\
             1: 0100007F:1F90 0100007F:D6A2 01 000002A0:00000000 00:00000000\n";
        let local = "127.0.0.1:8080".parse().unwrap();
        assert_eq!(unsent(table, local, "127.0.0.1:54946".parse().unwrap()), Some(0x2A0));
        assert_eq!(unsent(table, local, "127.0.0.1:54947".parse().unwrap()), None);
    }
}
