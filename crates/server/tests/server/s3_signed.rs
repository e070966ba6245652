//! Signed requests of the S3 dialect.

use ring::{digest, hmac};

use crate::client::{Answer, PROTOCOLS, Protocol, Rig};

fn send(
    rig: &Rig,
    key: &Key,
    method: &str,
    path: &str,
    payload: &str,
    extra: &[(&str, &str)],
    body: &str,
) -> Answer {
    let headers = signed_headers(key, method, &rig.server.addr().to_string(), path, payload, extra);
    let headers: Vec<(&str, &str)> =
        headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    rig.send(method, path, &headers, body.to_owned()).unwrap()
}

#[test]
fn a_signature_is_verified_over_h1_and_h2() {
    for protocol in [Protocol::PlainH1, Protocol::TlsH2] {
        let rig = Rig::with(protocol, |_| {});
        let put = send(&rig, &DEFAULT, "PUT", "/demo/a%2Bb", &sha256(b"hello"), &[], "hello");
        assert_eq!(put.status, 200, "{}", put.text());
        assert_eq!(send(&rig, &DEFAULT, "GET", "/demo/a%2Bb", "UNSIGNED-PAYLOAD", &[], "").text(), "hello");
        let stranger = Key { secret: "another", ..DEFAULT };
        let refused = send(&rig, &stranger, "GET", "/demo/a%2Bb", "UNSIGNED-PAYLOAD", &[], "");
        assert_eq!((refused.status, refused.element("Code")), (403, "SignatureDoesNotMatch"));
        let unknown = Key { access: "nobody", ..DEFAULT };
        assert_eq!(send(&rig, &unknown, "GET", "/demo/a%2Bb", "UNSIGNED-PAYLOAD", &[], "").status, 403);
    }
}

#[test]
fn the_time_of_a_signature_may_be_in_the_date() {
    let rig = Rig::new();
    let now = httpdate::fmt_http_date(std::time::SystemTime::now());
    let put = send(&rig, &DEFAULT, "PUT", "/demo/k", &sha256(b"hello"), &[("date", now.as_str())], "hello");
    assert_eq!(put.status, 200, "{}", put.text());
    let old = "Fri, 24 May 2013 00:00:00 GMT";
    let late = send(&rig, &DEFAULT, "GET", "/demo/k", "UNSIGNED-PAYLOAD", &[("date", old)], "");
    assert_eq!((late.status, late.element("Code")), (403, "RequestTimeTooSkewed"));
}

#[test]
fn a_checksum_in_a_trailer_is_verified() {
    let rig = Rig::new();
    let body = |checksum: &str| format!("5\r\nhello\r\n0\r\nx-amz-checksum-crc32c:{checksum}\r\n\r\n");
    let put = |checksum: &str| {
        let extra = [
            ("content-encoding", "aws-chunked"),
            ("x-amz-decoded-content-length", "5"),
            ("x-amz-trailer", "x-amz-checksum-crc32c"),
        ];
        send(&rig, &DEFAULT, "PUT", "/demo/k", "STREAMING-UNSIGNED-PAYLOAD-TRAILER", &extra, &body(checksum))
    };
    assert_eq!(put("AAAAAA==").element("Code"), "BadDigest");
    assert!(rig.server.store().keys("demo").is_empty());
    let stored = put("mnG7TA==");
    assert_eq!((stored.status, stored.header("x-amz-checksum-crc32c")), (200, "mnG7TA=="));
    let got = rig.get("/demo/k");
    assert_eq!((got.text(), got.header("content-encoding")), ("hello", ""));
}

#[test]
fn framed_bodies_of_unsigned_requests_are_unframed_over_every_protocol() {
    for protocol in PROTOCOLS {
        let rig = Rig::with(protocol, |_| {});
        let put = |checksum: &str, length: &str| {
            let headers = [
                ("content-encoding", "aws-chunked"),
                ("x-amz-decoded-content-length", length),
                ("x-amz-trailer", "x-amz-checksum-crc32c"),
            ];
            let body = format!("5\r\nhello\r\n0\r\nx-amz-checksum-crc32c:{checksum}\r\n\r\n");
            rig.send("PUT", "/demo/k", &headers, body).unwrap()
        };
        assert_eq!(put("AAAAAA==", "5").element("Code"), "BadDigest");
        assert_eq!(put("mnG7TA==", "4").element("Code"), "IncompleteBody");
        assert!(rig.server.store().keys("demo").is_empty());
        let stored = put("mnG7TA==", "5");
        assert_eq!(
            (stored.status, stored.header("x-amz-checksum-crc32c")),
            (200, "mnG7TA=="),
            "{protocol:?}"
        );
        let got = rig.get("/demo/k");
        assert_eq!((got.text(), got.header("content-encoding")), ("hello", ""));
        let unlengthened = rig.send("PUT", "/demo/k", &[("content-encoding", "aws-chunked")], "0\r\n\r\n");
        assert_eq!(unlengthened.unwrap().element("Code"), "MissingContentLength");
    }
}

#[test]
fn a_payload_that_differs_from_its_signed_hash_is_refused() {
    let rig = Rig::new();
    let refused = send(&rig, &DEFAULT, "PUT", "/demo/k", &sha256(b"hello"), &[], "HELLO");
    assert!((400..500).contains(&refused.status), "{} {}", refused.status, refused.text());
    assert!(rig.server.store().keys("demo").is_empty());
}

#[test]
fn a_bucket_of_another_region_is_found_by_its_redirect() {
    let rig = Rig::with(Protocol::PlainH1, |config| {
        config.s3.bucket_regions.insert("demo".to_owned(), "eu-west-1".to_owned());
    });
    rig.server.store().put("demo", "k", b"hello").unwrap();
    let redirect = send(&rig, &DEFAULT, "GET", "/demo/k", "UNSIGNED-PAYLOAD", &[], "");
    assert_eq!((redirect.status, redirect.element("Code")), (301, "PermanentRedirect"));
    assert_eq!(redirect.header("x-amz-bucket-region"), "eu-west-1");
    let at_home = Key { region: "eu-west-1", ..DEFAULT };
    assert_eq!(send(&rig, &at_home, "GET", "/demo/k", "UNSIGNED-PAYLOAD", &[], "").text(), "hello");
}

pub(crate) struct Key {
    pub(crate) access: &'static str,
    secret: &'static str,
    pub(crate) region: &'static str,
}

const DEFAULT: Key = Key { access: "laneway", secret: "lanewaysecret", region: "us-east-1" };

/// Returns the headers of a signed request. `payload` becomes `x-amz-content-sha256`, and `extra` is signed too. If
/// `extra` has a `date`, it takes the place of `x-amz-date`.
fn signed_headers(
    key: &Key,
    method: &str,
    host: &str,
    path: &str,
    payload: &str,
    extra: &[(&str, &str)],
) -> Vec<(String, String)> {
    let sent = extra.iter().find(|(name, _)| *name == "date");
    let now = sent.map_or_else(time::OffsetDateTime::now_utc, |(_, date)| {
        httpdate::parse_http_date(date).unwrap().into()
    });
    let date = format!("{:04}{:02}{:02}", now.year(), u8::from(now.month()), now.day());
    let moment = format!("{date}T{:02}{:02}{:02}Z", now.hour(), now.minute(), now.second());
    let mut headers: Vec<(String, String)> =
        extra.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    headers.push(("x-amz-content-sha256".to_owned(), payload.to_owned()));
    if sent.is_none() {
        headers.push(("x-amz-date".to_owned(), moment.clone()));
    }
    let mut signed = headers.clone();
    signed.push(("host".to_owned(), host.to_owned()));
    signed.sort();
    let canonical: String = signed.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
    let names: Vec<&str> = signed.iter().map(|(name, _)| name.as_str()).collect();
    let names = names.join(";");
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let request = format!("{method}\n{path}\n{query}\n{canonical}\n{names}\n{payload}");
    let scope = format!("{date}/{}/s3/aws4_request", key.region);
    let hash = hex(digest::digest(&digest::SHA256, request.as_bytes()).as_ref());
    let text = format!("AWS4-HMAC-SHA256\n{moment}\n{scope}\n{hash}");
    let mut derived = format!("AWS4{}", key.secret).into_bytes();
    for step in [&date, key.region, "s3", "aws4_request"] {
        derived = hmac_bytes(&derived, step);
    }
    let signature = hex(&hmac_bytes(&derived, &text));
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={names}, Signature={signature}",
        key.access
    );
    headers.push(("authorization".to_owned(), authorization));
    headers
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

fn hmac_bytes(key: &[u8], text: &str) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
