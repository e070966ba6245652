//! `laneway serve` under attack by malicious clients. The server's memory stays small, and the server goes on serving other clients.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use laneway_testkit::frames::{
    ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PING, PREFACE, RST_STREAM, SETTINGS, frame,
    header, indexed_header, remembered_header, request, settings, window_update,
};
use laneway_testkit::{Peer, Program, Running, connect, connect_tls};

const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");

/// Upper bound on the server's memory.
const MEMORY_MAX: u64 = 128 << 20;

/// The time an attacker waits for the server to accept more bytes.
const STUCK: Duration = Duration::from_secs(2);

/// Upper bounds on the bytes and the duration of one attack.
const SENT_MAX: usize = 256 << 20;
const LASTS: Duration = Duration::from_secs(3);

/// A server with one small object and one of 8 MiB in a bucket.
struct Store {
    running: Running,
    address: SocketAddr,
    ca_pem: Option<String>,
    _home: tempfile::TempDir,
}

impl Store {
    fn start(options: &[&str]) -> Self {
        let home = tempfile::tempdir().expect("a folder");
        let laneway = Program::new(LANEWAY, home.path()).in_folder(home.path());
        let serve = ["serve", "--listen", "127.0.0.1:0", "--quiet", "--bucket", "bkt"];
        let mut running = laneway.start(serve.iter().chain(options));
        let mut line = String::new();
        BufReader::new(running.stdout()).read_line(&mut line).expect("a line");
        let reach = line.trim_end().strip_prefix("laneway serve: listening on ").expect("the first line");
        let (url, ca) = reach.split_once(" (CA: ").unwrap_or((reach, ""));
        let address = url.rsplit('/').next().and_then(|address| address.parse().ok()).expect("an address");
        let ca_pem = ca.strip_suffix(')').map(|path| std::fs::read_to_string(path).expect("the CA"));
        let store = Self { running, address, ca_pem, _home: home };
        store.ask("PUT /bkt/small HTTP/1.1", b"good");
        store.ask("PUT /bkt/large HTTP/1.1", &vec![7; 8 << 20]);
        store
    }

    fn connect(&self, protocol: &[u8]) -> Box<dyn Peer> {
        match &self.ca_pem {
            Some(ca) => Box::new(connect_tls(self.address, ca, protocol).expect("a connection")),
            None => Box::new(connect(self.address).expect("a connection")),
        }
    }

    /// Opens a connection for an attack.
    fn attack(&self, protocol: &[u8]) -> Box<dyn Peer> {
        let peer = self.connect(protocol);
        peer.socket().set_write_timeout(Some(STUCK)).expect("a timeout");
        peer
    }

    /// Opens an HTTP/2 connection for an attack and completes its preface.
    fn attack_h2(&self, own: &[(u16, u32)]) -> Box<dyn Peer> {
        let mut peer = self.attack(b"h2");
        assert!(peer.send(&[PREFACE, &settings(own), &frame(SETTINGS, ACK, 0, &[])].concat()));
        peer
    }

    /// Sends another client's request on its own connection.
    fn ask(&self, line: &str, body: &[u8]) -> Vec<u8> {
        let mut peer = self.connect(b"http/1.1");
        let head =
            format!("{line}\r\nHost: h\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
        assert!(peer.send(&[head.as_bytes(), body].concat()), "{line}");
        let mut answer = Vec::new();
        // Some servers close TLS without a close_notify.
        let _ = peer.read_to_end(&mut answer);
        assert!(answer.starts_with(b"HTTP/1.1 200 "), "{line}: {}", String::from_utf8_lossy(&answer));
        answer
    }

    /// Panics unless the server still serves other clients and its memory has stayed small.
    #[track_caller]
    fn holds(&self) {
        assert!(self.ask("GET /bkt/small HTTP/1.1", b"").ends_with(b"good"));
        let peak = self.running.memory_peak().expect("it is there");
        assert!(peak < MEMORY_MAX, "{} MiB", peak >> 20);
    }
}

/// Repeats an attack until it fails or its time is over.
fn again_and_again(mut attack: impl FnMut() -> bool) {
    let began = Instant::now();
    while began.elapsed() < LASTS && attack() {}
}

fn get(stream: u32, path: &str) -> Vec<u8> {
    frame(HEADERS, END_STREAM | END_HEADERS, stream, &request("GET", path))
}

#[test]
fn streams_that_are_begun_and_reset_at_once() {
    let store = Store::start(&["--tls"]);
    for _ in 0..2 {
        let (mut peer, mut stream) = (store.attack_h2(&[]), 1);
        again_and_again(|| {
            let mut batch = Vec::new();
            for _ in 0..200 {
                batch.extend(get(stream, "/bkt/large"));
                batch.extend(frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes()));
                stream += 2;
            }
            peer.send(&batch) && peer.drain()
        });
        store.holds();
    }
}

#[test]
fn a_head_that_is_continued_without_end() {
    let store = Store::start(&["--tls"]);
    let mut peer = store.attack_h2(&[]);
    assert!(peer.send(&frame(HEADERS, END_STREAM, 1, &request("GET", "/bkt/small"))));
    let more = header("x-more", &"x".repeat(8000)).repeat(2);
    let sent = peer.flood(&frame(CONTINUATION, 0, 1, &more), SENT_MAX);
    assert!(sent < SENT_MAX, "the server accepts {sent} bytes of one header block");
    store.holds();
    // Send empty frames, which a limit on bytes doesn't stop.
    let mut peer = store.attack_h2(&[]);
    assert!(peer.send(&frame(HEADERS, END_STREAM, 1, &request("GET", "/bkt/small"))));
    let sent = peer.flood(&frame(CONTINUATION, 0, 1, &[]), SENT_MAX);
    assert!(sent < SENT_MAX, "the server accepts {sent} bytes of empty frames");
    store.holds();
}

#[test]
fn heads_that_are_small_and_become_large() {
    let store = Store::start(&["--tls"]);
    for _ in 0..4 {
        let mut peer = store.attack_h2(&[]);
        let remembered =
            [request("GET", "/bkt/small"), remembered_header("x-bomb", &"b".repeat(4000))].concat();
        assert!(peer.send(&frame(HEADERS, END_STREAM | END_HEADERS, 1, &remembered)));
        let bomb = [request("GET", "/bkt/small"), vec![indexed_header(62); 16_000]].concat();
        let mut stream = 3;
        again_and_again(|| {
            stream += 2;
            stream < 200
                && peer.send(&frame(HEADERS, END_STREAM | END_HEADERS, stream, &bomb))
                && peer.drain()
        });
    }
    store.holds();
}

#[test]
fn frames_that_want_an_answer_and_nobody_who_reads_it() {
    let store = Store::start(&["--tls"]);
    let floods = [
        frame(PING, 0, 0, &[1; 8]),
        settings(&[(4, 65_535)]),
        settings(&[]),
        window_update(0, 1),
        frame(RST_STREAM, 0, 1, &8_u32.to_be_bytes()),
        frame(DATA, 0, 1, &[]),
    ];
    let mut attackers = Vec::new();
    for flood in floods {
        let mut peer = store.attack_h2(&[]);
        peer.socket().set_write_timeout(Some(Duration::from_millis(300))).expect("a timeout");
        assert!(peer.send(&frame(HEADERS, END_HEADERS, 1, &request("PUT", "/bkt/k"))));
        let mut sent = 0;
        again_and_again(|| {
            let more = peer.flood(&flood, 1 << 20);
            sent += more;
            more >= 1 << 20 && sent < SENT_MAX / 4
        });
        attackers.push(peer);
        store.holds();
    }
}

#[test]
fn answers_that_nobody_reads() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().display().to_string();
    for options in [&["--tls"][..], &["--tls", "--root", &root]] {
        let store = Store::start(options);
        let mut attackers = Vec::new();
        for _ in 0..4 {
            // The client announces the largest possible window, and reads nothing.
            let mut peer = store.attack_h2(&[(4, 0x7fff_ffff)]);
            assert!(peer.send(&window_update(0, 0x7fff_0000)));
            let asked: Vec<u8> = (0..100).flat_map(|n| get(2 * n + 1, "/bkt/large")).collect();
            assert!(peer.send(&asked));
            attackers.push(peer);
        }
        for _ in 0..20 {
            store.holds();
        }
    }
}

#[test]
fn heads_that_come_slowly_and_connections_that_nobody_uses() {
    for options in [vec![], vec!["--tls"]] {
        let store = Store::start(&options);
        let beginning = format!("GET /bkt/small HTTP/1.1\r\nHost: h\r\nX-Long: {}", "x".repeat(100_000));
        let mut attackers: Vec<_> = (0..200).map(|_| store.attack(b"http/1.1")).collect();
        store.holds();
        for peer in &mut attackers {
            peer.send(beginning.as_bytes());
        }
        for _ in 0..3 {
            for peer in &mut attackers {
                peer.send(b"y");
            }
            store.holds();
        }
        let headers = "a: b\r\n".repeat(100_000);
        for peer in attackers.iter_mut().take(20) {
            peer.send(headers.as_bytes());
        }
        store.holds();
    }
}

/// The attacker sends as much of each document as the server reads, but never its end.
#[test]
fn documents_that_are_large_and_never_end() {
    let store = Store::start(&["--tls"]);
    let batch = "multipart/mixed; boundary=x";
    let related = "multipart/related; boundary=x";
    let (batches, uploads) = ("/batch/storage/v1", "/upload/storage/v1/b/bkt/o?uploadType=multipart&name=k");
    let targets = [(batches, batch), ("/bkt?delete", "application/xml"), (uploads, related)];
    let mut attackers = Vec::new();
    for (path, content_type) in targets {
        let mut peer = store.attack_h2(&[]);
        let head = [request("POST", path), header("content-type", content_type)].concat();
        let chunk = "--x\r\n\r\n<a>bcdefg</a>".repeat(800);
        let mut batch: Vec<u8> = Vec::new();
        for stream in 0..100 {
            batch.extend(frame(HEADERS, END_HEADERS, 2 * stream + 1, &head));
        }
        let mut is_open = peer.send(&batch);
        // Send 64 MiB on each connection, if the server accepts them.
        for _ in 0..50 {
            let chunks = (0..100).flat_map(|stream| frame(DATA, 0, 2 * stream + 1, chunk.as_bytes()));
            is_open = is_open && peer.send(&chunks.collect::<Vec<u8>>()) && peer.drain();
        }
        attackers.push(peer);
        store.holds();
    }
    // A single document without an end.
    let mut peer = store.attack(b"http/1.1");
    let head = "POST /bkt?delete HTTP/1.1\r\nHost: h\r\nx-amz-decoded-content-length: 99999999999\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert!(peer.send(format!("{head}10000\r\n").as_bytes()));
    let sent = peer.flood(&[b"<a>".repeat(21_845), b" \r\n10000\r\n".to_vec()].concat(), SENT_MAX);
    assert!(sent < SENT_MAX, "the server accepts {sent} bytes of one document");
    store.holds();
}

#[test]
fn bodies_that_stall_and_uploads_that_nobody_completes() {
    let store = Store::start(&[]);
    let mut attackers: Vec<_> = (0..200).map(|_| store.attack(b"http/1.1")).collect();
    for (n, peer) in attackers.iter_mut().enumerate() {
        let head = format!("PUT /bkt/k{n} HTTP/1.1\r\nHost: h\r\nContent-Length: 10000000\r\n\r\n");
        assert!(peer.send(&[head.as_bytes(), &[7; 50_000]].concat()));
    }
    store.holds();
    drop(attackers);
    let begin = format!(
        "POST /bkt/{}?uploads HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\nx-amz-meta-a: {}\r\n\r\n",
        "k".repeat(1000),
        "m".repeat(1500)
    );
    let mut peer = store.attack(b"http/1.1");
    again_and_again(|| peer.send(begin.repeat(20).as_bytes()) && peer.drain());
    store.holds();
}

#[test]
fn names_that_lead_out_of_the_root() {
    let folder = tempfile::tempdir().expect("a folder");
    let (outside, root) = (folder.path().join("outside"), folder.path().join("root"));
    std::fs::create_dir(&outside).expect("a folder");
    std::fs::write(outside.join("secret"), "theirs").expect("a file");
    let store = Store::start(&["--root", &root.display().to_string()]);
    let climbing = [
        "/bkt/../../outside/secret",
        "/bkt/..%2F..%2Foutside%2Fsecret",
        "/bkt/%2e%2e/%2e%2e/outside/secret",
        "/../outside/secret",
        "/%2e%2e/outside/secret",
        "/..%2Foutside/secret",
        "/bkt//etc/passwd",
        "/bkt/%00/../../../outside/secret",
        "/storage/v1/b/..%2F..%2Foutside/o/secret?alt=media",
        "/storage/v1/b/bkt/o/..%2F..%2F..%2Foutside%2Fsecret?alt=media",
        "/bkt/..\\..\\outside\\secret",
    ];
    for path in climbing {
        for method in ["GET", "PUT", "DELETE", "POST"] {
            let mut peer = store.connect(b"http/1.1");
            let head = format!(
                "{method} {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 4\r\n\r\nevil"
            );
            let mut answer = Vec::new();
            assert!(peer.send(head.as_bytes()));
            let _ = peer.read_to_end(&mut answer);
            let text = String::from_utf8_lossy(&answer);
            assert!(!text.contains("theirs") && !text.contains("root:"), "{method} {path}: {text}");
        }
    }
    store.holds();
    assert_eq!(names(folder.path()), ["outside", "root"]);
    assert_eq!(names(&outside), ["secret"]);
    assert_eq!(std::fs::read_to_string(outside.join("secret")).expect("it is there"), "theirs");
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut names: Vec<_> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
