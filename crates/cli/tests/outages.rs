//! Servers that are down for a while, and other causes that affect all items of a job. One line reports each
//! cause.

use std::fs;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use laneway_server::{Config, Faults, Server};
use laneway_testkit::{Changes, Endpoint, Program, Running, Wire, claimed, random_bytes};

const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");
const MIB: u64 = 1 << 20;

/// Starts a server with one object.
fn serve(listen: SocketAddr, bandwidth: Option<u64>, bytes: &[u8]) -> Server {
    let server = Server::start(Config { listen, bandwidth, ..Config::default() }).expect("a server");
    server.create_bucket("bucket").expect("a bucket");
    server.store().put("bucket", "big", bytes).expect("stored");
    server
}

#[test]
fn a_server_that_was_away_is_told_of_when_it_is_and_when_it_is_back() {
    let endpoint = Endpoint::start(Wire::Plain);
    let laneway = endpoint.program(LANEWAY);
    for i in 0..20 {
        endpoint.server().store().put("bucket", &format!("t/{i}"), b"x").expect("stored");
    }
    endpoint.server().set_faults(Faults::parse(["status 502"]).expect("a rule"));
    let running = laneway.start(["cp", "-r", "--retry-for", "2m", "s3://bucket/t", "out"]);
    // The fifth attempt of the first request comes at least 1.5 s after its first attempt. By then, Laneway has reported that
    // the server doesn't answer, which it does after a second.
    assert!(endpoint.server().wait_until(Running::TIME_MAX, |counters| counters.requests >= 5));
    endpoint.server().set_faults(Faults::parse(["get:1-20 status 502"]).expect("a rule"));
    let run = running.end().succeeds();
    let count = |what: &str| run.stderr.lines().filter(|line| line.contains(what)).count();
    assert_eq!((count("retrying: "), count(" answers again, after ")), (1, 1), "{}", run.stderr);
}

#[test]
fn a_server_that_answers_again_is_told_of_before_any_body_has_come() {
    let endpoint = Endpoint::start(Wire::Plain);
    endpoint.server().store().put("bucket", "big", &random_bytes(1, MIB as usize)).expect("stored");
    endpoint.server().set_faults(Faults::parse(["status 502"]).expect("a rule"));
    let running = endpoint.program(LANEWAY).start(["cp", "--retry-for", "6s", "s3://bucket/big", "out"]);
    assert!(endpoint.server().wait_until(Running::TIME_MAX, |counters| counters.requests >= 5));
    // From now on the server begins each answer, but never ends it.
    endpoint.server().set_faults(Faults::parse(["stall@64KiB"]).expect("a rule"));
    let asked = endpoint.server().counters().requests;
    // When two more requests have come, the program has given up the first of these answers.
    assert!(endpoint.server().wait_until(Running::TIME_MAX, |counters| counters.requests >= asked + 2));
    running.signal("-KILL");
    let run = running.end();
    assert!(run.stderr.contains(" answers again, after "), "{}", run.stderr);
}

#[test]
fn an_outage_ends_a_download_that_continues_after_it() {
    let endpoint = Endpoint::start(Wire::Plain);
    let laneway = endpoint.program(LANEWAY);
    let size = 64 * MIB;
    let bytes = random_bytes(1, size as usize);
    let server = serve(SocketAddr::from(([127, 0, 0, 1], 0)), Some(24 << 20), &bytes);
    let (address, url) = (server.addr(), server.url());
    let out = endpoint.folder().join("out");
    fs::create_dir(&out).expect("made");
    let arguments = ["cp", "--json", "--s3-endpoint", &url, "s3://bucket/big", "out/"];
    let changes = Changes::of(&out);
    let running = laneway.start(arguments.iter().chain(&["--retry-for", "1500ms"]));
    assert!(changes.wait_while_runs(&running, || claimed(&out) >= 6 * MIB));
    server.shutdown();
    let run = running.end().exits(1);
    assert!(run.stderr.contains("are kept"), "{}", run.stderr);
    let kept = claimed(&out);
    let server = serve(address, None, &bytes);
    let run = laneway.run(arguments).succeeds();
    let fetched = run.record("summary")["network_bytes"].as_u64().expect("a number");
    assert!(fetched <= size - kept + 4 * MIB, "{fetched} fetched, {kept} kept");
    assert!(fs::read(out.join("big")).expect("read") == bytes);
    drop(server);
}

#[test]
fn an_outage_ends_a_job_with_one_line_and_reports_kept_bytes() {
    let endpoint = Endpoint::start(Wire::Plain);
    let laneway = endpoint.program(LANEWAY);
    let bytes = random_bytes(1, 96 << 20);
    let server = serve(SocketAddr::from(([127, 0, 0, 1], 0)), Some(24 << 20), &bytes);
    server.store().put("bucket", "other", &bytes).expect("stored");
    let out = endpoint.folder().join("out");
    fs::create_dir(&out).expect("made");
    let changes = Changes::of(&out);
    let laneway = laneway.with("AWS_ENDPOINT_URL_S3", server.url());
    let running =
        laneway.start(["cp", "--retry-for", "1500ms", "s3://bucket/big", "s3://bucket/other", "out/"]);
    assert!(changes.wait_while_runs(&running, || claimed(&out) >= 12 * MIB));
    server.shutdown();
    let run = running.end().exits(1).complains(&["can't be reached"]);
    assert!(run.stderr.contains("0 files, 1 failed, 1 not done, "), "{}", run.stderr);
    let kept = "of partial transfers are kept; run the same command to continue";
    assert_eq!(run.stderr.lines().filter(|line| line.ends_with(kept)).count(), 1, "{}", run.stderr);
    assert!(claimed(&out) >= 12 * MIB);
}

/// Uploads 300 small files to a server that serves four connections at once, and downloads them again. Returns
/// the runs' stderr.
fn copy_by_four(reset_surplus: bool) -> (Endpoint, String) {
    let config = Config { served_connections: Some(4), reset_surplus, ..Config::default() };
    let endpoint = Endpoint::start_with(Wire::Plain, config);
    let laneway = endpoint.program(LANEWAY).with("LANEWAY_RETRY_FOR", "2m");
    fs::create_dir(endpoint.folder().join("up")).expect("made");
    for i in 0..300 {
        fs::write(endpoint.folder().join(format!("up/{i}")), "x").expect("written");
    }
    let up = laneway.run(["cp", "-r", "up", "s3://bucket"]).succeeds();
    let down = laneway.run(["cp", "-r", "s3://bucket/up", "down"]).succeeds();
    assert_eq!(fs::read_dir(endpoint.folder().join("down")).expect("read").count(), 300);
    (endpoint, up.stderr + &down.stderr)
}

#[test]
fn connections_that_a_server_lets_wait_are_given_up_after_seconds() {
    let (begun, usual) = (Instant::now(), Duration::from_secs(30));
    let (_endpoint, said) = copy_by_four(false);
    assert!(said.matches(" 0 retries").count() == 2 && !said.contains("retrying"), "{said}");
    assert!(begun.elapsed() < usual, "{:?}", begun.elapsed());
}

#[test]
fn surplus_connections_that_are_reset_limit_later_dials() {
    let (endpoint, _) = copy_by_four(true);
    let connections = endpoint.server().counters().connections;
    // 600 requests were made. Each run dials up to 128 connections at first, and then adapts to the server.
    assert!(connections <= 2 * 128, "{connections} connections");
}

#[test]
fn how_long_is_retried_is_an_option_or_a_variable_and_has_to_be_a_time() {
    let endpoint = Endpoint::start(Wire::Plain);
    let laneway = endpoint.program(LANEWAY);
    let dead = ["ls", "--gcs-endpoint", "http://127.0.0.1:1", "gs://bucket"];
    let run = laneway.run(dead.iter().chain(&["--retry-for", "0"])).exits(1);
    assert!(!run.stderr.contains("retrying") && run.stderr.contains("1 attempt"), "{}", run.stderr);
    laneway.run(dead.iter().chain(&["--retry-for", "soon"])).exits(2);
    let run = laneway.clone().with("LANEWAY_RETRY_FOR", "0").run(dead).exits(1);
    assert!(run.stderr.contains("1 attempt"), "{}", run.stderr);
    let laneway = laneway.with("LANEWAY_RETRY_FOR", "soon");
    laneway.run(dead).exits(2).complains(&["LANEWAY_RETRY_FOR"]);
    // An option takes precedence over its variable, even over an invalid one.
    laneway.run(dead.iter().chain(&["--retry-for", "0"])).exits(1);
}

const FILES: u64 = 4000;
/// Upper bound on the items under way at the first answer. Each small item reserves 40 KiB of a budget of 64 MiB.
const AT_ONCE: u64 = 1640;

/// Starts a server, with more files and objects than can be under way at once.
fn stocked() -> (Endpoint, Program) {
    let endpoint = Endpoint::start(Wire::TlsH2);
    fs::create_dir(endpoint.folder().join("d")).expect("made");
    for n in 0..FILES {
        fs::write(endpoint.folder().join(format!("d/{n}")), "x").expect("written");
        endpoint.server().store().put("bucket", &format!("p/{n}"), b"x").expect("stored");
    }
    let program = endpoint.program(LANEWAY);
    (endpoint, program)
}

#[test]
fn a_missing_bucket_ends_a_job_at_once() {
    let (endpoint, laneway) = stocked();
    for scheme in ["gs", "s3"] {
        let before = endpoint.server().counters().requests;
        let bucket = format!("{scheme}://nowhere/");
        let run = laneway.run(["cp", "-r", "d", &bucket]).exits(1).complains(&["nowhere"]);
        assert!(run.stderr.contains("1 failed, ") && run.stderr.contains(" not done, "), "{}", run.stderr);
        let sent = endpoint.server().counters().requests - before;
        assert!(sent <= AT_ONCE, "{scheme}: {sent} requests");

        laneway.run(["cp", "-r", &bucket, "to"]).exits(1).complains(&["nowhere"]);
        laneway.run(["mv", "-r", &format!("{scheme}://bucket/p"), &bucket]).exits(1).complains(&["nowhere"]);
        laneway.run(["rm", "-r", "--yes", &bucket]).exits(1).complains(&["nowhere"]);
        let record = laneway.run(["cp", "--json", "-r", "d", &bucket]).exits(1).record("summary");
        assert_eq!((record["failed"].as_u64(), record["stopped"].as_bool()), (Some(1), Some(true)));
        let not_done = record["not_done"].as_u64().expect("a number");
        assert!(not_done == FILES - 1 || record["search_cut"] == true && not_done < FILES, "{record}");
    }
    assert_eq!(endpoint.server().store().keys("bucket").len() as u64, FILES);
}

#[test]
fn a_404_that_names_no_bucket_is_one_items_own() {
    let endpoint = Endpoint::start(Wire::TlsH2);
    fs::create_dir(endpoint.folder().join("d")).expect("made");
    for n in 0..20 {
        fs::write(endpoint.folder().join(format!("d/{n}")), "x").expect("written");
    }
    for scheme in ["gs", "s3"] {
        endpoint.server().set_faults(Faults::parse(["put:3 status 404"]).expect("a rule"));
        let to = format!("{scheme}://bucket/{scheme}/");
        let run = endpoint.program(LANEWAY).run(["cp", "-r", "d", &to]).exits(1);
        assert!(run.stderr.contains("19 files, 1 failed, "), "{}", run.stderr);
        assert!(!run.stderr.contains("not done"), "{}", run.stderr);
    }
}

#[test]
fn a_refused_signature_ends_a_job_at_once() {
    let (endpoint, laneway) = stocked();
    let laneway = laneway.with("AWS_SECRET_ACCESS_KEY", "wrong");
    let run = laneway.run(["cp", "-r", "d", "s3://bucket/up/"]).exits(1);
    let run = run.complains(&["SignatureDoesNotMatch"]);
    assert!(run.stderr.contains(" not done, "), "{}", run.stderr);
    assert!(endpoint.server().counters().requests <= AT_ONCE, "{:?}", endpoint.server().counters());
    let urls: Vec<_> = (0..100).map(|n| format!("s3://bucket/p/{n}")).collect();
    let arguments = ["rm"].into_iter().chain(urls.iter().map(String::as_str));
    laneway.run(arguments).exits(1).complains(&["SignatureDoesNotMatch"]);
}

#[test]
fn a_file_where_a_folder_must_be_ends_a_job_before_it_asks_for_anything() {
    let (endpoint, laneway) = stocked();
    for to in ["d/1", "d/1/", "d/1/sub/"] {
        laneway.run(["cp", "-r", "s3://bucket/p", to]).exits(1).complains(&["d/1 is a file"]);
    }
    laneway.run(["cp", "s3://bucket/p/1", "d/1/"]).exits(1).complains(&["d/1 is a file"]);
    assert_eq!(endpoint.server().counters().requests, 0);
}

#[test]
fn what_one_bucket_lacks_does_not_keep_another_from_being_read() {
    let (endpoint, laneway) = stocked();
    let run = laneway.run(["cp", "s3://nowhere/k", "gs://bucket/p/1", "s3://bucket/p/2", "d/"]).exits(1);
    run.complains(&["nowhere"]);
    assert_eq!(fs::read(endpoint.folder().join("d/2")).expect("read"), b"x");
}

#[test]
fn a_store_that_cannot_be_reached_ends_a_job_at_once() {
    let (_endpoint, laneway) = stocked();
    // No server listens on port 1 of the loopback interface, and no resolver knows the other name.
    for url in ["http://127.0.0.1:1", "http://no-such-host.invalid"] {
        let laneway = laneway.clone().with("STORAGE_EMULATOR_HOST", url).with("AWS_ENDPOINT_URL_S3", url);
        let laneway = laneway.with("LANEWAY_RETRY_FOR", "0");
        let host = url.trim_start_matches("http://");
        for command in ["cp -r d s3://bucket/", "cp -r d gs://bucket/", "mv -r d s3://bucket/"] {
            let run = laneway.run(command.split(' ')).exits(1).complains(&[host]);
            assert!(
                run.stderr.contains("1 failed, ") && run.stderr.contains(" not done, "),
                "{}",
                run.stderr
            );
        }
        for command in ["cp -r s3://bucket/p to", "rm -r --yes gs://bucket/p"] {
            laneway.run(command.split(' ')).exits(1).complains(&[host]);
        }
    }
}

#[test]
fn a_store_that_goes_away_for_good_ends_a_job_with_one_line() {
    for scheme in ["gs", "s3"] {
        let (endpoint, laneway) = stocked();
        // Half of the files arrive. Then a front end answers every request with an error, because its back end is down.
        let gone = format!("put:2000-{} status 502", u64::MAX);
        endpoint.server().set_faults(Faults::parse([gone.as_str()]).expect("a rule"));
        let to = format!("{scheme}://bucket/up/");
        let run = laneway.run(["cp", "-r", "--retry-for", "1500ms", "d", &to]).exits(1);
        let run = run.complains(&["502"]);
        assert!(run.stderr.contains(" not done, "), "{}", run.stderr);
        let there = endpoint.server().store().keys("bucket").iter().filter(|k| k.starts_with("up/")).count();
        let (before, _) = run.stderr.split_once(" files, 1 failed, ").expect("a summary");
        let done: usize =
            before.rsplit(char::is_whitespace).next().unwrap_or_default().parse().expect("a number");
        // The job can end while the answers to the last files that have arrived are still under way.
        assert!(0 < done && done <= there, "{there} of {FILES} are there: {}", run.stderr);
    }
}
