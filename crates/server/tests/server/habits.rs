//! The habits of services, each tested by a request that it affects.

use laneway_server::{Attributes, Habits, ListingHabits, Treatment};

use crate::client::{Answer, Protocol, Rig};

fn like(name: &str) -> Rig {
    Rig::with(Protocol::PlainH1, |config| {
        config.habits = Habits::named(name).unwrap();
        config.s3.part_size_min = 0;
        config.s3.bucket_regions.insert("elsewhere".to_owned(), "eu-west-1".to_owned());
    })
}

fn put(rig: &Rig, headers: &[(&str, &str)]) -> Answer {
    rig.send("PUT", "/demo/k", headers, "x").unwrap()
}

/// Begins an upload, and sends parts of these sizes.
fn upload(rig: &Rig, sizes: &[usize]) -> (String, Vec<String>) {
    let id = rig.send("POST", "/demo/k?uploads", &[], "").unwrap().element("UploadId").to_owned();
    let parts = sizes.iter().zip(1..).map(|(size, number): (_, u32)| {
        let path = format!("/demo/k?partNumber={number}&uploadId={id}");
        rig.send("PUT", &path, &[], "x".repeat(*size)).unwrap().header("etag").to_owned()
    });
    let parts = parts.collect();
    (id, parts)
}

fn complete(rig: &Rig, (id, parts): &(String, Vec<String>), headers: &[(&str, &str)]) -> Answer {
    let parts = parts.iter().zip(1..).map(|(etag, number): (_, u32)| {
        format!("<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>")
    });
    let body = format!("<CompleteMultipartUpload>{}</CompleteMultipartUpload>", parts.collect::<String>());
    rig.send("POST", &format!("/demo/k?uploadId={id}"), headers, body).unwrap()
}

#[test]
fn conditions_are_honoured_refused_or_passed_over() {
    let absent = [("if-none-match", "*")];
    for (name, put_again, completed, deleted) in [
        ("s3", 412, 412, 412),
        ("r2", 412, 412, 204),
        ("minio", 412, 412, 204),
        ("b2", 501, 501, 501),
        ("sia", 200, 200, 204),
        ("gcs-interop", 200, 200, 204),
    ] {
        let rig = like(name);
        put(&rig, &[]);
        assert_eq!(put(&rig, &absent).status, put_again, "{name}");
        assert_eq!(complete(&rig, &upload(&rig, &[1]), &absent).status, completed, "{name}");
        let delete = rig.send("DELETE", "/demo/k", &[("if-match", "\"0\"")], "").unwrap();
        assert_eq!(delete.status, deleted, "{name}");
    }
}

#[test]
fn r2_takes_conditions_on_a_copys_destination_by_its_own_headers() {
    let rig = like("r2");
    put(&rig, &[]);
    let copy = |name: &str, value: &str| {
        let headers = [("x-amz-copy-source", "demo/k"), (name, value)];
        rig.send("PUT", "/demo/to", &headers, "").unwrap()
    };
    let absent = ("cf-copy-destination-if-none-match", "*");
    assert_eq!(copy(absent.0, absent.1).status, 200, "nothing is there");
    let etag = rig.send("PUT", "/demo/to", &[], "theirs").unwrap().header("etag").to_owned();
    for (name, value) in [
        absent,
        ("cf-copy-destination-if-none-match", etag.as_str()),
        ("cf-copy-destination-if-match", "\"0\""),
        ("cf-copy-destination-if-unmodified-since", "Thu, 01 Jan 1970 00:00:00 GMT"),
        ("cf-copy-destination-if-modified-since", "Fri, 01 Jan 2100 00:00:00 GMT"),
    ] {
        let refused = copy(name, value);
        assert_eq!((refused.status, refused.element("Code")), (412, "PreconditionFailed"), "{name}: {value}");
        assert_eq!(rig.get("/demo/to").body, "theirs");
    }
    assert_eq!(copy("cf-copy-destination-if-match", &etag).status, 200);
    assert_eq!(copy("cf-copy-destination-if-unmodified-since", "Fri, 01 Jan 2100 00:00:00 GMT").status, 200);
    assert_eq!(rig.get("/demo/to").body, "x");
}

#[test]
fn conditions_of_copies_are_honoured_refused_or_passed_over() {
    for (name, status, code) in [
        ("s3", 412, "PreconditionFailed"),
        ("r2", 200, ""),
        ("minio", 200, ""),
        ("b2", 501, "NotImplemented"),
        ("sia", 200, ""),
        ("gcs-interop", 200, ""),
    ] {
        let rig = like(name);
        put(&rig, &[]);
        rig.send("PUT", "/demo/to", &[], "theirs").unwrap();
        for condition in [("if-none-match", "*"), ("if-match", "\"0\"")] {
            let headers = [("x-amz-copy-source", "demo/k"), condition];
            let copied = rig.send("PUT", "/demo/to", &headers, "").unwrap();
            assert_eq!(copied.status, status, "{name} {condition:?}");
            if status == 200 {
                assert_eq!(rig.get("/demo/to").body, "x", "{name} {condition:?}");
                rig.send("PUT", "/demo/to", &[], "theirs").unwrap();
            } else {
                assert_eq!(copied.element("Code"), code, "{name} {condition:?}");
                assert_eq!(rig.get("/demo/to").body, "theirs", "{name} {condition:?}");
            }
        }
    }
}

#[test]
fn unequal_parts_are_refused_where_equal_ones_are_demanded() {
    for (sizes, s3, r2) in [(&[2, 2, 1][..], 200, 200), (&[2, 1, 2], 200, 400), (&[1, 2], 200, 400)] {
        for (name, expected) in [("s3", s3), ("r2", r2)] {
            let rig = like(name);
            let done = complete(&rig, &upload(&rig, sizes), &[]);
            assert_eq!(done.status, expected, "{name} {sizes:?}");
            if expected == 400 {
                assert_eq!(done.element("Code"), "InvalidPart");
            }
        }
    }
}

#[test]
fn the_crc32c_of_a_full_object_is_not_implemented_everywhere() {
    for (name, kind, status) in
        [("s3", "FULL_OBJECT", 200), ("r2", "FULL_OBJECT", 501), ("r2", "COMPOSITE", 200)]
    {
        let headers = [("x-amz-checksum-algorithm", "CRC32C"), ("x-amz-checksum-type", kind)];
        let begun = like(name).send("POST", "/demo/k?uploads", &headers, "").unwrap();
        assert_eq!(begun.status, status, "{name} {kind}");
    }
}

#[test]
fn lengths_are_demanded_of_empty_bodies_or_not() {
    for (name, status) in [("s3", 411), ("minio", 200)] {
        let rig = like(name);
        let mut socket = std::net::TcpStream::connect(rig.server.addr()).unwrap();
        let request = "POST /demo/k?uploads HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        std::io::Write::write_all(&mut socket, request.as_bytes()).unwrap();
        let mut answer = String::new();
        std::io::Read::read_to_string(&mut socket, &mut answer).unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{name}: {answer}");
    }
}

#[test]
fn checksums_are_verified_passed_over_or_refused() {
    let wrong = [("x-amz-checksum-crc32c", "AAAAAA==")];
    for (name, status, code) in
        [("s3", 400, "BadDigest"), ("b2", 400, "InvalidArgument"), ("gcs-interop", 200, "")]
    {
        let rig = like(name);
        let answer = put(&rig, &wrong);
        assert_eq!(answer.status, status, "{name}");
        if status == 400 {
            assert_eq!(answer.element("Code"), code, "{name}");
        }
        let plain = put(&rig, &[]);
        assert_eq!(plain.header("x-amz-checksum-crc64nvme").is_empty(), name != "s3", "{name}");
        let mode = [("x-amz-checksum-mode", "ENABLED")];
        let read = rig.send("GET", "/demo/k", &mode, "").unwrap();
        assert_eq!(read.header("x-amz-checksum-crc64nvme").is_empty(), name != "s3", "{name}");
    }
}

#[test]
fn deleting_a_key_during_a_conditional_write_conflicts_and_ends_uploads() {
    for (name, conflicts) in [("s3", true), ("minio", false)] {
        let rig = like(name);
        put(&rig, &[]);
        let begun = upload(&rig, &[1]);
        rig.send("DELETE", "/demo/k", &[], "").unwrap();
        let done = complete(&rig, &begun, &[("if-none-match", "*")]);
        if conflicts {
            assert_eq!((done.status, done.element("Code")), (409, "ConditionalRequestConflict"));
            assert_eq!(complete(&rig, &begun, &[]).element("Code"), "NoSuchUpload");
            assert_eq!(
                complete(&rig, &upload(&rig, &[1]), &[("if-none-match", "*")]).status,
                200,
                "begun anew"
            );
        } else {
            assert_eq!(done.status, 200, "{}", done.text());
        }
    }
}

#[test]
fn what_is_stored_as_gzip_comes_in_chunks_above_8_mib() {
    for (name, size, chunked) in [("gcs", 8 << 20, true), ("gcs", (8 << 20) - 1, false)] {
        let rig = like(name);
        let gzip = Attributes { content_encoding: Some("gzip".to_owned()), ..Default::default() };
        rig.server.store().put_with("demo", "k", &vec![7; size], gzip).unwrap();
        let accept = [("accept-encoding", "gzip")];
        let got = rig.send("GET", "/storage/v1/b/demo/o/k?alt=media", &accept, "").unwrap();
        assert_eq!((got.status, got.body.len()), (200, size));
        assert_eq!(got.headers.contains_key("content-length"), !chunked);
        assert_eq!(got.header("x-goog-stored-content-length"), size.to_string());
    }
}

#[test]
fn a_bucket_elsewhere_is_found_at_the_second_try() {
    let rig = like("s3");
    rig.server.create_bucket("elsewhere").unwrap();
    let first = rig.get("/elsewhere/k");
    assert_eq!((first.status, first.element("Code")), (307, "TemporaryRedirect"));
    let second = rig.get("/elsewhere/k");
    assert_eq!((second.status, second.element("Code")), (301, "PermanentRedirect"));
    assert_eq!(second.header("x-amz-bucket-region"), "eu-west-1");
}

#[test]
fn the_size_of_an_empty_object_is_told_or_left_out() {
    for empty_sizes in [true, false] {
        let rig = Rig::with(Protocol::PlainH1, |config| {
            config.habits = Habits { empty_sizes, ..Habits::gcs() };
        });
        rig.server.store().put("demo", "empty", b"").unwrap();
        rig.server.store().put("demo", "full", b"x").unwrap();
        for path in ["/storage/v1/b/demo/o/empty", "/storage/v1/b/demo/o?prefix=empty"] {
            let has_size = rig.get(path).text().contains("\"size\"");
            assert_eq!(has_size, empty_sizes, "{path}");
        }
        assert!(rig.get("/storage/v1/b/demo/o/full").text().contains("\"size\": \"1\""));
    }
}

fn listing(change: impl FnOnce(&mut ListingHabits)) -> Rig {
    let rig = Rig::with(Protocol::PlainH1, |config| change(&mut config.habits.listings));
    for key in ["d/az", "d/ba", "d/cm", "e"] {
        rig.server.store().put("demo", key, b"x").unwrap();
    }
    rig
}

#[test]
fn keys_are_listed_in_an_order_of_the_services_own() {
    let rig = listing(|habits| habits.sorted = false);
    let first = rig.get("/demo?list-type=2&max-keys=2&prefix=d/");
    assert_eq!((first.element("Key"), first.element("IsTruncated")), ("d/ba", "true"));
    let token = first.element("NextContinuationToken").replace('=', "%3D");
    let second = rig.get(&format!("/demo?list-type=2&prefix=d/&continuation-token={token}"));
    assert_eq!((second.element("Key"), second.element("IsTruncated")), ("d/az", "false"));
    assert!(rig.get("/demo?list-type=2&delimiter=/").text().contains("<Prefix>d/</Prefix>"));
}

#[test]
fn version_2_of_listings_is_had_passed_over_or_refused() {
    let after = "/demo?list-type=2&max-keys=1&start-after=d/az";
    for (treatment, key) in [(Treatment::Honoured, "d/ba"), (Treatment::Ignored, "d/az")] {
        let page = listing(|habits| habits.second_version = treatment).get(after);
        let has_token = !page.element("NextContinuationToken").is_empty();
        assert_eq!((page.element("Key"), has_token), (key, treatment == Treatment::Honoured));
    }
    let rig = listing(|habits| habits.second_version = Treatment::Refused);
    assert_eq!(rig.get(after).element("Code"), "NotImplemented");
    assert_eq!(rig.get("/demo?marker=d/az").element("Key"), "d/ba");
    let page = listing(|habits| habits.tokens = false).get(after);
    assert_eq!((page.element("IsTruncated"), page.element("NextContinuationToken")), ("true", ""));
}

#[test]
fn policies_deny_other_prefixes_and_lengths_of_pages() {
    let rig = listing(|habits| habits.prefixes = Some(&["d/"]));
    for (prefix, status) in [("d/", 200), ("d/a", 403), ("", 403)] {
        assert_eq!(rig.get(&format!("/demo?list-type=2&prefix={prefix}")).status, status, "{prefix}");
    }
    let rig = listing(|habits| habits.max_keys = false);
    assert_eq!(rig.get("/demo?list-type=2").status, 200);
    assert_eq!(rig.get("/demo?list-type=2&max-keys=2").element("Code"), "AccessDenied");
}

#[test]
fn a_head_tells_its_length_or_only_without_encodings() {
    for (name, has_length) in [("s3", true), ("r2", false)] {
        let rig = like(name);
        put(&rig, &[]);
        for (encoding, has_length) in [("gzip", has_length), ("identity", true)] {
            let head = rig.send("HEAD", "/demo/k", &[("accept-encoding", encoding)], "").unwrap();
            assert_eq!(head.headers.contains_key("content-length"), has_length, "{name} {encoding}");
        }
    }
}

#[test]
fn objects_have_access_lists_or_no_request_may_name_one() {
    for (name, status, code) in
        [("s3", 400, "AccessControlListNotSupported"), ("minio", 200, ""), ("r2", 200, "")]
    {
        let rig = like(name);
        put(&rig, &[]);
        for (method, path, more) in [
            ("PUT", "/demo/k", None),
            ("POST", "/demo/k?uploads", None),
            ("PUT", "/demo/copy", Some(("x-amz-copy-source", "demo/k"))),
            ("PUT", "/demo/k?acl", None),
        ] {
            let send = |acl: &'static str| {
                let headers: Vec<_> = [("x-amz-acl", acl)].into_iter().chain(more).collect();
                rig.send(method, path, &headers, "").unwrap()
            };
            let answer = send("private");
            assert_eq!((answer.status, answer.element("Code")), (status, code), "{name} {method} {path}");
            assert_eq!(send("bucket-owner-full-control").status, 200, "{name} {method} {path}");
        }
    }
}

#[test]
fn etags_of_puts_and_copies_are_md5s_or_have_no_meaning() {
    for md5_etags in [true, false] {
        let rig = Rig::with(Protocol::PlainH1, |config| {
            config.habits = Habits { md5_etags, ..Habits::strict() };
        });
        let written = put(&rig, &[]).header("etag").to_owned();
        let copied = rig.send("PUT", "/demo/to", &[("x-amz-copy-source", "demo/k")], "").unwrap();
        for etag in [&*written, copied.element("ETag")] {
            let etag = etag.trim_matches('"').replace("&quot;", "");
            assert_eq!(etag.len(), 32, "{etag}");
            assert_eq!(etag == "9dd4e461268c8034f5c8564e155c67a6", md5_etags, "{etag}");
        }
    }
}
