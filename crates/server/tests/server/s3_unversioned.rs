//! Versioning requests to a store without versioning: their answers and refusals, and requests that must not be
//! mistaken for others.

use crate::client::{Answer, Rig};

fn stored(rig: &Rig) -> String {
    rig.send("PUT", "/demo/k", &[("x-amz-checksum-crc32c", "mnG7TA==")], "hello").unwrap();
    rig.get("/demo/k").header("etag").to_owned()
}

#[test]
fn the_only_version_of_an_object_is_null() {
    let rig = Rig::new();
    stored(&rig);
    assert_eq!(rig.get("/demo/k").header("x-amz-version-id"), "", "the answer names no version");
    assert_eq!(rig.get("/demo/k?versionId=null").text(), "hello");
    for (method, path) in [("GET", "/demo/k?versionId=v1"), ("DELETE", "/demo/k?versionId=v1")] {
        let refused = rig.send(method, path, &[], "").unwrap();
        assert_eq!((refused.status, refused.element("Code")), (400, "InvalidArgument"), "{method}");
    }
    let copied = rig.send("PUT", "/demo/c", &[("x-amz-copy-source", "/demo/k?versionId=v1")], "").unwrap();
    assert_eq!((copied.status, copied.element("Code")), (400, "InvalidArgument"));
    let absent = rig.get("/demo/k?versionId=00c0ffee00c0ffee");
    assert_eq!((absent.status, absent.element("Code")), (404, "NoSuchVersion"));
    let body = "<Delete><Object><Key>k</Key><VersionId>v1</VersionId></Object></Delete>";
    let deleted = rig.send("POST", "/demo?delete", &[], body).unwrap();
    assert_eq!(deleted.element("Code"), "NoSuchVersion");
    assert_eq!(rig.server.store().keys("demo"), ["k"]);
    assert_eq!(rig.send("DELETE", "/demo/k?versionId=null", &[], "").unwrap().status, 204);
}

#[test]
fn objects_are_listed_as_their_only_versions() {
    let rig = Rig::new();
    for key in ["a", "d/1", "d/2", "e"] {
        rig.server.store().put("demo", key, b"xy").unwrap();
    }
    let first = rig.get("/demo?versions&max-keys=2&delimiter=/");
    assert_eq!(
        (first.element("Key"), first.element("VersionId"), first.element("IsLatest")),
        ("a", "null", "true")
    );
    assert_eq!((first.element("IsTruncated"), first.element("NextKeyMarker")), ("true", "d/"));
    assert!(first.text().contains("<CommonPrefixes><Prefix>d/</Prefix></CommonPrefixes>"));
    let second = rig.get("/demo?versions&delimiter=/&key-marker=d/&version-id-marker=null");
    assert_eq!((second.element("Key"), second.element("IsTruncated")), ("e", "false"));
    assert_eq!(rig.get("/demo?versions&version-id-marker=null").element("Code"), "InvalidArgument");
}

#[test]
fn attributes_are_those_that_are_asked_for() {
    let rig = Rig::new();
    let etag = stored(&rig);
    let ask = |names: &str| {
        let headers = [("x-amz-object-attributes", names)];
        rig.send("GET", "/demo/k?attributes", &headers, "").unwrap()
    };
    let all = ask("ETag,Checksum,ObjectParts,StorageClass,ObjectSize");
    assert_eq!((all.status, all.element("ObjectSize"), all.element("StorageClass")), (200, "5", "STANDARD"));
    assert_eq!((all.element("ChecksumCRC32C"), all.element("ChecksumType")), ("mnG7TA==", "FULL_OBJECT"));
    assert!(all.element("ETag").contains(etag.trim_matches('"')), "{}", all.text());
    assert_ne!(all.header("last-modified"), "");
    assert_eq!(ask("ObjectSize").element("StorageClass"), "");
    assert_eq!(ask("Colour").element("Code"), "InvalidArgument");
}

#[test]
fn what_is_no_request_for_the_object_itself_leaves_it_alone() {
    let rig = Rig::new();
    stored(&rig);
    let send = |method: &str, path: &str, headers: &[(&str, &str)]| -> Answer {
        rig.send(method, path, headers, "other").unwrap()
    };
    let offset = [("x-amz-write-offset-bytes", "5")];
    let rename = [("x-amz-rename-source", "/k")];
    assert_eq!(send("PUT", "/demo/k", &offset).element("Code"), "NotImplemented");
    assert_eq!(send("PUT", "/demo/new?renameObject", &rename).element("Code"), "NotImplemented");
    assert_eq!(send("PUT", "/demo/k?attributes", &[]).element("Code"), "MethodNotAllowed");
    assert_eq!(send("DELETE", "/demo/k?acl", &[]).element("Code"), "MethodNotAllowed");
    assert_eq!(send("DELETE", "/demo?versioning", &[]).element("Code"), "MethodNotAllowed");
    assert_eq!(rig.server.store().keys("demo"), ["k"]);
    assert_eq!(rig.get("/demo/k").text(), "hello");
}

#[test]
fn copies_are_bound_to_both_ends() {
    let rig = Rig::new();
    let etag = stored(&rig);
    let (past, future) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Fri, 31 Dec 2100 00:00:00 GMT");
    let copy = |headers: &[(&str, &str)]| {
        let headers = [&[("x-amz-copy-source", "/demo/k")], headers].concat();
        rig.send("PUT", "/demo/copy", &headers, "").unwrap().status
    };
    assert_eq!(copy(&[("x-amz-copy-source-if-none-match", &etag)]), 412);
    assert_eq!(copy(&[("x-amz-copy-source-if-modified-since", future)]), 412);
    assert_eq!(copy(&[("x-amz-copy-source-if-unmodified-since", past)]), 412);
    assert!(!rig.server.store().keys("demo").contains(&"copy".to_owned()));
    let both =
        [("x-amz-copy-source-if-match", etag.as_str()), ("x-amz-copy-source-if-unmodified-since", past)];
    assert_eq!(copy(&both), 200, "the ETag decides");
    assert_eq!(copy(&[("if-none-match", "*")]), 412);
    assert_eq!(copy(&[("if-match", "\"0\"")]), 412);
    assert_eq!(copy(&[("if-match", &etag)]), 200);
}

#[test]
fn an_answer_that_nothing_has_changed_says_which_state_it_means() {
    let rig = Rig::new();
    let etag = stored(&rig);
    for method in ["GET", "HEAD"] {
        for condition in
            [("if-none-match", etag.as_str()), ("if-modified-since", "Fri, 31 Dec 2100 00:00:00 GMT")]
        {
            let unchanged = rig.send(method, "/demo/k", &[condition], "").unwrap();
            assert_eq!((unchanged.status, unchanged.header("etag")), (304, etag.as_str()), "{method}");
            assert!(!unchanged.header("last-modified").is_empty() && unchanged.body.is_empty());
        }
    }
}

#[test]
fn checksums_that_are_not_computed_are_refused_not_ignored() {
    let rig = Rig::new();
    for headers in [
        &[("x-amz-checksum-blake3", "AAAA")][..],
        &[("x-amz-checksum-crc32c", "mnG7TA=="), ("x-amz-checksum-crc32", "NhCmhg==")],
        &[("x-amz-sdk-checksum-algorithm", "CRC32C")],
    ] {
        let refused = rig.send("PUT", "/demo/k", headers, "hello").unwrap();
        assert_eq!((refused.status, refused.element("Code")), (400, "InvalidRequest"), "{headers:?}");
    }
    for headers in [
        [("x-amz-checksum-sha512", "AAAA")],
        [("x-amz-checksum-xxhash64", "AAAA")],
        [("x-amz-trailer", "x-amz-checksum-md5")],
        [("x-amz-checksum-algorithm", "XXHASH3")],
    ] {
        let refused = rig.send("PUT", "/demo/k", &headers, "hello").unwrap();
        assert_eq!((refused.status, refused.element("Code")), (501, "NotImplemented"), "{headers:?}");
    }
    let begun = rig.send("POST", "/demo/k?uploads", &[("x-amz-checksum-algorithm", "SHA512")], "").unwrap();
    assert_eq!(begun.element("Code"), "NotImplemented");
    let begun = rig.send("POST", "/demo/k?uploads", &[("x-amz-checksum-algorithm", "CRC8")], "").unwrap();
    assert_eq!(begun.element("Code"), "InvalidRequest");
    assert!(rig.server.store().keys("demo").is_empty());
}

#[test]
fn buckets_have_names_that_s3_allows() {
    let rig = Rig::new();
    for name in ["ab", "Capital", "under_score", "xn--puny", "10.0.0.1"] {
        assert_eq!(
            rig.send("PUT", &format!("/{name}"), &[], "").unwrap().element("Code"),
            "InvalidBucketName",
            "{name}"
        );
    }
    assert_eq!(rig.send("PUT", "/fine.name-1", &[], "").unwrap().status, 200);
}
