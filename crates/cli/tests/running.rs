//! `run` with many commands, Ctrl-C in the middle of a transfer, and sources that change under it.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};

use laneway_server::{Config, Faults};
use laneway_testkit::{Endpoint, Running, Wire, random_bytes};

const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");

#[test]
fn many_commands_go_side_by_side_over_one_engine() {
    let endpoint = Endpoint::start(Wire::Plain);
    let laneway = endpoint.program(LANEWAY);
    let store = endpoint.server().store();
    for n in 0..300 {
        store.put("bucket", &format!("from/{n}"), b"x").expect("stored");
        store.put("bucket", &format!("old/{n}"), b"x").expect("stored");
    }
    let mut lines = String::from("# a comment\n\n");
    for n in 0..300 {
        lines += &format!(
            "cp s3://bucket/from/{n} down/{n}\n  rm gs://bucket/old/{n}\ncp 'a b' \"s3://bucket/up {n}\"\n"
        );
    }
    lines += "ls s3://bucket/from/7";
    let laneway = laneway.in_folder(endpoint.folder());
    std::fs::write(endpoint.folder().join("a b"), "bytes").expect("written");
    let run = laneway.run_with_input(["run", "--stats", "-"], lines.as_bytes()).succeeds();
    assert!(run.stderr.starts_with("901 commands done\n"), "{}", run.stderr);
    assert_eq!(run.text(), "s3://bucket/from/7\n");
    let keys = store.keys("bucket");
    assert_eq!(keys.iter().filter(|key| key.starts_with("up ")).count(), 300);
    assert_eq!(keys.iter().filter(|key| key.starts_with("old/")).count(), 0);
    assert_eq!(std::fs::read_dir(endpoint.folder().join("down")).expect("a folder").count(), 300);
    assert!(endpoint.server().counters().connections < 200, "{:?}", endpoint.server().counters());
}

#[test]
fn a_line_that_makes_no_sense_is_named_and_the_rest_is_done() {
    let endpoint = Endpoint::start(Wire::Plain);
    endpoint.server().store().put("bucket", "k", b"x").expect("stored");
    let laneway = endpoint.program(LANEWAY);
    let lines = "copy a b\nrb --force s3://bucket\nrm s3://bucket/none\nrm 's3://bucket\nmb s3://lake-2\n";
    let run = laneway.run_with_input(["run", "-"], lines.as_bytes()).exits(1);
    for part in
        ["-:1: ", "-:2: ", "add --yes", "s3://bucket/none", "-:4: ", "not closed", "1 command done, 4 failed"]
    {
        assert!(run.stderr.contains(part), "{part}: {}", run.stderr);
    }
    let only = laneway.run_with_input(["run", "-"], b"nonsense\n").exits(2);
    only.complains(&["-:1: "]);
    laneway.run(["run", "/nowhere"]).exits(2).complains(&["/nowhere"]);
}

#[test]
fn records_of_all_commands_stand_line_by_line() {
    let endpoint = Endpoint::start(Wire::Plain);
    for n in 0..50 {
        endpoint.server().store().put("bucket", &n.to_string(), b"x").expect("stored");
    }
    let lines: String = (0..50).map(|n| format!("rm s3://bucket/{n}\n")).collect();
    let run = endpoint.program(LANEWAY).run_with_input(["run", "--json", "-"], lines.as_bytes()).succeeds();
    let records = run.json();
    assert_eq!(records.iter().filter(|record| record["kind"] == "item").count(), 50);
    let last = run.record("commands");
    assert_eq!((records.len(), &last["done"], &last["failed"]), (51, &50.into(), &0.into()));
}

#[test]
fn lines_that_are_done_are_left_out_when_the_same_run_begins_again() {
    let endpoint = Endpoint::start(Wire::Plain);
    let laneway = endpoint.program(LANEWAY).in_folder(endpoint.folder());
    let store = endpoint.server().store();
    for key in ["a", "b"] {
        store.put("bucket", key, b"x").expect("stored");
    }
    let lines = "# moves\nmv s3://bucket/a s3://bucket/moved/\nrm gs://bucket/b\nrm s3://bucket/none\nmb s3://lake-2\nnonsense\n";
    std::fs::write(endpoint.folder().join("lines"), lines).expect("written");
    let run = || laneway.run(["run", "--manifest", "done", "lines"]).exits(1);
    assert!(run().stderr.contains("3 commands done, 2 failed"));
    store.put("bucket", "none", b"x").expect("stored");
    // The move would fail if it ran again, because its source is gone.
    let again = run();
    assert!(again.stderr.contains("1 command done, 3 already done, 1 failed"), "{}", again.stderr);
    let record = laneway.run(["run", "--json", "--manifest", "done", "lines"]).exits(1).record("commands");
    assert_eq!((&record["done"], &record["skipped"], &record["failed"]), (&0.into(), &4.into(), &1.into()));
    // The manifest records only the removal of the old object, so the command removes the new object too.
    store.put("bucket", "none", b"x").expect("stored");
    std::fs::write(endpoint.folder().join("lines"), "rm s3://bucket/none\nnonsense\n").expect("written");
    assert!(run().stderr.contains("1 command done, 1 failed"));
    std::fs::write(endpoint.folder().join("other"), "{}\n").expect("written");
    laneway
        .run(["run", "--manifest", "other", "lines"])
        .exits(2)
        .complains(&["other:1: this is not a manifest", "nothing was done"]);
}

#[test]
fn a_line_with_a_manifest_of_its_own_is_not_counted_as_done_before() {
    let endpoint = Endpoint::start(Wire::Plain);
    let laneway = endpoint.program(LANEWAY).in_folder(endpoint.folder());
    let at = |name: &str| endpoint.folder().join(name);
    std::fs::write(at("lines"), "cp --manifest own file s3://bucket/up\n").expect("written");
    for content in ["x", "changed"] {
        std::fs::write(at("file"), content).expect("written");
        let said = laneway.run(["run", "--manifest", "done", "lines"]).succeeds().stderr;
        assert!(said.contains("1 command done") && !said.contains("before"), "{said}");
        assert_eq!(endpoint.server().store().read("bucket", "up").expect("stored"), content.as_bytes());
    }
}

#[test]
fn prefixes_and_patterns_that_were_moved_or_removed_are_done_before() {
    let endpoint = Endpoint::start(Wire::Plain);
    let laneway = endpoint.program(LANEWAY).in_folder(endpoint.folder());
    let store = endpoint.server().store();
    for key in ["p/a", "q/a", "a.log"] {
        store.put("bucket", key, b"x").expect("stored");
    }
    std::fs::create_dir(endpoint.folder().join("d")).expect("a folder");
    std::fs::write(endpoint.folder().join("d/a.log"), "x").expect("written");
    let lines = "rm -r --yes s3://bucket/p/\nmv -r s3://bucket/q/ moved\nrm gs://bucket/*.log\nmv 'd/*.log' s3://bucket/to/\n";
    std::fs::write(endpoint.folder().join("lines"), lines).expect("written");
    let run = || laneway.run(["run", "--manifest", "done", "lines"]).succeeds().stderr;
    assert!(run().contains("4 commands done"));
    for _ in 0..2 {
        let again = run();
        assert!(again.contains("0 commands done, 4 already done"), "{again}");
    }
}

#[test]
fn a_done_line_is_skipped_only_for_the_same_source_and_store() {
    let endpoint = Endpoint::start(Wire::Plain);
    let laneway = endpoint.program(LANEWAY).in_folder(endpoint.folder());
    let store = endpoint.server().store();
    store.put("bucket", "from", b"x").expect("stored");
    let at = |name: &str| endpoint.folder().join(name);
    std::fs::write(at("file"), "x").expect("written");
    let lines = "cp file s3://bucket/up\ncp gs://bucket/from down\nstat s3://bucket/from\n";
    std::fs::write(at("lines"), lines).expect("written");
    let run = || laneway.run(["run", "--manifest", "done", "lines"]).succeeds().stderr;
    assert!(run().contains("3 commands done"));
    let requests = endpoint.server().counters().requests;
    let again = run();
    assert!(again.contains("0 commands done, 3 already done"), "{again}");
    assert_eq!(endpoint.server().counters().requests, requests + 1, "one HEAD of what came down");
    std::fs::write(at("file"), "changed").expect("written");
    store.put("bucket", "from", b"changed").expect("stored");
    let again = run();
    assert!(again.contains("2 commands done, 1 already done"), "{again}");
    assert_eq!(store.read("bucket", "up").expect("stored"), b"changed");
    assert_eq!(std::fs::read(at("down")).expect("a file"), b"changed");
    let elsewhere = Endpoint::start(Wire::Plain);
    elsewhere
        .program(LANEWAY)
        .in_folder(endpoint.folder())
        .run(["run", "--manifest", "done", "lines"])
        .exits(2)
        .complains(&["done:1: ", "at other endpoints", "nothing was done"]);
    assert_eq!(elsewhere.server().counters().requests, 0);
}

/// Starts a server that stalls the transfers of keys with `big` in them.
fn stalling(verb: &str) -> Endpoint {
    let faults = Faults::parse([format!("{verb} key=*big* stall@256KiB").as_str()]).expect("a rule");
    Endpoint::start_with(Wire::Plain, Config { faults, ..Config::default() })
}

/// Reads the first record, which shows that the transfer is under way. A thread reads the rest.
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
fn an_interrupted_composition_leaves_nothing() {
    for (scheme, rule, verb, count, size) in
        [("gs", "compose:1-2 delay 1s", "compose", 40, 1), ("s3", "copy:2-9 stall", "copy", 3, 5 << 20)]
    {
        let faults = Faults::parse([rule]).expect("a rule");
        let endpoint = Endpoint::start_with(Wire::Plain, Config { faults, ..Config::default() });
        let keys: Vec<_> = (0..count).map(|n| format!("p/{n:02}")).collect();
        keys.iter().for_each(|key| endpoint.put(key, &random_bytes(1, size)));
        let mut arguments = vec!["compose".to_owned()];
        arguments.extend(keys.iter().map(|key| format!("{scheme}://bucket/{key}")));
        arguments.push(format!("{scheme}://bucket/all"));
        let running = endpoint.program(LANEWAY).start(&arguments);
        let has_begun = |counters: &laneway_server::ServerCounters| {
            counters.requests_by_verb.get(verb).is_some_and(|requests| *requests >= 2)
        };
        assert!(endpoint.server().wait_until(std::time::Duration::from_secs(60), has_begun), "over {scheme}");
        running.signal("-INT");
        let run = running.end().exits(130);
        assert!(run.stderr.contains("laneway: interrupted"), "{}", run.stderr);
        assert_eq!(endpoint.server().store().keys("bucket"), keys, "over {scheme}");
        assert_eq!(endpoint.server().counters().multipart_open, 0, "over {scheme}");
    }
}

#[test]
fn a_file_that_shrinks_while_it_is_sent_is_no_object() {
    for scheme in ["gs", "s3"] {
        let endpoint = Endpoint::start_with(
            Wire::Plain,
            // Most of the large file is still unread when the small one has arrived.
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
    // A dangling link imitates a file that vanishes between the walk and its opening.
    std::os::unix::fs::symlink("gone", endpoint.folder().join("d/vanished")).expect("linked");
    laneway.run(["cp", "-r", "d", "s3://bucket/"]).exits(1).complains(&["d/vanished"]);
    assert_eq!(endpoint.server().store().keys("bucket"), ["d/there"]);
}
