//! Checks files and objects after the program is killed, the disk fails or the power is cut. Each must be unchanged, absent or complete.
//! If the same command runs again, it must finish the work exactly.
//!
//! The tests stop the program at a chosen system call. This needs Linux and a C compiler. On other systems, most of the tests are skipped,
//! and print this. `LANEWAY_SOAK_KILLS=200` kills each kind of work at that many random moments (default 5). `LANEWAY_SOAK_FAILINGS=1` lets
//! every call fail in every way (default: one way per call).

mod failing_calls;
mod scene;
mod steps;
