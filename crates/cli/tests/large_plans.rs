//! `plan` as users run it: with killed runners, and with many rows.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use laneway_testkit::{Endpoint, Wire};

const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");

/// Writes an inventory with so many rows, as `ls -r --json` prints them.
fn inventory(path: &Path, rows: u64) {
    let mut file = std::io::BufWriter::new(fs::File::create(path).expect("created"));
    for row in 0..rows {
        let line = format!(
            "{{\"kind\":\"object\",\"url\":\"s3://bucket/data/part-{row:09}\",\"size\":4096,\"etag\":\"{row:032x}\"}}"
        );
        writeln!(file, "{line}").expect("written");
    }
    file.flush().expect("written");
}

#[test]
fn planning_holds_few_rows_in_memory() {
    const ROWS: u64 = 300_000;
    let endpoint = Endpoint::start(Wire::Plain);
    let folder = endpoint.folder();
    let laneway = endpoint.program(LANEWAY).in_folder(&folder);
    inventory(&folder.join("listing.jsonl"), ROWS);
    let arguments =
        "plan cp s3://bucket/data s3://copies/ --inventory listing.jsonl --parts plan --part-rows 10000";
    let planning = laneway.start(arguments.split(' '));
    let mut peak = 0;
    while let Some(now) = planning.memory_peak() {
        peak = peak.max(now);
    }
    let run = planning.end().succeeds();
    assert!(run.stderr.starts_with("300000 objects, 1.14 GiB, in 30 parts"), "{}", run.stderr);
    // All rows together would take more than 100 MiB.
    assert!(peak > 0 && peak < 96 << 20, "{peak} bytes");
}

#[test]
fn killed_runners_lose_nothing_and_repeat_only_their_parts() {
    let endpoint = Endpoint::start(Wire::Plain);
    let laneway = endpoint.program(LANEWAY).in_folder(endpoint.folder());
    let store = endpoint.server().store();
    for n in 0..600 {
        store.put("bucket", &format!("from/{n:03}"), format!("{n}").as_bytes()).expect("stored");
    }
    let plan = ["plan", "cp", "s3://bucket/from", "gs://bucket/into/", "--parts", "s3://bucket/plan"];
    let planned = laneway.run(plan.into_iter().chain(["--part-rows", "50"])).succeeds();
    assert!(planned.stderr.starts_with("600 objects, 1.65 KiB, in 12 parts\n"), "{}", planned.stderr);

    // The runners die while copies arrive.
    for kill in 1..=3 {
        let runner =
            laneway.start(["plan", "run", "s3://bucket/plan", "--lease", "3s", "--bandwidth-limit", "1k"]);
        let copies = || store.keys("bucket").iter().filter(|key| key.starts_with("into/")).count();
        let before = copies();
        let has_begun = |_: &_| copies() > before;
        assert!(endpoint.server().wait_until(std::time::Duration::from_secs(60), has_begun), "kill {kill}");
        runner.signal("-KILL");
        runner.end();
    }
    laneway.run(["plan", "run", "s3://bucket/plan", "--lease", "3s", "--workers", "2"]).succeeds();
    laneway.run(["plan", "status", "s3://bucket/plan"]).succeeds();
    let ended = laneway.run(["plan", "run", "--json", "--part", "3", "s3://bucket/plan"]).succeeds();
    assert_eq!(ended.record("part")["done"], 50, "an engine that repeats a part gets its result");
    let check = laneway.run(["plan", "verify", "--json", "s3://bucket/plan"]).succeeds().record("plan-check");
    assert_eq!((&check["same"], &check["missing"], &check["extra"]), (&600.into(), &0.into(), &0.into()));

    let keys = store.keys("bucket");
    let summaries = keys.iter().filter(|key| key.starts_with("plan/results/") && key.ends_with(".json"));
    let mut rows = BTreeSet::new();
    for summary in summaries {
        let summary = store.read("bucket", summary).expect("read");
        let summary: serde_json::Value = serde_json::from_slice(&summary).expect("JSON");
        assert_eq!(summary["done"], 50);
        rows.insert(summary["part"].to_string());
    }
    assert_eq!(rows.len(), 12, "each part has one result");
}

#[test]
fn a_runner_uses_its_share_of_the_plans_bandwidth() {
    let endpoint = Endpoint::start(Wire::Plain);
    let laneway = endpoint.program(LANEWAY).in_folder(endpoint.folder());
    endpoint.server().store().put("bucket", "from/1", &[1; 100_000]).expect("stored");
    let plan = ["plan", "cp", "s3://bucket/from", "gs://bucket/into/", "--parts", "p"];
    laneway.run(plan.into_iter().chain(["--bandwidth-limit", "1MB/s", "--runners", "2"])).succeeds();
    let run = laneway.run(["plan", "run", "-v", "p"]).succeeds();
    // The engine says so if it already runs with other limits.
    assert!(!run.stderr.contains("limits have no effect"), "{}", run.stderr);
    assert_eq!(
        endpoint.server().store().keys("bucket").iter().filter(|key| key.ends_with("from/1")).count(),
        2
    );
}

#[test]
fn mistakes_of_plan_are_named() {
    let endpoint = Endpoint::start(Wire::Plain);
    let laneway = endpoint.program(LANEWAY).in_folder(endpoint.folder());
    endpoint.server().store().put("bucket", "from/1", b"1").expect("stored");
    let bad = |arguments: &[&str], status: i32, why: &str| {
        let run = laneway.run(arguments).exits(status);
        assert!(run.stderr.contains(why), "{why}: {}", run.stderr);
    };
    bad(&["plan", "cp", "s3://bucket/from", "gs://bucket/into"], 2, "--parts");
    bad(&["plan", "cp", "tree", "gs://bucket/into", "--parts", "plan"], 2, "must be prefixes of buckets");
    bad(
        &["plan", "cp", "s3://bucket/from", "s3://bucket/a", "--parts", "p", "--runners", "2"],
        2,
        "--bandwidth-limit",
    );
    bad(&["plan", "rm", "s3://bucket/from", "--parts", "p", "--range", "a"], 2, "FROM..TO");
    bad(&["plan", "rm", "s3://bucket/from", "--parts", "p", "--newer", "7d"], 2, "not an age");
    bad(&["plan", "verify", "p", "--exclude", "x"], 2, "need SRC, DST and --parts");
    bad(&["plan", "run", "p", "--lease", "0s"], 2, "between 3s and 1d");
    bad(&["plan", "run", "nowhere"], 1, "no plan in this folder");
    bad(&["plan", "verify", "s3://bucket/from", "gs://bucket/into"], 2, "--parts");
    let counted = laneway.run(["plan", "rm", "-n", "--json", "s3://bucket/from"]).succeeds().record("plan");
    assert_eq!((&counted["removed"], &counted["dry_run"]), (&1.into(), &true.into()));
    let lines = laneway.run_with_input(["run", "-"], b"plan run nowhere\n").exits(2);
    lines.complains(&["can't be used inside `run`"]);
}
