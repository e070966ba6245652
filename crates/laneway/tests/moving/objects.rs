//! The calls on single objects, also blocking and dropped ones.

mod columns;
mod filling;
mod readers;
mod reading;
mod scattering;
mod writing;

use std::fmt::Debug;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use laneway::{Bucket, Payload};
use laneway_testkit::random_bytes;

use crate::stage::{BUCKET, DIALECTS, MIB, Stage, at_once};

/// Waits for a future without a runtime, since calls work under any executor.
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(done) => return done,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Returns the stage's bucket, below a prefix.
pub(crate) fn bucket(stage: &Stage, prefix: &str) -> Bucket {
    stage.client.bucket(&format!("{}://{BUCKET}/{prefix}", stage.kind.provider.scheme())).unwrap()
}

#[test]
fn readers_and_writers_are_those_of_the_standard_library() {
    at_once(&DIALECTS, |kind| {
        let stage = Stage::new(kind);
        let bucket = bucket(&stage, "");
        let bytes = random_bytes(1, 17 * MIB);
        let mut writer = bucket.writer("k").into_blocking();
        writer.write_all(&bytes).unwrap();
        writer.flush().unwrap();
        assert!(stage.keys().is_empty());
        assert_eq!(writer.finish().unwrap().size, bytes.len() as u64);
        assert!(stage.stored("k") == bytes);

        let mut reader = bucket.open("k").footer(8).call().unwrap().into_blocking();
        let mut buffer = [0; 1000];
        assert_eq!(reader.read_at(MIB as u64, &mut buffer).unwrap(), 1000);
        assert!(buffer == bytes[MIB..][..1000]);
        assert_eq!(reader.read_at(reader.size() - 5, &mut buffer).unwrap(), 5);
        assert_eq!(reader.read_at(reader.size(), &mut buffer).unwrap(), 0);
        reader.seek(SeekFrom::Start(9)).unwrap();
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest).unwrap();
        assert!(rest == bytes[9..]);
        assert!(reader.read_ranges([0..3, 5..9]).unwrap()[1] == bytes[5..9]);
        assert!(reader.read_range(5..9).unwrap() == bytes[5..9]);
        let mut first = [0; 7];
        reader.again().read_exact(&mut first).unwrap();
        assert!(first == bytes[..7]);

        bucket.writer("given up").into_blocking().abort();
        assert_eq!(stage.keys(), ["k"]);
        let mut removed = bucket.delete_many(futures_util::stream::iter(["k".to_owned()]));
        let (key, outcome) = removed.next_blocking().unwrap();
        assert!(key == "k" && outcome.is_ok() && removed.next_blocking().is_none());
        assert!(stage.keys().is_empty());
    });
}

/// More than the limits on HTTP/1.1 connections and on streams of an HTTP/2 connection.
const CALLS: u64 = 150;

/// Begins calls that the server never answers. Drops each once the server has received its request of this `verb`.
fn dropped<F: Future<Output: Debug> + Unpin>(stage: &Stage, verb: &str, begin: impl Fn(&Bucket) -> F) {
    let bucket = bucket(stage, "");
    for n in 1..=CALLS {
        let mut call = begin(&bucket);
        if let Poll::Ready(ended) = Pin::new(&mut call).poll(&mut Context::from_waker(Waker::noop())) {
            panic!("call {n} ended at once: {ended:?}");
        }
        stage.wait_for(verb, n);
    }
}

#[test]
fn a_dropped_copy_frees_its_connection_and_removes_nothing() {
    at_once(&DIALECTS, |kind| {
        let stage = Stage::with_faults(kind, &["copy key=silent delay 60m", "delete delay 60m"]);
        stage.object("a", b"moved half-way");
        dropped(&stage, "copy", |bucket| bucket.copy("a", "silent").into_future());
        // A new content type, because GCS doesn't copy and remove an object that only gets another name.
        dropped(&stage, "delete", |bucket| bucket.rename("a", "c").content_type("a/b").into_future());
        assert_eq!(stage.stored("a"), b"moved half-way");
        bucket(&stage, "").copy("a", "d").call().unwrap();
    });
}

#[test]
fn a_small_file_that_is_dropped_on_its_way_gives_its_connection_back() {
    at_once(&DIALECTS, |kind| {
        let stage = Stage::with_faults(kind, &["put key=silent delay 60m"]);
        let file = stage.file("f", b"small");
        dropped(&stage, "put", |bucket| bucket.put("silent", Payload::file(&file)).into_future());
        bucket(&stage, "").put("k", Payload::file(&file)).call().unwrap();
    });
}
