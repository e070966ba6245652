//! Benchmarks that compare Laneway with other methods.
//!
//! Each experiment is a module with a plan, a blocking `run`, and typed results. An experiment compares several methods: Laneway's own and
//! those of rivals. In the code, a method is called a rung. The experiments are:
//!
//! - [`ladder`] measures uploads of many small files
//! - [`slices`] measures the download of one object
//! - [`mixed`] measures small objects that are moved at the same time as large ones
//! - [`commit`] measures read-modify-writes
//! - [`clean`] measures deletes
//! - [`list`] measures listings
//! - [`ranges`] measures many ranges of an object
//! - [`links`] does the same as `mixed` over many links
//!
//! [`Table`] formats a result as human-readable text, and [`report`] makes a page of several results. The calling
//! program prints both.
//!
//! Invariant: no rival is handicapped. Each rival is competent code on popular crates. A rival's time excludes preparation, such as reading
//! CA files and finding credentials. A method gets a time only if all its objects arrived; otherwise it counts as failed.
//!
//! The rivals deliberately share no code with Laneway's engine. The rivals use hyper, and so does the code that checks the results.

mod access;
pub mod clean;
pub mod commit;
mod counted;
mod errand;
mod error;
pub mod ladder;
mod latency;
pub mod links;
pub mod list;
pub mod mixed;
mod place;
mod program;
mod random;
pub mod ranges;
pub mod report;
mod rival;
pub mod room;
mod site;
pub mod slices;
mod stage;
mod table;
mod trace;
mod turns;
mod usage;
pub mod verdict;

pub use counted::{Bench, Counted, Figures};
pub use errand::{Stop, Workers, carry_out};
pub use error::{Error, Failure};
pub use latency::Latencies;
pub use place::{Imitated, Remote, Target};
pub use random::parse_arrivals;
pub use rival::{Error as RivalError, Tally};
pub use stage::Left;
pub use table::{Line, Table, seconds};
pub use trace::{Role, Span, Trace};
pub use turns::{Compared, Event, Measure, Repeats, Row, Runs};
pub use usage::Usage;
