//! The S3 dialect around its operations: what a request may contain, where it may go, and how an error is written.

use crate::client::{Answer, Protocol, Rig};

fn send(rig: &Rig, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    rig.send(method, path, headers, body.to_owned()).unwrap()
}

#[test]
fn expires_and_a_websites_redirect_are_kept() {
    let rig = Rig::new();
    let date = "Wed, 21 Oct 2127 07:28:00 GMT";
    let headers = [("expires", date), ("x-amz-website-redirect-location", "/elsewhere")];
    assert_eq!(send(&rig, "PUT", "/demo/k", &headers, "x").status, 200);
    for method in ["GET", "HEAD"] {
        let got = send(&rig, method, "/demo/k", &[], "");
        assert_eq!(
            (got.header("expires"), got.header("x-amz-website-redirect-location")),
            (date, "/elsewhere")
        );
    }
    assert_eq!(send(&rig, "PUT", "/demo/copy", &[("x-amz-copy-source", "/demo/k")], "").status, 200);
    let copy = send(&rig, "HEAD", "/demo/copy", &[], "");
    assert_eq!((copy.header("expires"), copy.header("x-amz-website-redirect-location")), (date, ""));
    let wrong = send(&rig, "PUT", "/demo/k", &[("x-amz-website-redirect-location", "elsewhere")], "x");
    assert_eq!((wrong.status, wrong.element("Code")), (400, "InvalidRedirectLocation"));
}

#[test]
fn a_class_metadata_and_an_owner_that_s3_refuses_are_refused() {
    let rig = Rig::new();
    let long = "x".repeat(3000);
    for (header, value, code) in [
        ("x-amz-storage-class", "BOGUS", "InvalidStorageClass"),
        ("x-amz-meta-long", &long, "MetadataTooLarge"),
        ("x-amz-expected-bucket-owner", "111122223333", "AccessDenied"),
        ("x-amz-expected-bucket-owner", "me", "InvalidBucketOwnerAWSAccountID"),
    ] {
        assert_eq!(send(&rig, "PUT", "/demo/k", &[(header, value)], "x").element("Code"), code, "{header}");
    }
    assert!(rig.server.store().keys("demo").is_empty());
    let own = [("x-amz-expected-bucket-owner", "000000000000")];
    assert_eq!(send(&rig, "PUT", "/demo/k", &own, "x").status, 200);
}

#[test]
fn a_host_may_name_the_bucket() {
    let rig = Rig::new();
    for host in ["demo.localhost", "demo.s3.amazonaws.com", "demo.s3.eu-west-1.amazonaws.com:80"] {
        assert_eq!(send(&rig, "PUT", "/a/b", &[("host", host)], host).status, 200, "{host}");
        assert_eq!(send(&rig, "GET", "/demo/a/b", &[], "").text(), host);
        let list = send(&rig, "GET", "/?list-type=2", &[("host", host)], "");
        assert_eq!((list.element("Name"), list.element("Key")), ("demo", "a/b"), "{host}");
        assert_eq!(send(&rig, "DELETE", "/a/b", &[("host", host)], "").status, 204);
        assert!(rig.server.store().keys("demo").is_empty(), "{host}");
    }
    let google = [("host", "demo.storage.googleapis.com"), ("x-goog-api-version", "2")];
    assert_eq!(send(&rig, "PUT", "/k", &google, "g").status, 200);
    assert_eq!(send(&rig, "GET", "/demo/k", &[], "").text(), "g");
    let none = send(&rig, "GET", "/k", &[("host", "absent.localhost")], "");
    assert_eq!((none.status, none.element("Code")), (404, "NoSuchBucket"));
}

#[test]
fn an_error_tells_what_it_is_about_and_the_ids_of_its_request() {
    let rig = Rig::new();
    send(&rig, "PUT", "/demo/k", &[], "x");
    let missing = send(&rig, "GET", "/demo/no%26ne", &[], "");
    assert_eq!((missing.element("Code"), missing.element("Key")), ("NoSuchKey", "no&amp;ne"));
    assert_eq!(missing.element("RequestId"), missing.header("x-amz-request-id"));
    assert_eq!(missing.element("HostId"), missing.header("x-amz-id-2"));
    assert_eq!(missing.header("content-length"), missing.body.len().to_string());
    assert_eq!(send(&rig, "GET", "/absent/k", &[], "").element("BucketName"), "absent");
    let there = send(&rig, "PUT", "/demo/k", &[("if-none-match", "*")], "y");
    assert_eq!((there.status, there.element("Condition")), (412, "If-None-Match"));
    let upload = send(&rig, "GET", "/demo/k?uploadId=none", &[], "");
    assert_eq!((upload.element("Code"), upload.element("UploadId")), ("NoSuchUpload", "none"));
    let method = send(&rig, "POST", "/demo?versioning", &[], "");
    assert_eq!((method.element("Code"), method.element("Method")), ("MethodNotAllowed", "POST"));
    assert_eq!(send(&rig, "HEAD", "/demo/none", &[], "").body.len(), 0);
    let stranger = "AWS4-HMAC-SHA256 Credential=stranger/20260101/us-east-1/s3/aws4_request, \
                    SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature=00";
    let headers = [
        ("authorization", stranger),
        ("x-amz-date", "20260101T000000Z"),
        ("x-amz-content-sha256", "UNSIGNED-PAYLOAD"),
    ];
    let unknown = send(&rig, "GET", "/demo/k", &headers, "");
    assert_eq!(unknown.status, 403);
    assert!(
        ["InvalidAccessKeyId", "RequestTimeTooSkewed"].contains(&unknown.element("Code")),
        "{}",
        unknown.text()
    );
}

#[test]
fn a_malformed_range_is_ignored_and_an_unsatisfiable_one_refused() {
    let rig = Rig::new();
    send(&rig, "PUT", "/demo/k", &[], "hello");
    let google = ("x-goog-api-version", "2");
    for range in ["bytes=x", "bytes=4-2", "bytes=0-1,3-4", "items=0-1"] {
        for headers in [&[("range", range)][..], &[("range", range), google]] {
            let got = send(&rig, "GET", "/demo/k", headers, "");
            assert_eq!((got.status, got.text()), (200, "hello"), "{range}");
        }
    }
    let refused = send(&rig, "GET", "/demo/k", &[("range", "bytes=9-")], "");
    assert_eq!((refused.status, refused.element("Code")), (416, "InvalidRange"));
    assert_eq!(refused.element("RangeRequested"), "bytes=9-");
}

#[test]
fn a_listing_tells_the_owner_where_it_is_asked_for() {
    let rig = Rig::new();
    send(&rig, "PUT", "/demo/k", &[], "x");
    let owner =
        |query: &str| send(&rig, "GET", &format!("/demo{query}"), &[], "").element("Owner").to_owned();
    assert_eq!(owner("?list-type=2"), "");
    for query in ["?list-type=2&fetch-owner=true", "", "?versions", "/k?acl"] {
        assert_eq!(owner(query), "<ID>000000000000</ID>", "{query}");
    }
}

#[test]
fn a_bucket_of_ones_own_is_made_again_in_the_first_region_alone() {
    let rig = Rig::new();
    assert_eq!(send(&rig, "PUT", "/demo", &[], "").status, 200);
    let elsewhere = Rig::with(Protocol::PlainH1, |config| config.s3.region = "eu-west-1".to_owned());
    let named = "<CreateBucketConfiguration><LocationConstraint>eu-west-1</LocationConstraint></CreateBucketConfiguration>";
    let again = send(&elsewhere, "PUT", "/demo", &[], named);
    assert_eq!((again.status, again.element("Code")), (409, "BucketAlreadyOwnedByYou"));
}

#[test]
fn attributes_are_written_as_s3_writes_them() {
    let rig = Rig::new();
    send(&rig, "PUT", "/demo/k", &[("x-amz-checksum-crc32c", "mnG7TA==")], "hello");
    let asked = [("x-amz-object-attributes", "ETag,Checksum,ObjectSize,StorageClass")];
    let got = send(&rig, "GET", "/demo/k?attributes", &asked, "");
    assert_eq!(got.element("ETag"), "5d41402abc4b2a76b9719d911017c592", "{}", got.text());
    assert_eq!((got.element("ChecksumCRC32C"), got.element("ObjectSize")), ("mnG7TA==", "5"));
    assert!(got.text().contains("<GetObjectAttributesResponse xmlns="), "{}", got.text());
}

#[test]
fn options_of_listings_that_s3_refuses_are_refused() {
    let rig = Rig::new();
    for (query, message) in [
        ("list-type=1", "Invalid List Type specified in Request"),
        ("list-type=2&encoding-type=base64", "Invalid Encoding Method specified in Request"),
        ("versions&encoding-type=", "Invalid Encoding Method specified in Request"),
        ("max-keys=-1", "Argument maxKeys must be an integer between 0 and 2147483647"),
        ("list-type=2&max-keys=many", "Argument maxKeys must be an integer between 0 and 2147483647"),
        ("uploads&max-uploads=-1", "Argument max-uploads must be an integer between 0 and 2147483647"),
    ] {
        let refused = send(&rig, "GET", &format!("/demo?{query}"), &[], "");
        assert_eq!((refused.status, refused.element("Code")), (400, "InvalidArgument"), "{query}");
        assert_eq!(refused.element("Message"), message, "{query}");
    }
    assert_eq!(send(&rig, "GET", "/demo?list-type=2&encoding-type=url&max-keys=0", &[], "").status, 200);
}

const FORM: (&str, &str) = ("content-type", "multipart/form-data; boundary=b");

#[test]
fn fields_of_a_form_are_checked_as_headers_are() {
    let rig = Rig::new();
    let part = |name: &str, more: &str, value: &str| {
        format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"{more}\r\n\r\n{value}\r\n")
    };
    let post = |fields: &[(&str, &str)]| {
        let fields: String = fields.iter().map(|(name, value)| part(name, "", value)).collect();
        let body = format!("{fields}{}--b--\r\n", part("file", "; filename=\"f\"", "hello"));
        send(&rig, "POST", "/demo", &[FORM], &body)
    };
    for (name, value, status, code) in [
        ("x-amz-acl", "public-read", 501, "NotImplemented"),
        ("acl", "public-read", 501, "NotImplemented"),
        ("acl", "bogus", 400, "InvalidArgument"),
        ("tagging", "a=b", 400, "MalformedXML"),
        ("x-amz-storage-class", "BOGUS", 400, "InvalidStorageClass"),
        ("x-amz-checksum-crc32c", "AAAAAA==", 400, "BadDigest"),
        ("content-md5", "AAAAAAAAAAAAAAAAAAAAAA==", 400, "BadDigest"),
    ] {
        let refused = post(&[("key", "k"), (name, value)]);
        assert_eq!((refused.status, refused.element("Code")), (status, code), "{name}");
    }
    assert!(rig.server.store().keys("demo").is_empty());
    let tagging = "<Tagging><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tagging>";
    let made =
        post(&[("key", "d/f"), ("acl", "private"), ("tagging", tagging), ("success_action_status", "201")]);
    assert_eq!((made.status, made.element("Key")), (201, "d/f"), "{}", made.text());
    assert_eq!(send(&rig, "GET", "/demo/d/f", &[], "").text(), "hello");
    assert_eq!(send(&rig, "GET", "/demo/d/f?tagging", &[], "").element("Value"), "1");
    assert_eq!(post(&[("key", "by-name/${filename}.txt")]).status, 204);
    assert_eq!(send(&rig, "GET", "/demo/by-name/f.txt", &[], "").text(), "hello");
    let sent_on = post(&[("key", "k"), ("success_action_redirect", "http://localhost/done")]);
    assert_eq!(
        (sent_on.status, sent_on.header("location")),
        (303, "http://localhost/done?bucket=demo&key=k&etag=%225d41402abc4b2a76b9719d911017c592%22")
    );
    let limit = 8 << 20;
    let of_size = |size: usize| {
        let fields =
            format!("{}{}", part("key", "", "large"), part("file", "; filename=\"f\"", &"x".repeat(size)));
        send(&rig, "POST", "/demo", &[FORM], &format!("{fields}--b--\r\n"))
    };
    assert_eq!(of_size(limit).status, 204);
    let refused = of_size(limit + 1);
    assert_eq!((refused.status, refused.element("Code")), (400, "EntityTooLarge"), "{}", refused.text());
    // {"expiration": "2127-01-01T00:00:00Z", "conditions": [["eq", "$key", "other"]]}
    let policy = "eyJleHBpcmF0aW9uIjogIjIxMjctMDEtMDFUMDA6MDA6MDBaIiwgImNvbmRpdGlvbnMiOiBbWyJlcSIsICIka2V5IiwgIm90aGVyIl1dfQ==";
    let refused = post(&[("key", "k"), ("policy", policy)]);
    assert_eq!((refused.status, refused.element("Code")), (403, "AccessDenied"), "{}", refused.text());
    let unsigned = post(&[("key", "other"), ("AWSAccessKeyId", "demo"), ("policy", policy)]);
    assert_eq!((unsigned.status, unsigned.element("Code")), (400, "InvalidArgument"));
    // {"expiration": "2127-01-01 00:00:00Z", "conditions": [["eq", "$key", "other"]]}
    let undated = "eyJleHBpcmF0aW9uIjogIjIxMjctMDEtMDEgMDA6MDA6MDBaIiwgImNvbmRpdGlvbnMiOiBbWyJlcSIsICIka2V5IiwgIm90aGVyIl1dfQ==";
    let refused = post(&[("key", "other"), ("policy", undated)]);
    assert_eq!((refused.status, refused.element("Code")), (400, "InvalidPolicyDocument"));
}
