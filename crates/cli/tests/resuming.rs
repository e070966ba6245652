//! Large downloads that are killed, and the same command again.

use std::fs;
use std::path::{Path, PathBuf};

use laneway_server::{Config, Faults};
use laneway_testkit::{Changes, Endpoint, Running, Wire, claimed, files_below, random_bytes};

const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");
const MIB: u64 = 1 << 20;
/// What is fetched beside the object's missing bytes at most: at its end streams are cut, and each of them, thirty-two at most, has sent up to a read more.
const SLACK: u64 = 4 * MIB;

/// Waits until so much is claimed in the folder; false if the program ended before.
fn wait_for_claims(running: &Running, changes: &Changes, folder: &Path, bytes: u64) -> bool {
    changes.wait_while_runs(running, || claimed(folder) >= bytes)
}

fn copied(folder: &Path, to: PathBuf) -> PathBuf {
    fs::create_dir_all(&to).expect("made");
    for entry in fs::read_dir(folder).expect("read") {
        let entry = entry.expect("an entry");
        fs::copy(entry.path(), to.join(entry.file_name())).expect("copied");
    }
    to
}

/// A download killed with SIGKILL at ten points drawn from `seed`; after each of them a copy of what it left is gone on
/// with to the end.
fn killed_again_and_again(wire: Wire, scheme: &str, seed: u64, size: u64, bytes_per_second: u64) {
    let config = Config { bandwidth: Some(bytes_per_second), ..Config::default() };
    let endpoint = Endpoint::start_with(wire, config);
    let laneway = endpoint.program(LANEWAY);
    let bytes = random_bytes(seed, size as usize);
    endpoint.server().store().put("bucket", "big", &bytes).expect("stored");
    let source = format!("{scheme}://bucket/big");
    let out = endpoint.folder().join("out");
    fs::create_dir(&out).expect("made");
    let mut points: Vec<u64> =
        random_bytes(seed + 1, 10).iter().map(|byte| size * u64::from(*byte) / 270).collect();
    points.sort_unstable();
    let mut kills = 0;
    for point in points {
        let changes = Changes::of(&out);
        let running = laneway.start(["cp", &source, "out/big"]);
        if !wait_for_claims(&running, &changes, &out, point.max(claimed(&out)).max(1)) {
            break;
        }
        running.signal("-KILL");
        assert_eq!(running.end().status, None, "killed");
        assert!(!out.join("big").exists(), "no half file under the final name");
        kills += 1;
        let missing = size - claimed(&out);
        let copy = copied(&out, endpoint.folder().join(format!("copy-{kills}")));
        let run = laneway.run(["cp", "--json", &source, &format!("copy-{kills}/big")]).succeeds();
        let summary = run.record("summary");
        let fetched = summary["network_bytes"].as_u64().expect("a number");
        assert!((missing..=missing + SLACK).contains(&fetched), "{fetched} fetched, {missing} missing");
        assert_eq!(run.record("item")["verified"], "crc32c");
        assert!(fs::read(copy.join("big")).expect("read") == bytes, "kill {kills}");
        assert_eq!(fs::read_dir(&copy).expect("read").count(), 1, "nothing else stays");
        fs::remove_dir_all(copy).expect("removed");
    }
    // A machine that stops the test for seconds may let a download end before it is killed.
    assert!(kills >= 3, "killed {kills} times only");
    laneway.run(["cp", &source, "out/big"]).succeeds();
    assert!(fs::read(out.join("big")).expect("read") == bytes);
    assert_eq!(fs::read_dir(&out).expect("read").count(), 1);
}

/// `LANEWAY_SOAK_DOWNLOAD_MIB` sets another size than 48 MiB; a download takes a second or two then as well.
#[test]
fn a_download_that_is_killed_ten_times_is_resumed_exactly_each_time() {
    let size = std::env::var("LANEWAY_SOAK_DOWNLOAD_MIB").map_or(48, |mib| mib.parse().expect("MiB")) * MIB;
    killed_again_and_again(Wire::Plain, "s3", 7, size, size.min(512 << 20));
    killed_again_and_again(Wire::TlsH2, "gs", 11, size, size.min(512 << 20));
}

#[test]
fn an_interrupted_download_says_what_is_kept_and_the_same_command_goes_on() {
    let faults = Faults::parse(["get stall@8MiB"]).expect("a rule");
    let endpoint = Endpoint::start_with(Wire::Plain, Config { faults, ..Config::default() });
    let laneway = endpoint.program(LANEWAY);
    let size = 64 * MIB;
    let bytes = random_bytes(1, size as usize);
    endpoint.server().store().put("bucket", "big", &bytes).expect("stored");
    for verb in ["cp", "mv"] {
        let out = endpoint.folder().join(verb);
        fs::create_dir(&out).expect("made");
        let arguments = [verb, "--json", "s3://bucket/big", &format!("{verb}/")];
        let changes = Changes::of(&out);
        let running = laneway.start(arguments);
        assert!(wait_for_claims(&running, &changes, &out, 6 * MIB));
        running.signal("-INT");
        let run = running.end().exits(130);
        assert!(
            run.stderr.contains("the same command") && run.stderr.contains("will be reused"),
            "{}",
            run.stderr
        );
        let kept = claimed(&out);
        endpoint.server().set_faults(Faults::default());
        let run = laneway.run(arguments).succeeds();
        let fetched = run.record("summary")["network_bytes"].as_u64().expect("a number");
        assert!(fetched <= size - kept + SLACK, "{fetched} fetched, {kept} kept");
        assert!(fs::read(out.join("big")).expect("read") == bytes);
        assert_eq!(fs::read_dir(&out).expect("read").count(), 1);
        endpoint.server().set_faults(Faults::parse(["get stall@8MiB"]).expect("a rule"));
    }
    assert!(endpoint.server().store().keys("bucket").is_empty(), "moved");
}

#[test]
fn an_interrupted_tree_is_completed_in_the_same_folder() {
    let stalling = || Faults::parse(["get stall@8MiB"]).expect("a rule");
    for (verb, scheme) in [("cp", "gs"), ("mv", "s3")] {
        let endpoint = Endpoint::start_with(Wire::Plain, Config { faults: stalling(), ..Config::default() });
        let laneway = endpoint.program(LANEWAY).in_folder(endpoint.folder());
        let bytes = random_bytes(1, 32 << 20);
        endpoint.server().store().put("bucket", "tree/d/big", &bytes).expect("stored");
        endpoint.server().store().put("bucket", "tree/small", b"x").expect("stored");
        let out = endpoint.folder().join("new");
        // An object that is gone by the next run, and what an earlier version has begun in the tree's own folder.
        let left = ["new/tree/d", "new/d"].map(|folder| endpoint.folder().join(folder));
        for folder in &left {
            fs::create_dir_all(folder).expect("made");
        }
        let arguments = [verb, "-r", &format!("{scheme}://bucket/tree"), "new"];
        let changes = Changes::of(&left[1]);
        let running = laneway.start(arguments);
        assert!(wait_for_claims(&running, &changes, &left[1], 4 * MIB));
        running.signal("-INT");
        running.end().exits(130);
        let parts = files_below(&left[1]);
        assert_eq!(parts.len(), 2, "a part and its journal: {parts:?}");
        for part in &parts {
            fs::copy(left[1].join(part), left[0].join(part)).expect("copied");
            let (gone, ending) = part.rsplit_once('.').expect("an ending");
            let gone = gone.replace("big", "gone").replace(|c: char| c.is_ascii_digit(), "0");
            fs::copy(left[1].join(part), left[1].join(format!("{gone}.{ending}"))).expect("copied");
        }
        fs::write(out.join("theirs.part"), "not ours").expect("written");
        endpoint.server().set_faults(Faults::default());
        laneway.run(arguments).succeeds();
        assert_eq!(files_below(&out), ["d/big", "small", "theirs.part"], "{verb}");
        assert!(fs::read(out.join("d/big")).expect("read") == bytes);
        let rest = endpoint.server().store().keys("bucket").len();
        assert_eq!(rest, if verb == "mv" { 0 } else { 2 });
    }
}
