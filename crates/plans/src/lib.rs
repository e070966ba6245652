//! Plans of very large transfers. A plan divides a copy, sync, removal or comparison of two prefixes into parts of
//! some 100,000 objects. Any number of processes, on any number of machines, run the parts. They need no manager:
//! each part is claimed by a lease in the plan's folder. Each part that has ended has a result there, which names
//! the outcome of each object. So the work can be interrupted anywhere, and its outcome can be proven.
//!
//! [`PlanRequest`] makes a plan, [`Plan`] opens one, [`Runner`] runs its parts, and [`PlanStatus`], [`PlanCheck`]
//! and [`retry`] look at what became of it. `docs/plans.md` describes the files of a plan.
//!
//! All functions block the calling thread. Don't call them on a thread that runs async tasks.
//!
//! ```
//! # let server = laneway_server::Server::start(laneway_server::Config::default()).expect("a server");
//! # ["lake", "copy"].map(|bucket| server.create_bucket(bucket).expect("a bucket"));
//! # let client = laneway::Client::builder().anonymous(true).s3_endpoint(server.url()).build()?;
//! # client.bucket("s3://lake/")?.put("logs/1", "one").call()?;
//! # let folder = tempfile::tempdir().expect("a folder");
//! # let folder = laneway::Location::from(folder.path().join("plan"));
//! use laneway_plans::{Plan, PlanKind, PlanRequest, PlanStatus, Runner};
//!
//! let request = PlanRequest::copy("s3://lake/logs/".parse()?, "s3://copy/logs/".parse()?);
//! request.plan(&client, &folder, &|_| {})?;
//!
//! let plan = Plan::open(&client, &folder)?;
//! let runner = Runner::new(&client, &plan)?;
//! while runner.run_next(&|_| {})?.is_some() {}
//! assert_eq!(PlanStatus::read(&plan)?.rows_done, 1);
//! # assert_eq!(plan.index().kind, PlanKind::Copy);
//! # Ok::<(), laneway::Error>(())
//! ```

mod check;
mod claim;
mod files;
mod format;
#[cfg(test)]
mod model;
mod names;
mod part;
mod plan;
mod planner;
mod runner;
mod status;

pub use check::PlanCheck;
pub use format::{
    KeyRange, PartAction, PartEntry, PlanIndex, PlanKind, PlanOptions, ResultRow, ResultSummary, RowOutcome,
};
pub use plan::Plan;
pub use planner::{PlanProgress, PlanRequest, PlanTotals};
pub use runner::{RunEvent, Runner, Stop, with_share};
pub use status::{PartState, PlanStatus, retry, write_report};
