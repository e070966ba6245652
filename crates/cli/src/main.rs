//! The program `laneway`; see the library beside it.

use std::process::ExitCode;

/// glibc's arenas are slow when threads free memory of other threads. A small upload makes some hundred
/// allocations on two threads and frees them on a third.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    laneway_cli::run(std::env::args_os().collect()).into()
}
