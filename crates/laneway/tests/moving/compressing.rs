//! Files that Laneway compresses during the upload.

use std::io::Read as _;

use flate2::read::GzDecoder;
use laneway::{CopyRequest, Location, ObjectMeta, PutOptions};

use crate::stage::{DIALECTS, KINDS, MIB, Place, Report, Stage, noise};

fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut plain).unwrap();
    plain
}

fn request(source: impl Into<Place>, destination: Location) -> CopyRequest {
    CopyRequest::new(vec![source.into().0], destination).gzip("html,txt".parse().unwrap()).recursive(true)
}

fn stat(stage: &Stage, key: &str) -> ObjectMeta {
    stage.client.stat(&stage.url(key)).unwrap()
}

/// Returns random words, which compress well.
fn words(len: usize) -> Vec<u8> {
    noise(len, 5).into_iter().map(|byte| b'a' + byte % 16).collect()
}

#[test]
fn small_files_of_an_extension_are_compressed_and_others_are_not() {
    for kind in KINDS {
        let stage = Stage::new(kind);
        stage.file("site/index.html", "<p>".repeat(1000));
        stage.file("site/empty.txt", "");
        stage.file("site/page.htm", "<p>".repeat(1000));
        let report = stage.copy(request(stage.path("site"), stage.url("p")));
        report.all_verified();

        assert_eq!(gunzip(&stage.stored("p/index.html")), "<p>".repeat(1000).as_bytes());
        assert_eq!(gunzip(&stage.stored("p/empty.txt")), b"");
        let page = stat(&stage, "p/index.html");
        assert_eq!(page.content_encoding.as_deref(), Some("gzip"), "{kind:?}");
        assert_eq!(page.content_type.as_deref(), Some("text/html"));
        assert_eq!(page.cache_control.as_deref(), Some("no-transform"));
        assert_eq!(page.size, stage.stored("p/index.html").len() as u64);

        assert_eq!(stage.stored("p/page.htm"), "<p>".repeat(1000).as_bytes());
        let other = stat(&stage, "p/page.htm");
        assert_eq!((other.content_encoding, other.cache_control), (None, None), "{kind:?}");
        let stored: usize = stage.keys().iter().map(|key| stage.stored(key).len()).sum();
        assert_eq!(report.summary.bytes, stored as u64);
    }
}

#[test]
fn a_large_file_is_compressed_as_it_is_read_and_sent_in_parts() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        let bytes = [noise(33 * MIB, 1), words(12 * MIB)].concat();
        let path = stage.file("big.txt", &bytes);
        stage.copy(request(&path, stage.url("big.txt"))).all_verified();
        assert!(gunzip(&stage.stored("big.txt")) == bytes, "{kind:?}");
        assert_eq!(stat(&stage, "big.txt").content_encoding.as_deref(), Some("gzip"));
        let counters = stage.server.counters();
        assert_eq!(counters.requests_by_verb.get("part"), Some(&3), "{kind:?}: {counters:?}");
        assert_eq!(counters.multipart_open, 0);
    }
}

#[test]
fn without_multipart_a_large_file_is_compressed_into_a_session() {
    let stage = Stage::without_multipart(DIALECTS[0]);
    let bytes = noise(20 * MIB, 9);
    let path = stage.file("big.txt", &bytes);
    stage.copy(request(&path, stage.url("big.txt"))).all_verified();
    assert!(gunzip(&stage.stored("big.txt")) == bytes);
    let meta = stat(&stage, "big.txt");
    assert_eq!(meta.content_encoding.as_deref(), Some("gzip"));
    assert_eq!(meta.cache_control.as_deref(), Some("no-transform"));
}

#[test]
fn what_was_compressed_comes_back_as_stored() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        let path = stage.file("page.html", words(100_000));
        stage.copy(request(&path, stage.url("page.html"))).all_verified();
        let back = stage.path("back");
        stage.cp(stage.url("page.html"), &back).all_verified();
        assert_eq!(std::fs::read(&back).unwrap(), stage.stored("page.html"));
        assert_eq!(gunzip(&std::fs::read(&back).unwrap()), words(100_000));
    }
}

#[test]
fn the_same_file_becomes_the_same_object_each_time() {
    let stage = Stage::new(DIALECTS[0]);
    let path = stage.file("a.txt", words(100_000));
    stage.copy(request(&path, stage.url("first"))).all_verified();
    let again = stage.file("b.txt", words(100_000));
    stage.copy(request(&again, stage.url("second"))).all_verified();
    assert_eq!(stage.stored("first"), stage.stored("second"));
    // The keys have no extension, so the type comes from the files' content.
    assert_eq!(stat(&stage, "first").content_type.as_deref(), Some("text/plain"));
}

#[test]
fn a_cache_control_that_was_asked_for_stays() {
    let stage = Stage::new(DIALECTS[0]);
    let path = stage.file("a.txt", "text");
    let put = PutOptions::default().cache_control("max-age=60");
    stage.copy(request(&path, stage.url("a.txt")).put(put)).all_verified();
    assert_eq!(stat(&stage, "a.txt").cache_control.as_deref(), Some("max-age=60"));
}

#[test]
fn a_move_removes_the_file_once_its_compressed_copy_is_verified() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        let path = stage.file("a.txt", "text");
        stage.copy(request(&path, stage.url("a.txt")).remove_source(true)).all_verified();
        assert!(!path.exists());
        assert_eq!(gunzip(&stage.stored("a.txt")), b"text");
    }
}

#[test]
fn compressing_what_goes_into_no_store_is_bad_usage() {
    let stage = Stage::new(DIALECTS[0]);
    stage.object("a.txt", b"text");
    let wrong = |report: Report| {
        let (class, text) = report.failure();
        assert!(class == "usage" && text.contains("compress"), "{text}");
    };
    wrong(stage.copy(request(stage.url("a.txt"), Place::from(stage.path("back")).0)));
    wrong(stage.copy(request(stage.url("a.txt"), stage.url("b.txt"))));
    let path = stage.file("a.txt", "text");
    let put = PutOptions::default().content_encoding("br");
    wrong(stage.copy(request(&path, stage.url("c.txt")).put(put)));
    assert_eq!(stage.keys(), ["a.txt"]);
}
