//! Versions of objects by the real binary: listed, read, copied.

use laneway_server::Versioning;
use laneway_testkit::{Asked, Endpoint, Program, Scripted, Wire, answer};

const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");
const SCHEMES: [&str; 2] = ["gs", "s3"];

/// A server whose bucket keeps versions, with two of `p/a`, one of `p/b`, and one of `gone` below its delete marker.
fn stocked() -> (Endpoint, Program) {
    let endpoint = Endpoint::start(Wire::Plain);
    let store = endpoint.server().store();
    store.put("bucket", "p/a", b"one").expect("stored");
    store.keep_versions("bucket", Versioning::Enabled).expect("there is the bucket");
    store.put("bucket", "p/a", b"second").expect("stored");
    store.put("bucket", "p/b", b"b").expect("stored");
    store.put("bucket", "gone", b"gone").expect("stored");
    assert!(store.remove("bucket", "gone"));
    let program = endpoint.program(LANEWAY);
    (endpoint, program)
}

/// The URLs of what `ls -a` lists.
fn listed(laneway: &Program, scheme: &str, place: &str) -> Vec<String> {
    laneway.run(["ls", "-a", "-r", &format!("{scheme}://bucket/{place}")]).succeeds().lines()
}

#[test]
fn every_version_is_listed_and_can_be_read_by_its_url() {
    let (_endpoint, laneway) = stocked();
    for scheme in SCHEMES {
        let mut lines = listed(&laneway, scheme, "p/a");
        assert_eq!(lines.len(), 2, "{lines:?}");
        if scheme == "s3" {
            assert!(lines[1].ends_with("#null"), "written before versioning: {lines:?}");
            lines.reverse();
        }
        let cat = |url: &str| laneway.run(["cat", url]).succeeds().text();
        assert_eq!((cat(&lines[0]), cat(&lines[1])), ("one".to_owned(), "second".to_owned()));
        let ranges = laneway.run(["cat", "-r", "0-0,1-2", &lines[0]]).succeeds().text();
        assert_eq!(ranges, "one");
        let stat = laneway.run(["stat", "--json", &lines[0]]).succeeds().text();
        assert!(stat.contains(r#""size":3"#), "{stat}");
        let missing = format!("{scheme}://bucket/p/a#1700000000000001");
        laneway.run(["cat", &missing]).exits(1).complains(&[&missing]);
    }
}

#[test]
fn an_older_version_is_copied_here_elsewhere_and_over_its_own_key() {
    for scheme in SCHEMES {
        let (endpoint, laneway) = stocked();
        let lines = listed(&laneway, scheme, "p/a");
        let old = if scheme == "gs" { &lines[0] } else { &lines[1] };
        laneway.run(["cp", old, "here"]).succeeds();
        assert_eq!(std::fs::read(endpoint.folder().join("here")).expect("it is there"), b"one");
        laneway.run(["cp", old, &format!("{scheme}://bucket/copy")]).succeeds();
        let other = if scheme == "gs" { "s3" } else { "gs" };
        laneway.run(["cp", old, &format!("{other}://bucket/across")]).succeeds();
        laneway.run(["cp", old, &format!("{scheme}://bucket/p/a")]).succeeds();
        for key in ["copy", "across", "p/a"] {
            assert_eq!(endpoint.server().store().read("bucket", key).expect("it is there"), b"one", "{key}");
        }
        assert_eq!(endpoint.server().store().versions("bucket", "p/a").len(), 3);
    }
}

#[test]
fn delete_markers_are_shown_as_such_and_are_no_objects() {
    let (_endpoint, laneway) = stocked();
    let lines = listed(&laneway, "s3", "gone");
    assert!(lines.len() == 2 && lines[0].ends_with("  (delete marker)"), "{lines:?}");
    assert!(!lines[1].contains("marker"), "{lines:?}");
    assert_eq!(listed(&laneway, "gs", "gone").len(), 1, "GCS has none");
    laneway.run(["ls", "s3://bucket/gone"]).exits(1);
    let long = laneway.run(["ls", "-alr", "s3://bucket/"]).succeeds().lines();
    assert_eq!(long.last().map(String::as_str), Some("TOTAL: 4 objects, 14 bytes (14B)"), "{long:?}");
    let records = laneway.run(["ls", "-a", "--json", "s3://bucket/gone"]).succeeds().json();
    assert!(records[0]["delete_marker"] == true && records[0]["is_latest"] == true, "{records:?}");
    assert!(records[1]["version"].is_string() && records[1]["is_latest"] == false, "{records:?}");
}

#[test]
fn one_level_and_patterns_list_versions_too() {
    let (_endpoint, laneway) = stocked();
    for scheme in SCHEMES {
        let ls = |place: &str| {
            let url = format!("{scheme}://bucket/{place}");
            laneway.run(["ls", "-a", &url]).succeeds().lines().len()
        };
        let markers = usize::from(scheme == "s3");
        assert_eq!(ls(""), 2 + markers, "the prefix p/ and what was gone");
        assert_eq!((ls("p/"), ls("p/*"), ls("p/a")), (3, 3, 2));
        laneway.run(["ls", "-a", &format!("{scheme}://bucket/none")]).exits(1);
    }
}

#[test]
fn a_summary_says_how_many_objects_and_bytes_were_listed() {
    let (_endpoint, laneway) = stocked();
    for scheme in SCHEMES {
        let url = format!("{scheme}://bucket/p/");
        let lines = laneway.run(["ls", "-r", "--summarize", &url]).succeeds().lines();
        assert_eq!(lines.last().map(String::as_str), Some("TOTAL: 2 objects, 7 bytes (7B)"));
        let json = laneway.run(["ls", "-r", "--summarize", "--json", &url]).succeeds().text();
        let last = json.lines().last().expect("a record");
        assert_eq!(last, r#"{"kind":"usage","objects":2,"bytes":7}"#);
        let none = laneway.run(["ls", "-r", "--summarize", &url, "--min-size", "1MiB"]).succeeds().lines();
        assert_eq!(none.last().map(String::as_str), Some("TOTAL: 0 objects, 0 bytes (0B)"));
    }
}

#[test]
fn a_key_that_looks_like_a_version_is_named_by_a_pattern() {
    let (endpoint, laneway) = stocked();
    let key = "odd#1700000000000001";
    endpoint.server().store().put("bucket", key, b"itself").expect("stored");
    for scheme in SCHEMES {
        let bracketed = format!("{scheme}://bucket/odd[#]1700000000000001");
        assert_eq!(laneway.run(["cat", &bracketed]).succeeds().text(), "itself");
        laneway.run(["cat", &format!("{scheme}://bucket/{key}")]).exits(1);
        laneway.run(["cp", "-r", &format!("{scheme}://bucket/odd*"), &format!("{scheme}-here/")]).succeeds();
        assert!(endpoint.folder().join(format!("{scheme}-here/{key}")).exists());
    }
}

/// GCS's generation in an answer can't be mistaken; what passes over the name of a version answers with the live one's.
#[test]
fn a_moved_version_stays_where_the_store_does_not_know_it_by_its_name() {
    let endpoint = Endpoint::start(Wire::Plain);
    let server = Scripted::serve(|asked: &Asked| {
        let media = ("x-goog-hash", "crc32c=4waSgw==");
        match (asked.method.as_str(), asked.target.contains("alt=media")) {
            ("DELETE", _) => answer(204, &[], ""),
            (_, true) => answer(200, &[("x-goog-generation", "1"), media], "123456789"),
            _ => {
                let live =
                    r#"{"bucket":"bucket","name":"k","size":"9","generation":"1","crc32c":"4waSgw=="}"#;
                answer(200, &[("Content-Type", "application/json")], live)
            }
        }
    });
    let laneway = endpoint.program(LANEWAY).with("STORAGE_EMULATOR_HOST", server.url());
    laneway
        .run(["mv", "gs://bucket/k#1700000000000001", "here"])
        .exits(1)
        .complains(&["asked for this version"]);
    assert!(!server.asked().iter().any(|asked| asked.method == "DELETE"), "{:?}", server.asked());
}

#[test]
fn a_bucket_with_versions_is_removed_by_force() {
    for scheme in SCHEMES {
        let (_endpoint, laneway) = stocked();
        let url = format!("{scheme}://bucket");
        laneway.run(["rb", &url]).exits(1).complains(&["not empty"]);
        laneway.run(["rb", "--force", "--yes", &url]).succeeds();
        laneway.run(["ls", "-a", &url]).exits(1).complains(&["not found"]);
    }
}
