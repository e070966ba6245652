//! Faults, from a client's view.

use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};

use crate::client::{PROTOCOLS, Protocol, Rig, connect, exchange};

const BOTH: [Protocol; 2] = [Protocol::PlainH1, Protocol::TlsH2];
const PATH: &str = "/storage/v1/b/demo/o/k?alt=media";

fn with_object(protocol: Protocol, rule: &str, len: usize) -> Rig {
    let rig = Rig::faulty(protocol, rule);
    rig.server.store().put("demo", "k", &vec![b'a'; len]).unwrap();
    rig
}

#[test]
fn a_status_comes_in_the_dialect_with_its_retry_after() {
    for protocol in PROTOCOLS {
        let rig = with_object(protocol, "get:1-2 status 503 retry-after 1500ms", 1);
        let gcs = rig.get(PATH);
        assert_eq!((gcs.status, gcs.header("retry-after")), (503, "2"));
        assert_eq!(gcs.json()["error"]["errors"][0]["reason"], "backendError");
        assert_eq!(rig.get("/demo/k").element("Code"), "SlowDown");
        assert_eq!(rig.get("/demo/k").status, 200);
        assert_eq!(rig.server.counters().faults_fired, 2);
    }
    let rig = with_object(Protocol::PlainH1, "status 403 rateLimitExceeded", 1);
    assert_eq!(rig.get(PATH).json()["error"]["errors"][0]["reason"], "rateLimitExceeded");
}

#[test]
fn a_refused_upload_leaves_its_connection_usable() {
    let rig = Rig::faulty(Protocol::PlainH1, "put:1 status 503");
    let mut connection = rig.connect();
    let body = vec![1; 100_000];
    assert_eq!(rig.send_on(&mut connection, "PUT", "/demo/k", &[], body.clone()).unwrap().status, 503);
    assert!(rig.server.store().keys("demo").is_empty());
    assert_eq!(rig.send_on(&mut connection, "PUT", "/demo/k", &[], body).unwrap().status, 200);
    assert_eq!(rig.server.counters().connections, 1);
}

#[test]
fn a_reset_breaks_the_body_off_where_it_was_told_to() {
    for protocol in PROTOCOLS {
        let rig = with_object(protocol, "get:1 reset@256KiB", 1 << 20);
        let broken = rig.get(PATH);
        assert_eq!(broken.status, 200);
        assert!(broken.broken.is_some(), "{protocol:?}");
        assert_eq!(broken.body.len(), 256 << 10, "{protocol:?}");
        assert_eq!(rig.get(PATH).body.len(), 1 << 20);
    }
}

#[test]
fn a_reset_travels_the_imitated_path_behind_its_bytes() {
    for protocol in PROTOCOLS {
        let rig = Rig::with(protocol, |config| {
            config.rtt = Duration::from_millis(6);
            config.faults.rules.push(laneway_server::parse_fault("get drop@3MiB").unwrap());
        });
        rig.server.store().put("demo", "k", &vec![7; 4 << 20]).unwrap();
        let broken = rig.get(PATH);
        assert!(broken.broken.is_some());
        assert_eq!(broken.body.len(), 3 << 20, "{protocol:?}");
    }
}

#[test]
fn a_reset_without_a_place_gives_no_answer_at_all() {
    for protocol in PROTOCOLS {
        let rig = with_object(protocol, "get:1 reset", 10);
        assert!(rig.send("GET", PATH, &[], "").is_err(), "{protocol:?}");
        assert_eq!(rig.get(PATH).status, 200);
    }
}

#[test]
fn on_h2_a_reset_hits_one_stream_and_a_drop_all_of_them() {
    let reset = with_object(Protocol::TlsH2, "get:1 reset@10", 100);
    let mut connection = reset.connect();
    assert!(reset.send_on(&mut connection, "GET", PATH, &[], "").unwrap().broken.is_some());
    assert_eq!(reset.send_on(&mut connection, "GET", PATH, &[], "").unwrap().body.len(), 100);
    let drop = with_object(Protocol::TlsH2, "get:1 drop@10", 100);
    let mut connection = drop.connect();
    assert!(drop.send_on(&mut connection, "GET", PATH, &[], "").unwrap().broken.is_some());
    assert!(drop.send_on(&mut connection, "GET", PATH, &[], "").is_err());
}

#[test]
fn an_upload_that_is_reset_stores_nothing() {
    for protocol in PROTOCOLS {
        let rig = Rig::faulty(protocol, "put:1 reset@64KiB");
        assert!(rig.send("PUT", "/demo/k", &[], vec![1; 1 << 20]).is_err(), "{protocol:?}");
        assert!(rig.server.store().keys("demo").is_empty());
    }
}

#[test]
fn a_truncated_body_is_shorter_than_it_says() {
    for protocol in BOTH {
        let rig = with_object(protocol, "get:1 truncate@40", 100);
        let cut = rig.get(PATH);
        assert_eq!((cut.header("content-length"), cut.body.len()), ("100", 40), "{protocol:?}");
        assert!(cut.broken.is_some());
    }
}

#[test]
fn one_bit_is_flipped_on_the_way_down_or_up() {
    let rig = with_object(Protocol::TlsH2, "get:1 corrupt", 100);
    let corrupt = rig.get(PATH);
    let different = corrupt.body.iter().filter(|byte| **byte != b'a').count();
    assert_eq!((corrupt.body.len(), different), (100, 1));
    let rig = Rig::faulty(Protocol::PlainH1, "put:1 corrupt@2");
    let path = "/upload/storage/v1/b/demo/o?uploadType=media&name=k";
    let headers = [("x-goog-hash", "crc32c=mnG7TA==")];
    assert_eq!(rig.send("POST", path, &headers, "hello").unwrap().status, 400);
    assert_eq!(rig.send("POST", path, &headers, "hello").unwrap().status, 200);
}

#[test]
fn a_lost_answer_leaves_the_work_done() {
    for protocol in PROTOCOLS {
        let rig = Rig::faulty(protocol, "put:1 lose-answer");
        assert!(rig.send("PUT", "/demo/k", &[], "hello").is_err(), "{protocol:?}");
        assert_eq!(rig.server.store().read("demo", "k").unwrap(), b"hello");
    }
}

#[test]
fn a_stall_sends_so_much_and_keeps_the_connection_open() {
    for protocol in BOTH {
        let rig = with_object(protocol, "get:1 stall@1KiB", 4096);
        rig.block_on(async {
            let mut stalled = connect(&rig.server, protocol).await;
            let answer = exchange(&rig.server, &mut stalled, "GET", PATH, &[], "".into());
            assert!(tokio::time::timeout(Duration::from_millis(100), answer).await.is_err());
        });
        assert_eq!(rig.get(PATH).body.len(), 4096);
    }
}

#[test]
fn beyond_a_rate_requests_are_throttled() {
    let rig = with_object(Protocol::PlainH1, "rate 0.001/s burst 2", 1);
    assert_eq!(rig.get("/demo/k").status, 200);
    assert_eq!(rig.get(PATH).status, 200);
    let s3 = rig.get("/demo/k");
    assert_eq!((s3.status, s3.element("Code")), (503, "SlowDown"));
    let gcs = rig.get(PATH);
    assert_eq!((gcs.status, &gcs.json()["error"]["errors"][0]["reason"]), (429, &"rateLimitExceeded".into()));
}

#[test]
fn a_slow_body_comes_whole() {
    let rig = with_object(Protocol::PlainH1, "get slow 10MB/s", 1 << 20);
    assert_eq!(rig.get(PATH).body.len(), 1 << 20);
}

/// `fault::body` tests the rate in virtual time. This test only compares the order of two answers, so it doesn't depend
/// on the machine's load.
#[test]
fn a_slow_body_is_overtaken_by_one_that_is_asked_for_later() {
    for protocol in BOTH {
        let rig = with_object(protocol, "get:1 slow 1KB/s", 1 << 20);
        rig.block_on(async {
            let (mut first, mut second) =
                (connect(&rig.server, protocol).await, connect(&rig.server, protocol).await);
            let slow = pin!(exchange(&rig.server, &mut first, "GET", PATH, &[], "".into()));
            let other = pin!(async {
                while rig.server.counters().requests == 0 {
                    tokio::task::yield_now().await;
                }
                exchange(&rig.server, &mut second, "GET", PATH, &[], "".into()).await
            });
            match select(slow, other).await {
                Either::Left(_) => panic!("a megabyte came at a kilobyte a second"),
                Either::Right((answer, _)) => assert_eq!(answer.unwrap().body.len(), 1 << 20),
            }
        });
    }
}

#[test]
fn a_goaway_ends_the_connection_after_its_request() {
    for protocol in PROTOCOLS {
        let rig = with_object(protocol, "get:1 goaway", 10);
        let mut connection = rig.connect();
        let answer = rig.send_on(&mut connection, "GET", PATH, &[], "").unwrap();
        assert_eq!(answer.body.len(), 10);
        if protocol == Protocol::TlsH2 {
            // The client notices the GOAWAY at one of the next requests. The server refuses that request without
            // processing it.
            let refused = (0..100).any(|_| rig.send_on(&mut connection, "GET", PATH, &[], "").is_err());
            assert!(refused);
        } else {
            assert_eq!(answer.header("connection"), "close");
            assert!(rig.send_on(&mut connection, "GET", PATH, &[], "").is_err());
        }
    }
}

#[test]
fn a_refused_stream_says_that_nothing_was_done() {
    let rig = Rig::faulty(Protocol::TlsH2, "put:1 refuse-stream");
    let mut connection = rig.connect();
    let refused = rig.send_on(&mut connection, "PUT", "/demo/k", &[], "hello").unwrap_err();
    assert!(refused.contains("REFUSED_STREAM"), "{refused}");
    assert!(rig.server.store().keys("demo").is_empty());
    assert_eq!(rig.send_on(&mut connection, "PUT", "/demo/k", &[], "hello").unwrap().status, 200);
}

#[test]
fn only_the_keys_of_a_pattern_are_hit() {
    let rig = with_object(Protocol::PlainH1, "get key=bad/* status 500", 1);
    rig.server.store().put("demo", "bad/k", b"").unwrap();
    assert_eq!(rig.get("/demo/k").status, 200);
    assert_eq!(rig.get("/demo/bad/k").status, 500);
    assert_eq!(rig.get("/storage/v1/b/demo/o/bad%2Fk?alt=media").status, 500);
}

#[test]
fn a_cut_closes_the_connection_behind_its_bytes() {
    for protocol in PROTOCOLS {
        let rig = with_object(protocol, "get:1 cut@40", 100);
        let broken = rig.get(PATH);
        assert_eq!((broken.status, broken.body.len()), (200, 40), "{protocol:?}");
        assert!(broken.broken.is_some(), "{protocol:?}");
        assert_eq!(rig.get(PATH).body.len(), 100);
        let rig = with_object(protocol, "get:1 cut", 100);
        assert!(rig.send("GET", PATH, &[], "").is_err(), "{protocol:?}");
        assert_eq!(rig.get(PATH).body.len(), 100);
    }
}

#[test]
fn a_length_is_told_wrong_or_not_at_all() {
    for protocol in PROTOCOLS {
        let rig = with_object(protocol, "get length none", 100);
        let untold = rig.get(PATH);
        assert_eq!((untold.headers.get("content-length"), untold.body.len()), (None, 100), "{protocol:?}");
        let rig = with_object(protocol, "get length -1", 100);
        assert_eq!(rig.get(PATH).header("content-length"), "99", "{protocol:?}");
        let rig = with_object(protocol, "get length +7", 100);
        let long = rig.get(PATH);
        assert_eq!((long.header("content-length"), long.body.len()), ("107", 100), "{protocol:?}");
        assert!(long.broken.is_some(), "{protocol:?}");
    }
}

#[test]
fn a_range_is_ignored_or_another_one_answered() {
    for protocol in BOTH {
        for path in [PATH, "/demo/k"] {
            let rig = with_object(protocol, "get:1 range ignored", 100);
            let range = [("range", "bytes=10-19")];
            let whole = rig.send("GET", path, &range, "").unwrap();
            assert_eq!((whole.status, whole.body.len()), (200, 100), "{protocol:?} {path}");
            let rig = with_object(protocol, "get:1 range shifted", 100);
            let other = rig.send("GET", path, &range, "").unwrap();
            assert_eq!(other.header("content-range"), "bytes 11-20/100", "{protocol:?} {path}");
        }
    }
}

#[test]
fn checksums_in_headers_are_those_of_other_bytes() {
    let rig = with_object(Protocol::PlainH1, "get:1-2 wrong-checksum", 100);
    let asked = [("x-amz-checksum-mode", "ENABLED")];
    let announced =
        |path: &str, name: &str| rig.send("GET", path, &asked, "").unwrap().header(name).to_owned();
    let wrong = [announced(PATH, "x-goog-hash"), announced("/demo/k", "x-amz-checksum-crc32c")];
    let right = [announced(PATH, "x-goog-hash"), announced("/demo/k", "x-amz-checksum-crc32c")];
    assert!(wrong[0] != right[0] && wrong[1] != right[1], "{wrong:?} {right:?}");
    assert_eq!(wrong.map(|text| text.len()), right.map(|text| text.len()));
}

#[test]
fn another_writer_replaces_the_object_before_it_is_answered() {
    let rig = with_object(Protocol::PlainH1, "get:2 replace", 3);
    let first = rig.get(PATH);
    let second = rig.get(PATH);
    assert_eq!((&first.body[..], &second.body[..]), (&b"aaa"[..], &[!b'a'; 3][..]));
    assert_ne!(first.header("x-goog-generation"), second.header("x-goog-generation"));
}

#[test]
fn an_error_comes_as_200_and_nothing_was_done() {
    let rig = Rig::faulty(Protocol::PlainH1, "any error-in-200");
    let s3 = rig.send("PUT", "/demo/k", &[], "hello").unwrap();
    assert_eq!((s3.status, s3.element("Code")), (200, "InternalError"));
    let gcs = rig.send("POST", "/upload/storage/v1/b/demo/o?uploadType=media&name=k", &[], "hello").unwrap();
    assert_eq!((gcs.status, &gcs.json()["error"]["code"]), (200, &500.into()));
    assert!(rig.server.store().keys("demo").is_empty());
}

#[test]
fn documents_are_garbled_or_end_half_way_and_contents_stay() {
    for protocol in BOTH {
        for path in ["/demo?list-type=2", "/storage/v1/b/demo/o"] {
            let rig = with_object(protocol, "garble", 10);
            let page = rig.get(path);
            assert_eq!((page.status, page.broken.is_some()), (200, false), "{protocol:?}");
            assert!(page.body.starts_with(b"<!doctype html>"), "{protocol:?} {path}");
            assert_eq!(rig.get(PATH).body.len(), 10);
            let rig = with_object(protocol, "malformed", 10);
            let half = rig.get(path);
            assert_eq!((half.status, half.broken.is_some()), (200, false), "{protocol:?}");
            rig.server.set_faults(laneway_server::Faults::default());
            let whole = rig.get(path);
            assert_eq!(half.body[..], whole.body[..whole.body.len() / 2], "{protocol:?} {path}");
        }
    }
}
