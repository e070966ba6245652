//! What the peers have of what was sent to them.
//!
//! Bytes that the kernel has taken may lie in its buffers for long: four megabytes of each connection are taken as soon as it
//! opens, and read as a rate they made a path of 200 Mbit/s a quarter faster than it was. What is acknowledged has passed.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::TcpStream;

use super::platform::{Socket, TELLS_ACKNOWLEDGED};

/// Counts what has been acknowledged, over all connections that there are and were.
#[derive(Debug, Default)]
pub(crate) struct Delivered(Mutex<Sockets>);

#[derive(Debug, Default)]
struct Sockets {
    open: Vec<(Socket, Arc<AtomicU64>)>,
    /// What those took that are closed.
    closed: u64,
    /// What was counted last.
    counted: u64,
}

/// One connection's part, from before its first write until its socket is closed.
#[derive(Debug)]
pub(super) struct Listed {
    list: Arc<Delivered>,
    socket: Socket,
    written: Arc<AtomicU64>,
}

impl Delivered {
    /// Bytes so far, heads and what TLS adds among them, never less than before; `None` where the system doesn't tell.
    pub(crate) fn bytes(&self) -> Option<u64> {
        if !TELLS_ACKNOWLEDGED {
            return None;
        }
        let mut sockets = self.lock();
        // What is written between the two looks counts the next time.
        let passed = |(socket, written): &(Socket, Arc<AtomicU64>)| {
            let written = written.load(Relaxed);
            written.saturating_sub(socket.unacknowledged())
        };
        let bytes = sockets.closed + sockets.open.iter().map(passed).sum::<u64>();
        sockets.counted = sockets.counted.max(bytes);
        Some(sockets.counted)
    }

    fn lock(&self) -> MutexGuard<'_, Sockets> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listed {
    pub(super) fn new(list: Arc<Delivered>, tcp: &TcpStream) -> Self {
        let (socket, written) = (Socket::of(tcp), Arc::new(AtomicU64::new(0)));
        list.lock().open.push((socket, Arc::clone(&written)));
        Self { list, socket, written }
    }

    /// Takes note of what the kernel has taken.
    pub(super) fn wrote(&self, bytes: usize) {
        self.written.fetch_add(bytes as u64, Relaxed);
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        let mut sockets = self.list.lock();
        sockets.open.retain(|(_, written)| !Arc::ptr_eq(written, &self.written));
        sockets.closed += self.written.load(Relaxed).saturating_sub(self.socket.unacknowledged());
    }
}

#[cfg(all(test, target_os = "linux", not(laneway_fallback)))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    use super::*;

    /// Writes what the kernel takes.
    fn fill(tcp: &TcpStream, listed: &Listed) -> u64 {
        let written = std::iter::from_fn(|| tcp.try_write(&[7; 64 * 1024]).ok());
        written.inspect(|bytes| listed.wrote(*bytes)).map(|bytes| bytes as u64).sum()
    }

    #[tokio::test]
    async fn what_lies_in_send_buffers_has_not_passed_until_the_peer_has_it() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let list = Arc::new(Delivered::default());
        let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let mut far = listener.accept().await.unwrap().0;
        let listed = Listed::new(Arc::clone(&list), &near);
        near.writable().await.unwrap();
        let written = fill(&near, &listed);
        let passed = list.bytes().unwrap();
        assert!(passed < written, "all of {written} in a peer that doesn't read");
        let mut into = vec![0; written as usize];
        far.read_exact(&mut into).await.unwrap();
        assert!(list.bytes().unwrap() > passed);
        drop(listed);
        assert!((passed + 1..=written).contains(&list.bytes().unwrap()), "and a closed one's stay counted");
        assert!(list.lock().open.is_empty());
    }
}
