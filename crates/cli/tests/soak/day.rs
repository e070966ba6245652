//! A working day, compressed into one scenario. The program does mixed work under these disturbances: credentials expire after a minute,
//! their server sometimes hangs, the network is cut, and the store is restarted. The store also limits the requests to one object (the hot
//! object), and the number of connections.
//!
//! Every command must succeed. At the end the store holds exactly the written objects, and each write is one version.

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
    /// The time in which workers begin new rounds.
    lasts: Duration,
    /// The time from one round of a worker to its next.
    round: Duration,
    /// The value of `--retry-for`.
    retry_for: &'static str,
    /// The longest time for one command.
    command: Duration,
    outages: [Duration; 4],
    restart: Duration,
    /// The time for which connections are limited.
    limit: Duration,
    /// Number of files in the slow tree. The upload and the download of the tree each take a third of the day.
    slow_files: usize,
}

impl Times {
    /// Returns the durations for `make soak`, or shorter ones for a test of a few minutes.
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
    /// The network enters this state. The number is an index into [`Times::outages`], which has the length of the outage.
    Outage(LinkState, usize),
    Restart,
    Limit,
}

/// The time of each event, in hundredths of the day.
const EVENTS: [(u32, Event); 7] = [
    (6, Event::Limit),
    (15, Event::Outage(LinkState::Broken, 0)),
    (30, Event::Outage(LinkState::Silent, 1)),
    (44, Event::Restart),
    (56, Event::Outage(LinkState::Broken, 2)),
    (72, Event::Outage(LinkState::Silent, 3)),
    (90, Event::Limit),
];

/// The number of connections that are served at once during [`Event::Limit`]. If it were smaller than the number of concurrent commands,
/// a command could get no connection.
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
                // Wait for the next event of the timeline.
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

/// The interval between checks of the workers.
const TICK: Duration = Duration::from_millis(200);

/// If a worker ended early, ends the day for all workers and returns true.
fn is_broken(worker: &thread::ScopedJoinHandle<'_, Worker>, over: &AtomicBool) -> bool {
    over.fetch_or(worker.is_finished(), Relaxed) || worker.is_finished()
}

// The store of a day. The store is on disk, so that it survives a restart. The store keeps versions, so that each write can be checked.

const BUCKET: &str = Endpoint::BUCKET;
/// Limits the requests to the hot object. Above this rate, the answer is 429, or 503 `SlowDown` in S3's dialect.
const FAULT: &str = "any key=hot/* rate 2/s";
/// After a disturbance, delayed requests may still arrive for this long.
const AFTER: Duration = Duration::from_secs(2);
/// The time for clients to close their connections.
const REST: Duration = Duration::from_secs(60);

struct DayStore {
    server: Option<Server>,
    address: SocketAddr,
    folder: TempDir,
    /// Times in which an answer may have been lost, in microseconds since 1970, as in a version's generation.
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

    /// Creates a folder for a worker.
    fn folder(&self, name: &str) -> PathBuf {
        let folder = self.folder.path().join("work").join(name);
        std::fs::create_dir_all(&folder).expect("a folder is made");
        folder
    }

    /// Records the time of a disturbance, in which answers may be lost.
    fn disturbed_while(&mut self, passes: impl FnOnce(&mut Self)) {
        let from = micros();
        passes(self);
        self.disturbed.push(from..micros() + AFTER.as_micros() as u64);
    }

    /// Panics unless the store holds each write once. No unfinished transfer may be left.
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
        // If the answer to an upload's beginning was lost, the upload stays open. No client knows it, and it has no bytes.
        let open = self.server().uploads_open(BUCKET);
        assert!(open.iter().all(|(_, bytes)| *bytes == 0), "uploads are left: {open:?}");
        let files = files_below(&self.folder("."));
        let left = files.iter().filter(|name| name.contains(".laneway-") || name.contains("laneway/uploads"));
        assert_eq!(left.collect::<Vec<_>>(), Vec::<&String>::new(), "temporary files are left");
        let is_idle = self.server().wait_until_idle(REST);
        assert!(is_idle, "connections stay open: {:?}", self.server().counters());
    }

    /// Panics unless the versions of a key are exactly the writes to it. A write whose answer may have been lost may occur twice.
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

// The credential server: a container's endpoint, which hangs at every third request.

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

    /// Returns the number of requests at which the server hung.
    fn hung(&self) -> usize {
        self.server.asked().len() / HANGS_EACH
    }
}

/// Returns credentials that expire at this time. The store refuses them from then on.
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
