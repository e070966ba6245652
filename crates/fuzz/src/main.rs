//! One target, driven by libFuzzer: `laneway-fuzz -max_total_time=60 FOLDER...`, with its name in `LANEWAY_FUZZ_TARGET`.
#![no_main]

use std::sync::LazyLock;

use laneway_fuzz::{TARGETS, Target};

/// Which of them it is. libFuzzer has the command line to itself.
static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("LANEWAY_FUZZ_TARGET").unwrap_or_default();
    let target = TARGETS.into_iter().find(|target| target.name == name);
    target.unwrap_or_else(|| panic!("LANEWAY_FUZZ_TARGET={name} is no target"))
});

libfuzzer_sys::fuzz_target!(|input: &[u8]| (TARGET.feed)(input));
