//! `setmeta` by the real binary.

use laneway_server::{Attributes, Encryption, Faults, Versioning};
use laneway_testkit::{Endpoint, Program, Wire};

const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");
const SCHEMES: [&str; 2] = ["gs", "s3"];

/// Three pages and a picture, all with a type, a language, and metadata.
fn stocked() -> (Endpoint, Program) {
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
        let (endpoint, laneway) = stocked();
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
        let (endpoint, laneway) = stocked();
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
        let (endpoint, laneway) = stocked();
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
        let (endpoint, laneway) = stocked();
        endpoint.server().store().keep_versions("bucket", Versioning::Enabled).expect("there is the bucket");
        laneway.run(["setmeta", &format!("{scheme}://bucket/site/a.html"), "--metadata", "n=1"]).succeeds();
        assert_eq!(endpoint.server().store().versions("bucket", "site/a.html").len(), versions, "{scheme}");
    }
}

#[test]
fn what_can_not_be_meant_is_refused() {
    let (_endpoint, laneway) = stocked();
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
    let (endpoint, laneway) = stocked();
    let mut attributes_of = attributes(&endpoint, "site/a.html");
    attributes_of.asked.encryption = Some(Encryption::Managed {
        algorithm: "aws:kms:dsse".to_owned(),
        kms_key: Some("key".to_owned()),
        bucket_key: false,
    });
    let encryption = attributes_of.asked.encryption.clone();
    endpoint.server().store().put_with("bucket", "site/a.html", b"bytes", attributes_of).expect("stored");
    // The copy has another ETag, so that the second attempt finds another state than it names.
    endpoint.server().set_faults(Faults::parse(["copy:1 lose-answer"]).expect("a rule"));
    laneway.run(["setmeta", "s3://bucket/site/a.html", "--cache-control", "no-store"]).succeeds();
    let changed = attributes(&endpoint, "site/a.html");
    assert_eq!(changed.cache_control.as_deref(), Some("no-store"));
    assert_eq!(changed.asked.encryption, encryption);
    assert_eq!(endpoint.server().counters().requests_by_verb["copy"], 2);
}
