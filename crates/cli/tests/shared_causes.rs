//! A cause that every item of a job shares is one line and the end.

use std::fs;

use laneway_server::Faults;
use laneway_testkit::{Endpoint, Program, Wire};

const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");
const FILES: u64 = 4000;
/// What may be on its way when the first answer comes: small items reserve 40 KiB each of 64 MiB.
const AT_ONCE: u64 = 1640;

/// A server, and more files and objects than are on their way at once.
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
    // Port 1 of the loopback interface, where nobody listens, and a name that no resolver knows.
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
        // Half of the files, then nothing but failures of a front end whose back end is gone.
        let gone = format!("put:2000-{} status 502", u64::MAX);
        endpoint.server().set_faults(Faults::parse([gone.as_str()]).expect("a rule"));
        let to = format!("{scheme}://bucket/up/");
        let run = laneway.run(["cp", "-r", "--retry-for", "1500ms", "d", &to]).exits(1);
        let run = run.complains(&["502"]);
        assert!(run.stderr.contains(" not done, "), "{}", run.stderr);
        let there = endpoint.server().store().keys("bucket").iter().filter(|k| k.starts_with("up/")).count();
        let summary = format!("{there} files, 1 failed, ");
        assert!(run.stderr.contains(&summary), "{there} of {FILES} are there: {}", run.stderr);
    }
}
