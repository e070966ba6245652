//! Resumable uploads of the GCS dialect.

use crate::client::{Answer, Protocol, Rig};

const CHUNK: usize = 256 << 10;

fn begin(rig: &Rig, query: &str, metadata: &str) -> String {
    let path = format!("/upload/storage/v1/b/demo/o?uploadType=resumable{query}");
    let begun =
        rig.send("POST", &path, &[("content-type", "application/json")], metadata.to_owned()).unwrap();
    assert_eq!(begun.status, 200, "{}", begun.text());
    begun.header("location").strip_prefix(&rig.server.url()).unwrap().to_owned()
}

fn chunk(rig: &Rig, session: &str, range: &str, body: &[u8]) -> Answer {
    rig.send("PUT", session, &[("content-range", range)], body.to_vec()).unwrap()
}

#[test]
fn chunks_make_an_object_and_the_session_tells_how_far_it_is() {
    for protocol in [Protocol::PlainH1, Protocol::TlsH2] {
        let rig = Rig::with(protocol, |_| {});
        let data: Vec<u8> = (0..CHUNK + 100).map(|n| n as u8).collect();
        let session = begin(&rig, "", r#"{"name":"a b","contentType":"text/plain"}"#);
        let total = data.len();
        let nothing = chunk(&rig, &session, &format!("bytes */{total}"), b"");
        assert_eq!((nothing.status, nothing.header("range")), (308, ""));
        let first = chunk(&rig, &session, &format!("bytes 0-{}/{total}", CHUNK - 1), &data[..CHUNK]);
        assert_eq!((first.status, first.header("range")), (308, "bytes=0-262143"));
        let asked = chunk(&rig, &session, "bytes */*", b"");
        assert_eq!((asked.status, asked.header("range")), (308, "bytes=0-262143"));
        assert_eq!(rig.server.counters().resumable_open, 1);
        // Bytes that were sent before may be sent again.
        let again = chunk(
            &rig,
            &session,
            &format!("bytes {}-{}/{total}", CHUNK - 50, total - 1),
            &data[CHUNK - 50..],
        );
        assert_eq!(again.status, 200, "{}", again.text());
        assert_eq!(again.json()["contentType"], "text/plain");
        assert_eq!(rig.server.store().read("demo", "a b").unwrap(), data);
        // A lost answer can be requested again.
        assert_eq!(chunk(&rig, &session, "bytes */*", b"").json()["name"], "a b");
        assert_eq!(rig.server.counters().resumable_open, 0);
    }
}

#[test]
fn one_request_without_a_range_is_the_whole_object() {
    let rig = Rig::new();
    let session = begin(&rig, "&name=k", "");
    assert_eq!(rig.send("PUT", &session, &[], "hello").unwrap().status, 200);
    assert_eq!(rig.server.store().read("demo", "k").unwrap(), b"hello");
    let empty = begin(&rig, "&name=empty", "");
    assert_eq!(chunk(&rig, &empty, "bytes */0", b"").status, 200);
    assert_eq!(rig.server.store().read("demo", "empty").unwrap(), b"");
}

#[test]
fn a_gap_a_crooked_chunk_and_a_wrong_checksum_are_refused() {
    let rig = Rig::new();
    let session = begin(&rig, "", r#"{"name":"k","crc32c":"AAAAAA=="}"#);
    let gap = chunk(&rig, &session, "bytes 5-9/10", b"56789");
    assert_eq!((gap.status, gap.header("range")), (308, ""));
    assert_eq!(chunk(&rig, &session, "bytes 0-4/10", b"01234").status, 400);
    assert_eq!(chunk(&rig, &session, "nonsense", b"").status, 400);
    let whole = begin(&rig, "", r#"{"name":"k","crc32c":"AAAAAA=="}"#);
    assert_eq!(chunk(&rig, &whole, "bytes 0-4/5", b"hello").status, 400);
    assert_eq!(chunk(&rig, &whole, "bytes */*", b"").status, 410);
    assert!(rig.server.store().keys("demo").is_empty());
}

#[test]
fn a_session_is_cancelled_and_gone() {
    let rig = Rig::new();
    let session = begin(&rig, "&name=k", "");
    assert_eq!(rig.send("DELETE", &session, &[], "").unwrap().status, 499);
    assert_eq!(chunk(&rig, &session, "bytes */*", b"").status, 404);
    assert_eq!(rig.server.counters().resumable_open, 0);
}

#[test]
fn a_precondition_is_checked_at_the_beginning_and_at_the_end() {
    let rig = Rig::new();
    let session = begin(&rig, "&name=k&ifGenerationMatch=0", "");
    rig.server.store().put("demo", "k", b"somebody was faster").unwrap();
    assert_eq!(rig.send("PUT", &session, &[], "hello").unwrap().status, 412);
    let path = "/upload/storage/v1/b/demo/o?uploadType=resumable&name=k&ifGenerationMatch=0";
    assert_eq!(rig.send("POST", path, &[], "").unwrap().status, 412);
}

#[test]
fn what_arrived_of_a_broken_chunk_is_kept() {
    let rig = Rig::faulty(Protocol::PlainH1, "part:1 reset@300KiB");
    let data = vec![3; 1 << 20];
    let session = begin(&rig, "&name=k", "");
    let total = data.len();
    assert!(
        rig.send(
            "PUT",
            &session,
            &[("content-range", &format!("bytes 0-{}/{total}", total - 1))],
            data.clone()
        )
        .is_err()
    );
    let asked = chunk(&rig, &session, &format!("bytes */{total}"), b"");
    let last: usize = asked.header("range").strip_prefix("bytes=0-").unwrap().parse().unwrap();
    assert_eq!(last + 1, 300 << 10);
    let rest = chunk(&rig, &session, &format!("bytes {}-{}/{total}", last + 1, total - 1), &data[last + 1..]);
    assert_eq!(rest.status, 200);
    assert_eq!(rig.server.store().read("demo", "k").unwrap(), data);
}
