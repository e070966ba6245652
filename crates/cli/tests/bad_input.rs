//! What bad input gets: one line on stderr that names the object and the cause, the exit status of the design, and
//! nothing lost or half-written.

use std::fs;
use std::path::Path;

use laneway_server::{Config, Faults};
use laneway_testkit::{Endpoint, Program, Wire, random_bytes};

const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");

fn plain() -> (Endpoint, Program) {
    let endpoint = Endpoint::start(Wire::Plain);
    let program = endpoint.program(LANEWAY);
    (endpoint, program)
}

fn entries(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .expect("the folder is read")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn an_unknown_scheme_is_bad_usage() {
    let (_endpoint, laneway) = plain();
    laneway.run(["cp", "ftp://host/file", "."]).exits(2).complains(&["ftp://host/file", "unknown scheme"]);
    laneway.run(["ls", "http://host/file"]).exits(2).complains(&["http://host/file", "unknown scheme"]);
}

#[test]
fn a_url_without_a_bucket_is_bad_usage() {
    let (_endpoint, laneway) = plain();
    laneway.run(["cat", "s3:///key"]).exits(2).complains(&["s3:///key", "bucket"]);
}

#[test]
fn a_header_that_frames_requests_is_bad_usage() {
    let (_endpoint, laneway) = plain();
    for header in ["Content-Length: 5", "transfer-encoding: chunked", "Host: elsewhere", "Range: bytes=0-1"] {
        laneway
            .run(["cp", "Cargo.toml", "s3://bucket/k", "--header", header])
            .exits(2)
            .complains(&["--header", "framing"]);
    }
}

#[test]
fn compressing_nothing_or_on_the_way_down_is_bad_usage() {
    let (endpoint, laneway) = plain();
    fs::write(endpoint.folder().join("f.txt"), "x").expect("written");
    endpoint.server().store().put("bucket", "k.txt", b"x").expect("stored");
    for extensions in ["", "txt,", ".", "a/b"] {
        let run = laneway.run(["cp", "-z", extensions, "f.txt", "gs://bucket/f.txt"]).exits(2);
        assert!(run.stderr.contains("--gzip-local") && run.stderr.contains("extension"), "{}", run.stderr);
    }
    laneway.run(["cp", "-z", "txt", "gs://bucket/k.txt", "back"]).exits(2).complains(&["back", "compressed"]);
    assert_eq!(entries(&endpoint.folder()), ["f.txt"]);
    assert_eq!(endpoint.server().store().keys("bucket"), ["k.txt"]);
}

#[test]
fn a_missing_bucket_is_named() {
    let (endpoint, laneway) = plain();
    fs::write(endpoint.folder().join("f"), "x").expect("written");
    laneway.run(["cp", "f", "s3://nowhere/f"]).exits(1).complains(&[
        "s3://nowhere/f",
        "not found",
        "NoSuchBucket",
    ]);
    laneway.run(["cp", "s3://nowhere/f", "back"]).exits(1).complains(&["s3://nowhere", "not found"]);
    laneway.run(["ls", "s3://nowhere/"]).exits(1).complains(&["s3://nowhere", "not found"]);
    laneway.run(["--anonymous", "ls", "gs://nowhere/"]).exits(1).complains(&["gs://nowhere", "not found"]);
    assert_eq!(entries(&endpoint.folder()), ["f"]);
}

#[test]
fn a_missing_object_is_named_and_leaves_no_file() {
    let (endpoint, laneway) = plain();
    for url in ["s3://bucket/none", "gs://bucket/none"] {
        laneway.run(["--anonymous", "cp", url, "none"]).exits(1).complains(&[url, "not found"]);
        laneway.run(["--anonymous", "cat", url]).exits(1).complains(&[url, "not found"]);
        laneway.run(["--anonymous", "stat", url]).exits(1).complains(&[url, "not found"]);
        laneway.run(["--anonymous", "ls", url]).exits(1).complains(&[url]);
    }
    assert!(entries(&endpoint.folder()).is_empty());
}

#[test]
fn of_several_sources_the_missing_one_fails_and_the_rest_is_done() {
    let (endpoint, laneway) = plain();
    endpoint.server().store().put("bucket", "there", b"1").expect("stored");
    let run = laneway.run(["cp", "s3://bucket/none", "s3://bucket/there", "."]).exits(1);
    run.complains(&["s3://bucket/none", "not found"]);
    assert_eq!(entries(&endpoint.folder()), ["there"]);
}

#[test]
fn a_missing_local_file_is_named() {
    let (_endpoint, laneway) = plain();
    laneway.run(["cp", "none", "s3://bucket/"]).exits(1).complains(&["none"]);
    laneway.run(["cp", "-r", "none/", "s3://bucket/"]).exits(1).complains(&["none"]);
}

#[test]
fn without_permission_the_bucket_is_named() {
    let denied = Config { denied_buckets: ["bucket".to_owned()].into(), ..Config::default() };
    let endpoint = Endpoint::start_with(Wire::Plain, denied);
    let laneway = endpoint.program(LANEWAY);
    fs::write(endpoint.folder().join("f"), "x").expect("written");
    laneway.run(["cp", "f", "s3://bucket/f"]).exits(1).complains(&["s3://bucket/f", "permission denied"]);
    laneway.run(["ls", "s3://bucket"]).exits(1).complains(&["s3://bucket", "permission denied"]);
    laneway
        .run(["--anonymous", "cp", "gs://bucket/f", "g"])
        .exits(1)
        .complains(&["gs://bucket/f", "permission denied"]);
}

#[test]
fn absent_credentials_say_which_sources_were_tried() {
    let (_endpoint, laneway) = plain();
    let laneway = laneway.without("AWS_ACCESS_KEY_ID").without("AWS_SECRET_ACCESS_KEY");
    laneway.run(["cp", "s3://bucket/f", "g"]).exits(1).complains(&[
        "looked at",
        "AWS_ACCESS_KEY_ID",
        "--anonymous",
    ]);
}

#[test]
fn wrong_credentials_are_the_stores_to_refuse() {
    let (_endpoint, laneway) = plain();
    let laneway = laneway.with("AWS_SECRET_ACCESS_KEY", "not-the-secret");
    let run =
        laneway.run(["ls", "s3://bucket/"]).exits(1).complains(&["s3://bucket", "SignatureDoesNotMatch"]);
    assert!(!run.stderr.contains("not-the-secret"));
}

#[test]
fn expired_credentials_are_refused_at_once() {
    let expired = Config {
        faults: Faults::parse(["any status 400 ExpiredToken"]).expect("a rule"),
        ..Config::default()
    };
    let endpoint = Endpoint::start_with(Wire::Plain, expired);
    endpoint
        .program(LANEWAY)
        .run(["cp", "s3://bucket/f", "g"])
        .exits(1)
        .complains(&["s3://bucket/f", "ExpiredToken"]);
}

#[test]
fn an_unreachable_host_is_named() {
    let (endpoint, laneway) = plain();
    // Port 1 of the loopback interface: nobody listens there.
    let run = laneway.run(["--s3-endpoint", "http://127.0.0.1:1", "cp", "s3://bucket/f", "g"]).exits(1);
    run.complains(&["s3://bucket/f", "127.0.0.1:1"]);
    let run =
        laneway.run(["--s3-endpoint", "http://no-such-host.invalid", "cp", "s3://bucket/f", "g"]).exits(1);
    run.complains(&["s3://bucket/f", "no-such-host.invalid"]);
    assert!(entries(&endpoint.folder()).is_empty());
}

#[test]
fn an_unknown_certificate_is_never_accepted() {
    for wire in [Wire::TlsH1, Wire::TlsH2] {
        let endpoint = Endpoint::start(wire);
        endpoint.server().store().put("bucket", "k", b"secret").expect("stored");
        let laneway = endpoint.program(LANEWAY).without("AWS_CA_BUNDLE");
        let run = laneway.run(["cp", "s3://bucket/k", "k"]).exits(1);
        run.complains(&["s3://bucket/k", "certificate", "https://", "--ca-cert"]);
        assert!(entries(&endpoint.folder()).is_empty());
        assert_eq!(
            endpoint.server().counters().requests,
            0,
            "a request was sent before the certificate was known"
        );
    }
}

#[test]
fn a_ca_file_that_cannot_be_read_is_named() {
    let (_endpoint, laneway) = plain();
    let run = laneway.run(["--ca-cert", "/no/such/ca.pem", "ls", "s3://bucket"]);
    assert_ne!(run.status, Some(0));
    run.complains(&["/no/such/ca.pem"]);
    let laneway = laneway.with("AWS_CA_BUNDLE", "/no/such/bundle.pem");
    laneway.run(["ls", "s3://bucket"]).complains(&["/no/such/bundle.pem", "AWS_CA_BUNDLE"]);
}

/// Who sets it means these certificates: without them each server would be refused, and nobody knew why.
#[cfg(target_os = "linux")]
#[test]
fn an_unreadable_ssl_cert_file_is_named() {
    let endpoint = Endpoint::start(Wire::TlsH2);
    for (name, path) in [("SSL_CERT_FILE", "/no/such/ca.pem"), ("SSL_CERT_DIR", "/no/such/folder")] {
        let laneway = endpoint.program(LANEWAY).with(name, path);
        laneway.run(["ls", "s3://bucket"]).exits(1).complains(&[name, path, "No such file"]);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_named() {
    let (endpoint, laneway) = plain();
    endpoint.server().store().put("bucket", "k", &random_bytes(1, 100_000)).expect("stored");
    laneway.run(["cp", "s3://bucket/k", "/dev/full"]).exits(1).complains(&["/dev/full", "No space left"]);
}

#[test]
fn a_destination_that_cannot_be_written_is_named() {
    let (endpoint, laneway) = plain();
    endpoint.server().store().put("bucket", "k", b"x").expect("stored");
    laneway.run(["cp", "s3://bucket/k", "/dev/null/k"]).exits(1).complains(&["/dev/null/k"]);
}

#[test]
fn a_folder_where_a_file_should_go_is_left_alone() {
    let (endpoint, laneway) = plain();
    endpoint.server().store().put("bucket", "k", b"x").expect("stored");
    fs::create_dir_all(endpoint.folder().join("d/k")).expect("made");
    fs::write(endpoint.folder().join("d/k/precious"), "p").expect("written");
    laneway.run(["cp", "s3://bucket/k", "d"]).exits(1).complains(&["d/k", "director"]);
    assert_eq!(entries(&endpoint.folder().join("d")), ["k"]);
    assert_eq!(entries(&endpoint.folder().join("d/k")), ["precious"]);
}

#[test]
fn a_folder_without_r_is_not_copied() {
    let (endpoint, laneway) = plain();
    fs::create_dir(endpoint.folder().join("d")).expect("made");
    laneway.run(["cp", "d", "s3://bucket/"]).exits(2).complains(&["d", "-r"]);
    laneway.run(["stat", "s3://bucket/"]).exits(2).complains(&["s3://bucket", "no object"]);
    laneway.run(["cat", "gs://bucket"]).exits(2).complains(&["gs://bucket", "no object"]);
    assert!(endpoint.server().store().keys("bucket").is_empty());
}

#[test]
fn a_key_that_would_escape_is_refused_and_the_rest_is_done() {
    let (endpoint, laneway) = plain();
    for key in ["p/good", "p/../../evil", "p/a/../b"] {
        endpoint.server().store().put("bucket", key, b"x").expect("stored");
    }
    let run = laneway.run(["cp", "-r", "s3://bucket/p/", "in/here/"]).exits(1);
    assert_eq!(run.stderr.matches("laneway: ").count(), 2, "{}", run.stderr);
    assert!(run.stderr.contains("p/../../evil"), "{}", run.stderr);
    let files: Vec<_> = walk(&endpoint.folder());
    assert!(files.iter().all(|file| file.ends_with("good")), "{files:?}");
    assert_eq!(files.len(), 1);
}

#[test]
fn an_absolute_key_stays_below_the_destination() {
    let (endpoint, laneway) = plain();
    endpoint.server().store().put("bucket", "p//etc/laneway-evil", b"x").expect("stored");
    let run = laneway.run(["cp", "-r", "s3://bucket/p/", "in/"]);
    assert!(!Path::new("/etc/laneway-evil").exists());
    assert!(run.status == Some(1) || walk(&endpoint.folder()).len() == 1, "{}", run.stderr);
}

#[test]
fn two_sources_never_share_one_destination() {
    let (endpoint, laneway) = plain();
    for folder in ["a", "b"] {
        fs::create_dir(endpoint.folder().join(folder)).expect("made");
        fs::write(endpoint.folder().join(folder).join("same"), folder).expect("written");
    }
    let run = laneway.run(["cp", "a/same", "b/same", "s3://bucket/p/"]);
    assert_ne!(run.status, Some(0));
    assert!(run.stderr.contains("b/same") && run.stderr.contains("p/same"), "{}", run.stderr);

    for key in ["x/same", "y/same"] {
        endpoint.server().store().put("bucket", key, key.as_bytes()).expect("stored");
    }
    let run = laneway.run(["cp", "s3://bucket/x/same", "s3://bucket/y/same", "in/"]);
    assert_ne!(run.status, Some(0));
    assert!(run.stderr.contains("y/same"), "{}", run.stderr);
    assert!(walk(&endpoint.folder().join("in")).len() <= 1);
}

#[test]
fn several_sources_need_a_folder_to_go_to() {
    let (endpoint, laneway) = plain();
    for name in ["a", "b"] {
        fs::write(endpoint.folder().join(name), name).expect("written");
    }
    laneway.run(["cp", "a", "b", "s3://bucket/one"]).exits(2).complains(&["s3://bucket/one"]);
    assert!(endpoint.server().store().keys("bucket").is_empty());
}

#[test]
fn a_pattern_that_matches_nothing_fails() {
    let (_endpoint, laneway) = plain();
    laneway.run(["cp", "s3://bucket/*.none", "."]).exits(1).complains(&["s3://bucket/*.none"]);
    laneway.run(["rm", "--yes", "s3://bucket/*.none"]).exits(1).complains(&["s3://bucket/*.none"]);
}

#[test]
fn bytes_that_were_spoilt_on_the_way_never_become_a_file() {
    let spoilt = Config { faults: Faults::parse(["get corrupt@1000"]).expect("a rule"), ..Config::default() };
    let endpoint = Endpoint::start_with(Wire::Plain, spoilt);
    endpoint.server().store().put("bucket", "k", &random_bytes(1, 100_000)).expect("stored");
    fs::write(endpoint.folder().join("k"), "old").expect("written");
    let laneway = endpoint.program(LANEWAY);
    laneway.run(["cp", "s3://bucket/k", "k"]).exits(1).complains(&["s3://bucket/k"]);
    assert_eq!(fs::read(endpoint.folder().join("k")).expect("read"), b"old");
    assert_eq!(entries(&endpoint.folder()), ["k"]);
}

#[test]
fn a_local_path_is_no_object() {
    let (endpoint, laneway) = plain();
    fs::write(endpoint.folder().join("f"), "x").expect("written");
    for verb in ["ls", "cat", "stat", "rm"] {
        laneway.run([verb, "f"]).exits(2).complains(&["f", "local path"]);
    }
    assert_eq!(entries(&endpoint.folder()), ["f"]);
}

#[test]
fn an_unknown_option_is_bad_usage() {
    let (_endpoint, laneway) = plain();
    let run = laneway.run(["cp", "--no-such-option", "a", "b"]).exits(2);
    assert!(run.stderr.contains("--no-such-option"));
    laneway.run(["--bandwidth-limit", "fast", "ls", "s3://bucket"]).exits(2);
}

fn walk(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(folder) else { continue };
        for entry in entries {
            let path = entry.expect("an entry").path();
            if path.is_dir() { folders.push(path) } else { found.push(path.display().to_string()) }
        }
    }
    found
}

#[test]
fn removing_by_an_inventory_what_a_source_lacks_is_bad_usage() {
    let (endpoint, laneway) = plain();
    endpoint.server().store().put("bucket", "q/since", b"x").expect("stored");
    fs::write(endpoint.folder().join("i"), "").expect("written");
    let run =
        laneway.run(["sync", "--delete", "--inventory", "i", "gs://bucket/p", "s3://bucket/q"]).exits(2);
    run.complains(&["i: ", "since it was made"]);
    assert_eq!(endpoint.server().store().keys("bucket"), ["q/since"]);
}
