//! Benchmarks of Laneway beside other methods.
//!
//! Each experiment is a module with a plan, a `run` that blocks until it is done, and typed results. They are [`ladder`] (many
//! small files up), [`slices`] (one object down), [`mixed`] (small objects beside bulk), [`commit`] (read-modify-writes),
//! [`clean`] (deletes), [`list`] (listings), [`ranges`] (many ranges of an object), and [`links`] (small objects beside bulk over
//! many links). A [`Table`] shows a result to people, and [`report`] makes a page of several. The program prints them.
//!
//! The invariant: a rival is never handicapped. It is competent code over well-kept crates. Its clock leaves out what a program
//! can do before, such as reading CA files and finding credentials. A row without all its objects in place is a failure
//! and has no time.
//!
//! Rivals deliberately share no code with the engine. They stand on hyper alone, and so does the check of what arrived.

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
pub use table::{Line, Table, seconds};
pub use trace::{Role, Span, Trace};
pub use turns::{Compared, Event, Measure, Repeats, Row, Runs};
pub use usage::Usage;
