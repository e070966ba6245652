//! Dropped calls.

use std::fmt::Debug;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use laneway::{Bucket, Payload};

use super::bucket;
use crate::stage::{DIALECTS, Stage, at_once};

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
