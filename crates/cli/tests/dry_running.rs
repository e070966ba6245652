//! `--dry-run` looks, says what would really happen, and changes nothing.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use laneway_testkit::{Endpoint, Program, Run, Wire};

const LANEWAY: &str = env!("CARGO_BIN_EXE_laneway");
const SCHEMES: [&str; 2] = ["gs", "s3"];

fn stocked() -> (Endpoint, Program) {
    let endpoint = Endpoint::start(Wire::Plain);
    for key in ["a", "p/b"] {
        endpoint.server().store().put("bucket", key, b"xyz").expect("stored");
    }
    fs::write(endpoint.folder().join("f"), "1234").expect("written");
    let program = endpoint.program(LANEWAY);
    (endpoint, program)
}

/// Runs a command dry; nothing may be different afterwards.
fn dry(command: &str) -> Run {
    let (endpoint, laneway) = stocked();
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
    let (endpoint, laneway) = stocked();
    let folder = endpoint.folder().join("d");
    fs::create_dir(&folder).expect("made");
    for name in ["open", "shut"] {
        fs::write(folder.join(name), "x").expect("written");
    }
    fs::set_permissions(folder.join("shut"), Permissions::from_mode(0o000)).expect("shut");
    // Root reads everything unless that capability is taken from it.
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
