//! `sync` and `verify` by the real binary against the embedded server, and the filters that other verbs share with them.

use std::fs;
use std::path::Path;

use laneway_server::{Config, Faults};
use laneway_testkit::{Endpoint, Program, Wire, differences, seed_tree};

const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");

fn endpoint() -> (Endpoint, Program) {
    let endpoint = Endpoint::start(Wire::Plain);
    let program = endpoint.program(LANEWAY);
    (endpoint, program)
}

fn write(endpoint: &Endpoint, name: &str, text: &str) {
    let path = endpoint.folder().join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    fs::write(path, text).expect("written");
}

/// Runs a command and returns the fields of its summary.
fn summary(laneway: &Program, arguments: &[&str]) -> [u64; 3] {
    let run = laneway.run([&["sync", "--json"], arguments].concat()).succeeds();
    let summary = run.record("summary");
    ["files", "removed", "unchanged"].map(|field| summary[field].as_u64().unwrap_or(0))
}

#[test]
fn a_tree_goes_round_all_places_and_a_second_time_nothing_moves() {
    const FILES: u64 = 400;
    let (endpoint, laneway) = endpoint();
    let tree = endpoint.folder().join("tree");
    seed_tree(&tree, 1, FILES as usize);
    let legs = [["tree", "gs://bucket/a"], ["gs://bucket/a", "s3://bucket/b/"], ["s3://bucket/b", "back"]];
    for expected in [[FILES, 0, 0], [0, 0, FILES]] {
        for leg in legs {
            assert_eq!(summary(&laneway, &[leg[0], leg[1], "--delete"]), expected, "{leg:?}");
        }
        assert_eq!(differences(&tree, &endpoint.folder().join("back")), Vec::<String>::new());
    }
    // A second sync transfers only the changed files.
    let first = endpoint.server().store().keys("bucket").into_iter().find(|key| key.starts_with("a/"));
    let first = first.expect("a key").split_off(2);
    fs::remove_file(tree.join(first)).expect("removed");
    write(&endpoint, "tree/new/one", "new");
    for leg in legs {
        assert_eq!(summary(&laneway, &[leg[0], leg[1], "--delete"]), [1, 1, FILES - 1], "{leg:?}");
    }
    assert_eq!(differences(&tree, &endpoint.folder().join("back")), Vec::<String>::new());
}

#[test]
fn what_is_killed_again_and_again_is_done_by_the_same_command() {
    const FILES: u64 = 300;
    let config = Config { bandwidth: Some(16 << 20), ..Config::default() };
    let endpoint = Endpoint::start_with(Wire::Plain, config);
    let laneway = endpoint.program(LANEWAY);
    let (tree, back) = (endpoint.folder().join("tree"), endpoint.folder().join("back"));
    seed_tree(&tree, 2, FILES as usize);
    fs::write(tree.join("large"), laneway_testkit::random_bytes(3, 18 << 20)).expect("written");
    let total = FILES as usize + 1;
    fs::create_dir_all(&back).expect("made");
    let keys = |prefix: &str| {
        endpoint.server().store().keys("bucket").iter().filter(|key| key.starts_with(prefix)).count()
    };
    for leg in [["tree", "gs://bucket/a"], ["gs://bucket/a", "s3://bucket/b"], ["s3://bucket/b", "back"]] {
        let done = || match leg[1] {
            "gs://bucket/a" => keys("a/"),
            "s3://bucket/b" => keys("b/"),
            _ => count(&back),
        };
        for kill in 1..5 {
            let running = laneway.start(["sync", leg[0], leg[1], "--delete"]);
            let reached = endpoint
                .server()
                .wait_until(laneway_testkit::Running::TIME_MAX, |_| done() >= kill * total / 8);
            assert!(reached, "{leg:?}: {}", done());
            running.signal("-KILL");
            running.end();
        }
        laneway.run(["sync", leg[0], leg[1], "--delete"]).succeeds();
        assert_eq!(summary(&laneway, &[leg[0], leg[1], "--delete"]), [0, 0, total as u64], "{leg:?}");
    }
    // A killed program leaves temporary files of its transfers.
    let differences = differences(&tree, &back).into_iter().filter(|line| !line.contains(".laneway-"));
    assert_eq!(differences.collect::<Vec<_>>(), Vec::<String>::new());
}

/// Returns the number of complete files in a tree.
fn count(folder: &Path) -> usize {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let count_one = |path: &Path| match path.is_dir() {
        true => count(path),
        false => usize::from(!is_left(path)),
    };
    entries.flatten().map(|entry| count_one(&entry.path())).sum()
}

fn is_left(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().contains(".laneway-"))
}

#[test]
fn a_dry_run_prints_what_would_be_done_and_json_has_it_too() {
    let (endpoint, laneway) = endpoint();
    write(&endpoint, "tree/new", "1");
    write(&endpoint, "tree/same", "22");
    endpoint.server().store().put("bucket", "p/same", b"22").expect("stored");
    endpoint.server().store().put("bucket", "p/gone", b"333").expect("stored");
    let arguments = ["rsync", "tree", "gs://bucket/p", "--delete", "--dry-run"];
    let run = laneway.run(arguments).succeeds();
    assert_eq!(
        run.lines(),
        ["would upload tree/new -> gs://bucket/p/new", "would remove gs://bucket/p/gone"]
    );
    assert!(
        run.stderr.contains("would copy 1 file, 1 B, remove 1, 1 unchanged; nothing was changed"),
        "{}",
        run.stderr
    );
    let run = laneway.run([&arguments[..], &["--json"]].concat()).succeeds();
    let items: Vec<_> = run.json().into_iter().filter(|record| record["kind"] == "item").collect();
    assert_eq!(items.len(), 2);
    assert!(items.iter().all(|item| item["dry_run"] == true), "{items:?}");
    assert_eq!((&items[0]["op"], &items[1]["op"]), (&"upload".into(), &"remove".into()));
    let run = laneway.run(["sync", "tree", "gs://bucket/p", "--delete"]).succeeds();
    assert!(run.stderr.contains("1 file copied, 1 removed, 1 unchanged, 1 B in "), "{}", run.stderr);
    assert_eq!(endpoint.server().store().keys("bucket"), ["p/new", "p/same"]);
}

#[test]
fn filters_apply_in_command_line_order_to_every_verb() {
    let (endpoint, laneway) = endpoint();
    for name in ["a.jpg", "a.tmp", "keep.tmp", "cache/x.jpg", "d/cache/y.jpg", "d/z.txt"] {
        write(&endpoint, &format!("tree/{name}"), name);
    }
    write(&endpoint, "rules", "# caches\n/cache/\n*.tmp\n");
    let line = ["--include", "keep.tmp", "--exclude-from", "rules"];
    let taken = ["a.jpg", "d/cache/y.jpg", "d/z.txt", "keep.tmp"];
    let keys = || endpoint.server().store().keys("bucket");
    let below = |prefix: &str, names: &[&str]| -> Vec<String> {
        names.iter().map(|name| format!("{prefix}{name}")).collect()
    };
    laneway.run([&["cp", "-r", "tree", "gs://bucket/cp"], &line[..]].concat()).succeeds();
    assert_eq!(keys(), below("cp/", &taken));
    laneway.run(["rm", "-r", "-y", "gs://bucket/cp", "--exclude", "keep.tmp"]).succeeds();
    assert_eq!(keys(), ["cp/keep.tmp"]);
    laneway.run([&["sync", "tree", "s3://bucket/sync"], &line[..]].concat()).succeeds();
    assert_eq!(keys(), [vec!["cp/keep.tmp".to_owned()], below("sync/", &taken)].concat());
    let listed =
        laneway.run(["ls", "-r", "s3://bucket/sync", "--include=*.jpg", "--max-size", "5"]).succeeds();
    assert_eq!(listed.lines(), ["s3://bucket/sync/a.jpg"]);
    // The same filters apply to a download, and to a copy from store to store.
    laneway.run(["cp", "-r", "s3://bucket/sync", "back/", "--exclude", "d/"]).succeeds();
    assert_eq!(count(&endpoint.folder().join("back/sync")), 2);
    laneway.run(["cp", "-r", "s3://bucket/sync", "gs://bucket/two", "--include", "*.txt"]).succeeds();
    assert_eq!(keys().into_iter().filter(|key| key.starts_with("two")).collect::<Vec<_>>(), ["two/d/z.txt"]);
    // The new files are less than an hour old.
    for arguments in [
        &["sync", "tree", "s3://bucket/sync", "--older", "1h"][..],
        &["cp", "-r", "tree", "s3://bucket/none", "--newer", "2100-01-01"],
        &["rm", "-r", "-y", "s3://bucket/sync", "--min-size", "1GiB"],
        &["ls", "-r", "s3://bucket/sync", "--include", "nothing"],
    ] {
        let run = laneway.run(arguments.iter().copied()).succeeds();
        assert!(run.stderr.contains("nothing passes the filters"), "{arguments:?}: {}", run.stderr);
    }
    assert_eq!(keys().iter().filter(|key| key.starts_with("sync/")).count(), taken.len());
}

#[test]
fn what_cannot_be_meant_is_refused_before_anything_is_done() {
    let (endpoint, laneway) = endpoint();
    write(&endpoint, "tree/a", "a");
    for (arguments, why) in [
        (&["sync", "tree", "other"][..], "one end of a sync has to be in a store"),
        (&["sync", "gs://bucket/p", "gs://bucket/p/q"], "overlap"),
        (&["sync", "s3://bucket/p/q", "s3://bucket/p"], "overlap"),
        (&["sync", "gs://bucket/*.jpg", "tree"], "a pattern can't be synced"),
        (&["sync", "-", "gs://bucket/p"], "stream"),
        (&["sync", "tree/a", "gs://bucket/p"], "is not a folder"),
        (&["sync", "tree", "gs://bucket/p", "--max-delete", "3"], "--delete"),
        (&["sync", "tree", "gs://bucket/p", "--existing", "--ignore-existing"], "cannot be used with"),
        (&["sync", "tree", "gs://bucket/p", "--newer", "yesterday"], "36h"),
        (&["sync", "tree", "gs://bucket/p", "--exclude-from", "missing"], "missing"),
        (&["sync", "tree", "gs://bucket/p", "--exclude", "/"], "not a pattern"),
        (&["ls", "gs://bucket/p", "--exclude", "x"], "-r"),
    ] {
        let run = laneway.run(arguments.iter().copied()).exits(2);
        assert!(run.stderr.contains(why), "{arguments:?}: {}", run.stderr);
    }
    assert!(endpoint.server().store().keys("bucket").is_empty());
    for (source, to) in
        [("missing", "gs://bucket/p"), ("gs://bucket/missing", "tree"), ("s3://bucket/missing/", "tree")]
    {
        laneway.run(["sync", source, to]).exits(1).complains(&["missing"]);
    }
    laneway.run(["sync", "tree", "gs://nowhere/p"]).exits(1).complains(&["nowhere"]);
}

#[test]
fn a_removal_that_would_be_too_much_is_refused_with_status_1() {
    let (endpoint, laneway) = endpoint();
    fs::create_dir_all(endpoint.folder().join("empty")).expect("made");
    endpoint.server().store().put("bucket", "p/a", b"a").expect("stored");
    let arguments = ["sync", "empty", "gs://bucket/p", "--delete"];
    let run = laneway.run(arguments).exits(1);
    assert!(run.stderr.contains("--allow-empty") && run.stderr.contains("empty: is empty"), "{}", run.stderr);
    laneway.run([&arguments[..], &["--allow-empty", "--max-delete", "0"]].concat()).exits(1);
    assert_eq!(endpoint.server().store().keys("bucket"), ["p/a"]);
    laneway.run([&arguments[..], &["--allow-empty"]].concat()).succeeds();
    assert!(endpoint.server().store().keys("bucket").is_empty());
}

#[test]
fn a_second_copy_beside_the_first_is_refused_unless_it_is_forced() {
    let (endpoint, laneway) = endpoint();
    fs::create_dir_all(endpoint.folder().join("photos")).expect("made");
    fs::write(endpoint.folder().join("photos/1.jpg"), b"photo").expect("written");
    laneway.run(["cp", "-r", "photos", "gs://bucket/"]).succeeds();
    let run = laneway.run(["sync", "--delete", "photos", "gs://bucket"]).exits(1);
    assert!(run.stderr.contains("Sync to gs://bucket/photos, or add --force"), "{}", run.stderr);
    laneway.run(["sync", "--delete", "photos", "gs://bucket/photos"]).succeeds();
    assert_eq!(endpoint.server().store().keys("bucket"), ["photos/1.jpg"]);
    laneway.run(["sync", "--delete", "--force", "photos", "gs://bucket"]).succeeds();
    assert_eq!(endpoint.server().store().keys("bucket"), ["1.jpg"]);
}

#[test]
fn a_file_that_changes_while_it_is_read_is_told_and_no_object() {
    let bytes = laneway_testkit::random_bytes(1, 40 << 20);
    for (change, scheme) in [("cut", "gs"), ("rewritten", "gs"), ("rewritten", "s3")] {
        let faults = Faults::parse(["any key=*large* stall@256KiB"]).expect("a rule");
        let endpoint = Endpoint::start_with(Wire::Plain, Config { faults, ..Config::default() });
        let laneway = endpoint.program(LANEWAY);
        let large = endpoint.folder().join("tree/large");
        fs::create_dir_all(endpoint.folder().join("tree")).expect("made");
        fs::write(&large, &bytes).expect("written");
        endpoint.server().store().put("bucket", "p/extra", b"x").expect("stored");
        let running = laneway.start(["sync", "tree", &format!("{scheme}://bucket/p"), "--delete", "--json"]);
        assert!(endpoint.server().wait_until(laneway_testkit::Running::TIME_MAX, |c| {
            c.requests_by_verb.get("part").is_some_and(|n| *n > 0)
        }));
        match change {
            "cut" => {
                fs::File::options().write(true).open(&large).expect("opened").set_len(1 << 20).expect("cut")
            }
            _ => fs::write(&large, vec![7; bytes.len()]).expect("written"),
        }
        endpoint.server().set_faults(Faults::default());
        let run = running.end().exits(1);
        // If Laneway reads a part after the truncation, it finds that the file is shorter.
        let said = [
            "changed while it was read, so nothing was written to the destination",
            "became shorter while it was read",
        ];
        assert!(said.iter().any(|said| run.stderr.contains(said)), "{change} {scheme}: {}", run.stderr);
        assert_eq!(endpoint.server().store().keys("bucket"), ["p/extra"], "nothing is removed");
    }
}

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
        differs.stderr.contains("s3://bucket/q/a: it has 2 bytes at the destination, and 1 at the source"),
        "{}",
        differs.stderr
    );
    let report = fs::read_to_string(endpoint.folder().join("report.csv")).expect("a report");
    let expected =
        "bucket,p/a,,failed,SizeMismatch,412,\"it has 2 bytes at the destination, and 1 at the source\"\n";
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
