//! Detects the standard streams that were closed when the program started.
//!
//! Before `main`, Rust opens `/dev/null` in place of closed streams. Otherwise the next file that the program opens would become its
//! standard output. From then on, a closed standard input looks empty, and a closed standard output accepts everything. So `cp -` would
//! store an empty object, and `cat` would succeed without writing a byte. This module therefore checks the streams before Rust opens
//! `/dev/null`.
#![allow(unsafe_code, reason = "only a function that the loader calls runs before Rust's start-up")]

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::Context as _;
use laneway::{CopyRequest, Location};

static INPUT_CLOSED: AtomicBool = AtomicBool::new(false);
static OUTPUT_CLOSED: AtomicBool = AtomicBool::new(false);

// SAFETY: the loader calls the function in this section once, before `main`, on the only thread. `look` uses
// no part of the standard library that needs a setup.
#[used]
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
#[cfg_attr(not(target_os = "macos"), unsafe(link_section = ".init_array"))]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    INPUT_CLOSED.store(is_closed(libc::STDIN_FILENO), Relaxed);
    OUTPUT_CLOSED.store(is_closed(libc::STDOUT_FILENO), Relaxed);
}

fn is_closed(descriptor: libc::c_int) -> bool {
    // SAFETY: F_GETFD only reads the descriptor's flags, and fails if it isn't open.
    unsafe { libc::fcntl(descriptor, libc::F_GETFD) == -1 }
}

/// Checks that standard output was open when the program started.
///
/// # Errors
/// Fails if the program was started with it closed.
pub(crate) fn output() -> io::Result<()> {
    refuse(OUTPUT_CLOSED.load(Relaxed), "standard output is closed")
}

fn input() -> io::Result<()> {
    refuse(INPUT_CLOSED.load(Relaxed), "standard input is closed")
}

/// Checks that the standard streams a copy uses are open.
///
/// # Errors
/// Fails if one of them was closed when the program started.
pub(crate) fn check(request: &CopyRequest) -> anyhow::Result<()> {
    if request.sources.contains(&Location::Standard) {
        input().context("-")?;
    }
    if request.destination == Location::Standard {
        output().context("-")?;
    }
    Ok(())
}

fn refuse(is_closed: bool, why: &'static str) -> io::Result<()> {
    if is_closed { Err(io::Error::other(why)) } else { Ok(()) }
}
