//! `verify` by the real binary.

use std::fs;

use laneway_testkit::{Endpoint, Wire};

const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");

#[test]
fn the_exit_status_and_the_last_line_say_whether_two_places_are_equal() {
    let endpoint = Endpoint::start(Wire::Plain);
    let laneway = endpoint.program(LANEWAY).in_folder(endpoint.folder());
    for key in ["p/a", "p/b", "q/a", "q/b"] {
        endpoint.server().store().put("bucket", key, b"x").expect("stored");
    }
    let equal = laneway.run(["verify", "gs://bucket/p", "s3://bucket/q"]).succeeds();
    assert!(equal.stderr.starts_with("2 objects match by md5 in "), "{}", equal.stderr);
    endpoint.server().store().put("bucket", "q/a", b"yy").expect("stored");
    let differs = laneway
        .run(["verify", "--json", "s3://bucket/p", "s3://bucket/q", "--report", "report.csv"])
        .exits(1);
    let summary = differs.record("summary");
    assert_eq!((&summary["files"], &summary["failed"]), (&1.into(), &1.into()));
    assert!(
        differs.stderr.contains("s3://bucket/q/a: it has 2 bytes, and 1 at the source"),
        "{}",
        differs.stderr
    );
    let report = fs::read_to_string(endpoint.folder().join("report.csv")).expect("a report");
    let expected = "bucket,p/a,,failed,SizeMismatch,412,\"it has 2 bytes, and 1 at the source\"\n";
    assert!(report.starts_with(expected), "{report}");
    laneway.run(["verify", "s3://bucket/p", "s3://bucket/p"]).exits(2);
}

#[test]
fn local_files_are_read_unless_that_is_declined() {
    let endpoint = Endpoint::start(Wire::Plain);
    let laneway = endpoint.program(LANEWAY).in_folder(endpoint.folder());
    endpoint.server().store().put("bucket", "p/f", b"AAAA").expect("stored");
    fs::create_dir(endpoint.folder().join("tree")).expect("made");
    for (bytes, url, sum) in [("AAAA", "gs://bucket/p", "crc32c"), ("AAAA", "s3://bucket/p", "md5")] {
        fs::write(endpoint.folder().join("tree/f"), bytes).expect("written");
        let equal = laneway.run(["verify", "tree", url]).succeeds();
        assert!(equal.stderr.starts_with(&format!("1 object matches by {sum} in ")), "{}", equal.stderr);
        fs::write(endpoint.folder().join("tree/f"), "BBBB").expect("written");
        laneway.run(["verify", "tree", url]).exits(1).complains(&["p/f: its ", "differs from the source's"]);
        let unread = laneway.run(["verify", "--no-read", "tree", url]).succeeds();
        assert!(
            unread.stderr.starts_with(
                "1 object matches by name and size (no checksums were available to compare) in "
            ),
            "{}",
            unread.stderr
        );
    }
}
