//! `rm -r`: what is removed of what a listing brings, also where the listing doesn't come to its end.

use laneway_server::{Faults, Versioning};
use laneway_testkit::{Endpoint, Program, Wire};

const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");
/// Less than a call removes, so that no batch of them is ever full on S3.
const OBJECTS: usize = 900;

/// A server whose listings break off in the middle of their only page, however often they are asked for.
fn stocked() -> (Endpoint, Program) {
    let endpoint = Endpoint::start(Wire::Plain);
    for n in 0..OBJECTS {
        endpoint.server().store().put("bucket", &format!("p/{n:04}"), b"x").expect("stored");
    }
    endpoint.server().set_faults(Faults::parse(["list reset@96KiB"]).expect("a rule"));
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

/// A bucket that keeps versions: `n` keys below `p/` with two each, the last of which is deleted where that is said.
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

/// A question and its answer go over the terminal, and what is on it is read to the question or the end.
#[cfg(target_os = "linux")]
#[test]
fn on_a_terminal_a_question_is_asked_above_a_thousand_objects() {
    use std::io::{Read as _, Write as _};

    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    for (objects, answer, left) in [(1001, "n\n", 1001), (1001, "y\n", 0), (1000, "", 0)] {
        let endpoint = Endpoint::start(Wire::Plain);
        for n in 0..objects {
            endpoint.server().store().put("bucket", &format!("p/{n}"), b"x").expect("stored");
        }
        let laneway = endpoint.program(LANEWAY);
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&terminal).expect("ours");
        unlockpt(&terminal).expect("unlocked");
        let name = ptsname(&terminal, Vec::new()).expect("a name").into_string().expect("text");
        let line = format!("exec \"$0\" \"$@\" <{name} 2>{name}");
        let running = endpoint.program("/bin/sh").start(["-c", &line, LANEWAY, "rm", "-r", "s3://bucket/p/"]);
        drop(laneway);
        let (mut terminal, mut seen) = (std::fs::File::from(terminal), Vec::new());
        while !answer.is_empty() && !String::from_utf8_lossy(&seen).contains("[y/N]") {
            let mut bytes = [0; 256];
            let read = terminal.read(&mut bytes).unwrap_or(0);
            assert!(read > 0, "it ended without a question: {}", String::from_utf8_lossy(&seen));
            seen.extend_from_slice(&bytes[..read]);
        }
        terminal.write_all(answer.as_bytes()).expect("typed");
        running.end().exits(i32::from(left > 0));
        assert_eq!(endpoint.server().store().keys("bucket").len(), left, "{objects} {answer:?}");
    }
}
