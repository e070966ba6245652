//! Objects and buckets of the S3 dialect, unsigned, and archived objects with their restoration.

use std::time::Duration;

use laneway_server::Attributes;

use crate::client::{Answer, PROTOCOLS, Protocol, Rig};

#[test]
fn an_object_is_put_read_and_deleted_over_every_protocol() {
    for protocol in PROTOCOLS {
        let rig = Rig::with(protocol, |_| {});
        let headers = [("content-type", "text/plain"), ("x-amz-meta-colour", "red")];
        let put = rig.send("PUT", "/demo/a//b%20c", &headers, "hello").unwrap();
        assert_eq!((put.status, put.header("etag")), (200, "\"5d41402abc4b2a76b9719d911017c592\""));
        let got = rig.get("/demo/a//b%20c");
        assert_eq!(
            (got.text(), got.header("content-type"), got.header("x-amz-meta-colour")),
            ("hello", "text/plain", "red")
        );
        let head = rig.send("HEAD", "/demo/a//b%20c", &[], "").unwrap();
        assert_eq!((head.status, head.header("content-length")), (200, "5"));
        assert_eq!(rig.server.store().keys("demo"), ["a//b c"]);
        assert_eq!(rig.send("DELETE", "/demo/a//b%20c", &[], "").unwrap().status, 204);
        assert_eq!(rig.send("DELETE", "/demo/a//b%20c", &[], "").unwrap().status, 204);
        let missing = rig.get("/demo/a//b%20c");
        assert_eq!((missing.status, missing.element("Code")), (404, "NoSuchKey"));
        assert_eq!(rig.send("HEAD", "/demo/a//b%20c", &[], "").unwrap().status, 404);
        assert_eq!(rig.send("PUT", "/missing/k", &[], "x").unwrap().element("Code"), "NoSuchBucket");
    }
}

#[test]
fn what_one_dialect_writes_the_other_reads() {
    let rig = Rig::new();
    rig.send("PUT", "/demo/s3", &[], "from s3").unwrap();
    assert_eq!(rig.get("/storage/v1/b/demo/o/s3?alt=media").text(), "from s3");
    rig.send("POST", "/upload/storage/v1/b/demo/o?uploadType=media&name=gcs", &[], "from gcs").unwrap();
    let got = rig.send("GET", "/demo/gcs", &[("x-amz-checksum-mode", "ENABLED")], "").unwrap();
    assert_eq!((got.text(), got.header("x-amz-checksum-type")), ("from gcs", "FULL_OBJECT"));
    assert_ne!(got.header("x-amz-checksum-crc32c"), "");
}

#[test]
fn checksums_come_with_the_mode_and_never_with_a_range() {
    let rig = Rig::new();
    rig.send("PUT", "/demo/k", &[("x-amz-checksum-crc32c", "mnG7TA==")], "hello").unwrap();
    let get = |headers: &[(&str, &str)]| rig.send("GET", "/demo/k", headers, "").unwrap();
    let mode = ("x-amz-checksum-mode", "ENABLED");
    assert_eq!(get(&[mode]).header("x-amz-checksum-crc32c"), "mnG7TA==");
    assert_eq!(get(&[]).header("x-amz-checksum-crc32c"), "");
    let ranged = get(&[mode, ("range", "bytes=1-3")]);
    assert_eq!((ranged.status, ranged.text(), ranged.header("content-range")), (206, "ell", "bytes 1-3/5"));
    assert_eq!(ranged.header("x-amz-checksum-crc32c"), "");
    let head = rig.send("HEAD", "/demo/k", &[mode], "").unwrap();
    assert_eq!(
        (head.header("x-amz-checksum-crc32c"), head.header("x-amz-checksum-type")),
        ("mnG7TA==", "FULL_OBJECT")
    );
    // If the client chose none, S3 computes CRC64NVME.
    rig.send("PUT", "/demo/plain", &[], "123456789").unwrap();
    let plain = rig.send("HEAD", "/demo/plain", &[mode], "").unwrap();
    assert_eq!(plain.header("x-amz-checksum-crc64nvme"), "rosUhgp5mIg=");
}

#[test]
fn wrong_checksums_are_refused_and_nothing_is_stored() {
    let rig = Rig::new();
    for (name, value) in [
        ("x-amz-checksum-crc32", "AAAAAA=="),
        ("x-amz-checksum-crc32c", "AAAAAA=="),
        ("x-amz-checksum-crc64nvme", "AAAAAAAAAAA="),
        ("x-amz-checksum-sha1", "AAAA"),
        ("x-amz-checksum-sha256", "AAAA"),
        ("content-md5", "AAAAAAAAAAAAAAAAAAAAAA=="),
    ] {
        let refused = rig.send("PUT", "/demo/k", &[(name, value)], "hello").unwrap();
        assert_eq!((refused.status, refused.element("Code")), (400, "BadDigest"), "{name}");
    }
    assert_eq!(
        rig.send("PUT", "/demo/k", &[("content-md5", "short")], "hello").unwrap().element("Code"),
        "InvalidDigest"
    );
    assert!(rig.server.store().keys("demo").is_empty());
    let right = [("x-amz-checksum-sha256", "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=")];
    assert_eq!(rig.send("PUT", "/demo/k", &right, "hello").unwrap().status, 200);
}

#[test]
fn ranges_are_satisfied_or_416() {
    let rig = Rig::new();
    rig.send("PUT", "/demo/k", &[], "0123456789").unwrap();
    rig.send("PUT", "/demo/empty", &[], "").unwrap();
    let range = |path: &str, range: &str| rig.send("GET", path, &[("range", range)], "").unwrap();
    assert_eq!(range("/demo/k", "bytes=-3").text(), "789");
    assert_eq!(range("/demo/k", "bytes=4-").text(), "456789");
    assert_eq!(range("/demo/k", "bytes=8-20").header("content-range"), "bytes 8-9/10");
    for (path, asked) in [("/demo/k", "bytes=10-"), ("/demo/empty", "bytes=0-")] {
        let refused = range(path, asked);
        assert_eq!((refused.status, refused.element("Code")), (416, "InvalidRange"));
    }
}

#[test]
fn etags_decide_whether_a_request_goes_through() {
    let rig = Rig::new();
    let etag = rig.send("PUT", "/demo/k", &[], "hello").unwrap().header("etag").to_owned();
    let get = |name: &str, value: &str| rig.send("GET", "/demo/k", &[(name, value)], "").unwrap().status;
    assert_eq!(get("if-match", &etag), 200);
    assert_eq!(get("if-match", "\"0\""), 412);
    assert_eq!(get("if-none-match", &etag), 304);
    assert_eq!(get("if-none-match", "\"0\""), 200);
    let put = |key: &str, name: &str, value: &str| rig.send("PUT", key, &[(name, value)], "new").unwrap();
    assert_eq!(put("/demo/k", "if-none-match", "*").element("Code"), "PreconditionFailed");
    assert_eq!(put("/demo/other", "if-none-match", "*").status, 200);
    assert_eq!(put("/demo/nothing", "if-match", "\"0\"").status, 404);
    assert_eq!(put("/demo/k", "if-match", "\"0\"").status, 412);
    assert_eq!(put("/demo/k", "if-match", &etag).status, 200);
}

#[test]
fn copies_keep_or_replace_metadata() {
    let rig = Rig::new();
    rig.send("PUT", "/demo/k%2B", &[("x-amz-meta-a", "1")], "hello").unwrap();
    let copy = |to: &str, headers: &[(&str, &str)]| {
        let headers = [&[("x-amz-copy-source", "/demo/k%2B")], headers].concat();
        rig.send("PUT", to, &headers, "").unwrap()
    };
    assert_eq!(copy("/demo/c", &[]).element("ETag").trim_matches('"').len(), 32);
    assert_eq!(rig.get("/demo/c").header("x-amz-meta-a"), "1");
    copy("/demo/c", &[("x-amz-metadata-directive", "REPLACE"), ("x-amz-meta-b", "2")]);
    let replaced = rig.get("/demo/c");
    assert_eq!((replaced.header("x-amz-meta-a"), replaced.header("x-amz-meta-b")), ("", "2"));
    assert_eq!(copy("/demo/k%2B", &[]).element("Code"), "InvalidRequest");
    assert_eq!(copy("/demo/x", &[("x-amz-copy-source-if-match", "\"0\"")]).status, 412);
}

#[test]
fn a_plus_sign_in_a_copy_source_is_a_space() {
    let rig = Rig::new();
    rig.server.store().put("demo", "a b", b"space").unwrap();
    rig.server.store().put("demo", "a+b", b"plus").unwrap();
    for (source, content) in [("a+b", "space"), ("a%20b", "space"), ("a%2Bb", "plus")] {
        let header = format!("demo/{source}");
        let copied = rig.send("PUT", "/demo/copy", &[("x-amz-copy-source", &header)], "").unwrap();
        assert_eq!((copied.status, rig.get("/demo/copy").text()), (200, content), "{source}");
    }
}

#[test]
fn many_objects_are_deleted_at_once() {
    let rig = Rig::new();
    for key in ["a", "b"] {
        rig.server.store().put("demo", key, b"").unwrap();
    }
    let body = "<Delete><Object><Key>a</Key></Object><Object><Key>gone</Key></Object></Delete>";
    let answer = rig.send("POST", "/demo?delete", &[], body).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.text().matches("<Deleted>").count(), 2);
    assert_eq!(rig.server.store().keys("demo"), ["b"]);
}

#[test]
fn listings_come_in_pages_and_encoded_if_asked_for() {
    let rig = Rig::new();
    for key in ["a b", "d/1", "d/2", "e&"] {
        rig.server.store().put("demo", key, b"xy").unwrap();
    }
    let first = rig.get("/demo?list-type=2&max-keys=2&delimiter=/&encoding-type=url");
    assert_eq!(
        (first.element("Key"), first.element("KeyCount"), first.element("IsTruncated")),
        ("a%20b", "2", "true")
    );
    assert!(first.text().contains("<CommonPrefixes><Prefix>d/</Prefix></CommonPrefixes>"));
    let token = first.element("NextContinuationToken").replace('=', "%3D");
    let second = rig.get(&format!("/demo?list-type=2&delimiter=/&continuation-token={token}"));
    assert_eq!((second.element("Key"), second.element("IsTruncated")), ("e&amp;", "false"));
    assert_eq!(rig.get("/demo?list-type=2&start-after=d%2F1").element("Key"), "d/2");
    for (delimiter, marker) in [("", ""), ("&delimiter=/", "d/1")] {
        let old = rig.get(&format!("/demo?max-keys=1&prefix=d/{delimiter}"));
        assert_eq!((old.element("Key"), old.element("NextMarker")), ("d/1", marker));
    }
    assert_eq!(rig.get("/demo?marker=d%2F1&prefix=d").element("Key"), "d/2");
    assert_eq!(rig.get("/demo?list-type=2&max-keys=0").element("IsTruncated"), "false");
    assert_eq!(rig.get("/missing?list-type=2").element("Code"), "NoSuchBucket");
}

#[test]
fn buckets_are_made_and_unmade() {
    let rig = Rig::new();
    assert_eq!(rig.send("PUT", "/new", &[], "").unwrap().status, 200);
    assert_eq!(rig.send("PUT", "/new", &[], "").unwrap().status, 200, "as in us-east-1");
    assert!(rig.get("/").text().contains("<Name>new</Name>"));
    assert_eq!(rig.send("HEAD", "/new", &[], "").unwrap().header("x-amz-bucket-region"), "us-east-1");
    assert_eq!(rig.get("/new?location").status, 200);
    rig.server.store().put("new", "k", b"").unwrap();
    assert_eq!(rig.send("DELETE", "/new", &[], "").unwrap().element("Code"), "BucketNotEmpty");
    rig.server.store().remove("new", "k");
    assert_eq!(rig.send("DELETE", "/new", &[], "").unwrap().status, 204);
    assert_eq!(rig.send("HEAD", "/new", &[], "").unwrap().status, 404);
}

#[test]
fn a_denied_bucket_answers_403_in_both_dialects() {
    let rig = Rig::with(Protocol::PlainH1, |config| config.denied_buckets = ["demo".to_owned()].into());
    assert_eq!(rig.get("/demo/k").element("Code"), "AccessDenied");
    let refused = rig.get("/storage/v1/b/demo/o/k");
    assert_eq!((refused.status, &refused.json()["error"]["errors"][0]["reason"]), (403, &"forbidden".into()));
}

#[test]
fn missing_buckets_are_created_only_when_told_to() {
    let rig = Rig::with(Protocol::PlainH1, |config| config.create_buckets = true);
    assert_eq!(rig.send("PUT", "/fresh/k", &[], "x").unwrap().status, 200);
    assert_eq!(rig.get("/other/k").status, 404);
}

#[test]
fn the_longest_key_and_the_strangest_are_kept() {
    let rig = Rig::new();
    let long = "k".repeat(1024);
    for (path, key) in [
        (format!("/demo/{long}"), long.as_str()),
        ("/demo/%2E%2E/%2E%2E/etc".to_owned(), "../../etc"),
        ("/demo/%C3%A4%E6%97%A5/".to_owned(), "ä日/"),
        ("/demo/100%25+1".to_owned(), "100%+1"),
    ] {
        assert_eq!(rig.send("PUT", &path, &[], key.to_owned()).unwrap().status, 200, "{path}");
        assert_eq!(rig.server.store().read("demo", key).unwrap(), key.as_bytes());
        assert_eq!(rig.get(&path).text(), key);
    }
    assert_eq!(
        rig.send("PUT", &format!("/demo/{long}k"), &[], "").unwrap().element("Code"),
        "KeyTooLongError"
    );
}

#[test]
fn tags_lists_and_locks_keep_the_time_of_an_object() {
    let rig = Rig::new();
    rig.server.store().allow_locks("demo").unwrap();
    rig.send("PUT", "/demo/k", &[], "x").unwrap();
    let shown = || {
        let listed = rig.get("/demo?list-type=2").element("LastModified").to_owned();
        (listed, rig.send("HEAD", "/demo/k", &[], "").unwrap().header("last-modified").to_owned())
    };
    let before = shown();
    let tags = "<Tagging><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tagging>";
    let hold = "<LegalHold><Status>ON</Status></LegalHold>";
    for (query, acl, body) in [("acl", "private", ""), ("tagging", "", tags), ("legal-hold", "", hold)] {
        let headers = [("x-amz-acl", acl)].into_iter().filter(|(_, acl)| !acl.is_empty()).collect::<Vec<_>>();
        // Times in listings have milliseconds. So repeat the change until its millisecond differs from that of the
        // creation.
        loop {
            assert_eq!(rig.send("PUT", &format!("/demo/k?{query}"), &headers, body).unwrap().status, 200);
            let object = rig.server.store().object("demo", "k").unwrap();
            if object.updated_us / 1000 != object.created_us / 1000 {
                break;
            }
        }
        assert_eq!(shown(), before, "{query}");
    }
}

const RESTORE: &str = "<RestoreRequest xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Days>2</Days>\
                       <GlacierJobParameters><Tier>Expedited</Tier></GlacierJobParameters></RestoreRequest>";

/// Returns a server whose restorations take this long.
fn rig(restores_take: Duration) -> Rig {
    Rig::with(Protocol::PlainH1, |config| config.s3.restores_take = restores_take)
}

fn cold(rig: &Rig, key: &str, class: &str) {
    let path = format!("/demo/{key}");
    assert_eq!(rig.send("PUT", &path, &[("x-amz-storage-class", class)], "cold").unwrap().status, 200);
}

fn restore(rig: &Rig, key: &str) -> Answer {
    rig.send("POST", &format!("/demo/{key}?restore"), &[], RESTORE).unwrap()
}

fn head(rig: &Rig, key: &str) -> Answer {
    rig.send("HEAD", &format!("/demo/{key}"), &[], "").unwrap()
}

/// Returns a listing, with or without a request for the restore status.
fn listed(rig: &Rig, query: &str, asks: bool) -> Answer {
    let asking = [("x-amz-optional-object-attributes", "RestoreStatus")];
    rig.send("GET", &format!("/demo?{query}"), if asks { &asking } else { &[] }, "").unwrap()
}

#[test]
fn who_reads_or_copies_what_is_archived_is_told_its_class() {
    let rig = Rig::new();
    for class in ["GLACIER", "DEEP_ARCHIVE"] {
        cold(&rig, "k", class);
        let copy = [("x-amz-copy-source", "demo/k")];
        for refused in [rig.get("/demo/k"), rig.send("PUT", "/demo/to", &copy, "").unwrap()] {
            assert_eq!((refused.status, refused.element("Code")), (403, "InvalidObjectState"));
            assert_eq!((refused.element("StorageClass"), refused.element("AccessTier")), (class, ""));
            assert!(refused.headers.keys().all(|name| !name.as_str().starts_with("archived")));
        }
        let head = head(&rig, "k");
        assert_eq!((head.status, head.header("x-amz-restore")), (200, ""));
    }
}

#[test]
fn who_reads_what_is_tiered_into_an_archive_is_told_its_tier() {
    let rig = rig(Duration::ZERO);
    let attributes = Attributes {
        storage_class: Some("INTELLIGENT_TIERING".into()),
        archive_status: Some("ARCHIVE_ACCESS".into()),
        ..Attributes::default()
    };
    rig.server.store().put_with("demo", "k", b"cold", attributes).unwrap();
    assert_eq!(head(&rig, "k").header("x-amz-archive-status"), "ARCHIVE_ACCESS");
    let refused = rig.get("/demo/k");
    assert_eq!((refused.status, refused.element("Code")), (403, "InvalidObjectState"));
    assert_eq!(refused.element("StorageClass"), "INTELLIGENT_TIERING");
    assert_eq!(refused.element("AccessTier"), "ARCHIVE_ACCESS");
    let refused = restore(&rig, "k");
    assert_eq!((refused.status, refused.element("Code")), (400, "InvalidArgument"));
    assert!(refused.element("Message").contains("Do not specify Days"), "{}", refused.text());
    assert_eq!(rig.send("POST", "/demo/k?restore", &[], "<RestoreRequest/>").unwrap().status, 202);
    let head = head(&rig, "k");
    assert_eq!((head.header("x-amz-archive-status"), head.header("x-amz-restore")), ("", ""));
    assert_eq!(rig.get("/demo/k").text(), "cold");
}

#[test]
fn a_restore_goes_on_for_a_while_and_is_told_where_it_is_asked_for() {
    let rig = rig(Duration::from_secs(3600));
    cold(&rig, "k", "GLACIER");
    assert_eq!(listed(&rig, "list-type=2", true).element("RestoreStatus"), "", "it was never restored");
    let modified = head(&rig, "k").header("last-modified").to_owned();
    assert_eq!(restore(&rig, "k").status, 202);
    let again = restore(&rig, "k");
    assert_eq!((again.status, again.element("Code")), (409, "RestoreAlreadyInProgress"));
    assert_eq!(rig.get("/demo/k").element("Code"), "InvalidObjectState");
    let head = head(&rig, "k");
    assert_eq!(head.header("x-amz-restore"), "ongoing-request=\"true\"");
    assert_eq!(head.header("last-modified"), modified);
    for query in ["", "list-type=2"] {
        assert_eq!(listed(&rig, query, true).element("IsRestoreInProgress"), "true");
        assert_eq!(listed(&rig, query, false).element("RestoreStatus"), "");
    }
    let other = [("x-amz-optional-object-attributes", "Owner")];
    assert_eq!(rig.send("GET", "/demo?list-type=2", &other, "").unwrap().element("Code"), "InvalidArgument");
}

#[test]
fn a_restored_object_is_read_and_copied_until_its_copy_goes() {
    let rig = rig(Duration::ZERO);
    cold(&rig, "k", "DEEP_ARCHIVE");
    assert_eq!([restore(&rig, "k").status, restore(&rig, "k").status], [202, 200]);
    let state = head(&rig, "k").header("x-amz-restore").to_owned();
    let until = state.strip_prefix("ongoing-request=\"false\", expiry-date=\"").unwrap_or_default();
    assert!(until.ends_with(" 00:00:00 GMT\""), "{state}");
    let got = rig.get("/demo/k");
    assert_eq!((got.text(), got.header("x-amz-restore")), ("cold", state.as_str()));
    let page = listed(&rig, "list-type=2", true);
    assert_eq!(page.element("IsRestoreInProgress"), "false");
    assert!(page.element("RestoreExpiryDate").contains("T00:00:00"));
    let copy = [("x-amz-copy-source", "demo/k")];
    assert_eq!(rig.send("PUT", "/demo/to", &copy, "").unwrap().status, 200);
    assert_eq!(head(&rig, "to").header("x-amz-restore"), "");
}

#[test]
fn what_is_at_hand_is_not_restored() {
    let rig = Rig::new();
    for class in ["STANDARD", "GLACIER_IR"] {
        cold(&rig, "k", class);
        let refused = restore(&rig, "k");
        assert_eq!((refused.status, refused.element("Code")), (403, "InvalidObjectState"));
        assert!(refused.element("Message").starts_with("Restore is not allowed"));
        assert_eq!(refused.element("StorageClass"), class);
    }
    assert_eq!(restore(&rig, "missing").element("Code"), "NoSuchKey");
}
