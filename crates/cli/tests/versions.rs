//! Versions, buckets and metadata by the real binary: `ls -a` and the like, `mb`, `rb`, `hash` and `setmeta`.

use laneway_server::{Attributes, Config, Faults, ObjectEncryption, S3Config, Versioning};
use laneway_testkit::{Asked, Endpoint, Program, Scripted, Wire, answer};

const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");
const SCHEMES: [&str; 2] = ["gs", "s3"];

/// Starts a server with a versioned bucket: two versions of `p/a`, one of `p/b`, and one of `gone` below a delete
/// marker.
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

/// Returns the URLs that `ls -a` lists.
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
    assert_eq!(listed(&laneway, "gs", "gone").len(), 1, "GCS has no delete markers");
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

/// A store that ignores the version in a request answers with the live object. On GCS, Laneway notices this by the generation in the
/// answer.
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

fn begun() -> (Endpoint, Program) {
    let endpoint = Endpoint::start(Wire::Plain);
    let program = endpoint.program(LANEWAY).with("GOOGLE_CLOUD_PROJECT", "project");
    (endpoint, program)
}

#[test]
fn buckets_are_made_and_removed_and_both_say_so() {
    for scheme in ["s3", "gs"] {
        let (_endpoint, laneway) = begun();
        let url = format!("{scheme}://lake-2");
        let made = laneway.run(["mb", &url]).succeeds();
        assert_eq!(made.stderr, format!("made {url}\n"));
        match scheme {
            // In us-east-1 the owner of a bucket may create it again, and S3 answers 200.
            "s3" => drop(laneway.run(["mb", &url]).succeeds()),
            _ => drop(laneway.run(["mb", &url]).exits(1).complains(&["make bucket", &url, "it exists"])),
        }
        assert!(laneway.run(["ls", &format!("{scheme}://")]).succeeds().lines().contains(&format!("{url}/")));
        let removed = laneway.run(["rb", "--json", &url]).succeeds().record("bucket");
        assert_eq!((removed["url"].as_str(), removed["outcome"].as_str()), (Some(&*url), Some("removed")));
        laneway.run(["rb", &url]).exits(1).complains(&["remove bucket", "not found"]);
    }
}

#[test]
fn a_bucket_that_holds_something_is_removed_by_force_alone() {
    for scheme in ["s3", "gs"] {
        let (endpoint, laneway) = begun();
        for n in 0..20 {
            endpoint.server().store().put("bucket", &format!("{n}"), b"x").expect("stored");
        }
        let url = format!("{scheme}://bucket");
        laneway.run(["rb", &url]).exits(1).complains(&["not empty"]);
        laneway.run(["rb", "--force", &url]).exits(2).complains(&["--yes"]);
        laneway
            .run(["rb", "--force", "--yes", &format!("{url}/1")])
            .exits(2)
            .complains(&["name the whole bucket"]);
        assert_eq!(endpoint.server().store().keys("bucket").len(), 20);
        laneway.run(["rb", "--force", "--yes", &url]).succeeds();
        laneway.run(["ls", &url]).exits(1).complains(&["not found"]);
    }
}

#[test]
fn what_an_answer_that_was_lost_has_done_is_no_failure() {
    for scheme in ["s3", "gs"] {
        let (endpoint, laneway) = begun();
        endpoint.server().set_faults(Faults::parse(["any:1-1 lose-answer"]).expect("a rule"));
        laneway.run(["mb", &format!("{scheme}://lake-2")]).succeeds();
        endpoint.server().set_faults(Faults::parse(["any:1-1 lose-answer"]).expect("a rule"));
        laneway.run(["rb", &format!("{scheme}://lake-2")]).succeeds();
    }
}

#[test]
fn a_bucket_of_s3_is_made_in_the_region_that_is_asked_and_nowhere_else() {
    let s3 = S3Config { region: "eu-west-1".to_owned(), ..S3Config::default() };
    let endpoint = Endpoint::start_with(Wire::Plain, Config { s3, ..Config::default() });
    let laneway = endpoint.program(LANEWAY);
    laneway.run(["mb", "--region", "us-east-1", "s3://lake-2"]).exits(1);
    let why = "can't create buckets in other regions";
    laneway
        .run(["mb", "--region", "eu-west-1", "--location", "EU", "s3://lake-2"])
        .exits(1)
        .complains(&[why]);
    laneway.run(["mb", "--region", "eu-west-1", "--location", "eu-west-1", "s3://lake-2"]).succeeds();
}

#[test]
fn on_gcs_a_project_has_to_be_known() {
    let endpoint = Endpoint::start(Wire::Plain);
    let laneway = endpoint.program(LANEWAY).without("GOOGLE_CLOUD_PROJECT");
    laneway.run(["mb", "gs://lake-2"]).exits(1).complains(&["no Google Cloud project is set"]);
}

#[test]
fn the_checksums_of_files_are_those_that_the_store_has_of_them() {
    let (_endpoint, laneway) = begun();
    let file = laneway.home().join("f");
    std::fs::write(&file, "123456789").expect("written");
    let path = file.to_str().expect("a name");
    let hash = laneway.run(["hash", "--json", path]).succeeds().record("hash");
    assert_eq!(hash["crc32c"], "4waSgw==");
    assert_eq!(hash["crc64nvme"], "rosUhgp5mIg=");
    assert_eq!(hash["md5"], "JfnnlDI7RTiF9RgfG2JNCw==");
    let input = laneway.run_with_input(["hash", "-"], b"123456789").succeeds();
    assert!(input.text().contains("CRC32C     4waSgw=="), "{}", input.text());
    laneway.run(["cp", path, "s3://bucket/f"]).succeeds();
    assert_eq!(
        laneway.run(["stat", "--json", "s3://bucket/f"]).succeeds().record("object")["crc32c"],
        hash["crc32c"]
    );
    laneway.run(["hash", "/nowhere"]).exits(1).complains(&["/nowhere"]);
    laneway.run(["hash", "s3://bucket/f"]).exits(2).complains(&["laneway stat"]);
}

/// Starts a server with three pages and a picture, each with a type, a language and metadata.
fn setmeta_scene() -> (Endpoint, Program) {
    let endpoint = Endpoint::start(Wire::Plain);
    for key in ["site/a.html", "site/b.html", "site/deep/c.html", "site/d.png"] {
        let attributes = Attributes {
            content_type: Some("text/plain".to_owned()),
            content_language: Some("de".to_owned()),
            metadata: [("author", "me"), ("draft", "yes")].map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
            ..Attributes::default()
        };
        endpoint.server().store().put_with("bucket", key, b"bytes", attributes).expect("stored");
    }
    let program = endpoint.program(LANEWAY);
    (endpoint, program)
}

fn attributes(endpoint: &Endpoint, key: &str) -> Attributes {
    Attributes::clone(&endpoint.server().store().object("bucket", key).expect("it is there").attributes)
}

#[test]
fn what_is_mentioned_changes_and_the_rest_stays() {
    for scheme in SCHEMES {
        let (endpoint, laneway) = setmeta_scene();
        let url = format!("{scheme}://bucket/site/a.html");
        let run = laneway
            .run(["setmeta", &url, "--content-type", "text/html", "--cache-control", "max-age=60"])
            .succeeds();
        assert!(run.stderr.contains("1 object changed"), "{}", run.stderr);
        let changed = attributes(&endpoint, "site/a.html");
        assert_eq!(changed.content_type.as_deref(), Some("text/html"));
        assert_eq!(changed.cache_control.as_deref(), Some("max-age=60"));
        assert_eq!(
            (changed.content_language.as_deref(), changed.metadata.len()),
            (Some("de"), 2),
            "{scheme}"
        );
        laneway
            .run([
                "setmeta",
                &url,
                "--content-language",
                "",
                "--metadata",
                "n=1",
                "--remove-metadata",
                "draft",
            ])
            .succeeds();
        let changed = attributes(&endpoint, "site/a.html");
        let names: Vec<_> = changed.metadata.keys().map(String::as_str).collect();
        assert_eq!((changed.content_language, names), (None, vec!["author", "n"]), "{scheme}");
        laneway.run(["setmeta", &url, "--clear-metadata", "--metadata", "n=2"]).succeeds();
        let changed = attributes(&endpoint, "site/a.html");
        assert_eq!(changed.metadata, [("n".to_owned(), "2".to_owned())].into(), "{scheme}");
        assert_eq!(changed.content_type.as_deref(), Some("text/html"));
        assert_eq!(endpoint.server().store().read("bucket", "site/a.html").expect("read"), b"bytes");
    }
}

#[test]
fn trees_and_patterns_are_changed_as_filters_say() {
    for scheme in SCHEMES {
        let (endpoint, laneway) = setmeta_scene();
        let url = format!("{scheme}://bucket/site/");
        let line =
            ["setmeta", "-r", &url, "--include", "*.html", "--exclude", "*", "--cache-control", "no-store"];
        let would = laneway.run([&line[..], &["--dry-run"]].concat()).succeeds();
        assert!(would.stderr.contains("3 objects"), "{}", would.stderr);
        assert_eq!(attributes(&endpoint, "site/b.html").cache_control, None);
        laneway.run(line).succeeds();
        for (key, expected) in [("site/deep/c.html", Some("no-store")), ("site/d.png", None)] {
            assert_eq!(attributes(&endpoint, key).cache_control.as_deref(), expected, "{scheme}: {key}");
        }
        let pattern = format!("{scheme}://bucket/site/*.png");
        let run = laneway.run(["setmeta", "--json", &pattern, "--content-type", "image/png"]).succeeds();
        let item = run.record("item");
        assert_eq!(item["op"], "setmeta", "{item}");
        assert_eq!(attributes(&endpoint, "site/d.png").content_type.as_deref(), Some("image/png"));
    }
}

#[test]
fn another_storage_class_keeps_what_describes_the_object() {
    for (scheme, class) in [("gs", "NEARLINE"), ("s3", "STANDARD_IA")] {
        let (endpoint, laneway) = setmeta_scene();
        let url = format!("{scheme}://bucket/site/a.html");
        laneway.run(["setmeta", &url, "--storage-class", class, "--metadata", "n=1"]).succeeds();
        let changed = attributes(&endpoint, "site/a.html");
        assert_eq!(changed.storage_class.as_deref(), Some(class));
        assert_eq!(
            (changed.content_type.as_deref(), changed.metadata.len()),
            (Some("text/plain"), 3),
            "{scheme}"
        );
        laneway.run(["setmeta", &url, "--cache-control", "no-store"]).succeeds();
        assert_eq!(attributes(&endpoint, "site/a.html").storage_class.as_deref(), Some(class), "{scheme}");
    }
}

#[test]
fn on_gcs_a_change_is_no_new_generation_and_on_s3_it_is_a_version() {
    for (scheme, versions) in [("gs", 1), ("s3", 2)] {
        let (endpoint, laneway) = setmeta_scene();
        endpoint.server().store().keep_versions("bucket", Versioning::Enabled).expect("there is the bucket");
        laneway.run(["setmeta", &format!("{scheme}://bucket/site/a.html"), "--metadata", "n=1"]).succeeds();
        assert_eq!(endpoint.server().store().versions("bucket", "site/a.html").len(), versions, "{scheme}");
    }
}

#[test]
fn what_can_not_be_meant_is_refused() {
    let (_endpoint, laneway) = setmeta_scene();
    laneway.run(["setmeta", "gs://bucket/site/a.html"]).exits(2).complains(&["nothing to change"]);
    laneway.run(["setmeta", "gs://bucket/site/", "--content-type", "a/b"]).exits(2).complains(&["-r"]);
    for scheme in SCHEMES {
        let none = format!("{scheme}://bucket/none");
        laneway.run(["setmeta", &none, "--content-type", "a/b"]).exits(1).complains(&[&none]);
    }
    laneway
        .run(["setmeta", "s3://bucket/site/a.html#null", "--content-type", "a/b"])
        .exits(1)
        .complains(&["version"]);
}

#[test]
fn encryption_stays_as_it_is_and_an_answer_that_was_lost_is_no_failure() {
    let (endpoint, laneway) = setmeta_scene();
    let mut attributes_of = attributes(&endpoint, "site/a.html");
    attributes_of.options.encryption = Some(ObjectEncryption::Managed {
        algorithm: "aws:kms:dsse".to_owned(),
        kms_key: Some("key".to_owned()),
        bucket_key: false,
    });
    let encryption = attributes_of.options.encryption.clone();
    endpoint.server().store().put_with("bucket", "site/a.html", b"bytes", attributes_of).expect("stored");
    // The copy changes the ETag, so that the second attempt's condition fails.
    endpoint.server().set_faults(Faults::parse(["copy:1 lose-answer"]).expect("a rule"));
    laneway.run(["setmeta", "s3://bucket/site/a.html", "--cache-control", "no-store"]).succeeds();
    let changed = attributes(&endpoint, "site/a.html");
    assert_eq!(changed.cache_control.as_deref(), Some("no-store"));
    assert_eq!(changed.options.encryption, encryption);
    assert_eq!(endpoint.server().counters().requests_by_verb["copy"], 2);
}

#[test]
fn versioning_and_lifecycle_are_shown_and_changed_in_the_stores_own_form() {
    let config = laneway_server::Config { accept_unenforced: true, ..Default::default() };
    let endpoint = Endpoint::start_with(Wire::Plain, config);
    let laneway = endpoint.program(LANEWAY);
    let shown = |setting: &str, url: &str| -> serde_json::Value {
        let text = laneway.run(["bucket", setting, url]).succeeds().text();
        serde_json::from_str(&text).expect("JSON")
    };
    laneway.run(["bucket", "versioning", "gs://bucket", "on"]).succeeds();
    assert_eq!(shown("versioning", "gs://bucket"), serde_json::json!({"enabled": true}));
    assert_eq!(shown("versioning", "s3://bucket"), serde_json::json!({"Status": "Enabled"}));
    laneway.run(["bucket", "versioning", "s3://bucket", "off"]).succeeds();
    assert_eq!(shown("versioning", "s3://bucket"), serde_json::json!({"Status": "Suspended"}));
    for (scheme, rules) in [
        (
            "s3",
            serde_json::json!({"Rules": [{"ID": "old", "Status": "Enabled", "Filter": {"Prefix": "logs/"}, "Expiration": {"Days": 30}}]}),
        ),
        ("gs", serde_json::json!({"rule": [{"action": {"type": "Delete"}, "condition": {"age": 30}}]})),
    ] {
        let url = format!("{scheme}://bucket");
        assert_eq!(shown("lifecycle", &url), serde_json::json!({}));
        std::fs::write(endpoint.folder().join("rules.json"), rules.to_string()).expect("written");
        laneway.run(["bucket", "lifecycle", &url, "--set", "rules.json"]).succeeds();
        assert_eq!(shown("lifecycle", &url), rules, "{scheme}");
        laneway.run(["bucket", "lifecycle", &url, "--clear"]).succeeds();
        assert_eq!(shown("lifecycle", &url), serde_json::json!({}));
        laneway.run(["bucket", "lifecycle", &format!("{url}/key")]).exits(2);
    }
    let rules = serde_json::json!({"rule": [{"action": {"type": "Delete"}, "condition": {"age": 30}}]});
    let file = endpoint.folder().join("gsutil.json");
    std::fs::write(&file, serde_json::json!({"lifecycle": rules}).to_string()).expect("written");
    laneway.run(["bucket", "lifecycle", "gs://bucket", "--set", "gsutil.json"]).succeeds();
    assert_eq!(shown("lifecycle", "gs://bucket"), rules);
    std::fs::write(&file, "{\"Rules\": []}").expect("written");
    laneway
        .run(["bucket", "lifecycle", "gs://bucket", "--set", "gsutil.json"])
        .exits(1)
        .complains(&["`rule`"]);
    assert_eq!(shown("lifecycle", "gs://bucket"), rules, "a refused file clears nothing");
    std::fs::write(endpoint.folder().join("no.json"), "{").expect("written");
    laneway.run(["bucket", "lifecycle", "s3://bucket", "--set", "no.json"]).exits(2).complains(&["JSON"]);
    laneway.run(["bucket", "versioning", "s3://nowhere"]).exits(1).complains(&["s3://nowhere"]);
}
