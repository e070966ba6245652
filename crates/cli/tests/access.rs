//! Credentials, presigned URLs, encryption, access control, tags and locks by the real binary against the embedded
//! server.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::sync::{Mutex, PoisonError, mpsc};

use laneway_server::Attributes;
use laneway_testkit::{Asked, Endpoint, Program, Scripted, Wire, answer};

const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");

#[test]
fn a_url_is_all_that_is_printed_and_headers_to_be_sent_are_told_to_people() {
    let endpoint = Endpoint::start(Wire::Plain);
    let laneway = endpoint
        .program(LANEWAY)
        .with("AWS_ACCESS_KEY_ID", "laneway")
        .with("AWS_SECRET_ACCESS_KEY", "lanewaysecret");
    let ended = laneway.run(["sign", "s3://bucket/a b", "s3://bucket/c", "--expires", "7d"]).succeeds();
    let lines = ended.lines();
    assert_eq!(lines.len(), 2);
    assert!(lines[0].contains("/bucket/a%20b?X-Amz-Algorithm=AWS4-HMAC-SHA256&"), "{}", lines[0]);
    assert!(lines[1].contains("&X-Amz-Expires=604800&"), "{}", lines[1]);
    assert!(!format!("{lines:?}").contains("lanewaysecret"));

    let written = laneway
        .run(["sign", "--json", "--method", "put", "--header", "Content-Type: a/b", "s3://bucket/k"])
        .succeeds();
    let record = written.record("signed_url");
    assert_eq!((record["kind"].as_str(), record["method"].as_str()), (Some("signed_url"), Some("PUT")));
    assert_eq!(
        (record["source"].as_str(), &record["headers"]["content-type"]),
        (Some("s3://bucket/k"), &"a/b".into())
    );
    assert!(record["expires_at"].as_str().is_some_and(|time| time.ends_with('Z')), "{record}");
    let shown =
        laneway.run(["sign", "--method", "PUT", "--header", "Content-Type: a/b", "s3://bucket/k"]).succeeds();
    assert!(
        shown.stderr.contains("send this header with the request: content-type: a/b"),
        "{}",
        shown.stderr
    );
}

#[test]
fn what_cannot_be_signed_is_said_of_its_object() {
    let endpoint = Endpoint::start(Wire::Plain);
    let laneway = endpoint.program(LANEWAY);
    for (line, why) in [
        (&["sign", "gs://bucket/k", "--anonymous"][..], "anonymous"),
        (&["sign", "gs://bucket/k", "--expires", "8d"], "7 days"),
        (&["sign", "gs://bucket/k", "--query", "X-Goog-Expires=1"], "belongs to the signature"),
    ] {
        laneway.run(line).exits(1).complains(&[why, "gs://bucket/k"]);
    }
    let unknown = laneway.run(["sign", "gs://bucket/k", "--method", "PATCH"]).exits(2);
    assert!(unknown.stderr.contains("GET, HEAD"), "{}", unknown.stderr);
}

/// The base64 of 32 bytes.
const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

#[test]
fn what_new_objects_are_asked_to_be_is_shown_by_stat() {
    let endpoint = Endpoint::start(Wire::Plain);
    endpoint.server().store().allow_locks("bucket").expect("it has locks");
    let laneway = endpoint.program(LANEWAY);
    fs::write(endpoint.folder().join("f"), "bytes").expect("written");
    let protected = [
        "--sse",
        "aws:kms",
        "--kms-key",
        "key-1",
        "--kms-bucket-key",
        "--kms-context",
        "team=a",
        "--acl",
        "bucket-owner-full-control",
        "--tags",
        "team=a b,cost=1",
        "--lock-mode",
        "governance",
        "--lock-until",
        "2127-01-31",
        "--legal-hold",
    ];
    laneway.run(["cp", "f", "s3://bucket/k"].into_iter().chain(protected)).succeeds();
    let stat = laneway.run(["stat", "--json", "s3://bucket/k"]).succeeds();
    let record = stat.record("object");
    assert_eq!(record["encryption"], "aws:kms");
    assert_eq!((&record["kms_key"], &record["bucket_key"]), (&"key-1".into(), &true.into()));
    assert_eq!((&record["tags"], &record["legal_hold"]), (&2.into(), &true.into()));
    assert_eq!(
        (&record["lock_mode"], &record["lock_until"]),
        (&"GOVERNANCE".into(), &"2127-01-31T00:00:00Z".into())
    );
    let asked =
        endpoint.server().store().object("bucket", "k").expect("it is there").attributes.options.clone();
    assert_eq!(asked.acl.as_deref(), Some("bucket-owner-full-control"));
    assert_eq!(asked.tags["team"], "a b");
    let stat = laneway.run(["stat", "s3://bucket/k"]).succeeds();
    assert!(stat.text().contains("GOVERNANCE until 2127-01-31"), "{}", stat.text());
}

#[test]
fn a_customers_key_comes_from_a_file_or_a_variable_and_is_never_shown() {
    for scheme in ["s3", "gs"] {
        let endpoint = Endpoint::start(Wire::TlsH1);
        let laneway = endpoint.program(LANEWAY);
        let folder = endpoint.folder();
        fs::write(folder.join("f"), "bytes").expect("written");
        fs::write(folder.join("key"), format!("{KEY}\n")).expect("written");
        let url = format!("{scheme}://bucket/k");
        let by_file = ["--customer-key-file", "key"];
        let up = laneway.run(["cp", "-vv", "f", &url].into_iter().chain(by_file)).succeeds();
        assert!(!up.stderr.contains(KEY) && !up.text().contains(KEY), "{}", up.stderr);
        let with_variable = endpoint.program(LANEWAY).with("LANEWAY_CUSTOMER_KEY", KEY);
        assert_eq!(with_variable.run(["cat", &url]).succeeds().text(), "bytes");
        let shown = with_variable.run(["stat", &url]).succeeds();
        assert!(shown.text().contains("customer AES256") && !shown.text().contains(KEY), "{}", shown.text());
        assert_eq!(laneway.run(["cat", &url]).status, Some(1), "the object's key is missing");
    }
}

#[test]
fn what_is_no_key_and_half_a_lock_are_bad_usage() {
    let endpoint = Endpoint::start(Wire::Plain);
    let laneway = endpoint.program(LANEWAY).with("LANEWAY_CUSTOMER_KEY", "hunter2");
    let refused = laneway.run(["ls", "s3://bucket"]);
    assert_eq!(refused.status, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("LANEWAY_CUSTOMER_KEY") && !refused.stderr.contains("hunter2"));
    let laneway = endpoint.program(LANEWAY);
    for half in [["--lock-mode", "compliance"], ["--lock-until", "2127-01-31"], ["--sse", "rot13"]] {
        let refused = laneway.run(["cp", "f", "s3://bucket/k"].into_iter().chain(half));
        assert_eq!(refused.status, Some(2), "{half:?}: {}", refused.stderr);
    }
}

#[test]
fn archived_objects_of_a_tree_are_left_out_with_a_count() {
    let endpoint = Endpoint::start(Wire::Plain);
    let laneway = endpoint.program(LANEWAY);
    let cold = Attributes { storage_class: Some("GLACIER".to_owned()), ..Attributes::default() };
    for key in ["t/1", "t/2"] {
        endpoint.server().store().put_with("bucket", key, b"cold", cold.clone()).expect("stored");
    }
    endpoint.server().store().put("bucket", "t/warm", b"warm").expect("stored");
    let down = laneway.run(["cp", "-r", "s3://bucket/t", "down"]).succeeds();
    assert!(down.stderr.contains("2 skipped"), "{}", down.stderr);
    assert!(down.stderr.contains("one of 2 archived objects"), "{}", down.stderr);
    let named = laneway.run(["cp", "s3://bucket/t/1", "one"]);
    assert_eq!(named.status, Some(1));
    assert!(named.stderr.contains("archived"), "{}", named.stderr);
}

#[test]
fn tags_and_access_control_lists_are_changed_in_place_and_shown() {
    let config = laneway_server::Config { accept_unenforced: true, ..Default::default() };
    let endpoint = Endpoint::start_with(Wire::Plain, config);
    let laneway = endpoint.program(LANEWAY);
    endpoint.put("k", b"bytes");
    let before = endpoint.server().store().object("bucket", "k").expect("it is there").generation;
    laneway.run(["setmeta", "s3://bucket/k", "--tags", "team=a b,cost=1", "--acl", "public-read"]).succeeds();
    let now = endpoint.server().store().object("bucket", "k").expect("it is there");
    assert_eq!(now.generation, before, "no copy is needed");
    let shown = laneway.run(["stat", "--json", "--tags", "--acl", "s3://bucket/k"]).succeeds();
    let record = shown.record("object");
    assert_eq!(record["tag_values"], serde_json::json!({"cost": "1", "team": "a b"}));
    assert_eq!(record["grants"][1], serde_json::json!({"grantee": "AllUsers", "permission": "READ"}));
    let text = laneway.run(["stat", "--tags", "--acl", "s3://bucket/k"]).succeeds().text();
    assert!(text.contains("Tag team:") && text.contains("READ to AllUsers"), "{text}");
    laneway.run(["setmeta", "s3://bucket/k", "--cache-control", "no-store", "--clear-tags"]).succeeds();
    let now = endpoint.server().store().object("bucket", "k").expect("it is there");
    assert!(now.attributes.options.tags.is_empty() && now.generation != before);
    assert_eq!(now.attributes.cache_control.as_deref(), Some("no-store"));
    laneway.run(["setmeta", "gs://bucket/k", "--acl", "public-read"]).succeeds();
    let now = endpoint.server().store().object("bucket", "k").expect("it is there");
    assert_eq!(now.attributes.options.acl.as_deref(), Some("publicRead"));
    laneway.run(["setmeta", "gs://bucket/k", "--tags", "a=b"]).exits(1).complains(&["no tags"]);
    let mut config = laneway_server::Config { accept_unenforced: true, ..Default::default() };
    config.habits.access_lists = false;
    let endpoint = Endpoint::start_with(Wire::Plain, config);
    endpoint.put("k", b"bytes");
    let refused =
        endpoint.program(LANEWAY).run(["setmeta", "s3://bucket/k", "--acl", "public-read"]).exits(1);
    refused.complains(&["s3://bucket/k", "does not allow ACLs"]);
}

#[test]
fn expiry_and_custom_time_are_set_where_the_store_has_them() {
    let endpoint = Endpoint::start(Wire::Plain);
    let laneway = endpoint.program(LANEWAY);
    fs::write(endpoint.folder().join("f"), "bytes").expect("written");
    let shown = |url: &str| laneway.run(["stat", "--json", url]).succeeds().record("object");
    laneway.run(["cp", "--expires", "2027-01-31", "f", "s3://bucket/e"]).succeeds();
    assert_eq!(shown("s3://bucket/e")["expires"], "Sun, 31 Jan 2027 00:00:00 GMT");
    laneway.run(["setmeta", "--expires", "2028-01-31T12:00:00Z", "s3://bucket/e"]).succeeds();
    assert_eq!(shown("s3://bucket/e")["expires"], "Mon, 31 Jan 2028 12:00:00 GMT");
    laneway.run(["setmeta", "--cache-control", "no-store", "s3://bucket/e"]).succeeds();
    assert_eq!(shown("s3://bucket/e")["expires"], "Mon, 31 Jan 2028 12:00:00 GMT", "a change keeps it");
    laneway.run(["cp", "--custom-time", "2026-01-31", "f", "gs://bucket/c"]).succeeds();
    assert_eq!(shown("gs://bucket/c")["custom_time"], "2026-01-31T00:00:00Z");
    laneway.run(["setmeta", "--custom-time", "2027-01-31", "gs://bucket/c"]).succeeds();
    assert_eq!(shown("gs://bucket/c")["custom_time"], "2027-01-31T00:00:00Z");
    laneway.run(["setmeta", "--custom-time", "2026-01-31", "gs://bucket/c"]).exits(1);
    laneway.run(["cp", "--expires", "2027-01-31", "f", "gs://bucket/e"]).exits(1).complains(&["no Expires"]);
    laneway
        .run(["cp", "--custom-time", "2027-01-31", "f", "s3://bucket/c"])
        .exits(1)
        .complains(&["custom time"]);
}

#[test]
fn archived_objects_are_restored_and_listings_show_how_far_it_is() {
    let endpoint = Endpoint::start(Wire::Plain);
    let laneway = endpoint.program(LANEWAY);
    let store = endpoint.server().store();
    let of_class =
        |class: &str| Attributes { storage_class: Some(class.to_owned()), ..Attributes::default() };
    for (key, class) in [("t/1", "GLACIER"), ("t/2", "DEEP_ARCHIVE"), ("t/warm", "GLACIER_IR")] {
        store.put_with("bucket", key, b"cold", of_class(class)).expect("stored");
    }
    let ends = |url: &str| {
        // The first listing's answer identifies the service. Laneway requests the restore status only from services that it knows.
        let listed = laneway.run(["ls", "-l", "-r", "s3://bucket/t/warm", url]).succeeds();
        let lines = listed.lines().into_iter().filter(|line| line.contains("s3://"));
        lines
            .skip(1)
            .map(|line| line.split("s3://bucket/").nth(1).unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(ends("s3://bucket/t"), ["t/1  (archived)", "t/2  (archived)", "t/warm"]);
    let planned = laneway.run(["restore", "-r", "--dry-run", "--days", "2", "s3://bucket/t"]).succeeds();
    assert!(planned.stderr.contains("would restore 2 objects"), "{}", planned.stderr);
    let planned = laneway.run(["restore", "--dry-run", "--days", "2", "s3://bucket/t/warm"]).succeeds();
    assert!(planned.stderr.contains("0 objects restored or requested, 1 skipped"), "{}", planned.stderr);
    let refused = laneway.run(["restore", "s3://bucket/t/1"]).exits(1);
    assert!(refused.stderr.contains("MalformedXML") || refused.stderr.contains("XML"), "{}", refused.stderr);
    let begun = laneway.run(["restore", "-r", "--days", "2", "--tier", "Bulk", "s3://bucket/t"]).succeeds();
    assert!(begun.stderr.contains("2 objects restored or requested, 1 skipped"), "{}", begun.stderr);
    assert_eq!(ends("s3://bucket/t"), ["t/1  (being restored)", "t/2  (being restored)", "t/warm"]);
    let again = laneway.run(["restore", "-r", "--json", "--days", "2", "s3://bucket/t"]).succeeds();
    let skipped = again.json().into_iter().filter(|record| record["op"] == "restore");
    let whys: Vec<String> =
        skipped.map(|record| record["skipped"].as_str().unwrap_or_default().to_owned()).collect();
    assert_eq!(whys.iter().filter(|why| why.contains("already being restored")).count(), 2, "{whys:?}");
    let shown = laneway.run(["stat", "s3://bucket/t/1"]).succeeds();
    assert!(shown.text().contains("ongoing-request=\"true\""), "{}", shown.text());
    laneway.run(["restore", "--days", "2", "s3://bucket/none"]).exits(1).complains(&["s3://bucket/none"]);
    laneway.run(["restore", "--days", "0", "s3://bucket/t/1"]).exits(2);
    laneway.run(["restore", "gs://bucket/t/1"]).exits(1);
}

/// The answers of the EC2 metadata service may travel only one hop, but a container is two hops away. The service accepts the connection,
/// but its answer never arrives.
#[test]
fn a_metadata_service_that_begins_no_session_is_explained() {
    let (release, held) = mpsc::channel::<()>();
    let held = Mutex::new(held);
    let silent = Scripted::serve(move |asked: &Asked| {
        assert_eq!((asked.method.as_str(), asked.target.as_str()), ("PUT", "/latest/api/token"));
        // Wait until the program has printed that it waits for credentials.
        let _ = held.lock().unwrap_or_else(PoisonError::into_inner).recv();
        answer(403, &[], "")
    });
    let home = tempfile::tempdir().expect("a folder");
    let laneway = Program::new(LANEWAY, home.path())
        .with("LANEWAY_RETRY_FOR", "20s")
        .with("AWS_REGION", "us-east-1")
        .with("AWS_EC2_METADATA_DISABLED", "false")
        .with("AWS_EC2_METADATA_SERVICE_ENDPOINT", silent.url());
    let mut running = laneway.start(["ls", "s3://bucket"]);
    let (mut stderr, mut said) = (BufReader::new(running.stderr()), String::new());
    while !said.contains("hop limit of 2") {
        assert!(stderr.read_line(&mut said).unwrap() > 0, "{said}");
    }
    drop(release);
    stderr.read_to_string(&mut said).unwrap();
    running.end().exits(1);
    let lines: Vec<&str> = said.lines().filter(|line| line.contains("hop limit of 2")).collect();
    assert!(lines.len() == 1 && lines[0].contains("has not answered for 2"), "{said}");
    assert!(said.contains("turned off"), "{said}");
}
