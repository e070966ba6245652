//! `--manifest` by the real binary.

use std::fs;

use laneway_testkit::{Endpoint, Wire, differences, seed_tree};

const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");
const FILES: usize = 400;

/// Killed again and again, each run does what the ones before have not, and at last nothing is left to do.
#[test]
fn a_copy_that_is_killed_goes_on_where_its_manifest_ends() {
    let endpoint = Endpoint::start(Wire::Plain);
    let laneway = endpoint.program(LANEWAY).in_folder(endpoint.folder());
    let (tree, back) = (endpoint.folder().join("tree"), endpoint.folder().join("back"));
    seed_tree(&tree, 7, FILES);
    for (command, prefix) in [
        (["cp", "-r", "tree", "s3://bucket/p", "--manifest", "up"], "p/"),
        (["cp", "-r", "s3://bucket/p", "back", "--manifest", "down"], ""),
    ] {
        let done = || match prefix {
            "" => fs::read_to_string(endpoint.folder().join("down")).unwrap_or_default().lines().count(),
            _ => endpoint.server().store().keys("bucket").len(),
        };
        for kill in 1..4 {
            let running = laneway.start(command);
            let reached = endpoint
                .server()
                .wait_until(laneway_testkit::Running::TIME_MAX, |_| done() >= kill * FILES / 5);
            assert!(reached, "{command:?}: {}", done());
            running.signal("-KILL");
            running.end();
        }
        laneway.run(command).succeeds();
        let manifest = fs::read_to_string(endpoint.folder().join(command[5])).expect("a manifest");
        let lines: Vec<serde_json::Value> =
            manifest.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let of = |outcome: &str| lines.iter().filter(|line| line["outcome"] == outcome).count();
        assert!(of("done") >= FILES && of("skipped") > 0, "{} done, {} skipped", of("done"), of("skipped"));
        let again = laneway.run(command.iter().chain(&["--json"])).succeeds();
        let summary = again.record("summary");
        assert_eq!((&summary["files"], &summary["skipped"]), (&0.into(), &FILES.into()), "{summary}");
    }
    // What a killed process leaves of a file beside it, nobody takes for one.
    let different = differences(&tree, &back).into_iter().filter(|name| !name.ends_with(".part"));
    assert_eq!(different.collect::<Vec<_>>(), Vec::<String>::new());
}

#[test]
fn a_manifest_of_another_command_is_refused_and_named() {
    let endpoint = Endpoint::start(Wire::Plain);
    let laneway = endpoint.program(LANEWAY).in_folder(endpoint.folder());
    for key in ["a", "b"] {
        endpoint.server().store().put("bucket", key, b"x").expect("stored");
    }
    laneway.run(["rm", "s3://bucket/a", "--manifest", "m"]).succeeds();
    let other = laneway.run(["rm", "s3://bucket/b", "--manifest", "m"]).exits(1);
    other.complains(&["m:1", "another job, of remove s3://bucket/a"]);
    assert_eq!(endpoint.server().store().keys("bucket"), ["b"]);
    laneway.run(["rm", "s3://bucket/a", "--manifest", "m"]).succeeds();
    // Commands of one run have manifests of their own.
    let run = laneway
        .run_with_input(["run", "-"], b"rm s3://bucket/b --manifest n\nmv s3://bucket/b d --manifest m\n");
    run.exits(1).complains(&["-:2: ", "another job"]);
    let manifest = fs::read_to_string(endpoint.folder().join("n")).expect("a manifest");
    assert!(manifest.contains("\"key\":\"b\"") && manifest.contains("\"outcome\":\"done\""), "{manifest}");
}
