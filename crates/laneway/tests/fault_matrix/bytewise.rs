//! Byte-by-byte faults: Laneway detects a truncation at any byte and a flipped bit at any position.

use std::time::Duration;

use laneway::{Bucket, ErrorKind, Provider};

use crate::rig::{KINDS, Kind, Rig};

const SIZE: usize = 256 << 10;
/// Number of flipped bits, spread evenly over the object.
const FLIPS: usize = 1000;
/// The number of bytes around the only segment of Azure's structured body.
const FRAMES: usize = 39;
/// Upper bound on the bytes that a put sends before its content, and on the bytes after the content.
const BESIDE_MAX: usize = 1000;

/// Runs a test against a bucket that holds an object of [`SIZE`]. The bucket's client doesn't retry.
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
                // The client may have resumed the broken body.
                Ok(read) => assert!(read == bytes, "{at}: {} bytes", read.len()),
                Err(kind) => {
                    let frames = if rig.kind.provider == Provider::Azure { FRAMES } else { 0 };
                    assert!(place < SIZE + frames, "{at}: {kind:?}");
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
        // Skip the request's own framing before and after the content.
        let sent = BESIDE_MAX + place * (SIZE - 2 * BESIDE_MAX) / SIZE;
        rig.endpoint.set_faults(&[format!("get corrupt@{place}"), format!("put corrupt@{sent}")]);
        assert_eq!(read(bucket), Err(ErrorKind::Integrity), "{:?} {place}", rig.kind);
        let put = bucket.put("up", bytes.to_vec()).call().map_err(|e| e.kind());
        assert_eq!(put.err(), Some(ErrorKind::Integrity), "{:?} {place}", rig.kind);
        assert_eq!(rig.endpoint.keys(), ["k"], "{:?} {place}", rig.kind);
    }
}
