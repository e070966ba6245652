//! Connections: TLS, HTTP/1.1 and HTTP/2, their limits and the simulated path.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::pin::pin;
use std::time::Duration;

use futures_util::future::{Either, select};
use laneway_server::{Config, Server, Tls};

use tokio::io::AsyncReadExt as _;

use crate::client::{PROTOCOLS, Protocol, Rig, connect, exchange, secure};

#[test]
fn alpn_gives_h2_unless_only_h1_is_offered() {
    let both = Rig::with(Protocol::TlsH2, |_| {});
    both.get("/demo/k");
    assert_eq!((both.server.counters().h2_connections, both.server.counters().tls_handshakes), (1, 1));
    let only_h1 = Rig::with(Protocol::TlsH2, |config| config.h1_only = true);
    assert_eq!(only_h1.get("/demo/k").status, 404);
    assert_eq!(only_h1.server.counters().h2_connections, 0);
    assert!(both.server.url().starts_with("https://127.0.0.1:"));
}

#[test]
fn a_connection_serves_many_requests_and_is_counted_once() {
    for protocol in [Protocol::PlainH1, Protocol::TlsH1, Protocol::TlsH2] {
        let rig = Rig::with(protocol, |_| {});
        let mut connection = rig.connect();
        for n in 0..20 {
            let path = format!("/upload/storage/v1/b/demo/o?uploadType=media&name={n}");
            assert_eq!(rig.send_on(&mut connection, "POST", &path, &[], vec![n; 2000]).unwrap().status, 200);
        }
        assert_eq!(rig.send_on(&mut connection, "GET", "/demo/7", &[], "").unwrap().body, vec![7; 2000]);
        let counters = rig.server.counters();
        assert_eq!((counters.connections, counters.requests), (1, 21));
        assert_eq!(counters.requests_by_verb["put"], 20);
        assert!(counters.bytes_in > 40_000 && counters.bytes_out > 2000);
    }
}

#[test]
fn h2_streams_run_side_by_side_up_to_the_limit() {
    let rig = Rig::with(Protocol::TlsH2, |config| {
        config.max_streams = Some(4);
        config.faults.rules.push(laneway_server::parse_fault("delay 20ms").unwrap());
    });
    rig.block_on(async {
        let mut tasks = Vec::new();
        let connection = connect(&rig.server, Protocol::TlsH2).await;
        let crate::client::Connection::H2(sender) = connection else { panic!("not h2") };
        // After a first answer, the client knows the server's HTTP/2 settings.
        let mut first = crate::client::Connection::H2(sender.clone());
        exchange(&rig.server, &mut first, "GET", "/demo/k", &[], "".into()).await.unwrap();
        for _ in 0..12 {
            let mut connection = crate::client::Connection::H2(sender.clone());
            let server = &rig.server;
            tasks.push(
                async move { exchange(server, &mut connection, "GET", "/demo/k", &[], "".into()).await },
            );
        }
        for answer in futures_util::future::join_all(tasks).await {
            assert_eq!(answer.unwrap().status, 404);
        }
    });
    assert_eq!(rig.server.counters().streams_peak, 4);
}

#[test]
fn an_imitated_path_carries_everything() {
    let data: Vec<u8> = (0..3 << 20).map(|n: u32| (n % 251) as u8).collect();
    for protocol in [Protocol::PlainH1, Protocol::TlsH2] {
        let rig = Rig::with(protocol, |config| {
            config.rtt = Duration::from_millis(10);
            config.bandwidth = Some(200_000_000);
        });
        let mut connection = rig.connect();
        assert_eq!(rig.send_on(&mut connection, "PUT", "/demo/k", &[], data.clone()).unwrap().status, 200);
        assert_eq!(rig.send_on(&mut connection, "GET", "/demo/k", &[], "").unwrap().body, data);
    }
}

/// `link` tests the delay in virtual time. This test only compares the order of two servers' answers, so it doesn't
/// depend on the machine's load.
#[test]
fn what_an_imitated_path_holds_up_is_overtaken_by_another_servers_answer() {
    let far: fn(&mut Config) = |config| config.rtt = Duration::from_secs(3600);
    let narrow: fn(&mut Config) = |config| config.bandwidth = Some(1);
    for change in [far, narrow] {
        let (slow, quick) = (Rig::with(Protocol::PlainH1, change), Rig::new());
        slow.block_on(async {
            let (mut first, mut second) = (
                connect(&slow.server, Protocol::PlainH1).await,
                connect(&quick.server, Protocol::PlainH1).await,
            );
            let held = pin!(exchange(&slow.server, &mut first, "GET", "/demo/k", &[], "".into()));
            let other = pin!(exchange(&quick.server, &mut second, "GET", "/demo/k", &[], "".into()));
            match select(held, other).await {
                Either::Left((answer, _)) => panic!("nothing held it up: {answer:?}"),
                Either::Right((answer, _)) => assert_eq!(answer.unwrap().status, 404),
            }
        });
    }
}

/// `socket` and `token_bucket` test the rate itself in virtual time.
#[test]
fn a_cap_holds_up_what_exceeds_it_on_a_connection_and_no_other_connection() {
    let large = vec![7; 1 << 20];
    for protocol in PROTOCOLS {
        let rig = Rig::with(protocol, |config| config.connection_bandwidth = Some(1));
        rig.server.store().put("demo", "large", &large).unwrap();
        for (method, path, body) in [("GET", "/demo/large", &[][..]), ("PUT", "/demo/up", &large)] {
            rig.block_on(async {
                let mut first = connect(&rig.server, protocol).await;
                let mut second = connect(&rig.server, protocol).await;
                let body = bytes::Bytes::copy_from_slice(body);
                let held = pin!(exchange(&rig.server, &mut first, method, path, &[], body));
                let other = pin!(exchange(&rig.server, &mut second, "GET", "/demo/k", &[], "".into()));
                match select(held, other).await {
                    Either::Left((answer, _)) => panic!("nothing held up the {method}: {answer:?}"),
                    Either::Right((answer, _)) => assert_eq!(answer.unwrap().status, 404),
                }
            });
        }
    }
}

#[test]
fn connections_beyond_those_served_wait_or_are_reset_until_one_ends() {
    for reset_surplus in [false, true] {
        let rig = Rig::with(Protocol::PlainH1, |config| {
            (config.served_connections, config.reset_surplus) = (Some(1), reset_surplus);
        });
        rig.block_on(async {
            let ask = async |connection: &mut _| {
                exchange(&rig.server, connection, "GET", "/demo/k", &[], "".into()).await
            };
            let mut first = connect(&rig.server, Protocol::PlainH1).await;
            assert_eq!(ask(&mut first).await.unwrap().status, 404);
            let mut second = connect(&rig.server, Protocol::PlainH1).await;
            if reset_surplus {
                assert!(ask(&mut second).await.is_err());
                return assert_eq!(ask(&mut first).await.unwrap().status, 404);
            }
            let waiting = pin!(ask(&mut second));
            let waiting = match select(waiting, pin!(ask(&mut first))).await {
                Either::Left((answer, _)) => panic!("it did not wait: {answer:?}"),
                Either::Right((answer, waiting)) => {
                    assert_eq!(answer.unwrap().status, 404);
                    waiting
                }
            };
            drop(first);
            assert_eq!(waiting.await.unwrap().status, 404);
        });
    }
}

#[test]
fn connections_that_wait_are_served_when_the_limit_goes() {
    let rig = Rig::with(Protocol::PlainH1, |config| config.served_connections = Some(1));
    rig.block_on(async {
        let ask = async |connection: &mut _| {
            exchange(&rig.server, connection, "GET", "/demo/k", &[], "".into()).await
        };
        let mut first = connect(&rig.server, Protocol::PlainH1).await;
        assert_eq!(ask(&mut first).await.unwrap().status, 404);
        let mut second = connect(&rig.server, Protocol::PlainH1).await;
        let waiting = pin!(ask(&mut second));
        let waiting = match select(waiting, pin!(ask(&mut first))).await {
            Either::Left((answer, _)) => panic!("it did not wait: {answer:?}"),
            Either::Right((answer, waiting)) => {
                assert_eq!(answer.unwrap().status, 404);
                waiting
            }
        };
        rig.server.set_served_connections(None);
        assert_eq!(waiting.await.unwrap().status, 404);
        assert_eq!(ask(&mut first).await.unwrap().status, 404);
    });
}

#[test]
fn an_idle_connection_ends_with_a_close_notify() {
    for rtt in [Duration::ZERO, Duration::from_millis(2)] {
        let rig = Rig::with(Protocol::TlsH1, |config| {
            config.rtt = rtt;
            config.idle_max = Some(Duration::from_millis(20));
        });
        // Without a close_notify, rustls reports the end as an error.
        let rest = rig.block_on(async {
            let socket = tokio::net::TcpStream::connect(rig.server.addr()).await.unwrap();
            let mut stream = secure(&rig.server, Protocol::TlsH1, socket).await;
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).await.map(|_| rest)
        });
        assert!(rest.is_ok(), "{rtt:?}: {rest:?}");
    }
}

#[test]
fn a_head_that_is_too_large_is_refused() {
    let rig = Rig::new();
    let large = "x".repeat(2 << 20);
    let answer = rig.send("GET", "/demo/k", &[("x-large", &large)], "");
    // A client that is still sending when the connection is closed may not be able to read the answer.
    assert!(answer.is_err() || answer.unwrap().status == 431);
    assert_eq!(rig.server.counters().requests, 0);
    assert_eq!(rig.get("/demo/k").status, 404);
}

#[test]
fn a_taken_address_and_bad_files_are_told_in_one_line() {
    let first = Server::start(Config::default()).unwrap();
    let taken =
        Server::start(Config { listen: first.addr(), ..Config::default() }).err().unwrap().to_string();
    assert!(taken.contains(&first.addr().to_string()), "{taken}");
    let files = Tls::Files { cert: "/nonexistent/cert.pem".into(), key: "/nonexistent/key.pem".into() };
    let missing = Server::start(Config { tls: Some(files), ..Config::default() }).err().unwrap().to_string();
    assert!(missing.contains("/nonexistent/cert.pem") && !missing.contains('\n'), "{missing}");
    let name = first.create_bucket("../etc").unwrap_err().to_string();
    assert!(name.starts_with("bucket name `../etc` is not usable"), "{name}");
}

#[test]
fn certificates_can_be_brought_along() {
    // A certificate and its key, passed to the server in files.
    let folder = tempfile::tempdir().unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate =
        rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
    let (cert_file, key_file) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    std::fs::write(&cert_file, certificate.pem()).unwrap();
    std::fs::write(&key_file, key.serialize_pem()).unwrap();
    let files = Tls::Files { cert: cert_file, key: key_file };
    let server = Server::start(Config { tls: Some(files), ..Config::default() }).unwrap();
    assert_eq!(server.ca_pem(), None);
}

#[test]
fn a_stopped_server_gives_its_address_back() {
    let first = Server::start(Config::default()).unwrap();
    let addr = first.addr();
    first.shutdown();
    assert!(Server::start(Config { listen: addr, ..Config::default() }).is_ok());
}

#[test]
fn a_request_that_does_not_tell_its_length_is_answered_411_in_its_dialect() {
    let rig = Rig::new();
    let ask = |line: &str, headers: &str| {
        let mut stream = TcpStream::connect(rig.server.addr()).unwrap();
        let head = format!("{line} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{headers}\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let s3 = ask("POST /demo/k?uploads", "");
    assert!(s3.starts_with("HTTP/1.1 411") && s3.contains("<Code>MissingContentLength</Code>"), "{s3}");
    let gcs = ask("POST /upload/storage/v1/b/demo/o?uploadType=resumable&name=k", "");
    assert!(gcs.starts_with("HTTP/1.1 411") && gcs.contains("\"code\":411"), "{gcs}");
    assert!(ask("PUT /demo/k", "authorization: Bearer t\r\n").starts_with("HTTP/1.1 411"));
    assert!(ask("POST /demo/k?uploads", "content-length: 0\r\n").starts_with("HTTP/1.1 200"));
}

#[test]
fn closes_after_an_empty_body_whose_client_expects_100_continue() {
    let rig = Rig::new();
    let mut stream = TcpStream::connect(rig.server.addr()).unwrap();
    stream.set_read_timeout(Some(std::time::Duration::from_secs(10))).unwrap();
    let mut put = |headers: &str, body: &str| {
        let head =
            format!("PUT /demo/k HTTP/1.1\r\nhost: x\r\nauthorization: Bearer t\r\n{headers}\r\n{body}");
        stream.write_all(head.as_bytes()).unwrap();
        let (mut answer, mut bytes) = (String::new(), [0; 4096]);
        while !answer.contains("HTTP/1.1 200") || !answer.ends_with("\r\n\r\n") {
            let read = stream.read(&mut bytes).unwrap();
            assert_ne!(read, 0, "{answer}");
            answer.push_str(std::str::from_utf8(&bytes[..read]).unwrap());
        }
        answer
    };
    assert!(!put("content-length: 0\r\n", "").contains("connection: close"));
    let continued = put("content-length: 1\r\nexpect: 100-continue\r\n", "x");
    assert!(continued.starts_with("HTTP/1.1 100") && !continued.contains("connection: close"), "{continued}");
    let closed = put("content-length: 0\r\nexpect: 100-continue\r\n", "");
    assert!(closed.starts_with("HTTP/1.1 200") && closed.contains("connection: close"), "{closed}");
}
