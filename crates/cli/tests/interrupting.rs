//! Ctrl-C in the middle of a transfer, and sources that change under it.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};

use laneway_server::{Config, Faults};
use laneway_testkit::{Endpoint, Running, Wire, random_bytes};

const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");

/// A server whose transfers of keys with `big` in them stop moving after a while.
fn stalling(verb: &str) -> Endpoint {
    let faults = Faults::parse([format!("{verb} key=*big* stall@256KiB").as_str()]).expect("a rule");
    Endpoint::start_with(Wire::Plain, Config { faults, ..Config::default() })
}

/// Reads the first record, so that the transfer is known to be under way, and leaves the rest to a thread.
fn first_record(running: &mut Running) -> (serde_json::Value, std::thread::JoinHandle<String>) {
    let mut stdout = BufReader::new(running.stdout());
    let mut line = String::new();
    stdout.read_line(&mut line).expect("a line");
    let rest = std::thread::spawn(move || {
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).expect("read");
        rest
    });
    (serde_json::from_str(&line).expect("a record"), rest)
}

#[test]
fn an_interrupted_download_leaves_the_old_file_and_says_how_to_go_on() {
    let endpoint = stalling("get");
    let laneway = endpoint.program(LANEWAY);
    endpoint.server().store().put("bucket", "p/a-small", b"x").expect("stored");
    endpoint.server().store().put("bucket", "p/big", &random_bytes(1, 3 << 20)).expect("stored");
    fs::create_dir_all(endpoint.folder().join("in")).expect("made");
    fs::write(endpoint.folder().join("in/big"), "old").expect("written");

    let arguments = ["cp", "--json", "s3://bucket/p/a-small", "s3://bucket/p/big", "in/"];
    let mut running = laneway.start(arguments);
    let (first, rest) = first_record(&mut running);
    assert_eq!(first["source"], "s3://bucket/p/a-small");
    running.signal("-INT");
    let run = running.end().exits(130);
    let rest = rest.join().expect("the reader ends");
    assert!(rest.contains(r#""interrupted":true"#), "{rest}");
    assert!(run.stderr.contains("Run the same command with -n to continue"), "{}", run.stderr);
    assert_eq!(fs::read(endpoint.folder().join("in/big")).expect("read"), b"old");
    assert_eq!(fs::read(endpoint.folder().join("in/a-small")).expect("read"), b"x");
    assert_eq!(
        fs::read_dir(endpoint.folder().join("in")).expect("read").count(),
        2,
        "a temporary file stays"
    );
}

#[test]
fn an_interrupted_upload_leaves_no_object_and_no_parts() {
    for scheme in ["gs", "s3"] {
        let endpoint = stalling("any");
        let laneway = endpoint.program(LANEWAY);
        fs::write(endpoint.folder().join("a-small"), "x").expect("written");
        fs::write(endpoint.folder().join("big"), random_bytes(1, 40 << 20)).expect("written");
        let arguments = ["cp", "--json", "a-small", "big", &format!("{scheme}://bucket/p/")];
        let mut running = laneway.start(arguments);
        let (first, rest) = first_record(&mut running);
        assert_eq!(first["source"], "a-small");
        running.signal("-INT");
        running.end().exits(130);
        rest.join().expect("the reader ends");
        assert_eq!(endpoint.server().store().keys("bucket"), ["p/a-small"]);
        let counters = endpoint.server().counters();
        assert_eq!((counters.multipart_open, counters.resumable_open), (0, 0), "over {scheme}");
    }
}

#[test]
fn a_file_that_shrinks_while_it_is_sent_is_no_object() {
    for scheme in ["gs", "s3"] {
        let endpoint = Endpoint::start_with(
            Wire::Plain,
            // Slow enough that most of the large file is still to be read when the small one has arrived.
            Config { bandwidth: Some(8_000_000), ..Config::default() },
        );
        let laneway = endpoint.program(LANEWAY);
        fs::write(endpoint.folder().join("a-small"), "x").expect("written");
        let big = endpoint.folder().join("big");
        fs::write(&big, random_bytes(1, 32 << 20)).expect("written");
        let arguments = ["cp", "--json", "a-small", "big", &format!("{scheme}://bucket/p/")];
        let mut running = laneway.start(arguments);
        let (_, rest) = first_record(&mut running);
        fs::File::options().write(true).open(&big).and_then(|file| file.set_len(10)).expect("truncated");
        let run = running.end().exits(1);
        rest.join().expect("the reader ends");
        assert!(run.stderr.contains("big"), "{}", run.stderr);
        assert_eq!(endpoint.server().store().keys("bucket"), ["p/a-small"], "over {scheme}");
    }
}

#[test]
fn a_file_that_vanishes_from_a_tree_fails_alone() {
    let endpoint = Endpoint::start(Wire::Plain);
    let laneway = endpoint.program(LANEWAY);
    fs::create_dir(endpoint.folder().join("d")).expect("made");
    fs::write(endpoint.folder().join("d/there"), "x").expect("written");
    // What a walk sees of a file that is gone when it is opened.
    std::os::unix::fs::symlink("gone", endpoint.folder().join("d/vanished")).expect("linked");
    laneway.run(["cp", "-r", "d", "s3://bucket/"]).exits(1).complains(&["d/vanished"]);
    assert_eq!(endpoint.server().store().keys("bucket"), ["d/there"]);
}
