//! Counts the bytes that the network has carried for an origin's connections.
//!
//! Written bytes may stay in the kernel's buffers for long. The kernel accepts four megabytes from each new connection at once. When
//! Laneway counted these bytes as sent, a path of 200 Mbit/s seemed a quarter faster. So only acknowledged bytes are counted for uploads.
//!
//! For downloads, bytes after a lost packet can be read only when that packet has been retransmitted, and then all at once. On a full path
//! of 200 Mbit/s and 120 ms, the rates of single seconds seemed to vary from 80 to 290 Mbit/s. Because of this, Laneway added lanes that
//! didn't help. So bytes that wait for a lost packet are counted when they arrive, in both directions.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::PathSignals;
use crate::dispatch::{Direction, TcpSample};

/// Counts the bytes of all connections, open and closed.
#[derive(Debug, Default)]
pub(crate) struct TrafficMeter(Mutex<Sockets>);

#[derive(Debug, Default)]
struct Sockets {
    open: Vec<SocketTraffic>,
    /// The bytes of the closed connections.
    closed: ByteCounts,
    /// The largest totals so far: acknowledged bytes, and retransmitted segments.
    up: u64,
    resent: u64,
    /// True if the system didn't report the unacknowledged bytes of some connection.
    is_up_unknown: bool,
}

/// The bytes that an origin's connections have moved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OriginBytes {
    /// The bytes that have arrived so far. The sum never falls. On some systems it counts only the bytes that were read.
    pub(crate) down: u64,
    /// The bytes that the servers have acknowledged. The sum never falls. `None` on systems that don't report acknowledged bytes.
    pub(crate) up: Option<u64>,
    /// TCP's measurements of the connection that has moved the most bytes since the last call.
    pub(crate) flow: Option<TcpSample>,
    /// The number of segments that we have retransmitted so far.
    pub(crate) resent: u64,
}

/// The bytes in each direction, including heads and TLS, and the number of retransmitted segments.
#[derive(Clone, Copy, Debug, Default)]
struct ByteCounts {
    down: u64,
    up: u64,
    resent: u64,
}

/// The traffic of an open connection, as measured at the last call.
#[derive(Debug)]
struct SocketTraffic {
    signals: Arc<dyn PathSignals>,
    program: Arc<ProgramBytes>,
    /// The bytes that the connection had moved at the last call.
    carried: ByteCounts,
    /// The number of the connection's packets that were retransmitted or came out of order.
    disordered: u64,
}

/// The bytes of a connection that this program has read and written.
#[derive(Debug, Default)]
struct ProgramBytes {
    read: AtomicU64,
    written: AtomicU64,
}

/// The registration of a connection in the meter. It is made before the connection's first byte, and dropped just before the socket is
/// closed.
#[derive(Debug)]
pub(super) struct SocketRegistration {
    list: Arc<TrafficMeter>,
    program: Arc<ProgramBytes>,
}

impl TrafficMeter {
    /// Returns the bytes moved so far, and TCP's measurements.
    pub(crate) fn moved(&self) -> OriginBytes {
        let mut sockets = self.lock();
        let mut sum = sockets.closed;
        let (mut most, mut flow, mut disordered) = (0, None, 0);
        for connection in &mut sockets.open {
            let before = connection.carried;
            let carried = connection.carried();
            sum.add(carried);
            let (down, up) = (carried.down - before.down, carried.up.saturating_sub(before.up));
            let (direction, moved) = if down > up { (Direction::Down, down) } else { (Direction::Up, up) };
            if let Some(said) = connection.signals.flow(direction).filter(|_| moved > 0) {
                disordered += said.disordered.saturating_sub(connection.disordered);
                connection.disordered = said.disordered;
                if moved > most {
                    (most, flow) = (moved, Some(said));
                }
            }
        }
        sockets.up = sockets.up.max(sum.up);
        sockets.resent = sockets.resent.max(sum.resent);
        OriginBytes {
            down: sum.down,
            up: (!sockets.is_up_unknown).then_some(sockets.up),
            flow: flow.map(|flow| TcpSample { disordered, ..flow }),
            resent: sockets.resent,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Sockets> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ByteCounts {
    fn add(&mut self, other: Self) {
        self.down += other.down;
        self.up += other.up;
        self.resent += other.resent;
    }
}

impl SocketTraffic {
    fn carried(&mut self) -> ByteCounts {
        // Bytes that are written between these two reads are counted at the next call.
        let written = self.program.written.load(Relaxed);
        let up = written.saturating_sub(self.signals.unacknowledged().unwrap_or_default());
        let came = self.program.read.load(Relaxed) + self.signals.waiting().unwrap_or_default();
        let resent = self.carried.resent.max(self.signals.resent().unwrap_or_default());
        self.carried = ByteCounts { down: self.carried.down.max(came), up, resent };
        self.carried
    }
}

impl SocketRegistration {
    pub(super) fn new(list: Arc<TrafficMeter>, signals: Arc<dyn PathSignals>) -> Self {
        let program = Arc::<ProgramBytes>::default();
        let is_up_unknown = signals.unacknowledged().is_none();
        let account = SocketTraffic {
            signals,
            program: Arc::clone(&program),
            carried: ByteCounts::default(),
            disordered: 0,
        };
        let mut sockets = list.lock();
        sockets.is_up_unknown |= is_up_unknown;
        sockets.open.push(account);
        drop(sockets);
        Self { list, program }
    }

    /// Counts bytes that this program has read.
    pub(super) fn read(&self, bytes: usize) {
        self.program.read.fetch_add(bytes as u64, Relaxed);
    }

    /// Counts bytes that this program has written to the kernel.
    pub(super) fn wrote(&self, bytes: usize) {
        self.program.written.fetch_add(bytes as u64, Relaxed);
    }
}

impl Drop for SocketRegistration {
    fn drop(&mut self) {
        let mut sockets = self.list.lock();
        let Some(at) = sockets.open.iter().position(|open| Arc::ptr_eq(&open.program, &self.program)) else {
            return;
        };
        let carried = sockets.open.swap_remove(at).carried();
        sockets.closed.add(carried);
    }
}

#[cfg(test)]
mod silent_tests {
    use super::*;

    #[derive(Debug)]
    struct Silent;

    impl PathSignals for Silent {}

    #[test]
    fn uploads_are_unknown_where_a_path_tells_nothing() {
        let list = Arc::new(TrafficMeter::default());
        assert_eq!(list.moved().up, Some(0));
        let listed = SocketRegistration::new(Arc::clone(&list), Arc::new(Silent));
        listed.read(1000);
        listed.wrote(1000);
        let OriginBytes { down, up, flow, resent } = list.moved();
        assert_eq!((down, up, resent), (1000, None, 0));
        assert!(flow.is_none());
    }
}

#[cfg(all(test, target_os = "linux", not(laneway_fallback)))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    use super::super::platform::SocketSignals;
    use super::*;

    /// Returns a connection, its registration, and the connection's other end.
    async fn pair(list: &Arc<TrafficMeter>) -> (TcpStream, SocketRegistration, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let far = listener.accept().await.unwrap().0;
        let listed = SocketRegistration::new(Arc::clone(list), Arc::new(SocketSignals::of(&near)));
        (near, listed, far)
    }

    /// Writes as many bytes as the kernel accepts.
    fn fill(tcp: &TcpStream, listed: &SocketRegistration) -> u64 {
        let written = std::iter::from_fn(|| tcp.try_write(&[7; 64 * 1024]).ok());
        written.inspect(|bytes| listed.wrote(*bytes)).map(|bytes| bytes as u64).sum()
    }

    #[tokio::test]
    async fn what_lies_in_send_buffers_has_not_passed_until_the_peer_has_it() {
        let list = Arc::new(TrafficMeter::default());
        let (near, listed, mut far) = pair(&list).await;
        near.writable().await.unwrap();
        let written = fill(&near, &listed);
        let passed = list.moved().up.unwrap();
        assert!(passed < written, "all of {written} in a peer that doesn't read");
        let mut into = vec![0; written as usize];
        far.read_exact(&mut into).await.unwrap();
        assert!(list.moved().up.unwrap() > passed);
        drop(listed);
        assert!(
            (passed + 1..=written).contains(&list.moved().up.unwrap()),
            "and a closed one's stay counted"
        );
        assert!(list.lock().open.is_empty());
    }

    #[tokio::test]
    async fn what_has_come_counts_before_it_is_read_and_once() {
        let list = Arc::new(TrafficMeter::default());
        let (mut near, listed, mut far) = pair(&list).await;
        far.write_all(&[7; 20_000]).await.unwrap();
        near.readable().await.unwrap();
        let mut into = vec![0; 20_000];
        while near.peek(&mut into).await.unwrap() < into.len() {}
        let waiting = list.moved().down;
        assert!(waiting >= 5000, "{waiting}");
        listed.read(near.read_exact(&mut into).await.unwrap());
        let read = list.moved().down;
        assert_eq!(read, waiting.max(20_000));
        drop(listed);
        assert_eq!(list.moved().down, read);
    }
}
