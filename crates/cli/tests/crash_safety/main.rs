//! Files and objects after the program is killed, the disk fails or the power goes. Each is unchanged, absent or complete, and the same
//! command run again ends exactly right.
//!
//! The tests stop the program at a chosen system call. This needs Linux and a C compiler. On other systems, most of the tests are skipped,
//! and print this. `LANEWAY_SOAK_KILLS=200` kills each kind of work at that many random moments (default 5). `LANEWAY_SOAK_FAILINGS=1` lets
//! every call fail in every way (default: one way per call).

mod failing_calls;
mod power_cuts;
mod scene;
mod steps;
