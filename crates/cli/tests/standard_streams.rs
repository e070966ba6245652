//! Standard streams that are closed, full, or that nobody reads any more. A shell lays them out.

use std::fs;

use laneway_testkit::{Endpoint, Program, Run, Wire, random_bytes};

const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");

/// A server with an object that no pipe holds.
fn stocked() -> (Endpoint, Program) {
    let endpoint = Endpoint::start(Wire::Plain);
    endpoint.server().store().put("bucket", "k", &random_bytes(1, 1 << 20)).expect("stored");
    let shell = endpoint.program("/bin/sh");
    (endpoint, shell)
}

/// Runs a line in which `$0` is the program.
fn line(shell: &Program, line: &str) -> Run {
    shell.run(["-c", line, LANEWAY])
}

#[test]
fn a_full_device_as_standard_output_is_a_failure() {
    let (_endpoint, shell) = stocked();
    for command in [
        "ls gs://bucket",
        "stat s3://bucket/k",
        "cat gs://bucket/k",
        "--help",
        "--version",
        "completions bash",
    ] {
        let run = line(&shell, &format!("exec \"$0\" {command} >/dev/full")).exits(1);
        assert!(run.stderr.contains("No space left"), "{command}: {}", run.stderr);
    }
    line(&shell, "exec \"$0\" cp s3://bucket/k - >/dev/full").exits(1).complains(&["No space left"]);
    line(&shell, "exec \"$0\" cp --json s3://bucket/k k >/dev/full").exits(1).complains(&["standard output"]);
}

#[test]
fn a_closed_standard_output_is_a_failure_of_what_writes_to_it() {
    let (endpoint, shell) = stocked();
    for command in
        ["ls gs://bucket", "stat s3://bucket/k", "cat gs://bucket/k", "cp gs://bucket/k -", "--version"]
    {
        let run = line(&shell, &format!("exec \"$0\" {command} >&-")).exits(1);
        assert!(run.stderr.contains("standard output is closed"), "{command}: {}", run.stderr);
    }
    line(&shell, "exec \"$0\" cp -q gs://bucket/k k >&-").succeeds();
    assert_eq!(fs::metadata(endpoint.folder().join("k")).expect("copied").len(), 1 << 20);
}

#[test]
fn a_closed_standard_input_stores_nothing() {
    let (endpoint, shell) = stocked();
    line(&shell, "exec \"$0\" cp - gs://bucket/new <&-").exits(1).complains(&["standard input is closed"]);
    // Open, but not for reading.
    line(&shell, "exec \"$0\" cp - s3://bucket/new 0>written").exits(1).complains(&["-"]);
    assert_eq!(endpoint.server().store().keys("bucket"), ["k"]);
    line(&shell, "exec \"$0\" cp -q - gs://bucket/new </dev/null").succeeds();
    assert_eq!(endpoint.server().store().keys("bucket"), ["k", "new"]);
}

#[test]
fn a_reader_that_has_enough_ends_the_program_without_a_word() {
    let (endpoint, shell) = stocked();
    for n in 0..3000 {
        endpoint.server().store().put("bucket", &format!("many/{n:0100}"), b"").expect("stored");
    }
    for command in ["cat gs://bucket/k", "cp s3://bucket/k -", "ls -r gs://bucket"] {
        let run =
            line(&shell, &format!("{{ \"$0\" {command}; echo \"status $?\" >&2; }} | head -c 1 >/dev/null"));
        assert_eq!(run.stderr, "status 0\n", "{command}");
    }
    // What a job did not do is not claimed, but no more is said about it than a broken pipe would say.
    let run = line(
        &shell,
        "{ \"$0\" cp --json -r s3://bucket/many d; echo \"status $?\" >&2; } | head -c 1 >/dev/null",
    );
    assert_eq!(run.stderr, "status 1\n");
    // Nor does a reader that leaves make good what had failed.
    for command in ["cp --json gs://bucket/none d/none", "cat gs://bucket/none gs://bucket/k"] {
        let piped = format!("{{ \"$0\" {command} 2>/dev/null; echo \"status $?\" >&2; }} | :");
        assert_eq!(line(&shell, &piped).stderr, "status 1\n", "{command}");
    }
    // The object of a move is still there, which its owner should know.
    let run = line(&shell, "{ \"$0\" mv s3://bucket/k -; echo \"status $?\" >&2; } | head -c 1 >/dev/null");
    assert!(run.stderr.contains("Broken pipe") && run.stderr.contains("status 1"), "{}", run.stderr);
    assert!(endpoint.server().store().keys("bucket").contains(&"k".to_owned()));
}
