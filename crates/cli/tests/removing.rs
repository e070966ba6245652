//! `rm -r`: what is removed of what a listing brings, also where the listing doesn't come to its end.

use laneway_server::Faults;
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
