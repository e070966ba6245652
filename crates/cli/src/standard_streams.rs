//! Which of the standard streams were closed when the program was started.
//!
//! Before `main` Rust opens `/dev/null` in the place of those that were, so that no file of ours becomes standard output. From
//! then on a closed standard input looks like an empty one, and a closed standard output like one that takes everything: `cp -`
//! would store an empty object, and `cat` succeed without writing a byte. So it is looked before that.
#![allow(unsafe_code, reason = "only what the loader calls runs before Rust's own start")]

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::Context as _;
use laneway::{CopyRequest, Location};

static INPUT_CLOSED: AtomicBool = AtomicBool::new(false);
static OUTPUT_CLOSED: AtomicBool = AtomicBool::new(false);

// SAFETY: the loader calls what lies in this section once, before `main`, on the only thread. `look` uses nothing of the standard
// library that would have to be set up first.
#[used]
#[cfg_attr(target_os = "macos", unsafe(link_section = "__DATA,__mod_init_func"))]
#[cfg_attr(not(target_os = "macos"), unsafe(link_section = ".init_array"))]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    INPUT_CLOSED.store(is_closed(libc::STDIN_FILENO), Relaxed);
    OUTPUT_CLOSED.store(is_closed(libc::STDOUT_FILENO), Relaxed);
}

fn is_closed(descriptor: libc::c_int) -> bool {
    // SAFETY: F_GETFD only looks at the descriptor; of one that isn't open it says so.
    unsafe { libc::fcntl(descriptor, libc::F_GETFD) == -1 }
}

/// Standard output can be written.
///
/// # Errors
/// Where it was closed.
pub(crate) fn output() -> io::Result<()> {
    refuse(OUTPUT_CLOSED.load(Relaxed), "standard output is closed")
}

fn input() -> io::Result<()> {
    refuse(INPUT_CLOSED.load(Relaxed), "standard input is closed")
}

/// Whatever a copy reads from or writes to is there.
///
/// # Errors
/// Where that is a standard stream which was closed.
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
