//! The network between the clients and the store, which can be cut and restored.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;

/// How the network is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// All goes through.
    Whole,
    /// Connections are broken, and new ones too.
    Broken,
    /// Nothing goes through, and nobody is told.
    Silent,
    /// It is gone, and all that stood on it.
    Over,
}

/// A port that leads to the store.
pub(crate) struct Network {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    now: Mutex<Now>,
    changed: Condvar,
}

struct Now {
    state: State,
    /// The ends of all connections, for when they are broken.
    ends: Vec<Weak<TcpStream>>,
}

impl Network {
    /// Leads to `server` from a port of its own.
    pub(crate) fn before(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let now = Mutex::new(Now { state: State::Whole, ends: Vec::new() });
        let shared = Arc::new(Shared { now, changed: Condvar::new() });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if accepting.lock().state == State::Over {
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

    pub(crate) fn state(&self) -> State {
        self.shared.lock().state
    }

    pub(crate) fn set(&self, state: State) {
        let mut now = self.shared.lock();
        now.state = state;
        if matches!(state, State::Broken | State::Over) {
            for end in now.ends.drain(..).filter_map(|end| end.upgrade()) {
                // One that is gone already is as broken as it can be.
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
        self.set(State::Over);
        // The listener looks up once more.
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
        if now.state == State::Broken {
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

    /// Carries one direction to its end.
    fn carry(&self, mut from: &TcpStream, mut to: &TcpStream) {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            let now = self.lock();
            let silent = |now: &mut Now| now.state == State::Silent;
            drop(self.changed.wait_while(now, silent).unwrap_or_else(PoisonError::into_inner));
            if to.write_all(&buffer[..read]).is_err() {
                break;
            }
        }
        // What was broken on one side is broken on the other.
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
    network.set(State::Silent);
    (&client).write_all(b"b").expect("written");
    network.set(State::Whole);
    assert_eq!(said(&store).expect("read"), b'b', "it comes later");
    network.set(State::Broken);
    assert_eq!(said(&client).unwrap_or(0), 0, "the connection has ended");
    network.set(State::Whole);
    let (client, store) = connect();
    (&store).write_all(b"c").expect("written");
    assert_eq!(said(&client).expect("read"), b'c');
}
