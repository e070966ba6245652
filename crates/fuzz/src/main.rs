//! Runs one target under libFuzzer: `laneway-fuzz -max_total_time=60 FOLDER...`, with the target's name in `LANEWAY_FUZZ_TARGET`.
#![no_main]

use std::sync::LazyLock;

use laneway_fuzz::{TARGETS, Target};

/// The target to run. An environment variable names it, because libFuzzer parses the command line itself.
static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("LANEWAY_FUZZ_TARGET").unwrap_or_default();
    let target = TARGETS.into_iter().find(|target| target.name == name);
    target.unwrap_or_else(|| {
        panic!("there is no target {name:?}: set LANEWAY_FUZZ_TARGET to a name in laneway_fuzz::TARGETS")
    })
});

libfuzzer_sys::fuzz_target!(|input: &[u8]| (TARGET.feed)(input));
