//! The program `laneway`. Its code is in the library of this crate.

use std::process::ExitCode;

/// glibc's allocator is slow when a thread frees memory that another thread allocated. A small upload makes about a hundred allocations on
/// two threads and frees them on a third.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    laneway_cli::run(std::env::args_os().collect()).into()
}
