//! The program's output about a job: on stderr for people, on stdout for programs. These tests also cover standard streams that are closed
//! or full.

use std::fs;

use laneway_server::{Config, Habits};
use laneway_testkit::{Endpoint, Program, Run, Scripted, Wire, answer, random_bytes};

const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");

/// Starts a server, and creates three files to upload.
fn stocked() -> (Endpoint, Program) {
    let endpoint = Endpoint::start(Wire::TlsH2);
    fs::create_dir(endpoint.folder().join("d")).expect("made");
    for n in 0..3 {
        fs::write(endpoint.folder().join(format!("d/f{n}")), random_bytes(n, 1000)).expect("written");
    }
    let program = endpoint.program(LANEWAY);
    (endpoint, program)
}

fn keys(record: &serde_json::Value) -> Vec<&str> {
    record.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[test]
fn the_last_line_says_what_was_done() {
    let (_endpoint, laneway) = stocked();
    let run = laneway.run(["cp", "-r", "d", "gs://bucket/"]).succeeds();
    assert!(run.stdout.is_empty());
    let line = run.stderr.lines().last().expect("a line");
    assert!(line.starts_with("3 files, 2.9 KiB in "), "{line}");
    assert!(line.ends_with(", 3 requests, 0 retries, crc32c verified"), "{line}");
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
}

#[test]
fn quiet_means_failures_only() {
    let (_endpoint, laneway) = stocked();
    let run = laneway.run(["cp", "-q", "-r", "d", "gs://bucket/"]).succeeds();
    assert!(run.stdout.is_empty() && run.stderr.is_empty(), "{}", run.stderr);
    let run = laneway.run(["cp", "-q", "gs://bucket/none", "x"]).exits(1);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
}

#[test]
fn verbose_names_each_object() {
    let (_endpoint, laneway) = stocked();
    let run = laneway.run(["cp", "-v", "-r", "d", "gs://bucket/"]).succeeds();
    assert!(run.stderr.contains("upload d/f1 -> gs://bucket/d/f1\n"), "{}", run.stderr);
}

#[test]
fn verbose_tells_of_connections_and_more_verbose_of_requests() {
    let (_endpoint, laneway) = stocked();
    let run = laneway.run(["cp", "-v", "-r", "d", "gs://bucket/"]).succeeds();
    assert!(run.stderr.contains("INFO connection opened to https://"), "{}", run.stderr);
    assert!(!run.stderr.contains("DEBUG"), "{}", run.stderr);
    assert!(run.stderr.contains(" lane=0 role=express protocol=h2 "), "{}", run.stderr);
    let run = laneway.run(["ls", "-vv", "-r", "gs://bucket/d/"]).succeeds();
    let requests: Vec<_> = run.stderr.lines().filter(|line| line.contains("DEBUG GET https://")).collect();
    assert_eq!(requests.len(), 1, "{}", run.stderr);
    for part in ["/storage/v1/b/bucket/o ", " lane=0 ", "status=200", "took=", "queued="] {
        assert!(requests[0].contains(part), "{part:?} is missing: {}", requests[0]);
    }
}

#[test]
fn logs_hold_no_query_no_header_and_no_key() {
    let (_endpoint, laneway) = stocked();
    for scheme in ["gs", "s3"] {
        let secret = ["--header", "x-own-secret: s3cr3t"];
        let url = format!("{scheme}://bucket/");
        for verb in [&["cp", "-vvv", "-r", "d", &url][..], &["ls", "-vvv", "-r", &url]] {
            let run = laneway.run(verb.iter().chain(&secret)).succeeds();
            assert!(run.stderr.contains("DEBUG"), "{}", run.stderr);
            for hidden in ["s3cr3t", "uploadType", "list-type", "Signature", "authorization", "?"] {
                assert!(!run.stderr.contains(hidden), "{hidden:?}: {}", run.stderr);
            }
        }
    }
}

#[test]
fn what_is_tried_again_is_told_before_it_fails() {
    let (_endpoint, laneway) = stocked();
    let dead = ["--gcs-endpoint", "http://127.0.0.1:1"];
    let run = laneway.run(["cp", "d/f1", "gs://bucket/k"].iter().chain(&dead)).exits(1);
    let lines: Vec<_> = run.stderr.lines().filter(|line| line.starts_with("retrying: ")).collect();
    let [line] = lines[..] else { panic!("one line says that it is away: {}", run.stderr) };
    assert!(
        line.contains("127.0.0.1:1") && line.ends_with("; gives up after 4.00 s (--retry-for)"),
        "{line}"
    );
    let run = laneway.run(["cp", "-q", "d/f1", "gs://bucket/k"].iter().chain(&dead)).exits(1);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    let run = laneway.run(["ls", "-v", "gs://bucket"].iter().chain(&dead)).exits(1);
    assert!(run.stderr.contains("INFO trying again attempt=2"), "{}", run.stderr);
}

#[test]
fn what_a_store_turns_out_not_to_take_is_told_once() {
    let config = Config { habits: Habits::b2(), ..Config::default() };
    let endpoint = Endpoint::start_with(Wire::Plain, config);
    fs::create_dir(endpoint.folder().join("d")).expect("made");
    for n in 0..200 {
        fs::write(endpoint.folder().join(format!("d/{n}")), "x").expect("written");
    }
    let laneway = endpoint.program(LANEWAY);
    let run = laneway.run(["cp", "-v", "-n", "-r", "d", "s3://bucket/up/"]).succeeds();
    let count = |what: &str| run.stderr.lines().filter(|line| line.contains(what)).count();
    assert_eq!(count("INFO the endpoint refuses x-amz-checksum-crc32c"), 1, "{}", run.stderr);
    assert_eq!(
        count("INFO an answer has shown how the endpoint treats conditional writes"),
        1,
        "{}",
        run.stderr
    );
    let run = laneway.run(["cp", "-r", "d", "s3://bucket/quiet/"]).succeeds();
    assert!(!run.stderr.contains("endpoint"), "{}", run.stderr);
}

#[test]
fn a_header_goes_with_each_request_to_the_store() {
    let object =
        r#"{"bucket":"bucket","name":"k","size":"1","generation":"7","crc32c":"yf0f3g==","etag":"e"}"#;
    let server = Scripted::serve(move |asked| match asked.target.contains("/o?") {
        true => answer(200, &[], format!(r#"{{"kind":"storage#objects","items":[{object}]}}"#)),
        false if asked.target.contains("alt=media") => {
            answer(200, &[("x-goog-generation", "7"), ("x-goog-stored-content-length", "1")], "x")
        }
        false => answer(200, &[("content-type", "application/json")], object),
    });
    let endpoint = Endpoint::start(Wire::Plain);
    let laneway = endpoint.program(LANEWAY).with("STORAGE_EMULATOR_HOST", server.url());
    let header = ["--header", "X-Team: lake", "--header", "x-trace: 1"];
    for command in [&["stat", "gs://bucket/k"][..], &["cat", "gs://bucket/k"], &["ls", "-r", "gs://bucket/"]]
    {
        laneway.run(command.iter().chain(&header)).succeeds();
    }
    let asked = server.asked();
    let listings = asked.iter().filter(|one| one.target.contains("/o?")).count();
    assert!(listings > 0 && asked.len() - listings == 2, "{asked:?}");
    for one in &asked {
        assert_eq!((one.header("x-team"), one.header("x-trace")), (Some("lake"), Some("1")), "{one:?}");
    }
}

#[test]
fn json_has_a_record_for_each_item_and_a_summary_at_last() {
    let (endpoint, laneway) = stocked();
    let run = laneway.run(["cp", "--json", "-r", "d", "gs://bucket/"]).succeeds();
    assert!(run.stderr.is_empty(), "{}", run.stderr);
    let records = run.json();
    assert_eq!(records.len(), 4);
    for record in &records[..3] {
        let fields =
            ["kind", "op", "source", "destination", "bytes", "start_s", "end_s", "attempts", "verified"];
        let mut found = keys(record);
        found.sort_unstable();
        let mut fields = fields.to_vec();
        fields.sort_unstable();
        assert_eq!(found, fields);
        assert_eq!((record["kind"].as_str(), record["op"].as_str()), (Some("item"), Some("upload")));
        assert_eq!((record["bytes"].as_u64(), record["attempts"].as_u64()), (Some(1000), Some(1)));
        assert_eq!(record["verified"], "crc32c");
        let (start, end) =
            (record["start_s"].as_f64().expect("a number"), record["end_s"].as_f64().expect("a number"));
        assert!(0.0 < start && start < end, "{record}");
    }
    let summary = run.record("summary");
    for (field, value) in
        [("files", 3), ("failed", 0), ("bytes", 3000), ("requests", 3), ("retries", 0), ("hedges", 0)]
    {
        assert_eq!(summary[field].as_u64(), Some(value), "{summary}");
    }
    assert_eq!(summary["connections"].as_u64(), Some(endpoint.server().counters().connections));
    assert_eq!(summary["handshakes"].as_u64(), Some(endpoint.server().counters().tls_handshakes));
    assert!(summary["network_bytes"].as_u64().is_some_and(|n| n >= 3000), "{summary}");
    assert!(summary["seconds"].as_f64().is_some_and(|s| s > 0.0));
}

#[test]
fn json_tells_failures_with_their_class() {
    let (_endpoint, laneway) = stocked();
    let run = laneway.run(["cp", "--json", "gs://bucket/none", "x"]).exits(1);
    let item = run.record("item");
    assert_eq!(
        (item["class"].as_str(), item["source"].as_str()),
        (Some("not_found"), Some("gs://bucket/none"))
    );
    assert!(item["error"].as_str().is_some_and(|e| e.contains("gs://bucket/none")), "{item}");
    assert_eq!(run.record("summary")["failed"], 1);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);

    let run = laneway.run(["cp", "--json", "ftp://h/x", "x"]).exits(2);
    assert_eq!(run.record("error")["class"], "usage");
    let run = laneway.run(["ls", "--json", "gs://nowhere"]).exits(1);
    assert_eq!(run.record("error")["class"], "not_found");
}

#[test]
fn every_record_has_its_urls_and_a_class_of_the_documented_list() {
    let (endpoint, laneway) = stocked();
    fs::create_dir(endpoint.folder().join("elsewhere")).expect("made");
    std::os::unix::fs::symlink("../elsewhere", endpoint.folder().join("d/link")).expect("linked");
    std::os::unix::net::UnixListener::bind(endpoint.folder().join("d/socket")).expect("bound");
    let run = laneway.run(["mv", "--json", "-r", "d", "none", "gs://bucket/up/"]).exits(1);
    let of_kind = |kind: &str| run.json().into_iter().filter(|r| r["kind"] == kind).collect::<Vec<_>>();
    for item in of_kind("item") {
        assert_eq!(item["op"], "move", "{item}");
        assert!(item["source"].is_string() && item["destination"].is_string(), "{item}");
    }
    assert_eq!(of_kind("item").len(), 4);
    let warnings = of_kind("warning");
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    for warning in warnings {
        assert!(warning["source"].as_str().is_some_and(|at| at.starts_with("d/")), "{warning}");
        assert!(warning["warning"].as_str().is_some_and(|why| why.starts_with("skipped: ")), "{warning}");
    }

    for command in [
        &["stat", "--json", "s3://bucket/none"][..],
        &["ls", "--json", "gs://nowhere"],
        &["cp", "--json", "ftp://h/x", "x"],
        &["rb", "--json", "--force", "gs://bucket"],
        &["cat", "--json", "gs://bucket/k"],
        &["cp", "--json", "s3://bucket/k", "-"],
        &["ls", "--json", "--nonsense", "s3://bucket/p"],
    ] {
        let run = laneway.run(command);
        let record = run.record("error");
        assert_eq!(record["url"].as_str(), command.iter().copied().find(|a| a.contains("://")), "{record}");
        let class = record["class"].as_str().expect("a class");
        assert!(laneway::ErrorKind::ALL.iter().any(|known| known.name() == class), "{record}");
    }
    assert_eq!(laneway.run(["cp", "--json", "--nothing"]).exits(2).record("error")["class"], "usage");
}

#[test]
fn a_move_is_told_as_such_to_people_too() {
    let (_endpoint, laneway) = stocked();
    let run = laneway.run(["mv", "--dry-run", "d/f1", "s3://bucket/"]).succeeds();
    assert_eq!(run.text(), "would move d/f1 -> s3://bucket/f1\n");
}

#[test]
fn links_to_folders_are_entered_where_that_is_asked_for() {
    let (endpoint, laneway) = stocked();
    std::os::unix::fs::symlink("d", endpoint.folder().join("link")).expect("linked");
    fs::create_dir(endpoint.folder().join("tree")).expect("made");
    std::os::unix::fs::symlink("../d", endpoint.folder().join("tree/d")).expect("linked");
    let run = laneway.run(["cp", "-r", "tree", "gs://bucket/"]).succeeds();
    assert!(
        run.stderr.contains("tree/d: skipped: it is a link to a directory; --follow-symlinks"),
        "{}",
        run.stderr
    );
    laneway.run(["cp", "-q", "-r", "--follow-symlinks", "tree", "gs://bucket/"]).succeeds();
    assert_eq!(endpoint.server().store().keys("bucket"), ["tree/d/f0", "tree/d/f1", "tree/d/f2"]);
}

#[test]
fn records_and_bytes_never_share_standard_output() {
    let (endpoint, laneway) = stocked();
    endpoint.server().store().put("bucket", "k", b"x").expect("stored");
    laneway.run(["cp", "--json", "gs://bucket/k", "-"]).exits(2).complains(&["--json"]);
    laneway.run(["cat", "--json", "gs://bucket/k"]).exits(2).complains(&["--json"]);
}

#[test]
fn stats_are_a_table_or_a_record() {
    let (_endpoint, laneway) = stocked();
    let run = laneway.run(["cp", "--stats", "-r", "d", "gs://bucket/"]).succeeds();
    assert!(run.stderr.contains("\nrequests             3\n"), "{}", run.stderr);
    assert!(run.stderr.contains("for 3 writes and lists, 0 reads, 0 deletes on gs://\n"), "{}", run.stderr);
    let stats = laneway.run(["ls", "--json", "--stats", "gs://bucket/d/"]).succeeds().record("stats");
    assert_eq!(stats["requests"], 1);
    assert_eq!((stats["connections_h2"].as_u64(), stats["handshakes"].as_u64()), (Some(1), Some(1)));
    assert_eq!((stats["connections_h1"].as_u64(), stats["billed"][0]["writes"].as_u64()), (Some(0), Some(1)));
}

#[test]
fn a_summary_holds_the_stats_where_they_are_asked_for() {
    let (_endpoint, laneway) = stocked();
    let summary = laneway.run(["cp", "--json", "-r", "d", "s3://bucket/"]).succeeds().record("summary");
    assert!(summary.get("stats").is_none(), "{summary}");
    let run = laneway.run(["cp", "--json", "--stats", "-r", "s3://bucket/d", "back"]).succeeds();
    assert!(run.json().iter().all(|record| record["kind"] != "stats"), "{}", run.text());
    let stats = &run.record("summary")["stats"];
    // One listing page and three objects.
    assert_eq!(
        stats["billed"],
        serde_json::json!([
            { "store": "s3", "writes": 1, "reads": 3, "deletes": 0, "cost_usd": 0.0000062 }
        ])
    );
    assert_eq!(
        (stats["cost_usd"].as_f64(), stats["prices_as_of"].as_str()),
        (Some(0.0000062), Some("2026-01"))
    );
    assert!(stats["queued_p50_s"].is_number() && stats["queued_p99_s"].is_number(), "{stats}");
    for time in ["first_byte_p50_s", "first_byte_p99_s", "cpu_s"] {
        assert!(stats[time].as_f64().is_some_and(|seconds| seconds > 0.0), "{time}: {stats}");
    }
    assert!(stats["first_byte_p50_s"].as_f64() <= stats["first_byte_p99_s"].as_f64(), "{stats}");
    assert!(stats["goodput"].as_u64().is_some_and(|rate| rate > 0), "{stats}");
}

#[test]
fn connections_stay_below_the_cap() {
    let (endpoint, laneway) = stocked();
    laneway.run(["cp", "--max-connections", "1", "-r", "d", "gs://bucket/"]).succeeds();
    assert_eq!(endpoint.server().counters().connections, 1);
}

#[test]
fn logs_are_written_where_they_are_asked_for() {
    let (_endpoint, laneway) = stocked();
    let bad = laneway.clone().with("LANEWAY_LOG", "no=such=level").run(["ls", "gs://bucket"]).exits(2);
    bad.complains(&["LANEWAY_LOG"]);
    laneway.clone().with("LANEWAY_LOG", "no=such=level").run(["ls", "-v", "gs://bucket"]).succeeds();
    laneway.with("LANEWAY_LOG", "error").run(["ls", "gs://bucket"]).succeeds();
}

#[test]
fn completions_know_the_verbs_and_options() {
    let (_endpoint, laneway) = stocked();
    for shell in ["bash", "zsh", "fish"] {
        let script = laneway.run(["completions", shell]).succeeds().text();
        assert!(script.contains("serve") && script.contains("no-clobber"), "{shell}");
    }
    laneway.run(["completions", "no-such-shell"]).exits(2);
}

#[test]
fn help_and_version_are_no_failures() {
    let (_endpoint, laneway) = stocked();
    assert!(laneway.run(["--help"]).succeeds().text().contains("Exit status"));
    assert!(laneway.run(["cp", "--help"]).succeeds().text().contains("--storage-class"));
    assert!(laneway.run(["help", "cp"]).succeeds().text().contains("Examples:"));
    for (topic, says) in [
        ("urls", "gs://BUCKET/KEY"),
        ("credentials", "AWS_PROFILE"),
        ("patterns", "[a-z]"),
        ("json", "not_found"),
    ] {
        assert!(laneway.run(["help", topic]).succeeds().text().contains(says), "{topic}");
    }
    laneway.run(["help", "upload"]).exits(2).complains(&["use cp", "credentials"]);
    let version = laneway.run(["--version"]).succeeds().text();
    assert!(
        version.starts_with("laneway ") && version.contains("\ncommit ") && version.contains("\nTLS rustls ")
    );
    assert_eq!(laneway.run(["-V"]).succeeds().text().lines().count(), 1);
    assert!(laneway.run(["man"]).succeeds().text().contains(".SH ENVIRONMENT"));
    laneway.run(["man", "nothing"]).exits(2);
}

/// Starts a server with an object that is larger than a pipe's buffer.
fn shell_scene() -> (Endpoint, Program) {
    let endpoint = Endpoint::start(Wire::Plain);
    endpoint.server().store().put("bucket", "k", &random_bytes(1, 1 << 20)).expect("stored");
    let shell = endpoint.program("/bin/sh");
    (endpoint, shell)
}

/// Runs a line of shell in which `$0` is the program.
fn line(shell: &Program, line: &str) -> Run {
    shell.run(["-c", line, LANEWAY])
}

#[test]
fn a_full_device_as_standard_output_is_a_failure() {
    let (_endpoint, shell) = shell_scene();
    for command in [
        "ls gs://bucket",
        "stat s3://bucket/k",
        "cat gs://bucket/k",
        "--help",
        "--version",
        "completions bash",
    ] {
        let run = line(&shell, &format!("exec \"$0\" {command} >/dev/full")).exits(1);
        assert!(run.stderr.contains("No space left"), "{command}: {}", run.stderr);
    }
    line(&shell, "exec \"$0\" cp s3://bucket/k - >/dev/full").exits(1).complains(&["No space left"]);
    line(&shell, "exec \"$0\" cp --json s3://bucket/k k >/dev/full").exits(1).complains(&["standard output"]);
}

#[test]
fn a_closed_standard_output_is_a_failure_of_what_writes_to_it() {
    let (endpoint, shell) = shell_scene();
    for command in
        ["ls gs://bucket", "stat s3://bucket/k", "cat gs://bucket/k", "cp gs://bucket/k -", "--version"]
    {
        let run = line(&shell, &format!("exec \"$0\" {command} >&-")).exits(1);
        assert!(run.stderr.contains("standard output is closed"), "{command}: {}", run.stderr);
    }
    line(&shell, "exec \"$0\" cp -q gs://bucket/k k >&-").succeeds();
    assert_eq!(fs::metadata(endpoint.folder().join("k")).expect("copied").len(), 1 << 20);
}

#[test]
fn a_closed_standard_input_stores_nothing() {
    let (endpoint, shell) = shell_scene();
    line(&shell, "exec \"$0\" cp - gs://bucket/new <&-").exits(1).complains(&["standard input is closed"]);
    // The descriptor is open, but not for reading.
    line(&shell, "exec \"$0\" cp - s3://bucket/new 0>written").exits(1).complains(&["-"]);
    assert_eq!(endpoint.server().store().keys("bucket"), ["k"]);
    line(&shell, "exec \"$0\" cp -q - gs://bucket/new </dev/null").succeeds();
    assert_eq!(endpoint.server().store().keys("bucket"), ["k", "new"]);
}

#[test]
fn a_reader_that_has_enough_ends_the_program_without_a_word() {
    let (endpoint, shell) = shell_scene();
    for n in 0..3000 {
        endpoint.server().store().put("bucket", &format!("many/{n:0100}"), b"").expect("stored");
    }
    for command in ["cat gs://bucket/k", "cp s3://bucket/k -", "ls -r gs://bucket"] {
        let run =
            line(&shell, &format!("{{ \"$0\" {command}; echo \"status $?\" >&2; }} | head -c 1 >/dev/null"));
        assert_eq!(run.stderr, "status 0\n", "{command}");
    }
    // The job prints no message, like any program with a broken pipe, but its status says that it isn't done.
    let run = line(
        &shell,
        "{ \"$0\" cp --json -r s3://bucket/many d; echo \"status $?\" >&2; } | head -c 1 >/dev/null",
    );
    assert_eq!(run.stderr, "status 1\n");
    // If the reader of the pipe ends early, the status still shows an earlier failure.
    for command in ["cp --json gs://bucket/none d/none", "cat gs://bucket/none gs://bucket/k"] {
        let piped = format!("{{ \"$0\" {command} 2>/dev/null; echo \"status $?\" >&2; }} | :");
        assert_eq!(line(&shell, &piped).stderr, "status 1\n", "{command}");
    }
    // The move's source still exists, and the program tells the user.
    let run = line(&shell, "{ \"$0\" mv s3://bucket/k -; echo \"status $?\" >&2; } | head -c 1 >/dev/null");
    assert!(run.stderr.contains("Broken pipe") && run.stderr.contains("status 1"), "{}", run.stderr);
    assert!(endpoint.server().store().keys("bucket").contains(&"k".to_owned()));
}
