//! `rm -r` removes what its listing returns, even if the listing breaks off. `--dry-run` prints the changes and makes none.

use std::fs;
use std::fs::Permissions;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use laneway_server::{Faults, Versioning};
use laneway_testkit::{Endpoint, Program, Run, Scripted, Wire, answer, connect};

const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");
/// One request of S3's DeleteObjects can remove more objects than this, so no batch is full.
const OBJECTS: usize = 900;

/// Starts a server whose only listing page always breaks off in the middle.
fn stocked() -> (Endpoint, Program) {
    let endpoint = Endpoint::start(Wire::Plain);
    for n in 0..OBJECTS {
        endpoint.server().store().put("bucket", &format!("p/{n:04}"), b"x").expect("stored");
    }
    endpoint.server().set_faults(Faults::parse(["list reset@6KiB"]).expect("a rule"));
    let program = endpoint.program(LANEWAY);
    (endpoint, program)
}

#[test]
fn what_a_listing_has_found_before_it_failed_is_removed() {
    for scheme in ["s3", "gs"] {
        let (endpoint, laneway) = stocked();
        let url = format!("{scheme}://bucket/p");
        let run = laneway.run(["rm", "-r", "--yes", "--retry-for", "0", &url]).exits(1);
        let run = run.complains(&[&format!("{scheme}://bucket")]);
        let left = endpoint.server().store().keys("bucket").len();
        assert!(left > 0 && left < OBJECTS, "{scheme}: {left} are left: {}", run.stderr);
        let summary = format!("{} objects removed, 1 failed", OBJECTS - left);
        assert!(run.stderr.contains(&summary), "{left} are left: {}", run.stderr);
    }
}

#[test]
fn a_reader_that_goes_away_ends_a_removal_whose_listing_fails() {
    let (endpoint, _) = stocked();
    let shell = endpoint.program("/bin/sh");
    let line =
        "{ \"$0\" rm -r --yes --json --retry-for 0 s3://bucket/p 2>/dev/null; echo \"status $?\" >&2; } | :";
    assert_eq!(shell.run(["-c", line, LANEWAY]).stderr, "status 1\n");
    assert!(!endpoint.server().store().keys("bucket").is_empty());
}

/// Creates a versioned bucket with `n` keys below `p/`, each with two versions. If `is_deleted` is set, the last key has a
/// delete marker.
fn versioned(n: usize, is_deleted: bool) -> (Endpoint, Program) {
    let endpoint = Endpoint::start(Wire::Plain);
    let store = endpoint.server().store();
    store.put("bucket", "p", b"itself").expect("stored");
    store.put("bucket", "pq", b"other").expect("stored");
    store.keep_versions("bucket", Versioning::Enabled).expect("there is the bucket");
    for n in 0..n {
        let key = format!("p/{n:04}");
        store.put("bucket", &key, b"one").expect("stored");
        store.put("bucket", &key, b"second").expect("stored");
        if is_deleted {
            assert!(store.remove("bucket", &key));
        }
    }
    let program = endpoint.program(LANEWAY);
    (endpoint, program)
}

fn requests(endpoint: &Endpoint, verb: &str) -> u64 {
    endpoint.server().counters().requests_by_verb.get(verb).copied().unwrap_or(0)
}

#[test]
fn all_versions_go_for_good_in_full_batches() {
    for (scheme, verb, batches) in [("s3", "delete-many", 2), ("gs", "batch", 14)] {
        let (endpoint, laneway) = versioned(700, false);
        let run = laneway.run(["rm", "-r", "-a", &format!("{scheme}://bucket/p/")]).succeeds();
        assert!(run.stderr.contains("1400 objects removed"), "{}", run.stderr);
        assert_eq!(requests(&endpoint, verb), batches, "{scheme}");
        assert!(endpoint.server().store().versions("bucket", "p/0000").is_empty());
        assert_eq!(endpoint.server().store().keys("bucket"), ["p", "pq"]);
    }
}

#[test]
fn delete_markers_go_with_all_versions() {
    let (endpoint, laneway) = versioned(3, true);
    laneway.run(["rm", "-a", "s3://bucket/p/*"]).succeeds();
    assert!(laneway.run(["ls", "-a", "-r", "s3://bucket/p/"]).exits(1).stdout.is_empty());
    assert!(endpoint.server().store().versions("bucket", "p/0000").is_empty());
}

#[test]
fn without_a_version_a_delete_leaves_the_older_ones() {
    for scheme in ["s3", "gs"] {
        let (endpoint, laneway) = versioned(2, false);
        laneway.run(["rm", "-r", &format!("{scheme}://bucket/p/")]).succeeds();
        let left = endpoint.server().store().versions("bucket", "p/0001");
        assert_eq!(left.iter().filter(|version| version.size > 0).count(), 2, "{scheme}");
        assert_eq!(endpoint.server().store().keys("bucket"), ["p", "pq"]);
    }
}

#[test]
fn a_version_and_a_marker_are_removed_by_their_urls() {
    let (endpoint, laneway) = versioned(1, true);
    let lines = laneway.run(["ls", "-a", "s3://bucket/p/0000"]).succeeds().lines();
    let marker = lines[0].strip_suffix("  (delete marker)").expect("the newest is the marker");
    laneway.run(["rm", marker]).succeeds();
    assert_eq!(endpoint.server().store().read("bucket", "p/0000").expect("it is there again"), b"second");
    laneway.run(["rm", "--dry-run", &lines[1]]).succeeds();
    laneway.run(["rm", &lines[1]]).succeeds();
    assert_eq!(endpoint.server().store().read("bucket", "p/0000").expect("the older one"), b"one");
    laneway.run(["rm", &lines[1]]).exits(1).complains(&[&lines[1]]);
    let generation = laneway.run(["ls", "-a", "gs://bucket/p/0000"]).succeeds().lines().remove(0);
    laneway.run(["rm", &generation]).succeeds();
    assert!(endpoint.server().store().versions("bucket", "p/0000").is_empty());
}

#[test]
fn all_versions_of_a_key_are_its_own_and_of_what_lies_below_with_r() {
    for scheme in ["s3", "gs"] {
        let (endpoint, laneway) = versioned(2, false);
        let url = format!("{scheme}://bucket/p");
        let would = laneway.run(["rm", "-a", "--dry-run", &url]).succeeds().stderr;
        assert!(would.contains("1 object"), "{would}");
        laneway.run(["rm", "-a", &url]).succeeds();
        assert_eq!(endpoint.server().store().keys("bucket"), ["p/0000", "p/0001", "pq"]);
        laneway.run(["rm", "-a", "-r", "--max-size", "4", &url]).succeeds();
        assert_eq!(endpoint.server().store().versions("bucket", "p/0000").len(), 1, "the filter leaves one");
        laneway.run(["rm", "-a", "-r", &url]).succeeds();
        assert_eq!(endpoint.server().store().keys("bucket"), ["pq"]);
        laneway.run(["rm", "-a", &url]).exits(1).complains(&[&url]);
    }
}

#[test]
fn where_there_is_no_terminal_nothing_is_asked() {
    let (endpoint, laneway) = versioned(0, false);
    for n in 0..1100 {
        endpoint.server().store().put("bucket", &format!("many/{n}"), b"x").expect("stored");
    }
    laneway.run(["rm", "-r", "s3://bucket/many/"]).succeeds();
    assert_eq!(endpoint.server().store().keys("bucket"), ["p", "pq"]);
}

/// Runs `rm -r` on a terminal, types the answer after the question, and returns the question. If the answer is empty, no question is
/// expected.
#[cfg(target_os = "linux")]
fn on_a_terminal(endpoint: &Endpoint, answer: &str, status: i32) -> String {
    use std::io::{Read as _, Write as _};

    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&terminal).expect("ours");
    unlockpt(&terminal).expect("unlocked");
    let name = ptsname(&terminal, Vec::new()).expect("a name").into_string().expect("text");
    let line = format!("exec \"$0\" \"$@\" <{name} 2>{name}");
    let shell = endpoint.program("/bin/sh");
    let running = shell.start(["-c", &line, LANEWAY, "rm", "-r", "--retry-for", "0", "s3://bucket/p/"]);
    let (mut terminal, mut seen) = (std::fs::File::from(terminal), Vec::new());
    while !answer.is_empty() && !String::from_utf8_lossy(&seen).contains("[y/N]") {
        let mut bytes = [0; 256];
        let read = terminal.read(&mut bytes).unwrap_or(0);
        assert!(read > 0, "it ended without a question: {}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&bytes[..read]);
    }
    terminal.write_all(answer.as_bytes()).expect("typed");
    running.end().exits(status);
    String::from_utf8_lossy(&seen).into_owned()
}

/// The question and its answer go over the terminal. The test reads the terminal's output up to the question, or to the end.
#[cfg(target_os = "linux")]
#[test]
fn on_a_terminal_a_question_is_asked_above_a_thousand_objects() {
    for (objects, answer, left) in [(1001, "n\n", 1001), (1001, "y\n", 0), (1000, "", 0)] {
        let endpoint = Endpoint::start(Wire::Plain);
        for n in 0..objects {
            endpoint.server().store().put("bucket", &format!("p/{n}"), b"x").expect("stored");
        }
        let question = on_a_terminal(&endpoint, answer, i32::from(left > 0));
        let expected =
            if answer.is_empty() { "" } else { "Remove 1,001 objects (1001 B) below s3://bucket/p/?" };
        assert!(question.contains(expected), "{question}");
        assert_eq!(endpoint.server().store().keys("bucket").len(), left, "{objects} {answer:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn on_a_terminal_what_can_not_be_counted_is_asked_about() {
    let (endpoint, _) = stocked();
    let question = on_a_terminal(&endpoint, "n\n", 1);
    assert!(question.contains("could not count"), "{question}");
    assert_eq!(endpoint.server().store().keys("bucket").len(), OBJECTS);
}

#[test]
fn a_filter_of_sizes_or_times_leaves_delete_markers() {
    for filter in [["--max-size", "5"], ["--newer", "1d"], ["--min-size", "1"]] {
        let (endpoint, laneway) = versioned(2, true);
        laneway.run([&["rm", "-r", "-a", "s3://bucket/p/"][..], &filter].concat()).succeeds();
        let left = endpoint.server().store().versions("bucket", "p/0000").len();
        assert_eq!(
            left,
            if filter[0] == "--max-size" { 2 } else { 1 },
            "{filter:?}: the marker and what is larger"
        );
        assert_eq!(endpoint.server().store().keys("bucket"), ["p", "pq"], "nothing has come back");
    }
    let (endpoint, laneway) = versioned(2, true);
    laneway.run(["rm", "-r", "-a", "s3://bucket/p/", "--exclude", "0001"]).succeeds();
    assert!(endpoint.server().store().versions("bucket", "p/0000").is_empty(), "names take markers too");
}

#[test]
fn a_delete_marker_stays_as_long_as_a_version_below_it() {
    let (endpoint, laneway) = versioned(2, true);
    let faults = ["delete-many:1 status 403", "delete key=p/0000 status 403"];
    endpoint.server().set_faults(Faults::parse(faults).expect("rules"));
    let run = laneway.run(["rm", "-r", "-a", "s3://bucket/p/"]).exits(1);
    assert!(run.stderr.contains("the delete marker is kept"), "{}", run.stderr);
    assert_eq!(endpoint.server().store().versions("bucket", "p/0000").len(), 3, "{}", run.stderr);
    assert!(endpoint.server().store().versions("bucket", "p/0001").is_empty(), "{}", run.stderr);
    assert_eq!(endpoint.server().store().keys("bucket"), ["p", "pq"], "nothing has come back");
    endpoint.server().set_faults(Faults::default());
    laneway.run(["rm", "-r", "-a", "s3://bucket/p/"]).succeeds();
    assert!(endpoint.server().store().versions("bucket", "p/0000").is_empty());
}

/// Starts a store that ignores version ids, and records its requests.
fn without_versions() -> (Endpoint, Scripted, Program) {
    let endpoint = Endpoint::start(Wire::Plain);
    let server = Scripted::serve(|asked| {
        let facts = [("ETag", "\"e\""), ("x-amz-request-id", "1"), ("Content-Type", "application/json")];
        match (asked.method.as_str(), asked.target.contains("/storage/v1/")) {
            ("DELETE", _) => answer(204, &[], ""),
            (_, true) => answer(200, &facts, r#"{"bucket":"bucket","name":"k","size":"4","generation":"1"}"#),
            (_, false) => {
                let whole = answer(200, &facts, "live");
                whole[..whole.len() - "live".len()].to_vec()
            }
        }
    });
    let laneway = endpoint.program(LANEWAY);
    let laneway =
        laneway.with("AWS_ENDPOINT_URL_S3", server.url()).with("STORAGE_EMULATOR_HOST", server.url());
    (endpoint, server, laneway)
}

#[test]
fn a_version_that_the_store_does_not_know_by_its_name_is_not_removed() {
    let (endpoint, server, laneway) = without_versions();
    let ids = [("s3", "0123456789abcdef0"), ("gs", "1700000000000001")];
    for (scheme, id) in ids {
        let url = format!("{scheme}://bucket/k#{id}");
        laneway.run(["rm", &url]).exits(1).complains(&["asked for this version", "k"]);
        laneway.run(["rm", "--dry-run", &url]).exits(1).complains(&["asked for this version"]);
        std::fs::write(endpoint.folder().join("names"), format!("{url}\n{url}\n")).expect("written");
        let run = laneway.run(["rm", "--files-from", "names"]).exits(1);
        assert!(run.stderr.contains("2 failed"), "{}", run.stderr);
    }
    let asked = server.asked();
    let is_removal = |method: &str| matches!(method, "DELETE" | "POST");
    assert!(!asked.is_empty() && !asked.iter().any(|asked| is_removal(&asked.method)), "{asked:?}");
    laneway.run(["rm", "s3://bucket/k#null"]).succeeds();
    assert!(server.asked().iter().any(|asked| asked.method == "DELETE"), "#null removes the live object");
}

#[test]
fn a_version_that_can_not_be_looked_at_is_not_removed() {
    let (endpoint, laneway) = versioned(1, false);
    let lines = laneway.run(["ls", "-a", "s3://bucket/p/0000"]).succeeds().lines();
    endpoint.server().set_faults(Faults::parse(["head status 403"]).expect("a rule"));
    laneway.run(["rm", &lines[1]]).exits(1).complains(&[&lines[1]]);
    assert_eq!(endpoint.server().store().versions("bucket", "p/0000").len(), 2);
}

#[test]
fn all_versions_of_a_key_are_listed_without_what_begins_like_it() {
    for scheme in ["s3", "gs"] {
        let (endpoint, laneway) = versioned(0, false);
        for n in 0..2500 {
            endpoint.server().store().put("bucket", &format!("pq{n}"), b"x").expect("stored");
        }
        laneway.run(["rm", "-a", &format!("{scheme}://bucket/p")]).succeeds();
        assert_eq!(requests(&endpoint, "list"), 1, "{scheme}");
        laneway.run(["rm", "-a", "-r", &format!("{scheme}://bucket/p")]).exits(1);
        assert_eq!(requests(&endpoint, "list"), 2, "{scheme}");
        assert_eq!(endpoint.server().store().keys("bucket").len(), 2501);
    }
}

const SCHEMES: [&str; 2] = ["gs", "s3"];

fn dry_run_scene() -> (Endpoint, Program) {
    let endpoint = Endpoint::start(Wire::Plain);
    for key in ["a", "p/b"] {
        endpoint.server().store().put("bucket", key, b"xyz").expect("stored");
    }
    fs::write(endpoint.folder().join("f"), "1234").expect("written");
    let program = endpoint.program(LANEWAY);
    (endpoint, program)
}

/// Runs a command with `--dry-run`, and panics if it changes anything.
fn dry(command: &str) -> Run {
    let (endpoint, laneway) = dry_run_scene();
    let run = laneway.run(command.split(' ').chain(["--dry-run"]));
    assert_eq!(endpoint.server().store().keys("bucket"), ["a", "p/b"], "{command}");
    let left = fs::read_dir(endpoint.folder()).expect("read").count();
    assert_eq!(left, 1, "{command}");
    run
}

#[test]
fn what_would_happen_is_told_with_its_size() {
    for s in SCHEMES {
        let text = |command: &str| dry(command).succeeds().text();
        assert_eq!(text(&format!("cp {s}://bucket/a x")), format!("would download {s}://bucket/a -> x\n"));
        assert_eq!(text(&format!("mv f {s}://bucket/")), format!("would move f -> {s}://bucket/f\n"));
        assert_eq!(text(&format!("rm {s}://bucket/a")), format!("would remove {s}://bucket/a\n"));
        assert_eq!(
            text(&format!("cp {s}://bucket/a {s}://bucket/c")),
            format!("would copy {s}://bucket/a -> {s}://bucket/c\n")
        );
        let run = dry(&format!("cp {s}://bucket/a x"));
        assert!(run.stderr.contains("would copy 1 file, 3 B; nothing was changed"), "{}", run.stderr);
    }
}

#[test]
fn what_is_not_there_would_not_be_done() {
    for s in SCHEMES {
        for command in [
            format!("rm {s}://bucket/none"),
            format!("rm -r {s}://bucket/none/"),
            format!("cp {s}://bucket/none x"),
            format!("cp {s}://bucket/none -"),
            format!("mv {s}://bucket/none {s}://bucket/x"),
            format!("cp {s}://bucket/none {s}://bucket/x"),
        ] {
            let run = dry(&command).exits(1).complains(&["bucket/none"]);
            assert!(run.stdout.is_empty(), "{command}: {}", run.text());
        }
        dry(&format!("cp none {s}://bucket/")).exits(1).complains(&["none"]);
    }
}

#[test]
fn a_destination_that_would_not_take_it_is_told() {
    for s in SCHEMES {
        dry(&format!("cp f {s}://nowhere/")).exits(1).complains(&["nowhere"]);
        dry(&format!("cp {s}://bucket/a {s}://nowhere/")).exits(1).complains(&["nowhere"]);
        dry(&format!("cp {s}://bucket/a f/")).exits(1).complains(&["f", "is a file"]);
        dry(&format!("cp {s}://bucket/a f/x")).exits(1).complains(&["f"]);
        dry(&format!("cp -r {s}://bucket/p f")).exits(1).complains(&["f is a file"]);
    }
}

#[test]
fn what_exists_would_be_left_alone() {
    for s in SCHEMES {
        let run = dry(&format!("cp -n {s}://bucket/a f")).succeeds();
        assert!(run.stdout.is_empty() && run.stderr.contains("1 skipped"), "{}", run.stderr);
        let run = dry(&format!("cp -n f {s}://bucket/a")).succeeds();
        assert!(run.stdout.is_empty() && run.stderr.contains("1 skipped"), "{}", run.stderr);
    }
}

#[test]
fn a_dry_run_fails_unreadable_sources_and_plans_the_rest() {
    let (endpoint, laneway) = dry_run_scene();
    let folder = endpoint.folder().join("d");
    fs::create_dir(&folder).expect("made");
    for name in ["open", "shut"] {
        fs::write(folder.join(name), "x").expect("written");
    }
    fs::set_permissions(folder.join("shut"), Permissions::from_mode(0o000)).expect("shut");
    // Root can read every file unless it gives up that capability.
    let is_root = fs::metadata(&folder).expect("read").uid() == 0;
    let unprivileged = ["--bounding-set", "-dac_override,-dac_read_search", LANEWAY];
    for scheme in SCHEMES {
        let to = format!("{scheme}://bucket/up/");
        let command = ["cp", "-r", "d", &to, "--dry-run"];
        let run = match is_root {
            true => endpoint.program("setpriv").run(unprivileged.iter().chain(&command)),
            false => laneway.run(command),
        };
        let run = run.exits(1).complains(&["d/shut", "ermission denied"]);
        assert_eq!(run.text(), format!("would upload d/open -> {to}d/open\n"));
        assert!(
            run.stderr.contains("would copy 1 file, 1 B, 1 failed; nothing was changed"),
            "{}",
            run.stderr
        );
    }
}

/// A bucket with a hierarchical namespace keeps the folders of removed objects, and isn't empty while it has a folder.
#[test]
fn the_folders_of_a_tree_go_with_its_objects() {
    let endpoint = Endpoint::start(Wire::Plain);
    let (laneway, store) = (endpoint.program(LANEWAY), endpoint.server().store());
    store.make_hierarchical("bucket").expect("there is the bucket");
    let folders = || -> Vec<String> {
        let mut server = connect(endpoint.server().addr()).expect("it listens");
        let asked = b"GET /storage/v1/b/bucket/folders HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
        server.write_all(asked).expect("it is asked");
        let mut answer = String::new();
        server.read_to_string(&mut answer).expect("an answer");
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        let listed: serde_json::Value = serde_json::from_str(body).expect("a listing");
        let items = listed["items"].as_array().cloned().unwrap_or_default();
        items.iter().map(|item| item["name"].as_str().expect("a name").to_owned()).collect()
    };
    for key in ["a/b/1", "a/c/2", "ab/3", "d/e/f/4"] {
        store.put("bucket", key, b"x").expect("stored");
    }
    laneway.run(["rm", "-r", "--exclude", "1", "gs://bucket/a"]).succeeds();
    assert_eq!(
        folders(),
        ["a/", "a/b/", "a/c/", "ab/", "d/", "d/e/", "d/e/f/"],
        "a part of a tree was removed"
    );
    laneway.run(["rm", "-r", "gs://bucket/a"]).succeeds();
    assert_eq!(folders(), ["ab/", "d/", "d/e/", "d/e/f/"]);
    laneway.run(["rm", "gs://bucket/d/e/f/4"]).succeeds();
    laneway.run(["rm", "-r", "gs://bucket/d#5"]).exits(1);
    assert_eq!(folders(), ["ab/", "d/", "d/e/", "d/e/f/"], "a version was named, and not a tree");
    laneway.run(["rm", "-r", "gs://bucket/d"]).succeeds();
    assert_eq!(folders(), ["ab/"], "a tree of empty folders is one that can be removed");
    laneway.run(["rm", "-r", "gs://bucket/d"]).exits(1);
    laneway.run(["rm", "-r", "gs://bucket/a*"]).succeeds();
    assert_eq!(folders(), [""; 0], "the folders that a pattern matches");
    store.put("bucket", "t/u/1", b"x").expect("stored");
    laneway.run(["mv", "-r", "gs://bucket/t", "gs://bucket/moved"]).succeeds();
    assert_eq!(folders(), ["moved/", "moved/u/"], "the folders of a tree that was moved");
    laneway.run(["rb", "--force", "--yes", "gs://bucket"]).succeeds();
    assert!(store.keys("bucket").is_empty());
}

#[test]
fn deleted_objects_are_listed_and_brought_back_where_the_store_keeps_them() {
    let endpoint = Endpoint::start(Wire::Plain);
    let (laneway, store) = (endpoint.program(LANEWAY), endpoint.server().store());
    laneway.run(["ls", "--soft-deleted", "-r", "gs://bucket"]).exits(1);
    laneway.run(["ls", "--soft-deleted", "-r", "s3://bucket"]).exits(1).complains(&["S3 keeps no deleted"]);
    store.keep_deleted("bucket").expect("there is the bucket");
    for (key, content) in [("a/1", "old"), ("a/2", "two"), ("b", "other")] {
        store.put("bucket", key, content.as_bytes()).expect("stored");
    }
    laneway.run(["rm", "gs://bucket/a/1"]).succeeds();
    store.put("bucket", "a/1", b"newer").expect("stored");
    laneway.run(["rm", "-r", "gs://bucket/a"]).succeeds();
    let listed = laneway.run(["ls", "-r", "--json", "--soft-deleted", "gs://bucket/a"]).succeeds();
    let urls: Vec<_> =
        listed.json().iter().map(|record| record["url"].as_str().expect("a URL").to_owned()).collect();
    assert!(urls.len() == 3 && urls[0].starts_with("gs://bucket/a/1#"), "{urls:?}");
    assert!(listed.json()[0]["soft_deleted"].is_string() && listed.json()[0]["hard_deleted"].is_string());
    let planned = laneway.run(["restore", "-r", "--dry-run", "gs://bucket/a"]).succeeds();
    assert!(planned.stderr.contains("would restore 2 objects"), "{}", planned.stderr);
    laneway.run(["restore", "-r", "gs://bucket/a"]).succeeds();
    assert_eq!(store.read("bucket", "a/1").expect("it is back"), b"newer", "the newest of its name");
    assert_eq!(store.read("bucket", "a/2").expect("it is back"), b"two");
    for arguments in [&["restore", "--dry-run", &urls[0]][..], &["restore", &urls[0]]] {
        let kept = laneway.run(arguments).succeeds();
        assert!(kept.stderr.contains("1 skipped"), "{}", kept.stderr);
    }
    laneway.run(["restore", "--overwrite", &urls[0]]).succeeds();
    assert_eq!(store.read("bucket", "a/1").expect("it is back"), b"old");
    laneway.run(["rm", "gs://bucket/b"]).succeeds();
    laneway.run(["restore", "gs://bucket/b"]).succeeds();
    assert_eq!(store.read("bucket", "b").expect("it is back"), b"other");
    for arguments in [&["restore", "gs://bucket/none"][..], &["restore", "--dry-run", "gs://bucket/none"]] {
        laneway.run(arguments).exits(1).complains(&["gs://bucket/none"]);
    }
    laneway.run(["restore", "--days", "1", "gs://bucket/b"]).exits(1).complains(&["neither days"]);
}

#[test]
fn deleted_blobs_are_listed_and_brought_back_one_by_one() {
    let endpoint = Endpoint::start(Wire::Plain);
    let (program, store) = (endpoint.program(LANEWAY), endpoint.server().store());
    let [(name, value), (key_name, key)] = endpoint.azure_variables();
    let laneway = program.with(name, value).with(key_name, key);
    store.keep_deleted("bucket").expect("there is the bucket");
    for key in ["a/1", "a/2"] {
        store.put("bucket", key, key.as_bytes()).expect("stored");
    }
    laneway.run(["rm", "az://bucket/a/1"]).succeeds();
    let listed = laneway.run(["ls", "-r", "--json", "--soft-deleted", "az://bucket/a"]).succeeds();
    assert_eq!((listed.json().len(), &listed.json()[0]["url"]), (1, &"az://bucket/a/1".into()));
    assert!(listed.json()[0]["soft_deleted"].is_string());
    let planned = laneway.run(["restore", "--dry-run", "az://bucket/a/1"]).succeeds();
    assert!(planned.stderr.contains("would restore 1 object"), "{}", planned.stderr);
    laneway.run(["restore", "az://bucket/a/1"]).succeeds();
    assert_eq!(store.read("bucket", "a/1").expect("it is back"), b"a/1");
    for arguments in [&["restore", "az://bucket/none"][..], &["restore", "--dry-run", "az://bucket/none"]] {
        laneway.run(arguments).exits(1).complains(&["az://bucket/none"]);
    }
}
