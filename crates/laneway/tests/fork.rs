//! A client on both sides of a `fork`: the parent's goes on, and the child's begins anew and never hangs.

#![expect(unsafe_code, reason = "the standard library has no fork")]

use std::path::Path;
use std::time::{Duration, Instant};

use laneway::{Client, CopyRequest, Engine, Event, Job, Location, Outcome};
use laneway_server::{Config, Server};
use rustix::process::{Pid, Signal, WaitOptions};

/// Forks beside a busy engine: a lock that one of its threads holds is met by some of them.
const FORKS: u32 = 24;
/// How long a child may take until it counts as hanging.
const CHILD_MAX: Duration = Duration::from_secs(60);
/// What a child ends with where all is well.
const WELL: i32 = 7;

fn main() {
    let dir = tempfile::tempdir().expect("a folder");
    let server = Server::start(Config::default()).expect("a server");
    server.create_bucket("bucket").expect("a bucket");
    std::fs::write(dir.path().join("small"), b"small").expect("written");
    std::fs::create_dir(dir.path().join("tree")).expect("a folder");
    for n in 0..40 {
        std::fs::write(dir.path().join(format!("tree/{n}")), vec![n; 300_000]).expect("written");
    }

    for own_engine in [false, true] {
        let builder = || Client::builder().anonymous(true).gcs_endpoint(server.url());
        let client = match own_engine {
            false => builder().build(),
            true => builder().engine(Engine::builder().build()).build(),
        };
        let client = client.expect("a client");
        put_and_get(&client, dir.path(), "before");
        for n in 0..FORKS {
            // It runs while the process forks, and in the parent to its end.
            let tree = Location::Local(dir.path().join("tree"));
            let to = Location::object(laneway::Provider::Gcs, "bucket", format!("tree-{n}/"));
            let job = client.copy(CopyRequest { recursive: true, ..CopyRequest::new(vec![tree], to) });
            match fork() {
                None => {
                    child(&client, job, dir.path(), n, builder);
                    // SAFETY: ends the process; nothing of the parent's is flushed or dropped twice.
                    unsafe { libc::_exit(WELL) }
                }
                Some(child) => {
                    put_and_get(&client, dir.path(), &format!("parent-{n}"));
                    assert_eq!(done(job), 40, "the parent's job");
                    assert_eq!(ended(child), Some(WELL), "child {n}");
                }
            }
        }
    }
    println!("{} forks: ok", 2 * FORKS);
}

/// What a child does with what it has got.
fn child(client: &Client, mut job: Job, dir: &Path, n: u32, builder: impl Fn() -> laneway::ClientBuilder) {
    assert!(job.next_blocking().is_none(), "a parent's job has no events here");
    job.canceller().cancel();
    drop(job);
    put_and_get(client, dir, &format!("child-{n}"));
    let another = builder().build().expect("a client");
    put_and_get(&another, dir, &format!("another-{n}"));
    // A child's child begins anew, too.
    if n.is_multiple_of(8) {
        match fork() {
            None => {
                put_and_get(client, dir, &format!("grandchild-{n}"));
                // SAFETY: as above.
                unsafe { libc::_exit(WELL) }
            }
            Some(grandchild) => assert_eq!(ended(grandchild), Some(WELL), "grandchild of {n}"),
        }
    }
    drop(another);
}

fn put_and_get(client: &Client, dir: &Path, key: &str) {
    let at = Location::object(laneway::Provider::Gcs, "bucket", key);
    let put = client.copy(CopyRequest::new(vec![Location::Local(dir.join("small"))], at.clone()));
    assert_eq!(done(put), 1, "{key}");
    assert_eq!(client.stat(&at).expect("it is there").size, 5, "{key}");
    let bucket = client.bucket("gs://bucket").expect("a bucket");
    let got = bucket.get(key).call().and_then(laneway::Download::bytes_blocking).expect("it is read");
    assert_eq!(got, b"small".as_slice(), "{key}");
}

/// Items that a job has moved, all of which must be well.
fn done(mut job: Job) -> u64 {
    while let Some(event) = job.next_blocking() {
        match event {
            Event::Item(item) => assert!(matches!(item.outcome, Outcome::Done { .. }), "{item:?}"),
            Event::Done(summary) => return summary.files,
            _ => {}
        }
    }
    panic!("a job ended without its summary")
}

fn fork() -> Option<Pid> {
    // SAFETY: the child calls what this test is about, and ends by `_exit`. That it may call more than what is
    // async-signal-safe is what the library promises and glibc allows for its allocator and threads.
    Pid::from_raw(unsafe { libc::fork() })
}

/// The status that a child ended with; `None` where it had to be killed, or died.
fn ended(child: Pid) -> Option<i32> {
    let started = Instant::now();
    loop {
        match rustix::process::waitpid(Some(child), WaitOptions::NOHANG).expect("a child") {
            Some((_, status)) => return status.exit_status(),
            None if started.elapsed() > CHILD_MAX => {
                rustix::process::kill_process(child, Signal::KILL).expect("killed");
                let _ = rustix::process::waitpid(Some(child), WaitOptions::empty());
                return None;
            }
            // Nothing tells of a child's end but asking.
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    }
}
