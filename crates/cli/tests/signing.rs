//! `sign` by the real binary.

use laneway_testkit::{Endpoint, Wire};

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
    assert!(shown.stderr.contains("send this header with it: content-type: a/b"), "{}", shown.stderr);
}

#[test]
fn what_cannot_be_signed_is_said_of_its_object() {
    let endpoint = Endpoint::start(Wire::Plain);
    let laneway = endpoint.program(LANEWAY);
    for (line, why) in [
        (&["sign", "gs://bucket/k", "--anonymous"][..], "anonymous"),
        (&["sign", "gs://bucket/k", "--expires", "8d"], "7 days"),
        (&["sign", "gs://bucket/k", "--query", "X-Goog-Expires=1"], "signature's own"),
    ] {
        laneway.run(line).exits(1).complains(&[why, "gs://bucket/k"]);
    }
    let unknown = laneway.run(["sign", "gs://bucket/k", "--method", "PATCH"]).exits(2);
    assert!(unknown.stderr.contains("GET, HEAD"), "{}", unknown.stderr);
}
