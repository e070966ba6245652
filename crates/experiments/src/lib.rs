//! The measurements that Laneway comes from, as runnable benchmarks.
//!
//! Each experiment is a module with a plan, a `run` that blocks until it is done, and typed results: [`ladder`] (many
//! small files up), [`slices`] (one object down), [`mixed`] (small objects beside bulk), [`commit`]
//! (read-modify-writes), [`clean`] (deletes), [`list`] (listings), [`ranges`] (many ranges of an object) and [`links`] (small objects beside bulk over many
//! links). [`Table`] is what people are shown of a result, [`report`] makes a page of several; printing is the program's.
//!
//! The invariant: a rival is never handicapped. It is fresh but competent code over the crates that anybody would take,
//! its clock leaves out what a program can have done before (reading CA files, finding credentials), and a row without
//! all its objects in their place is a failure and has no time.
//!
//! What this crate deliberately does not do: its rivals share no code with the engine that they are measured against.
//! They and the counting of what arrived stand on hyper alone.

mod access;
mod arrivals;
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
mod proc;
mod program;
mod random;
pub mod ranges;
pub mod report;
mod rival;
pub mod room;
mod site;
pub mod slices;
mod stage;
mod stock;
mod stop;
mod table;
mod trace;
mod trust;
mod turns;
mod usage;
pub mod verdict;

pub use arrivals::parse_arrivals;
pub use counted::{Bench, Counted, Figures};
pub use errand::{Workers, carry_out};
pub use error::{Error, Failure};
pub use latency::Latencies;
pub use place::{Imitated, Remote, Target};
pub use rival::{Error as RivalError, Tally};
pub use stage::Left;
pub use stop::Stop;
pub use table::{Line, Table};
pub use trace::{Role, Span, Trace};
pub use turns::{Compared, Event, Measure, Row, Runs};
pub use usage::Usage;
