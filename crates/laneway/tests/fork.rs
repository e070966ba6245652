//! A client in a parent and a child process after a `fork`. The parent's calls continue. The child starts with a new
//! engine and never hangs.
//!
//! The test starts in C's `main`, as programs in other languages do. If Rust starts the program, the standard library takes its own lock
//! whenever a thread starts or ends (`std::sys::pal::unix::stack_overflow::thread_info` in Rust 1.95). If another thread holds that lock
//! during the fork, the child can start no thread at all.

#![no_main]
#![expect(unsafe_code, reason = "the standard library has no fork")]

use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::{FutureExt as _, StreamExt as _};
use laneway::{
    Bucket, Client, CopyRequest, Download, Engine, Error, ErrorKind, Event, Job, List, ListRequest, Listing,
    Location, ObjectRanges, Outcome, Ranges, Reader, Writer, Written,
};
use laneway_server::{Config, Server};
use rustix::process::{Pid, Signal, WaitOptions};
use tokio::io::AsyncReadExt as _;

/// Number of forks while the engine is busy. During some of them, a thread of the engine holds a lock.
const FORKS: u32 = 24;
/// Every `BUSY`th fork happens while calls of every kind are under way.
const BUSY: u32 = 8;
/// Larger than one part of an upload, and larger than the read-ahead.
const LARGE: usize = 17 << 20;
/// A child that runs longer than this counts as hanging.
const CHILD_MAX: Duration = Duration::from_secs(60);
/// Exit status of a child that succeeds.
const WELL: i32 = 7;
/// Exit status of a child that fails, after printing the reason.
const PANICKED: i32 = 8;

#[unsafe(no_mangle)]
extern "C" fn main() -> libc::c_int {
    // SAFETY: no other thread runs yet. Rust's own start does the same, as Python's and Java's do.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    match std::panic::catch_unwind(forks) {
        Ok(()) => 0,
        Err(_) => PANICKED,
    }
}

fn forks() {
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
        let large = client.bucket("gs://bucket/").expect("a bucket").put("large", vec![7; LARGE]);
        large.call().expect("it is written");
        for n in 0..FORKS {
            // The job runs during the fork, and the parent completes it.
            let tree = Location::Local(dir.path().join("tree"));
            let to = Location::object(laneway::Provider::Gcs, "bucket", format!("tree-{n}/"));
            let job = client.copy(CopyRequest::new(vec![tree], to).recursive(true));
            let begun = n
                .is_multiple_of(BUSY)
                .then(|| Begun::new(&client.bucket("gs://bucket/").expect("a bucket"), n));
            match fork() {
                None => exit(|| {
                    begun.into_iter().for_each(Begun::end_at_once);
                    child(&client, job, dir.path(), n, builder);
                }),
                Some(child) => {
                    begun.into_iter().for_each(Begun::go_on);
                    put_and_get(&client, dir.path(), &format!("parent-{n}"));
                    assert_eq!(done(job), 40, "the parent's job");
                    assert_eq!(ended(child), Ok(WELL), "child {n}");
                }
            }
        }
    }
    println!("{} forks: ok", 2 * FORKS);
}

/// Calls that have begun and not ended, so that they are under way when the process forks.
struct Begun {
    get: laneway::Pending<Download>,
    download: Download,
    other_download: Download,
    reader: Reader,
    writer: Writer,
    other_writer: Writer,
    put: laneway::Pending<Written>,
    list: List,
    listing: Listing,
    ranges: Ranges,
    objects: ObjectRanges,
}

impl Begun {
    fn new(bucket: &Bucket, n: u32) -> Self {
        let get = bucket.get("large").into_future();
        let begun = || {
            let mut download = bucket.get("large").call().expect("it is read");
            download.chunk_blocking().expect("it is read").expect("a chunk");
            download
        };
        let (download, other_download) = (begun(), begun());
        let mut reader = bucket.open("large").call().expect("it is open");
        read_on(&mut reader, 4 << 20);
        let mut list = bucket.list("");
        list.next_blocking().expect("an object").expect("an object");
        let at = Location::object(bucket.provider(), bucket.name(), "");
        let mut listing = bucket.client().list(ListRequest::new(at).recursive(true));
        listing.next_blocking().expect("an entry").expect("an entry");
        let mut ranges = bucket.get_ranges("large", [0..9, 16_000_000..16_000_100]).stream();
        ranges.next_blocking().expect("a range").expect("a range");
        let mut objects = bucket.get_ranges_of((0..100).map(|_| ("large", [0..9, 20..22])));
        objects.next_blocking().expect("an object").expect("no failure").1.expect("its range");
        let written = |name: &str| {
            let mut writer = bucket.writer(&format!("{name}-{n}"));
            pollster::block_on(writer.write(&[7; LARGE])).expect("it is written");
            writer
        };
        let (writer, other_writer) = (written("written"), written("other"));
        let mut put = bucket.put(&format!("put-{n}"), vec![7; LARGE]).into_future();
        let mut get = get;
        assert!((&mut put).now_or_never().is_none() && (&mut get).now_or_never().is_none());
        Self {
            get,
            download,
            other_download,
            reader,
            writer,
            other_writer,
            put,
            list,
            listing,
            ranges,
            objects,
        }
    }

    /// In a child, each call ends at once with an error.
    fn end_at_once(self) {
        let Self { get, mut download, mut other_download, .. } = self;
        let Self {
            mut reader, writer, other_writer, put, list, mut listing, mut ranges, mut objects, ..
        } = self;
        is_forked(&pollster::block_on(get).map(drop).expect_err("a get"));
        is_forked(&pollster::block_on(put).map(drop).expect_err("a put"));
        is_forked(&download.chunk_blocking().map(drop).expect_err("a download"));
        is_forked(&pollster::block_on(other_download.chunk()).map(drop).expect_err("a download"));
        is_forked(&pollster::block_on(writer.finish()).expect_err("a writer"));
        pollster::block_on(other_writer.abort());
        // The reader still holds the bytes that it has read, and requests the others again.
        read_on(&mut reader, 8 << 20);
        let listed: Vec<_> = pollster::block_on(list.collect());
        is_forked(listed.last().and_then(|last| last.as_ref().err()).expect("an error"));
        is_forked(&listing.next_blocking().expect("an error").expect_err("a listing"));
        assert!(listing.next_blocking().is_none());
        is_forked(&ranges.next_blocking().expect("an error").expect_err("ranges"));
        assert!(ranges.next_blocking().is_none());
        is_forked(&objects.next_blocking().expect("an error").expect_err("ranges of objects"));
        assert!(objects.next_blocking().is_none());
    }

    /// In the parent, each call continues.
    fn go_on(self) {
        let Self {
            get,
            download,
            other_download,
            mut reader,
            writer,
            other_writer,
            put,
            list,
            mut listing,
            ranges,
            objects,
        } = self;
        assert_eq!(
            pollster::block_on(get).and_then(Download::bytes_blocking).expect("it is read").len(),
            LARGE
        );
        download.bytes_blocking().expect("it is read");
        pollster::block_on(other_download.bytes()).expect("it is read");
        read_on(&mut reader, 8 << 20);
        assert_eq!(pollster::block_on(writer.finish()).expect("it is written").size, LARGE as u64);
        pollster::block_on(other_writer.abort());
        assert_eq!(pollster::block_on(put).expect("it is written").size, LARGE as u64);
        assert!(pollster::block_on(list.all(async |one| one.is_ok())));
        assert!(std::iter::from_fn(|| listing.next_blocking()).all(|entry| entry.is_ok()));
        assert_eq!(pollster::block_on(ranges.map(|one| one.expect("a range")).count()), 1);
        assert_eq!(
            pollster::block_on(objects.map(|one| one.expect("an object").1.expect("ranges")).count()),
            99
        );
    }
}

/// Reads the next `bytes` bytes.
fn read_on(reader: &mut Reader, bytes: usize) {
    let mut into = vec![0; bytes];
    pollster::block_on(reader.read_exact(&mut into)).expect("it is read");
}

#[track_caller]
fn is_forked(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
    assert!(error.to_string().contains("before a fork"), "{error}");
}

/// Runs the child's part: new calls on the inherited client work.
fn child(client: &Client, mut job: Job, dir: &Path, n: u32, builder: impl Fn() -> laneway::ClientBuilder) {
    assert!(job.next_blocking().is_none(), "a parent's job has no events here");
    job.canceller().cancel();
    drop(job);
    put_and_get(client, dir, &format!("child-{n}"));
    let another = builder().build().expect("a client");
    put_and_get(&another, dir, &format!("another-{n}"));
    // A child's child also starts a new engine.
    if n.is_multiple_of(8) {
        match fork() {
            None => exit(|| put_and_get(client, dir, &format!("grandchild-{n}"))),
            Some(grandchild) => assert_eq!(ended(grandchild), Ok(WELL), "grandchild of {n}"),
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

/// Returns the number of items that a job has moved. Panics if one of them failed.
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
    // SAFETY: the child calls only the code under test and ends with `_exit`. The child may call functions that aren't
    // async-signal-safe. Laneway supports such calls, and glibc allows them for its allocator and threads.
    Pid::from_raw(unsafe { libc::fork() })
}

/// Runs the child's part and ends the child, even after a panic. Unwinding would drop the parent's folder and server, and the server
/// would wait for threads that the child doesn't have.
fn exit(child: impl FnOnce()) -> ! {
    let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child));
    // SAFETY: ends the process. `_exit` flushes and drops none of the parent's objects a second time.
    unsafe { libc::_exit(if done.is_ok() { WELL } else { PANICKED }) }
}

/// Waits for a child and returns its exit status.
///
/// # Errors
///
/// The way the child died, or, if it had to be killed, the functions in which its threads wait.
fn ended(child: Pid) -> Result<i32, String> {
    let started = Instant::now();
    loop {
        match rustix::process::waitpid(Some(child), WaitOptions::NOHANG).expect("a child") {
            Some((_, status)) => {
                return status.exit_status().ok_or_else(|| format!("died: {status:?}"));
            }
            None if started.elapsed() > CHILD_MAX => {
                let threads = threads(child);
                rustix::process::kill_process(child, Signal::KILL).expect("killed");
                let _ = rustix::process::waitpid(Some(child), WaitOptions::empty());
                return Err(format!("hangs: {threads}"));
            }
            // The system offers no timed wait for a child, so poll.
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    }
}

/// Returns the names of a process's threads, and the kernel function in which each of them waits.
fn threads(process: Pid) -> String {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let read = |task: &Path, what| std::fs::read_to_string(task.join(what)).unwrap_or_default();
    tasks
        .map(|task| format!("{} in {}; ", read(&task.path(), "comm").trim(), read(&task.path(), "wchan")))
        .collect()
}
