//! What becomes of files and objects when the program is killed, the disk fails or the power goes: each of them is as it was, absent or as it
//! is to be, and the same command again ends exactly right.
//!
//! Programs are stopped by counting their system calls, which needs a C compiler and Linux; elsewhere most of this is left out, and says so.
//! `LANEWAY_SOAK_KILLS=200` kills each kind of work at so many random moments (5 else), `LANEWAY_SOAK_FAILINGS=1` has every call fail in
//! every way (else in one each).

mod failing_calls;
mod power_cuts;
mod scene;
mod steps;
