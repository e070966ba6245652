//! The memory that waiting calls hold, as bytes that were allocated and not freed. It counts those of the whole process, so that it is a program
//! of its own.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod counting;

use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use laneway::{Bucket, Client, Spawned};

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

/// The same bytes for all, which so count for none.
static BYTES: [u8; 4700] = [7; 4700];
const PUTS: usize = 1000;

/// More than a put holds: 11.6 KB where this was written, 7 KB of them its future, which is that of unoptimised code.
const EACH_MAX: usize = 12 << 10;

/// Memory counts as settled when it has not changed for so long.
const SETTLED: Duration = Duration::from_millis(500);
const WAIT_MAX: Duration = Duration::from_secs(60);

fn main() {
    waiting_puts_hold_little_memory_and_none_after();
}

fn waiting_puts_hold_little_memory_and_none_after() {
    // It takes connections and requests, and answers nothing.
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", server.local_addr().unwrap());
    let client = Client::builder().anonymous(true).s3_endpoint(url).build().unwrap();
    let bucket = client.bucket("s3://lake/").unwrap();
    // The first of them hold the connections, which are no more for others.
    let first = puts(&client, &bucket);
    let before = settled();
    let others: Vec<_> = (0..3).map(|_| puts(&client, &bucket)).collect();
    let each = (settled() - before) / (3 * PUTS);
    assert!(each < EACH_MAX, "a waiting put holds {each} B");
    drop(others);
    let after = settled();
    let left = after.saturating_sub(before);
    assert!(left < PUTS * EACH_MAX / 5, "{left} B stay of {} puts that are gone", 3 * PUTS);
    drop(first);
}

fn puts(client: &Client, bucket: &Bucket) -> Vec<Spawned> {
    let put = |n| {
        let put = bucket.put(&format!("folder/{n:06}"), Bytes::from_static(&BYTES)).into_future();
        client.spawn(async move { drop(put.await) }).unwrap()
    };
    (0..PUTS).map(put).collect()
}

/// The bytes that are held once they change no more.
fn settled() -> usize {
    let (began, mut since, mut held) = (Instant::now(), Instant::now(), counting::held());
    while since.elapsed() < SETTLED {
        assert!(began.elapsed() < WAIT_MAX, "memory is taken and given back all the time");
        thread::sleep(Duration::from_millis(50));
        let now = counting::held();
        if now.abs_diff(held) > 64 << 10 {
            (held, since) = (now, Instant::now());
        }
    }
    held
}
