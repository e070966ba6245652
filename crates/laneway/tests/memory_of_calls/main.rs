//! Measures the memory that calls hold, in bytes allocated and not freed. The test is a separate program, because it counts the memory
//! of the whole process.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod counting;

use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use laneway::{Bucket, Client, Spawned};
use laneway_server::{Config, Server};

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

/// All puts share these bytes, so the bytes aren't counted for each put.
static BYTES: [u8; 4700] = [7; 4700];
const PUTS: usize = 1000;

/// Upper bound for one put. When this limit was set, a put held 11.6 KB, including 7 KB for its future in
/// unoptimised code.
const EACH_MAX: usize = 12 << 10;

/// Memory counts as settled when it has not changed for this long.
const SETTLED: Duration = Duration::from_millis(500);
const WAIT_MAX: Duration = Duration::from_secs(60);

fn main() {
    waiting_puts_hold_little_memory_and_none_after();
    ranges_in_the_callers_memory_are_held_nowhere_else();
}

fn waiting_puts_hold_little_memory_and_none_after() {
    // The server accepts connections and requests, but never answers.
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", server.local_addr().unwrap());
    let client = Client::builder().anonymous(true).s3_endpoint(url).build().unwrap();
    let bucket = client.bucket("s3://lake/").unwrap();
    // The first puts open the connections, and later puts reuse them.
    let first = puts(&client, &bucket);
    let before = settled();
    let others: Vec<_> = (0..3).map(|_| puts(&client, &bucket)).collect();
    let each = (settled() - before) / (3 * PUTS);
    assert!(each < EACH_MAX, "a pending put holds {each} B");
    drop(others);
    let after = settled();
    let left = after.saturating_sub(before);
    assert!(left < PUTS * EACH_MAX / 5, "{left} B remain after {} puts were dropped", 3 * PUTS);
    drop(first);
}

/// The caller's memory. At each write, `as_mut` notes the peak of the process's memory.
struct Watching(Vec<u8>);

static MOST: AtomicUsize = AtomicUsize::new(0);

impl AsMut<[u8]> for Watching {
    fn as_mut(&mut self) -> &mut [u8] {
        MOST.fetch_max(counting::held(), Relaxed);
        &mut self.0
    }
}

fn ranges_in_the_callers_memory_are_held_nowhere_else() {
    const RANGES: u64 = 16;
    const EACH: u64 = 8 << 20;
    let server = Server::start(Config::default()).unwrap();
    server.create_bucket("lake").unwrap();
    server.store().put("lake", "k", &vec![7; (RANGES * (EACH + 1)) as usize]).unwrap();
    let client = Client::builder().anonymous(true).s3_endpoint(server.url()).build().unwrap();
    let reader = client.bucket("s3://lake/").unwrap().open("k").call().unwrap();
    let range = |n: u64| n * (EACH + 1)..n * (EACH + 1) + EACH;
    let ranges: Vec<_> = (0..RANGES).map(|n| (range(n), Watching(vec![0; EACH as usize]))).collect();
    let before = settled();
    let mut coming = reader.stream_ranges_into(ranges);
    let mut whole = 0;
    while let Some(filled) = coming.next_blocking() {
        let filled = filled.unwrap();
        assert!(filled.buffer.0.iter().all(|byte| *byte == 7));
        // Keep the memory until the end, so that the allocator can't reuse it.
        std::mem::forget(filled);
        whole += 1;
    }
    assert_eq!(whole, RANGES);
    // Both ends of a connection have buffers, but there are fewer connections than ranges.
    let more = MOST.load(Relaxed).saturating_sub(before) as u64;
    assert!(more < RANGES * EACH / 4, "{more} B are held beside the caller's memory");
}

fn puts(client: &Client, bucket: &Bucket) -> Vec<Spawned> {
    let put = |n| {
        let put = bucket.put(&format!("folder/{n:06}"), Bytes::from_static(&BYTES)).into_future();
        client.spawn(async move { drop(put.await) }).unwrap()
    };
    (0..PUTS).map(put).collect()
}

/// Returns the bytes that the process holds, once their number no longer changes.
fn settled() -> usize {
    let (began, mut since, mut held) = (Instant::now(), Instant::now(), counting::held());
    while since.elapsed() < SETTLED {
        assert!(began.elapsed() < WAIT_MAX, "memory never settles");
        thread::sleep(Duration::from_millis(50));
        let now = counting::held();
        if now.abs_diff(held) > 64 << 10 {
            (held, since) = (now, Instant::now());
        }
    }
    held
}
