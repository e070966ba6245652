//! `cp` and `mv` by the real binary against the embedded server, over HTTP/1.1 and HTTP/2 and in both dialects, with `--files-from` and
//! with `-z`.

use std::fs;
use std::io::{Read as _, Seek as _, Write as _};
use std::process::Command;

use laneway_server::{Attributes, Config, Faults};
use laneway_testkit::{Endpoint, Program, Wire, differences, files_below, random_bytes, seed_tree};

const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");
const SCHEMES: [&str; 2] = ["gs", "s3"];

fn endpoint(wire: Wire) -> (Endpoint, Program) {
    let endpoint = Endpoint::start(wire);
    let program = endpoint.program(LANEWAY);
    (endpoint, program)
}

fn read(endpoint: &Endpoint, name: &str) -> Vec<u8> {
    fs::read(endpoint.folder().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn write(endpoint: &Endpoint, name: &str, bytes: &[u8]) {
    let path = endpoint.folder().join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    fs::write(path, bytes).expect("written");
}

/// Uploads a tree with unusual names, downloads it again, and compares the two trees.
fn round_trip(wire: Wire, scheme: &str) {
    let (endpoint, laneway) = endpoint(wire);
    let (tree, back) = (endpoint.folder().join("tree"), endpoint.folder().join("back"));
    let bytes = seed_tree(&tree, 1, 300);

    let up = laneway.run(["cp", "--json", "-r", "tree", &format!("{scheme}://bucket/p/")]).succeeds();
    let summary = up.record("summary");
    assert_eq!((summary["files"].as_u64(), summary["bytes"].as_u64()), (Some(300), Some(bytes)));
    assert_eq!(endpoint.server().store().keys("bucket").len(), 300);
    assert!(endpoint.server().store().keys("bucket").iter().all(|key| key.starts_with("p/tree/")));

    laneway.run(["cp", "-r", &format!("{scheme}://bucket/p/tree"), "back"]).succeeds();
    assert_eq!(differences(&tree, &back), Vec::<String>::new());
    assert_eq!(endpoint.server().counters().multipart_open, 0);
}

#[test]
fn a_tree_goes_up_and_comes_back_where_few_files_may_be_open() {
    let (endpoint, _) = endpoint(Wire::Plain);
    let tree = endpoint.folder().join("tree");
    for n in 0..300 {
        write(&endpoint, &format!("tree/{n}/a/b/{n}"), b"x");
    }
    // With these delays, Laneway would open many connections. A process with few descriptors would have none left for its files.
    let rules = ["put delay 20ms", "get delay 20ms"];
    endpoint.server().set_faults(Faults::parse(rules).expect("rules"));
    let limited = endpoint.program("/bin/sh").in_folder(endpoint.folder());
    let run = |words: &[&str]| {
        let limit = ["-c", "ulimit -n 64 && exec \"$@\"", "sh", LANEWAY];
        limited.run([&limit[..], words].concat()).succeeds()
    };
    run(&["cp", "-r", "tree", "s3://bucket/t"]);
    assert_eq!(endpoint.server().store().keys("bucket").len(), 300);
    run(&["cp", "-r", "s3://bucket/t", "back"]);
    assert_eq!(differences(&tree, &endpoint.folder().join("back")), Vec::<String>::new());
    let summary = run(&["sync", "--json", "tree", "gs://bucket/t"]).record("summary");
    assert_eq!((&summary["unchanged"], &summary["failed"]), (&300.into(), &0.into()));
}

#[test]
fn a_tree_survives_gcs_over_plain_h1() {
    round_trip(Wire::Plain, "gs");
}

#[test]
fn a_tree_survives_gcs_over_tls_h1() {
    round_trip(Wire::TlsH1, "gs");
}

#[test]
fn a_tree_survives_gcs_over_tls_h2() {
    round_trip(Wire::TlsH2, "gs");
}

#[test]
fn a_tree_survives_s3_over_plain_h1() {
    round_trip(Wire::Plain, "s3");
}

#[test]
fn a_tree_survives_s3_over_tls_h1() {
    round_trip(Wire::TlsH1, "s3");
}

#[test]
fn a_tree_survives_s3_over_tls_h2() {
    round_trip(Wire::TlsH2, "s3");
}

#[test]
fn objects_of_every_interesting_size_come_back_the_same() {
    const MIB8: usize = 8 << 20;
    for wire in [Wire::Plain, Wire::TlsH2] {
        let (endpoint, laneway) = endpoint(wire);
        for scheme in SCHEMES {
            for len in [0, 1, MIB8 - 1, MIB8, MIB8 + 1, 3 * MIB8 + 17] {
                let bytes = random_bytes(len as u64, len);
                write(&endpoint, "f", &bytes);
                let url = format!("{scheme}://bucket/size-{len}");
                laneway.run(["cp", "f", &url]).succeeds();
                let down = laneway.run(["cp", "--json", &url, "back"]).succeeds();
                assert!(read(&endpoint, "back") == bytes, "{url} over {wire:?}");
                assert_ne!(down.record("item")["verified"], "unverified", "{url} over {wire:?}");
                fs::remove_file(endpoint.folder().join("back")).expect("removed");
            }
        }
        assert_eq!(endpoint.server().counters().multipart_open, 0);
    }
}

#[test]
fn awkward_keys_are_kept_byte_for_byte() {
    let (endpoint, laneway) = endpoint(Wire::Plain);
    write(&endpoint, "f", b"x");
    let long = "k".repeat(1024);
    let keys = [
        "a b",
        "per%cent",
        "per%2Fcent",
        "plus+",
        "a//b",
        "ümlaut/日本",
        "a&b=c",
        "#h",
        "a;b",
        "'q\"",
        &long,
    ];
    for scheme in SCHEMES {
        for key in keys {
            let key = if key.len() > 1000 { key.to_owned() } else { format!("{scheme}-{key}") };
            let url = format!("{scheme}://bucket/{key}");
            laneway.run(["cp", "f", &url]).succeeds();
            assert!(endpoint.server().store().object("bucket", &key).is_some(), "{url}");
            assert_eq!(laneway.run(["cat", &url]).succeeds().stdout, b"x", "{url}");
        }
    }
}

#[test]
fn a_trailing_slash_says_folder_and_its_absence_says_name() {
    for scheme in SCHEMES {
        let (endpoint, laneway) = endpoint(Wire::Plain);
        write(&endpoint, "d/f", b"x");
        laneway.run(["cp", "-r", "d", &format!("{scheme}://bucket/p/")]).succeeds();
        laneway.run(["cp", "-r", "d", &format!("{scheme}://bucket/q")]).succeeds();
        laneway.run(["cp", "-r", "d", &format!("{scheme}://bucket")]).succeeds();
        laneway.run(["cp", "d/f", &format!("{scheme}://bucket/r/")]).succeeds();
        laneway.run(["cp", "d/f", &format!("{scheme}://bucket/s")]).succeeds();
        assert_eq!(endpoint.server().store().keys("bucket"), ["d/f", "p/d/f", "q/f", "r/f", "s"]);
    }
}

#[test]
fn one_object_enters_a_local_folder_that_exists() {
    let (endpoint, laneway) = endpoint(Wire::Plain);
    for key in ["p/f", "p/g"] {
        endpoint.server().store().put("bucket", key, b"x").expect("stored");
    }
    for folder in ["d", "e", "r"] {
        fs::create_dir(endpoint.folder().join(folder)).expect("made");
    }
    laneway.run(["cp", "s3://bucket/p/f", "d"]).succeeds();
    laneway.run(["cp", "s3://bucket/p/*", "e"]).succeeds();
    laneway.run(["cp", "-r", "s3://bucket/p/f", "r"]).succeeds();
    laneway.run(["cp", "s3://bucket/p/f", "new"]).succeeds();
    laneway.run(["cp", "s3://bucket/p/f", "."]).succeeds();
    for name in ["d/f", "e/f", "e/g", "r/f", "new", "f"] {
        assert_eq!(read(&endpoint, name), b"x", "{name}");
    }
}

#[test]
fn a_tree_goes_by_its_destinations_text_and_not_by_what_is_there() {
    for (destination, prefix) in
        [("new", ""), ("./new", ""), ("new/", "tree/"), (".", "tree/"), ("in/..", "tree/"), ("in/.", "tree/")]
    {
        let (endpoint, laneway) = endpoint(Wire::Plain);
        endpoint.server().store().put("bucket", "tree/d/f", b"x").expect("stored");
        let below = if destination.contains("new") { "new/" } else { "" };
        let below = if destination == "in/." { "in/" } else { below };
        fs::create_dir(endpoint.folder().join("in")).expect("made");
        for _ in 0..2 {
            laneway.run(["cp", "-r", "s3://bucket/tree", destination]).succeeds();
            let names = files_below(&endpoint.folder());
            assert_eq!(names, [format!("{below}{prefix}d/f")], "{destination}");
        }
        laneway.run(["mv", "-r", "s3://bucket/tree", destination]).succeeds();
        let names = files_below(&endpoint.folder());
        assert_eq!(names, [format!("{below}{prefix}d/f")], "{destination}");
    }
}

#[test]
fn patterns_choose_objects() {
    for scheme in SCHEMES {
        let (endpoint, laneway) = endpoint(Wire::Plain);
        for key in ["p/a.txt", "p/b.txt", "p/c.log", "p/sub/d.txt"] {
            endpoint.server().store().put("bucket", key, key.as_bytes()).expect("stored");
        }
        let names = |folder: &str| {
            let found = fs::read_dir(endpoint.folder().join(folder)).expect("read");
            let mut names: Vec<_> =
                found.map(|e| e.expect("entry").file_name().into_string().expect("text")).collect();
            names.sort();
            names
        };
        laneway.run(["cp", &format!("{scheme}://bucket/p/*.txt"), "one/"]).succeeds();
        assert_eq!(names("one"), ["a.txt", "b.txt"]);
        laneway.run(["cp", &format!("{scheme}://bucket/p/?.log"), "two/"]).succeeds();
        assert_eq!(names("two"), ["c.log"]);
        let deep = laneway.run(["ls", &format!("{scheme}://bucket/p/**.txt")]).succeeds();
        assert_eq!(deep.lines().len(), 3, "{}", deep.text());
    }
}

#[test]
fn standard_input_and_output_are_files_too() {
    let (endpoint, laneway) = endpoint(Wire::TlsH2);
    let bytes = random_bytes(3, 20 << 20);
    for scheme in SCHEMES {
        for (name, content) in [("small", &bytes[..1000]), ("large", &bytes[..]), ("empty", &[][..])] {
            let url = format!("{scheme}://bucket/{scheme}-{name}");
            laneway.run_with_input(["cp", "-", &url], content).succeeds();
            let run = laneway.run(["cp", &url, "-"]).succeeds();
            assert!(run.stdout == content, "{url}");
            assert!(laneway.run(["cat", &url]).succeeds().stdout == content, "{url}");
        }
    }
    drop(endpoint);
}

#[test]
fn the_null_device_stays_a_device() {
    use std::os::unix::fs::FileTypeExt as _;
    let (endpoint, laneway) = endpoint(Wire::Plain);
    endpoint.server().store().put("bucket", "k", &random_bytes(1, 9 << 20)).expect("stored");
    laneway.run(["cp", "s3://bucket/k", "/dev/null"]).succeeds();
    let null = fs::metadata("/dev/null").expect("it is there");
    assert!(null.file_type().is_char_device());
}

#[test]
fn a_pipe_as_destination_gets_the_bytes_in_order() {
    let (endpoint, laneway) = endpoint(Wire::Plain);
    let bytes = random_bytes(1, 20 << 20);
    endpoint.server().store().put("bucket", "k", &bytes).expect("stored");
    let pipe = endpoint.folder().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs").success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || {
            let mut found = Vec::new();
            fs::File::open(pipe).and_then(|mut file| file.read_to_end(&mut found)).expect("read");
            found
        }
    });
    laneway.run(["cp", "s3://bucket/k", "pipe"]).succeeds();
    assert!(reader.join().expect("the reader ends") == bytes);
    assert!(!fs::metadata(&pipe).expect("it is there").is_file());
}

#[test]
fn a_symlink_as_destination_is_followed_to_its_file() {
    let (endpoint, laneway) = endpoint(Wire::Plain);
    endpoint.server().store().put("bucket", "k", b"new").expect("stored");
    write(&endpoint, "real", b"old");
    std::os::unix::fs::symlink("real", endpoint.folder().join("link")).expect("linked");
    laneway.run(["cp", "s3://bucket/k", "link"]).succeeds();
    assert_eq!(read(&endpoint, "real"), b"new");
    assert!(fs::symlink_metadata(endpoint.folder().join("link")).expect("there").is_symlink());
}

#[test]
fn an_object_stored_gzipped_comes_back_as_stored() {
    for scheme in SCHEMES {
        let (endpoint, laneway) = endpoint(Wire::TlsH2);
        // `printf hello | gzip -n`
        let gzipped = [
            0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 7, 0, 0x86, 0xa6, 0x10, 0x36,
            5, 0, 0, 0,
        ];
        let encoded = Attributes { content_encoding: Some("gzip".into()), ..Attributes::default() };
        endpoint.server().store().put_with("bucket", "k", &gzipped, encoded).expect("stored");
        laneway.run(["cp", &format!("{scheme}://bucket/k"), "k"]).succeeds();
        assert_eq!(read(&endpoint, "k"), gzipped);
    }
}

#[test]
fn objects_are_copied_inside_a_store_and_between_stores() {
    let (endpoint, laneway) = endpoint(Wire::Plain);
    let bytes = random_bytes(9, 9 << 20);
    endpoint.server().store().put("bucket", "k", &bytes).expect("stored");
    endpoint.server().create_bucket("other").expect("made");
    for (from, to) in [("gs", "gs"), ("s3", "s3"), ("gs", "s3"), ("s3", "gs")] {
        let key = format!("{from}-{to}");
        laneway.run(["cp", &format!("{from}://bucket/k"), &format!("{to}://other/{key}")]).succeeds();
        assert!(endpoint.server().store().read("other", &key).expect("it is there") == bytes, "{key}");
    }
}

#[test]
fn no_clobber_leaves_what_is_there() {
    for scheme in SCHEMES {
        let (endpoint, laneway) = endpoint(Wire::Plain);
        endpoint.server().store().put("bucket", "k", b"old").expect("stored");
        write(&endpoint, "f", b"new");
        let url = format!("{scheme}://bucket/k");
        let run = laneway.run(["cp", "--json", "-n", "f", &url]).succeeds();
        assert!(run.record("item")["skipped"].is_string());
        assert_eq!(endpoint.server().store().read("bucket", "k").expect("there"), b"old");
        let piped = laneway.run_with_input(["cp", "--json", "-n", "-", &url], b"new").succeeds();
        assert!(piped.record("item")["skipped"].is_string());
        let writes = endpoint.server().counters().requests_by_verb.get("put").copied();
        assert_eq!(writes.unwrap_or(0), 0, "-n sends nothing to an existing object");
        laneway.run(["cp", "-n", &url, "f"]).succeeds();
        assert_eq!(read(&endpoint, "f"), b"new");
        laneway.run(["cp", "f", &url]).succeeds();
        assert_eq!(endpoint.server().store().read("bucket", "k").expect("there"), b"new");
    }
}

#[test]
fn what_new_objects_are_to_be_is_said_once() {
    for scheme in SCHEMES {
        let (endpoint, laneway) = endpoint(Wire::Plain);
        write(&endpoint, "page.html", b"<p>");
        let url = format!("{scheme}://bucket/page.html");
        laneway.run(["cp", "page.html", &url]).succeeds();
        assert_eq!(
            laneway.run(["stat", "--json", &url]).succeeds().record("object")["content_type"],
            "text/html"
        );
        let options = ["--content-type", "text/x-own", "--cache-control", "no-store", "--metadata", "who=me"];
        laneway.run(["cp", "page.html", &url].into_iter().chain(options)).succeeds();
        let object = laneway.run(["stat", "--json", &url]).succeeds().record("object");
        assert_eq!(object["content_type"], "text/x-own");
        assert_eq!(object["cache_control"], "no-store");
        assert_eq!(object["metadata"]["who"], "me");
    }
}

#[test]
fn a_dry_run_changes_nothing() {
    let (endpoint, laneway) = endpoint(Wire::Plain);
    endpoint.server().store().put("bucket", "k", b"old").expect("stored");
    write(&endpoint, "d/f", b"x");
    let run = laneway.run(["cp", "--dry-run", "-r", "d", "s3://bucket/p/"]).succeeds();
    assert!(run.text().contains("d/f -> s3://bucket/p/d/f"), "{}", run.text());
    assert!(run.stderr.contains("nothing was changed"), "{}", run.stderr);
    let run = laneway.run(["cp", "--dry-run", "s3://bucket/k", "back"]).succeeds();
    assert!(run.text().contains("s3://bucket/k -> back"), "{}", run.text());
    laneway.run(["mv", "--dry-run", "s3://bucket/k", "back"]).succeeds();
    laneway.run(["rm", "--dry-run", "-r", "s3://bucket/"]).succeeds();
    assert_eq!(endpoint.server().store().keys("bucket"), ["k"]);
    assert!(!endpoint.folder().join("back").exists());
    assert!(endpoint.folder().join("d/f").exists());
}

#[test]
fn a_move_leaves_nothing_behind_but_what_failed() {
    for scheme in SCHEMES {
        let (endpoint, laneway) = endpoint(Wire::Plain);
        write(&endpoint, "d/a", b"a");
        write(&endpoint, "d/b", b"b");
        laneway.run(["mv", "-r", "d", &format!("{scheme}://bucket/p")]).succeeds();
        assert_eq!(endpoint.server().store().keys("bucket"), ["p/a", "p/b"]);
        assert!(!endpoint.folder().join("d/a").exists() && !endpoint.folder().join("d/b").exists());

        laneway.run(["mv", &format!("{scheme}://bucket/p/a"), &format!("{scheme}://bucket/q/a")]).succeeds();
        laneway.run(["mv", &format!("{scheme}://bucket/p/b"), "b"]).succeeds();
        assert_eq!(endpoint.server().store().keys("bucket"), ["q/a"]);
        assert_eq!(read(&endpoint, "b"), b"b");

        laneway.run(["mv", "b", &format!("{scheme}://nowhere/b")]).exits(1);
        assert_eq!(read(&endpoint, "b"), b"b");
    }
}

#[test]
fn the_ca_is_taken_from_the_option_and_from_both_variables() {
    let (endpoint, laneway) = endpoint(Wire::TlsH2);
    endpoint.server().store().put("bucket", "k", b"x").expect("stored");
    let ca = endpoint.ca_file().expect("there is one");
    let bare = laneway.without("AWS_CA_BUNDLE");
    bare.run(["cat", "s3://bucket/k", "--ca-cert", &ca.display().to_string()]).succeeds();
    bare.clone().with("SSL_CERT_FILE", ca).run(["cat", "s3://bucket/k"]).succeeds();
    bare.with("AWS_CA_BUNDLE", ca).run(["cat", "s3://bucket/k"]).succeeds();
}

#[test]
fn throttles_and_resets_are_outlived() {
    let faults =
        ["get:1-2 status 503 retry-after 0.1s", "put:1 status 429 retry-after 0.1s", "get:4 reset@64KiB"];
    let config = Config { faults: Faults::parse(faults).expect("rules"), ..Config::default() };
    let endpoint = Endpoint::start_with(Wire::TlsH2, config);
    let laneway = endpoint.program(LANEWAY);
    let bytes = random_bytes(5, 1 << 20);
    write(&endpoint, "f", &bytes);
    laneway.run(["cp", "f", "gs://bucket/k"]).succeeds();
    for name in ["a", "b"] {
        laneway.run(["cp", "gs://bucket/k", name]).succeeds();
        assert!(read(&endpoint, name) == bytes);
    }
}

#[test]
fn one_small_object_costs_one_request() {
    let (endpoint, laneway) = endpoint(Wire::TlsH2);
    write(&endpoint, "f", &random_bytes(5, 4700));
    for scheme in SCHEMES {
        let url = format!("{scheme}://bucket/k");
        let before = endpoint.server().counters().requests;
        laneway.run(["cp", "f", &url]).succeeds();
        assert_eq!(endpoint.server().counters().requests - before, 1, "up to {url}");
        laneway.run(["cp", &url, "back"]).succeeds();
        assert_eq!(endpoint.server().counters().requests - before, 2, "down from {url}");
    }
}

#[test]
fn quoted_wildcards_in_local_paths_mean_the_files_that_match() {
    let endpoint = Endpoint::start(Wire::Plain);
    let laneway = endpoint.program(LANEWAY);
    for name in ["logs/a.gz", "logs/b.gz", "logs/c.txt", "logs/deep/d.gz", "logs/x*.gz"] {
        let path = endpoint.folder().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        fs::write(path, name).expect("written");
    }
    let keys = || endpoint.server().store().keys("bucket");
    laneway.run(["cp", "-q", "logs/?.gz", "s3://bucket/one/"]).succeeds();
    assert_eq!(keys(), ["one/a.gz", "one/b.gz"]);
    laneway.run(["mv", "-q", "logs/**.gz", "gs://bucket/two/"]).succeeds();
    assert_eq!(keys()[2..], ["two/a.gz", "two/b.gz", "two/d.gz", "two/x*.gz"]);
    assert!(endpoint.folder().join("logs/c.txt").is_file() && !endpoint.folder().join("logs/a.gz").exists());

    let run = laneway.run(["cp", "logs/*", "gs://bucket/three/"]).succeeds();
    assert!(run.stderr.contains("logs/deep: skipped: it is a directory"), "{}", run.stderr);
    laneway
        .run(["cp", "logs/*.none", "gs://bucket/"])
        .exits(1)
        .complains(&["logs/*.none", "no file matches"]);
    laneway.run(["cp", "logs/*.txt", "gs://bucket/one"]).exits(2).complains(&["gs://bucket/one"]);
}

#[test]
fn names_come_from_a_file_or_from_standard_input() {
    let endpoint = Endpoint::start(Wire::Plain);
    let laneway = endpoint.program(LANEWAY).in_folder(endpoint.folder());
    for name in ["a", "b", "c"] {
        fs::create_dir_all(endpoint.folder().join("tree")).expect("made");
        fs::write(endpoint.folder().join("tree").join(name), name).expect("written");
    }
    fs::write(endpoint.folder().join("names"), "a\nnone\n").expect("written");
    let keys = || endpoint.server().store().keys("bucket");
    let run = laneway.run(["cp", "--files-from", "names", "tree", "gs://bucket/p"]).exits(1);
    run.complains(&["names:2: ", "tree/none"]);
    assert_eq!(keys(), ["p/a"]);
    laneway.run_with_input(["cp", "--files-from", "-", "tree/", "gs://bucket/p"], b"b\nc\n").succeeds();
    assert_eq!(keys(), ["p/a", "p/b", "p/c"]);
    laneway.run_with_input(["rm", "--files-from", "-", "gs://bucket/p"], b"a\n").succeeds();
    laneway.run_with_input(["rm", "--files-from", "-"], b"gs://bucket/p/b\ns3://bucket/p/c\n").succeeds();
    assert_eq!(keys(), Vec::<String>::new());
    laneway.run(["rm"]).exits(2);
    laneway.run(["cp", "--files-from", "none", "tree", "gs://bucket/p"]).exits(1).complains(&["none"]);
}

#[test]
fn a_move_takes_what_its_filters_leave() {
    let endpoint = Endpoint::start(Wire::Plain);
    let laneway = endpoint.program(LANEWAY).in_folder(endpoint.folder());
    for key in ["p/a.log", "p/b", "p/c.log"] {
        endpoint.server().store().put("bucket", key, b"x").expect("stored");
    }
    laneway.run(["mv", "-r", "s3://bucket/p", "d", "--exclude", "*.log"]).succeeds();
    assert_eq!(endpoint.server().store().keys("bucket"), ["p/a.log", "p/c.log"]);
    laneway.run(["mv", "-r", "s3://bucket/p", "d/", "--min-size", "2"]).succeeds();
    assert_eq!(fs::read_dir(endpoint.folder().join("d")).expect("a folder").count(), 1);
    assert_eq!(endpoint.server().store().keys("bucket"), ["p/a.log", "p/c.log"]);
}

/// Returns the bytes that `gunzip` makes of compressed ones.
fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut file = tempfile::tempfile().expect("made");
    file.write_all(bytes).and_then(|()| file.rewind()).expect("written");
    let run = Command::new("gzip").arg("-dc").stdin(file).output().expect("gzip runs");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    run.stdout
}

#[test]
fn files_of_some_extensions_are_stored_compressed() {
    let page = "<p>\n".repeat(10_000);
    for scheme in ["gs", "s3"] {
        for wire in [Wire::Plain, Wire::TlsH2] {
            let endpoint = Endpoint::start(wire);
            let laneway = endpoint.program(LANEWAY);
            write(&endpoint, "site/index.html", page.as_bytes());
            write(&endpoint, "site/robots.txt", b"");
            write(&endpoint, "site/logo.svg", page.as_bytes());
            let url = format!("{scheme}://bucket/p");
            let run = laneway.run(["cp", "--json", "-r", "-z", "html,.txt", "site", &url]).succeeds();
            assert_eq!(run.record("summary")["unverified"], serde_json::Value::Null);

            let stored = |key: &str| endpoint.server().store().read("bucket", key).expect("it is there");
            assert_eq!(gunzip(&stored("p/index.html")), page.as_bytes());
            assert_eq!(gunzip(&stored("p/robots.txt")), b"");
            assert_eq!(stored("p/logo.svg"), page.as_bytes());

            let stat = |name: &str| {
                laneway.run(["stat", "--json", &format!("{url}/{name}")]).succeeds().record("object")
            };
            let (html, svg) = (stat("index.html"), stat("logo.svg"));
            assert_eq!(
                (&html["content_encoding"], &html["content_type"]),
                (&"gzip".into(), &"text/html".into())
            );
            assert_eq!(html["cache_control"], "no-transform");
            assert!(svg["content_encoding"].is_null() && svg["cache_control"].is_null(), "{svg}");

            laneway.run(["cp", &format!("{url}/index.html"), "back"]).succeeds();
            let back = fs::read(endpoint.folder().join("back")).expect("it came back");
            assert_eq!(gunzip(&back), page.as_bytes());
            let cat = laneway.run(["cat", &format!("{url}/index.html")]).succeeds();
            assert_eq!(cat.stdout, back);
        }
    }
}

#[test]
fn encoded_objects_are_decompressed_after_they_were_compared() {
    for scheme in SCHEMES {
        let (endpoint, laneway) = endpoint(Wire::Plain);
        let (small, large) = (b"<p>\n".repeat(1000), random_bytes(1, 20 << 20));
        write(&endpoint, "site/small.html", &small);
        write(&endpoint, "site/large.html", &large);
        write(&endpoint, "site/plain.txt", b"plain");
        let url = format!("{scheme}://bucket/p");
        laneway.run(["cp", "-r", "-z", "html", "site", &url]).succeeds();
        let run = laneway.run(["cp", "--json", "-r", "--decompress", &format!("{url}/"), "down/"]).succeeds();
        assert_eq!(run.record("summary")["unverified"], serde_json::Value::Null);
        assert_eq!(read(&endpoint, "down/p/small.html"), small);
        assert!(read(&endpoint, "down/p/large.html") == large, "{scheme}");
        assert_eq!(read(&endpoint, "down/p/plain.txt"), b"plain");
        let twice = ["cp", "-r", "--decompress", "--manifest", "done", &format!("{url}/"), "down/"];
        laneway.run(twice).succeeds();
        assert!(
            laneway.run(twice).succeeds().stderr.contains("3 skipped"),
            "{scheme}: a finished copy is repeated"
        );
        let encoded = |encoding: &str| Attributes {
            content_encoding: Some(encoding.to_owned()),
            ..Attributes::default()
        };
        for (key, encoding) in [("lie", "gzip"), ("br", "br")] {
            endpoint.server().store().put_with("bucket", key, b"no gzip", encoded(encoding)).expect("stored");
            let from = format!("{scheme}://bucket/{key}");
            let failed = laneway.run(["cp", "--decompress", &from, "one"]).exits(1);
            assert!(failed.stderr.contains("Content-Encoding"), "{}", failed.stderr);
            assert!(!endpoint.folder().join("one").exists());
        }
        let left = files_below(&endpoint.folder());
        assert!(!left.iter().any(|name| name.contains(".laneway-")), "{left:?}");
        laneway.run(["cp", "--decompress", "site/plain.txt", &url]).exits(2);
        laneway.run(["cp", "--decompress", &format!("{url}/small.html"), "-"]).exits(2);
    }
}

#[test]
fn a_move_compresses_too() {
    let endpoint = Endpoint::start(Wire::Plain);
    let laneway = endpoint.program(LANEWAY);
    write(&endpoint, "a.txt", b"text");
    laneway
        .run(["mv", "-z", "txt", "--cache-control", "max-age=60", "a.txt", "gs://bucket/a.txt"])
        .succeeds();
    assert_eq!(gunzip(&endpoint.server().store().read("bucket", "a.txt").expect("there")), b"text");
    let object = laneway.run(["stat", "--json", "gs://bucket/a.txt"]).succeeds().record("object");
    assert_eq!(object["cache_control"], "max-age=60");
    assert!(!endpoint.folder().join("a.txt").exists());
}
