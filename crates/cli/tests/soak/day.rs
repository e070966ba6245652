//! A day in one scenario: mixed work by the program while credentials end after a minute, their server hangs now and then, the network is
//! cut, the store is restarted, one object is hot, and connections are limited.
//!
//! Every command has to succeed. Afterwards the store holds what was written and nothing else, and each write is one version.

mod work;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant, SystemTime};
use std::{fmt, thread};

use jiff::Timestamp;
use laneway_server::{Config, Faults, Server, Storage};
use laneway_testkit::{Endpoint, Scripted, answer, files_below};
use tempfile::TempDir;

use crate::network::{LinkState, Network, Samples};
use work::{WorkKind, Worker, Write};

/// The durations of a day.
#[derive(Debug)]
struct Times {
    /// The time in which new work is begun.
    lasts: Duration,
    /// The time from one round of a worker to its next.
    round: Duration,
    /// The time for which a command tries again, as its option takes it.
    retry_for: &'static str,
    /// The longest that a command may take.
    command: Duration,
    outages: [Duration; 4],
    restart: Duration,
    /// The time for which connections are limited.
    limit: Duration,
    /// The files of the tree that moves slowly, for a third of the day in each direction.
    slow_files: usize,
}

impl Times {
    /// Those of `make soak`, or those of a few minutes.
    fn of(minutes: Option<u64>) -> Self {
        let seconds = Duration::from_secs;
        match minutes {
            Some(minutes) => Self {
                lasts: seconds(60 * minutes),
                round: seconds(30),
                retry_for: "2m",
                command: seconds(60 * minutes),
                outages: [15, 45, 80, 115].map(seconds),
                restart: seconds(20),
                limit: seconds(60),
                slow_files: 1200,
            },
            None => Self {
                lasts: seconds(180),
                round: seconds(5),
                retry_for: "15s",
                command: seconds(150),
                outages: [3, 5, 8, 10].map(seconds),
                restart: seconds(2),
                limit: seconds(8),
                slow_files: 120,
            },
        }
    }
}

/// An event of the day.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The network is in this state, for as long as the outage of this number takes.
    Outage(LinkState, usize),
    Restart,
    Limit,
}

/// When it happens, in hundredths of the day.
const EVENTS: [(u32, Event); 7] = [
    (6, Event::Limit),
    (15, Event::Outage(LinkState::Broken, 0)),
    (30, Event::Outage(LinkState::Silent, 1)),
    (44, Event::Restart),
    (56, Event::Outage(LinkState::Broken, 2)),
    (72, Event::Outage(LinkState::Silent, 3)),
    (90, Event::Limit),
];

/// Connections that are served at once while they are limited. Below the number of commands at work one of them would have none.
const CONNECTIONS: usize = 16;

#[test]
fn a_day_of_outages_loses_nothing_and_writes_nothing_twice() {
    let times = Times::of(crate::minutes());
    let mut store = DayStore::open();
    let network = Network::before(store.address());
    let workers = WorkKind::ALL.map(|kind| Worker::new(kind, &times, &store, network.port()));
    let (began, over) = (Instant::now(), AtomicBool::new(false));
    let mut samples = Samples::default();
    let worked = thread::scope(|scope| {
        let (times, over) = (&times, &over);
        let workers = workers.map(|worker| scope.spawn(move || worker.work(times, began, over)));
        let mut wait_until = |moment: Instant| {
            while Instant::now() < moment && !workers.iter().any(|worker| is_broken(worker, over)) {
                samples.take();
                // The timeline's own moments are all that is waited for.
                thread::sleep(TICK.min(moment.saturating_duration_since(Instant::now())));
            }
        };
        for (share, event) in EVENTS {
            wait_until(began + times.lasts * share / 100);
            let from = Instant::now();
            match event {
                Event::Outage(state, number) => {
                    network.set(state);
                    store.disturbed_while(|_| wait_until(from + times.outages[number]));
                    network.set(LinkState::Whole);
                }
                Event::Restart => store.disturbed_while(|store| {
                    store.stop();
                    wait_until(from + times.restart);
                    store.start();
                }),
                Event::Limit => {
                    store.server().set_served_connections(Some(CONNECTIONS));
                    store.disturbed_while(|_| wait_until(from + times.limit));
                    store.server().set_served_connections(None);
                }
            }
        }
        // The test fails with the first fault that a worker has found.
        workers.map(|worker| worker.join().unwrap_or_else(|found| std::panic::resume_unwind(found)))
    });
    println!("{samples}");
    for worker in &worked {
        println!("{worker}");
    }
    store.check(&worked);
    assert!(worked.iter().all(|worker| worker.hung() > 0), "a server of credentials has never hung");
    if crate::minutes().is_some() {
        samples.are_flat();
    }
}

/// The time between two looks at the workers.
const TICK: Duration = Duration::from_millis(200);

/// Returns whether a worker has ended before its day did, which ends it for all.
fn is_broken(worker: &thread::ScopedJoinHandle<'_, Worker>, over: &AtomicBool) -> bool {
    over.fetch_or(worker.is_finished(), Relaxed) || worker.is_finished()
}

// The store of a day: on disk, so that it can be restarted, and with versions, which tell each write.

const BUCKET: &str = Endpoint::BUCKET;
/// The hot object is served so often, and otherwise answered 429, in S3's dialect 503 `SlowDown`.
const FAULT: &str = "any key=hot/* rate 2/s";
/// The time after a disturbance in which held-up requests are still delivered.
const AFTER: Duration = Duration::from_secs(2);
/// The time that a server gives its clients to close their connections.
const REST: Duration = Duration::from_secs(60);

struct DayStore {
    server: Option<Server>,
    address: SocketAddr,
    folder: TempDir,
    /// Microseconds since 1970 at which an answer may have been lost, as in a version's generation.
    disturbed: Vec<Range<u64>>,
}

impl DayStore {
    fn open() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut store = Self { server: None, address, folder, disturbed: Vec::new() };
        store.start();
        store.address = store.server().addr();
        store.server().create_bucket(BUCKET).expect("a bucket");
        store
    }

    fn start(&mut self) {
        let config = Config {
            listen: self.address,
            storage: Storage::Disk(self.folder.path().join("store")),
            faults: Faults::parse([FAULT]).expect("a rule"),
            versions: true,
            ..Config::default()
        };
        self.server = Some(Server::start(config).expect("a server"));
    }

    fn stop(&mut self) {
        self.server = None;
    }

    fn server(&self) -> &Server {
        self.server.as_ref().expect("it is started")
    }

    fn address(&self) -> SocketAddr {
        self.address
    }

    /// A folder of the workers.
    fn folder(&self, name: &str) -> PathBuf {
        let folder = self.folder.path().join("work").join(name);
        std::fs::create_dir_all(&folder).expect("a folder is made");
        folder
    }

    /// Notes that answers may be lost meanwhile.
    fn disturbed_while(&mut self, passes: impl FnOnce(&mut Self)) {
        let from = micros();
        passes(self);
        self.disturbed.push(from..micros() + AFTER.as_micros() as u64);
    }

    /// Panics unless the store holds what was written, each write once, and nothing is left of what was under way.
    fn check(&self, workers: &[Worker]) {
        let mut expected = BTreeMap::new();
        for (key, writes) in workers.iter().flat_map(Worker::writes) {
            self.check_versions(key, writes);
            if let Some(content) = writes.last().and_then(|write| write.content) {
                expected.insert(key.clone(), content);
            }
        }
        let store = self.server().store();
        assert_eq!(store.keys(BUCKET), expected.keys().cloned().collect::<Vec<_>>());
        for (key, content) in expected {
            assert!(content.is(&store.read(BUCKET, &key).expect("it is stored")), "{key} has other bytes");
        }
        // The answer to the beginning of an upload may be lost: nobody knows of that one, and it has no bytes.
        let open = self.server().uploads_open(BUCKET);
        assert!(open.iter().all(|(_, bytes)| *bytes == 0), "uploads stay: {open:?}");
        let files = files_below(&self.folder("."));
        let left = files.iter().filter(|name| name.contains(".laneway-") || name.contains("laneway/uploads"));
        assert_eq!(left.collect::<Vec<_>>(), Vec::<&String>::new(), "files of transfers stay");
        let is_idle = self.server().wait_until(REST, |counters| counters.connections_open == 0);
        assert!(is_idle, "connections stay open: {:?}", self.server().counters());
    }

    /// Panics unless the versions of a key are its writes. A write whose answer may have been lost was perhaps sent again.
    fn check_versions(&self, key: &str, writes: &[Write]) {
        let versions = self.server().store().versions(BUCKET, key);
        let versions: Vec<_> = versions
            .iter()
            .map(|version| {
                let size = (!version.standing.is_delete_marker).then_some(version.size as usize);
                (size, version.generation)
            })
            .collect();
        let once = writes.iter().all(|write| write.once);
        let mut found = versions.clone();
        found.dedup_by(|(size, _), (before, generation)| {
            size == before && !once && self.disturbed.iter().any(|times| times.contains(&*generation))
        });
        let found: Vec<_> = found.into_iter().map(|(size, _)| size).collect();
        let wanted: Vec<_> = writes.iter().map(|write| write.content.map(|content| content.len)).collect();
        assert_eq!(found, wanted, "{key} has the versions {versions:?}, disturbed {:?}", self.disturbed);
    }
}

fn micros() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time").as_micros() as u64
}

// The server of credentials: a container's endpoint, which hangs each third time.

const LAST: Duration = Duration::from_secs(60);
const HANGS: Duration = Duration::from_secs(20);
const HANGS_EACH: usize = 3;

struct Tokens {
    server: Scripted,
}

impl Tokens {
    fn serve() -> Self {
        let asked = std::sync::atomic::AtomicUsize::new(0);
        let server = Scripted::serve(move |_| {
            let number = asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
            if number.is_multiple_of(HANGS_EACH) {
                thread::sleep(HANGS);
            }
            answer(200, &[], document(SystemTime::now() + LAST))
        });
        Self { server }
    }

    fn url(&self) -> String {
        format!("{}/credentials", self.server.url())
    }

    /// The number of times it has hung.
    fn hung(&self) -> usize {
        self.server.asked().len() / HANGS_EACH
    }
}

/// Keys that end then. The store refuses them from that time on too.
fn document(ends: SystemTime) -> String {
    let keys = laneway_server::S3Config::default();
    let ends = Timestamp::try_from(ends).expect("a time");
    let token = ends.strftime("until-%Y%m%dT%H%M%SZ");
    format!(
        r#"{{"AccessKeyId":"{}","SecretAccessKey":"{}","Token":"{token}","Expiration":"{}"}}"#,
        keys.access_key,
        keys.secret_key,
        ends.strftime("%Y-%m-%dT%H:%M:%SZ")
    )
}

impl fmt::Display for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "credentials: asked for {} times, hung {}", self.server.asked().len(), self.hung())
    }
}
