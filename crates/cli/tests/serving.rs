//! `serve` and `demo` by the real binary.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;

use laneway_testkit::{Program, Run, Running};

const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");

/// A `laneway serve` that the test stops at its end.
struct Served {
    running: Running,
    url: String,
    ca: Option<String>,
}

impl Served {
    fn start(laneway: &Program, options: &[&str]) -> Self {
        let mut running = laneway.start(["serve", "--listen", "127.0.0.1:0"].iter().chain(options));
        let mut line = String::new();
        BufReader::new(running.stdout()).read_line(&mut line).expect("a line");
        let address = line.trim_end().strip_prefix("laneway serve: listening on ").expect("the first line");
        let (url, ca) = match address.split_once(" (CA: ") {
            Some((url, ca)) => (url.to_owned(), ca.strip_suffix(')').map(str::to_owned)),
            None => (address.to_owned(), None),
        };
        Self { running, url, ca }
    }

    fn end(self, signal: &str) -> Run {
        self.running.signal(signal);
        self.running.end()
    }
}

#[test]
fn a_served_store_keeps_its_objects_on_disk() {
    let home = tempfile::tempdir().expect("a folder");
    let root = home.path().join("root");
    let laneway = Program::new(LANEWAY, home.path()).in_folder(home.path());
    let root = root.display().to_string();
    std::fs::write(home.path().join("f"), "kept").expect("written");

    let served = Served::start(&laneway, &["--root", &root, "--bucket", "bkt"]);
    assert!(served.url.starts_with("http://127.0.0.1:"), "{}", served.url);
    laneway.run(["cp", "--anonymous", "--gcs-endpoint", &served.url, "f", "gs://bkt/f"]).succeeds();
    let advice = served.end("-TERM").exits(0).stderr;
    assert!(advice.contains("demos and tests"), "{advice}");

    let served = Served::start(&laneway, &["--root", &root, "--stats"]);
    let cat = laneway.run(["cat", "--anonymous", "--s3-endpoint", &served.url, "s3://bkt/f"]).succeeds();
    assert_eq!(cat.stdout, b"kept");
    let asked = served.end("-INT").exits(0).stderr;
    assert!(asked.contains("connections 1, 1 at once; requests 1: get 1; bytes in "), "{asked}");
}

#[test]
fn a_killed_store_keeps_what_it_acknowledged_and_no_halves() {
    let home = tempfile::tempdir().expect("a folder");
    let laneway = Program::new(LANEWAY, home.path()).in_folder(home.path());
    let contents = |number: usize| format!("{number:08}").repeat(100_000 + number);
    // For each object, the number of its last acknowledged content, and the number of the last content that was sent.
    let mut stored = [(0, 0); 3];
    let mut number = 0;
    for round in 0..=4 {
        let served = Served::start(&laneway, &["--root", "root", "--bucket", "bkt"]);
        let s3 = ["--anonymous", "--retry-for", "1s", "--s3-endpoint", &served.url];
        for (key, (acknowledged, last)) in stored.iter().enumerate().filter(|_| round > 0) {
            let run = laneway.run([&["cat"], &s3[..], &[&format!("s3://bkt/{key}")]].concat());
            let found =
                [acknowledged, last].into_iter().any(|number| run.stdout == contents(*number).as_bytes());
            assert!(found, "round {round}, object {key}: {} bytes", run.stdout.len());
        }
        if round == 4 {
            break;
        }
        for _ in 0..stored.len() {
            let key = number % stored.len();
            std::fs::write(home.path().join("f"), contents(number)).expect("written");
            laneway.run([&["cp"], &s3[..], &["f", &format!("s3://bkt/{key}")]].concat()).succeeds();
            stored[key] = (number, number);
            number += 1;
        }
        // Kill the store while it reads an object: at the start, in the middle, before the last byte and after it.
        let (key, bytes) = (number % stored.len(), contents(number));
        let mut put = begin_put(&served.url, key, bytes.len());
        let sent = [0, bytes.len() / 2, bytes.len() - 1, bytes.len()][round];
        put.write_all(&bytes.as_bytes()[..sent]).expect("sent");
        served.end("-KILL");
        // Without an acknowledgement, the object may be the old one or the new one.
        stored[key].1 = number;
        number += 1;
    }
}

/// Begins to put an object into the bucket `bkt`. Returns the connection once the store waits for the object's bytes.
fn begin_put(url: &str, key: usize, len: usize) -> TcpStream {
    let address = url.strip_prefix("http://").expect("no TLS");
    let mut connection = TcpStream::connect(address).expect("a connection");
    let head = format!(
        "PUT /bkt/{key} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {len}\r\nExpect: 100-continue\r\n\r\n"
    );
    connection.write_all(head.as_bytes()).expect("sent");
    let mut line = String::new();
    BufReader::new(&connection).read_line(&mut line).expect("a line");
    assert!(line.starts_with("HTTP/1.1 100 "), "{line}");
    connection
}

#[test]
fn a_served_store_begins_with_the_files_of_its_seed() {
    let home = tempfile::tempdir().expect("a folder");
    let laneway = Program::new(LANEWAY, home.path()).in_folder(home.path());
    std::fs::create_dir_all(home.path().join("seed/fixtures/d")).expect("made");
    std::fs::write(home.path().join("seed/fixtures/d/f"), "sown").expect("written");

    let served = Served::start(&laneway, &["--seed", "seed"]);
    let cat = laneway.run(["cat", "--anonymous", "--s3-endpoint", &served.url, "s3://fixtures/d/f"]);
    assert_eq!(cat.succeeds().stdout, b"sown");
    std::fs::write(home.path().join("seed/stray"), "").expect("written");
    laneway.run(["serve", "--listen", "127.0.0.1:0", "--seed", "seed"]).exits(1).complains(&["stray"]);
    laneway.run(["serve", "--listen", "127.0.0.1:0", "--seed", "none"]).exits(1).complains(&["none"]);
}

#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn memory_goes_back_to_the_system_after_deletes() {
    const MIB: u64 = 1 << 20;
    let home = tempfile::tempdir().expect("a folder");
    let laneway = Program::new(LANEWAY, home.path()).in_folder(home.path());
    std::fs::create_dir(home.path().join("many")).expect("made");
    // Small objects come from the allocator's heap. The allocator returns the memory of large objects by itself.
    for number in 0..1600 {
        std::fs::write(home.path().join(format!("many/{number}")), vec![7; 100 << 10]).expect("written");
    }
    let served = Served::start(&laneway, &["--bucket", "bkt"]);
    let memory = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", served.running.id())).expect("read");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
    };
    let s3 = ["--anonymous", "--s3-endpoint", &served.url];
    let before = memory();
    laneway.run([&["cp", "-r"], &s3[..], &["many", "s3://bkt/"]].concat()).succeeds();
    let full = memory();
    assert!(full > before + 150 * MIB, "{before} {full}");
    laneway.run([&["rm", "-r"], &s3[..], &["s3://bkt/many"]].concat()).succeeds();
    let after = memory();
    assert!(after < before + 50 * MIB, "{before} {full} {after}");
}

#[test]
fn tls_is_served_with_a_ca_that_can_be_trusted() {
    let home = tempfile::tempdir().expect("a folder");
    let laneway = Program::new(LANEWAY, home.path()).in_folder(home.path());
    for (options, h2) in [(&["--tls"][..], 1), (&["--tls", "--h1-only"][..], 0)] {
        let served = Served::start(&laneway, &[options, &["--bucket", "bkt"]].concat());
        let ca = served.ca.clone().expect("a CA file");
        let run = laneway
            .run([
                "ls",
                "--anonymous",
                "--json",
                "--stats",
                "--ca-cert",
                &ca,
                "--gcs-endpoint",
                &served.url,
                "gs://bkt",
            ])
            .succeeds();
        assert_eq!(run.record("stats")["connections_h2"], h2);
        served.end("-INT").exits(0);
        assert!(!std::path::Path::new(&ca).exists(), "the CA file is left behind");
    }
    let out = home.path().join("own-ca.pem").display().to_string();
    let served = Served::start(&laneway, &["--tls", "--ca-out", &out]);
    assert_eq!(served.ca.as_deref(), Some(out.as_str()));
}

#[test]
fn a_quiet_server_tells_only_a_port_that_the_system_chose() {
    let home = tempfile::tempdir().expect("a folder");
    let laneway = Program::new(LANEWAY, home.path());
    let served = Served::start(&laneway, &["-q", "--accept-unenforced"]);
    let port = served.url.clone();
    assert_eq!(served.end("-TERM").exits(0).stderr, "");

    let address = port.trim_start_matches("http://");
    let running = laneway.start(["serve", "-q", "--listen", address]);
    while std::net::TcpStream::connect(address).is_err() {
        assert!(running.memory_peak().is_some(), "it ended");
        std::thread::yield_now();
    }
    running.signal("-TERM");
    let run = running.end().exits(0);
    assert_eq!((run.text(), run.stderr), (String::new(), String::new()));
}

#[test]
fn a_store_that_keeps_what_it_does_not_enforce_says_so() {
    let home = tempfile::tempdir().expect("a folder");
    let laneway = Program::new(LANEWAY, home.path());
    let said = Served::start(&laneway, &["--accept-unenforced"]).end("-TERM").exits(0).stderr;
    assert!(said.contains("but not enforced"), "{said}");
}

#[test]
fn a_served_store_fails_on_purpose() {
    let home = tempfile::tempdir().expect("a folder");
    let laneway = Program::new(LANEWAY, home.path()).in_folder(home.path());
    let served = Served::start(&laneway, &["--bucket", "bkt", "--fault", "list status 403"]);
    laneway
        .run(["ls", "--anonymous", "--gcs-endpoint", &served.url, "gs://bkt"])
        .exits(1)
        .complains(&["gs://bkt", "permission denied"]);
}

#[test]
fn a_served_store_has_the_habits_of_the_service_that_is_named() {
    let home = tempfile::tempdir().expect("a folder");
    let laneway = Program::new(LANEWAY, home.path()).in_folder(home.path());
    std::fs::write(home.path().join("f"), "text").expect("written");
    for (like, verified) in [("s3", "crc32c"), ("gcs-interop", "md5")] {
        let served = Served::start(&laneway, &["--bucket", "bkt", "--like", like]);
        let s3 = ["--anonymous", "--s3-endpoint", &served.url];
        laneway.run([&["cp"], &s3[..], &["f", "s3://bkt/f"]].concat()).succeeds();
        let down = laneway.run([&["cp", "--json"], &s3[..], &["s3://bkt/f", "g"]].concat()).succeeds();
        assert_eq!(down.record("item")["verified"], verified, "{like}");
    }
    let refused = laneway.run(["serve", "--like", "azure"]).exits(2).stderr;
    assert!(refused.contains("azure") && refused.contains("gcs-interop"), "{refused}");
}

#[test]
fn nonsense_is_not_served() {
    let home = tempfile::tempdir().expect("a folder");
    let laneway = Program::new(LANEWAY, home.path());
    for options in [
        &["--fault", "get explode"][..],
        &["--rtt", "soon"],
        &["--bandwidth", "wide"],
        &["--queue", "1MiB"],
        &["--loss", "some"],
        &["--loss", "51%"],
        &["--listen", "nowhere"],
        &["--cert", "c.pem"],
    ] {
        laneway.run(["serve"].iter().chain(options)).exits(2);
    }
    for name in ["../b", "b", "Capital"] {
        let run = laneway.run(["serve", "--listen", "127.0.0.1:0", "--bucket", name]).exits(2);
        assert!(run.stderr.contains("--bucket") && run.stderr.contains(name), "{}", run.stderr);
    }
    let served = Served::start(&laneway, &[]);
    let taken = served.url.trim_start_matches("http://").to_owned();
    laneway.run(["serve", "--listen", &taken]).exits(1).complains(&[&taken]);
}

#[test]
fn the_demo_shows_its_table_and_cleans_up() {
    let home = tempfile::tempdir().expect("a folder");
    let temporary = home.path().join("tmp");
    std::fs::create_dir(&temporary).expect("made");
    let laneway = Program::new(LANEWAY, home.path()).with("TMPDIR", &temporary);
    let text = laneway.run(["demo", "--size", "20MiB", "--no-report"]).succeeds().text();
    for part in [
        "link of 20 ms and 1 Gbit/s",
        "1. 100 small downloads during 4 large ones of 40 MiB each",
        "2. 50 uploads of 4.7 KB",
        "3. One download of 20.0 MiB",
    ] {
        assert!(text.contains(part), "{part:?} is missing: {text}");
    }
    assert_eq!(std::fs::read_dir(&temporary).expect("read").count(), 0);
}
