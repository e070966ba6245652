//! The XML API of the GCS dialect.

use crate::client::{Answer, PROTOCOLS, Protocol, Rig};

/// Without a token, any `x-goog-` header selects the dialect.
const HINT: (&str, &str) = ("x-goog-api-client", "test");

fn send(rig: &Rig, method: &str, path: &str, body: &[u8]) -> Answer {
    rig.send(method, path, &[HINT], body.to_vec()).unwrap()
}

fn begin(rig: &Rig, path: &str) -> String {
    let begun = send(rig, "POST", &format!("{path}?uploads"), b"");
    assert_eq!(begun.status, 200);
    begun.element("UploadId").to_owned()
}

fn completion(etags: &[&str]) -> Vec<u8> {
    let part = |(n, etag)| format!("<Part><PartNumber>{}</PartNumber><ETag>{etag}</ETag></Part>", n + 1);
    let parts: String = etags.iter().enumerate().map(part).collect();
    format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>").into_bytes()
}

#[test]
fn objects_are_put_read_and_deleted_by_path() {
    for protocol in PROTOCOLS {
        let rig = Rig::with(protocol, |_| {});
        let headers = [
            ("authorization", "Bearer token"),
            ("x-goog-meta-colour", "red"),
            ("x-goog-hash", "crc32c=mnG7TA=="),
        ];
        let put = rig.send("PUT", "/demo/a//b", &headers, "hello").unwrap();
        assert_eq!(put.status, 200);
        assert_eq!(put.header("etag"), "\"5d41402abc4b2a76b9719d911017c592\"");
        assert_ne!(put.header("x-goog-generation"), "");
        let got = send(&rig, "GET", "/demo/a//b", b"");
        assert_eq!((got.text(), got.header("x-goog-meta-colour")), ("hello", "red"));
        let head = send(&rig, "HEAD", "/demo/a//b", b"");
        assert_eq!((head.status, head.header("content-length")), (200, "5"));
        assert_eq!(send(&rig, "DELETE", "/demo/a//b", b"").status, 204);
        let missing = send(&rig, "GET", "/demo/a//b", b"");
        assert_eq!((missing.status, missing.element("Code")), (404, "NoSuchKey"));
        assert_eq!(send(&rig, "GET", "/missing/k", b"").element("Code"), "NoSuchBucket");
    }
}

#[test]
fn metadata_in_headers_is_ascii_and_its_names_lose_their_capitals() {
    let rig = Rig::new();
    for (path, method) in [("/demo/k", "PUT"), ("/demo/k?uploads", "POST")] {
        let refused = rig.send(method, path, &[HINT, ("x-goog-meta-city", "Zürich")], "").unwrap();
        assert_eq!((refused.status, refused.element("Code")), (400, "InvalidArgument"), "{method}");
    }
    let put = rig.send("PUT", "/demo/k", &[HINT, ("X-Goog-Meta-Owner", "me")], "").unwrap();
    assert_eq!(
        (put.status, rig.get("/storage/v1/b/demo/o/k").json()["metadata"]["owner"].as_str()),
        (200, Some("me"))
    );
}

#[test]
fn a_header_names_the_kms_key_of_an_object_and_of_an_upload() {
    let rig = Rig::new();
    let key = ("x-goog-encryption-kms-key-name", "projects/p/locations/us/keyRings/r/cryptoKeys/k");
    assert_eq!(rig.send("PUT", "/demo/put", &[key], "x").unwrap().status, 200);
    let begun = rig.send("POST", "/demo/parts?uploads", &[key], "").unwrap();
    let upload = begun.element("UploadId").to_owned();
    let part = send(&rig, "PUT", &format!("/demo/parts?partNumber=1&uploadId={upload}"), b"x");
    let completed = completion(&[part.header("etag")]);
    assert_eq!(send(&rig, "POST", &format!("/demo/parts?uploadId={upload}"), &completed).status, 200);
    for name in ["put", "parts"] {
        let resource = rig.get(&format!("/storage/v1/b/demo/o/{name}")).json();
        assert_eq!(resource["kmsKeyName"].as_str(), Some(key.1), "{name}");
    }
    let locked = rig.send("PUT", "/demo/k", &[("x-goog-object-lock-mode", "GOVERNANCE")], "x").unwrap();
    assert_eq!((locked.status, locked.element("Code")), (501, "NotImplemented"));
}

#[test]
fn headers_carry_preconditions_and_hashes() {
    let rig = Rig::new();
    let put = |headers: &[(&str, &str)]| rig.send("PUT", "/demo/k", headers, "x").unwrap();
    assert_eq!(put(&[("x-goog-if-generation-match", "0")]).status, 200);
    let refused = put(&[("x-goog-if-generation-match", "0")]);
    assert_eq!((refused.status, refused.element("Code")), (412, "PreconditionFailed"));
    let wrong = put(&[("x-goog-hash", "crc32c=AAAAAA==")]);
    assert_eq!((wrong.status, wrong.element("Code")), (400, "BadDigest"));
}

#[test]
fn parts_are_put_in_any_order_and_completed() {
    let rig = Rig::with(Protocol::TlsH2, |_| {});
    let id = begin(&rig, "/demo/k");
    assert_eq!(rig.server.counters().multipart_open, 1);
    let first = vec![1; 5 << 20];
    let part = |number: u32, body: &[u8]| {
        send(&rig, "PUT", &format!("/demo/k?partNumber={number}&uploadId={id}"), body)
    };
    let last = part(2, b"end");
    let before = part(1, &first);
    assert!(before.header("x-goog-hash").starts_with("crc32c="));
    let listed = send(&rig, "GET", &format!("/demo/k?uploadId={id}"), b"");
    assert_eq!(listed.text().matches("<PartNumber>").count(), 2);
    assert!(send(&rig, "GET", "/demo?uploads", b"").text().contains(&id));
    let body = completion(&[before.header("etag"), last.header("etag")]);
    let done = send(&rig, "POST", &format!("/demo/k?uploadId={id}"), &body);
    assert_eq!(done.status, 200, "{}", done.text());
    assert_eq!(done.element("Key"), "k");
    assert!(done.header("x-goog-hash").starts_with("crc32c="));
    assert_eq!(rig.server.store().object("demo", "k").unwrap().size, (5 << 20) + 3);
    assert_eq!(rig.server.counters().multipart_open, 0);
    assert_eq!(send(&rig, "POST", &format!("/demo/k?uploadId={id}"), &body).element("Code"), "NoSuchUpload");
}

#[test]
fn an_upload_that_does_not_fit_is_refused_and_can_be_aborted() {
    let rig = Rig::new();
    let id = begin(&rig, "/demo/k");
    let part = |number: u32| send(&rig, "PUT", &format!("/demo/k?partNumber={number}&uploadId={id}"), b"x");
    let etags: Vec<String> = [1, 2].map(|number| part(number).header("etag").to_owned()).into();
    let complete =
        |body: &[u8]| send(&rig, "POST", &format!("/demo/k?uploadId={id}"), body).element("Code").to_owned();
    assert_eq!(complete(&completion(&[&etags[0], &etags[1]])), "EntityTooSmall");
    assert_eq!(complete(&completion(&["\"wrong\""])), "InvalidPart");
    assert_eq!(complete(b"<Complete"), "MalformedXML");
    assert_eq!(send(&rig, "PUT", &format!("/demo/k?partNumber=0&uploadId={id}"), b"x").status, 400);
    assert_eq!(send(&rig, "DELETE", &format!("/demo/k?uploadId={id}"), b"").status, 204);
    assert_eq!(send(&rig, "DELETE", &format!("/demo/k?uploadId={id}"), b"").status, 404);
}

#[test]
fn a_bucket_is_listed() {
    let rig = Rig::new();
    for key in ["a<b", "d/1"] {
        rig.server.store().put("demo", key, b"").unwrap();
    }
    let listed = send(&rig, "GET", "/demo?list-type=2&delimiter=/", b"");
    assert_eq!(listed.element("Key"), "a&lt;b");
    assert!(listed.text().contains("<CommonPrefixes><Prefix>d/</Prefix>"));
    assert_eq!(send(&rig, "HEAD", "/demo", b"").status, 200);
    assert_eq!(send(&rig, "HEAD", "/missing", b"").status, 404);
}

#[test]
fn a_server_can_be_told_to_have_no_xml_api() {
    let rig = Rig::with(Protocol::PlainH1, |config| config.gcs.xml = false);
    assert_eq!(send(&rig, "POST", "/demo/k?uploads", b"").status, 404);
}

#[test]
fn a_subresource_that_is_not_there_is_not_taken_for_its_object() {
    let rig = Rig::new();
    rig.server.store().put("demo", "k", b"hello").unwrap();
    let google = [("x-goog-api-version", "2")];
    for (method, path) in [
        ("PUT", "/demo/k?compose"),
        ("PUT", "/demo/k?acl"),
        ("DELETE", "/demo/k?acl"),
        ("GET", "/demo?lifecycle"),
        ("DELETE", "/demo?cors"),
    ] {
        let refused = rig.send(method, path, &google, "<x/>").unwrap();
        assert_eq!((refused.status, refused.element("Code")), (501, "NotImplemented"), "{method} {path}");
    }
    assert_eq!(rig.server.store().read("demo", "k").unwrap(), b"hello");
}
