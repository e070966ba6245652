//! The network between the clients and the store. A test can cut it and restore it.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use std::{fmt, fs, thread};

/// The state of the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LinkState {
    /// All bytes pass.
    Whole,
    /// All connections are closed, and new ones are closed at once.
    Broken,
    /// No bytes pass, and connections stay open.
    Silent,
    /// The network and all its connections are closed.
    Over,
}

/// A port that forwards to the store.
pub(crate) struct Network {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    now: Mutex<Now>,
    changed: Condvar,
}

struct Now {
    state: LinkState,
    /// Both ends of all connections, to close them.
    ends: Vec<Weak<TcpStream>>,
}

impl Network {
    /// Opens a port that forwards to `server`.
    pub(crate) fn before(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let now = Mutex::new(Now { state: LinkState::Whole, ends: Vec::new() });
        let shared = Arc::new(Shared { now, changed: Condvar::new() });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if accepting.lock().state == LinkState::Over {
                    return;
                }
                let Ok(store) = TcpStream::connect(server) else { continue };
                accepting.connect(client, store);
            }
        });
        Self { port, shared }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn state(&self) -> LinkState {
        self.shared.lock().state
    }

    pub(crate) fn set(&self, state: LinkState) {
        let mut now = self.shared.lock();
        now.state = state;
        if matches!(state, LinkState::Broken | LinkState::Over) {
            for end in now.ends.drain(..).filter_map(|end| end.upgrade()) {
                // The connection may already be closed.
                let _ = end.shutdown(Shutdown::Both);
            }
        }
        now.ends.retain(|end| end.strong_count() > 0);
        drop(now);
        self.shared.changed.notify_all();
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.set(LinkState::Over);
        // Wake the listener, so that it sees the new state.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connect(self: &Arc<Self>, client: TcpStream, store: TcpStream) {
        let (client, store) = (Arc::new(client), Arc::new(store));
        let mut now = self.lock();
        if now.state == LinkState::Broken {
            return;
        }
        now.ends.retain(|end| end.strong_count() > 0);
        now.ends.extend([Arc::downgrade(&client), Arc::downgrade(&store)]);
        drop(now);
        for (from, to) in [(&client, &store), (&store, &client)] {
            let (shared, from, to) = (Arc::clone(self), Arc::clone(from), Arc::clone(to));
            thread::spawn(move || shared.carry(&from, &to));
        }
    }

    /// Forwards one direction of a connection to its end.
    fn carry(&self, mut from: &TcpStream, mut to: &TcpStream) {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            let now = self.lock();
            let silent = |now: &mut Now| now.state == LinkState::Silent;
            drop(self.changed.wait_while(now, silent).unwrap_or_else(PoisonError::into_inner));
            if to.write_all(&buffer[..read]).is_err() {
                break;
            }
        }
        // Close the other side, too.
        let _ = (to.shutdown(Shutdown::Write), from.shutdown(Shutdown::Read));
    }
}

#[test]
fn a_cut_breaks_what_is_there_and_a_silence_holds_it_up() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let network = Network::before(listener.local_addr().expect("an address"));
    let connect = || {
        let client = TcpStream::connect(("127.0.0.1", network.port())).expect("connected");
        (client, listener.accept().expect("accepted").0)
    };
    let said = |mut to: &TcpStream| {
        let mut byte = [0];
        to.read(&mut byte).map(|_| byte[0])
    };
    let (client, store) = connect();
    (&client).write_all(b"a").expect("written");
    assert_eq!(said(&store).expect("read"), b'a');
    network.set(LinkState::Silent);
    (&client).write_all(b"b").expect("written");
    network.set(LinkState::Whole);
    assert_eq!(said(&store).expect("read"), b'b', "it comes later");
    network.set(LinkState::Broken);
    assert_eq!(said(&client).unwrap_or(0), 0, "the connection has ended");
    network.set(LinkState::Whole);
    let (client, store) = connect();
    (&store).write_all(b"c").expect("written");
    assert_eq!(said(&client).expect("read"), b'c');
}

/// The interval between samples.
const EVERY: Duration = Duration::from_secs(1);
/// Limits on growth from the second quarter to the last. Memory may grow by a factor plus a fixed
/// slack, because the number of live objects varies.
const RESIDENT_GROWTH: f64 = 1.2;
const RESIDENT_SLACK_KIB: u64 = 48 << 10;
const DESCRIPTORS_SLACK: u64 = 24;
const THREADS_SLACK: u64 = 24;

#[derive(Clone, Copy, Debug)]
struct Sample {
    resident_kib: u64,
    descriptors: u64,
    threads: u64,
}

/// The samples, one per second.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    all: Vec<Sample>,
    last: Option<Instant>,
}

impl Samples {
    /// Takes a sample, if one is due and the system has `/proc`.
    pub(crate) fn take(&mut self) {
        if self.last.is_some_and(|last| last.elapsed() < EVERY) {
            return;
        }
        self.last = Some(Instant::now());
        let Ok(status) = fs::read_to_string("/proc/self/status") else { return };
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
        };
        let descriptors = fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64);
        self.all.push(Sample { resident_kib: field("VmRSS:"), descriptors, threads: field("Threads:") });
    }

    /// Returns the medians of the second and the last quarter. The first quarter contains one-time
    /// allocations.
    fn quarters(&self, of: impl Fn(&Sample) -> u64) -> (u64, u64) {
        let quarter = self.all.len() / 4;
        let median = |samples: &[Sample]| {
            let mut values: Vec<u64> = samples.iter().map(&of).collect();
            values.sort_unstable();
            values.get(values.len() / 2).copied().unwrap_or(0)
        };
        (median(&self.all[quarter..2 * quarter]), median(&self.all[3 * quarter..]))
    }

    /// Panics if memory, descriptors or threads have grown.
    #[track_caller]
    pub(crate) fn are_flat(&self) {
        let (early, late) = self.quarters(|sample| sample.resident_kib);
        let bound = (early as f64 * RESIDENT_GROWTH) as u64 + RESIDENT_SLACK_KIB;
        assert!(late <= bound, "memory grows: {self}");
        let (early, late) = self.quarters(|sample| sample.descriptors);
        assert!(late <= early + DESCRIPTORS_SLACK, "descriptors grow: {self}");
        let (early, late) = self.quarters(|sample| sample.threads);
        assert!(late <= early + THREADS_SLACK, "threads grow: {self}");
    }
}

impl fmt::Display for Samples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (early, late) = self.quarters(|sample| sample.resident_kib);
        write!(
            f,
            "{} samples, second and last quarter: {} and {} MiB, ",
            self.all.len(),
            early >> 10,
            late >> 10
        )?;
        let (early, late) = self.quarters(|sample| sample.descriptors);
        write!(f, "{early} and {late} descriptors, ")?;
        let (early, late) = self.quarters(|sample| sample.threads);
        write!(f, "{early} and {late} threads")
    }
}

#[test]
fn what_grows_is_noticed_and_what_wavers_is_not() {
    let samples = |resident: fn(u64) -> u64| Samples {
        all: (0..400)
            .map(|n| Sample { resident_kib: resident(n), descriptors: 40 + n % 9, threads: 9 })
            .collect(),
        last: None,
    };
    samples(|n| 400_000 + n % 7 * 10_000).are_flat();
    assert!(std::panic::catch_unwind(|| samples(|n| 100_000 + n * 1000).are_flat()).is_err());
}
