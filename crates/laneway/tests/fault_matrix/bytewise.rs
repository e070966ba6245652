//! Byte by byte: an answer that is cut anywhere, and a bit that is flipped anywhere, are found each time.

use std::time::Duration;

use laneway::{Bucket, ErrorKind};

use crate::rig::{KINDS, Kind, Rig};

const SIZE: usize = 256 << 10;
/// Places of flipped bits, spread over the object.
const FLIPS: usize = 1000;
/// A put's bytes beside its content are fewer, on either side.
const BESIDE_MAX: usize = 1000;

/// Runs a test at a bucket whose client tries nothing again, with an object of [`SIZE`].
fn at(kind: Kind, test: impl FnOnce(&Rig, &Bucket, &[u8])) {
    let rig = Rig::new(kind);
    let bytes = laneway_testkit::random_bytes(7, SIZE);
    rig.endpoint.put("k", &bytes);
    let client = rig.client(Duration::ZERO, Duration::from_secs(30));
    test(&rig, &rig.bucket(&client), &bytes);
}

fn read(bucket: &Bucket) -> Result<Vec<u8>, ErrorKind> {
    let answer = bucket.get("k").call().map_err(|e| e.kind())?;
    answer.bytes_blocking().map(Vec::from).map_err(|e| e.kind())
}

#[test]
fn an_answer_cut_at_any_kib_or_a_byte_beside_it_is_never_taken_for_whole() {
    std::thread::scope(|scope| {
        for kind in KINDS {
            for in_chunks in [false, true] {
                scope.spawn(move || {
                    at(kind, |rig, bucket, bytes| cut_everywhere(rig, bucket, bytes, in_chunks))
                });
            }
        }
    });
}

fn cut_everywhere(rig: &Rig, bucket: &Bucket, bytes: &[u8], in_chunks: bool) {
    for kib in 1..=SIZE >> 10 {
        for place in [(kib << 10) - 1, kib << 10, (kib << 10) + 1] {
            let mut rules = vec![format!("get truncate@{place}")];
            rules.extend(in_chunks.then(|| "get length none".to_owned()));
            rig.endpoint.set_faults(&rules);
            let at = format!("{:?} {place} {in_chunks}", rig.kind);
            match read(bucket) {
                // What broke off may have been gone on with.
                Ok(read) => assert!(read == bytes, "{at}: {} bytes", read.len()),
                Err(kind) => {
                    assert!(place < SIZE, "{at}: {kind:?}");
                    assert!(matches!(kind, ErrorKind::Transport | ErrorKind::Integrity), "{at}: {kind:?}");
                }
            }
        }
    }
}

#[test]
fn a_bit_flipped_anywhere_is_found_downwards_and_upwards() {
    std::thread::scope(|scope| {
        for kind in KINDS {
            scope.spawn(move || at(kind, flip_everywhere));
        }
    });
}

fn flip_everywhere(rig: &Rig, bucket: &Bucket, bytes: &[u8]) {
    for place in (0..FLIPS).map(|n| n * (SIZE - 1) / (FLIPS - 1)) {
        // Before and behind the content a put has what says where it goes.
        let sent = BESIDE_MAX + place * (SIZE - 2 * BESIDE_MAX) / SIZE;
        rig.endpoint.set_faults(&[format!("get corrupt@{place}"), format!("put corrupt@{sent}")]);
        assert_eq!(read(bucket), Err(ErrorKind::Integrity), "{:?} {place}", rig.kind);
        let put = bucket.put("up", bytes.to_vec()).call().map_err(|e| e.kind());
        assert_eq!(put.err(), Some(ErrorKind::Integrity), "{:?} {place}", rig.kind);
        assert_eq!(rig.endpoint.keys(), ["k"], "{:?} {place}", rig.kind);
    }
}
