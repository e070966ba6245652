//! `laneway plan run` and `laneway plan status`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{IsTerminal as _, stderr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;
use laneway::{Client, Location};
use laneway_plans::{PartState, Plan, PlanStatus, ResultSummary, RowOutcome, RunEvent, Runner, Stop};
use laneway_quantity as quantity;
use serde::Serialize;

use super::{parts_of, print_row, rows_of};
use crate::context::{Context, complain, say};
use crate::exit::Exit;
use crate::job::Interrupt;

/// Run the parts of a plan that no other process runs
///
/// Each part is claimed by a lease in the plan's folder. If a runner dies, its lease expires, and another runner repeats the part. Without
/// --part, the command runs parts until none is left.
#[derive(Args, Debug)]
pub(super) struct RunPlan {
    /// The plan's folder
    #[arg(value_name = "DIR")]
    folder: OsString,
    /// Run only this part, counted from 0
    ///
    /// If the part has ended, this only shows its result. If another runner holds it, this waits until the part has ended or the lease has expired.
    ///
    /// Example: laneway plan run plan --part 17
    #[arg(long, value_name = "N")]
    part: Option<usize>,
    /// Run one part, and end
    ///
    /// Example: laneway plan run plan --one
    #[arg(long, conflicts_with_all = ["part", "workers"])]
    one: bool,
    // Running until none is left is the default. The option exists for scripts that say so.
    #[arg(long, hide = true, conflicts_with = "part")]
    next: bool,
    /// Run N parts at the same time
    ///
    /// Example: laneway plan run plan --workers 4
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64), conflicts_with = "part")]
    workers: u16,
    /// Let another runner repeat a part if its runner has not renewed its lease for TIME [default: 1m]
    ///
    /// Example: laneway plan run plan --lease 5m
    #[arg(hide_short_help = true, long, value_name = "TIME", value_parser = lease)]
    lease: Option<Duration>,
    /// Use a store that ignores conditional writes; nobody else may run the plan
    ///
    /// Example: laneway plan run --single-runner plan
    #[arg(hide_short_help = true, long, conflicts_with = "workers")]
    single_runner: bool,
}

/// Show the state of a plan's parts
///
/// The exit status is 1 if rows have failed. On a terminal, --watch shows the state until all parts have ended.
#[derive(Args, Debug)]
pub(super) struct ShowPlan {
    /// The plan's folder
    #[arg(value_name = "DIR")]
    folder: OsString,
    /// Show the state again and again, until all parts have ended
    ///
    /// Example: laneway plan status --watch plan
    #[arg(long)]
    watch: bool,
}

fn lease(text: &str) -> Result<Duration, String> {
    let term = quantity::parse_duration(text).map_err(|e| e.to_string())?;
    match (Duration::from_secs(3)..=Duration::from_secs(24 * 60 * 60)).contains(&term) {
        true => Ok(term),
        false => Err("a lease lasts between 3s and 1d".to_owned()),
    }
}

/// A part that has ended, as the record of kind `part`.
#[derive(Serialize, Debug)]
struct EndedPartRecord<'a> {
    kind: &'static str,
    number: usize,
    #[serde(flatten)]
    result: &'a ResultSummary,
}

/// The state of a plan, as the record of kind `plan-status`.
#[derive(Serialize, Debug)]
struct StatusRecord<'a> {
    kind: &'static str,
    parts: usize,
    ended: usize,
    running: usize,
    expired: usize,
    given_up: usize,
    done: u64,
    skipped: u64,
    failed: u64,
    left: u64,
    bytes_done: u64,
    bytes_left: u64,
    failures: &'a BTreeMap<String, u64>,
}

impl RunPlan {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let plan = Plan::open(&context.client()?, &Location::parse(&self.folder)?)?;
        let stop = Stop::default();
        let stopped = stop.clone();
        let _interrupt = Interrupt::listen(move || {
            stopped.stop();
            complain("stopping; press Ctrl-C again to stop at once");
        })?;
        let lease = self.lease.unwrap_or(LEASE);
        let ran = laneway_plans::with_share(&plan, lease, &stop, |share| {
            self.run_parts(context, &plan, &stop, share)
        })?;
        ran.unwrap_or(Ok(Exit::Interrupted))
    }

    /// Runs parts, with at most `share` bytes a second.
    fn run_parts(
        &self,
        context: &Context,
        plan: &Plan,
        stop: &Stop,
        share: Option<u64>,
    ) -> anyhow::Result<Exit> {
        let client = context.client_within(share)?;
        let runner = || -> anyhow::Result<Runner<'_>> {
            let runner = match self.single_runner {
                true => Runner::single(&client, plan),
                false => Runner::new(&client, plan)?,
            };
            Ok(runner.term(self.lease.unwrap_or(LEASE)).stop(stop.clone()))
        };
        let totals = Mutex::new(RunTotals::default());
        let events = |event: RunEvent<'_>| {
            totals.lock().unwrap_or_else(PoisonError::into_inner).note(context, &event);
        };
        let work = || -> anyhow::Result<()> {
            let runner = runner()?;
            if let Some(part) = self.part {
                return Ok(runner.run_part(part, &events).map(drop)?);
            }
            while runner.run_next(&events)?.is_some() && !self.one {}
            Ok(())
        };
        let ended = std::thread::scope(|scope| {
            let others: Vec<_> = (1..self.workers).map(|_| scope.spawn(work)).collect();
            let mut ended = work();
            for other in others {
                let other = other.join().unwrap_or_else(|_| Err(anyhow::anyhow!("a worker has ended early")));
                ended = ended.and(other);
            }
            ended
        });
        if !stop.is_stopped() {
            ended?;
        }
        let totals = totals.into_inner().unwrap_or_else(PoisonError::into_inner);
        totals.end(context, plan)?;
        context.print_stats(&client)?;
        if stop.is_stopped() {
            return Ok(Exit::Interrupted);
        }
        let is_given_up = |part: &PartState| matches!(part, PartState::GivenUp(_));
        let is_alone = self.part.is_some() || self.one;
        let has_given_up = !is_alone && PlanStatus::read(plan)?.parts.iter().any(is_given_up);
        if has_given_up {
            complain(
                "some parts were given up, because their runners always died; see `laneway plan status`",
            );
        }
        Ok(if totals.failed > 0 || has_given_up { Exit::Failed } else { Exit::Done })
    }
}

/// The term of a lease, if the command line has none.
const LEASE: Duration = Duration::from_secs(60);

/// The totals of the parts that this process has run.
#[derive(Default)]
struct RunTotals {
    parts: u64,
    done: u64,
    skipped: u64,
    failed: u64,
    bytes: u64,
    /// The first error of the output, after which nothing more is printed.
    unprinted: Option<std::io::Error>,
}

impl RunTotals {
    fn note(&mut self, context: &Context, event: &RunEvent<'_>) {
        let options = &context.options;
        let printed = match event {
            RunEvent::Row(row) if row.outcome == RowOutcome::Failed => print_row(context, row),
            RunEvent::Warning(warning) => {
                context.complain(&format!("warning: {warning}"));
                Ok(())
            }
            RunEvent::Ended(part, result) => {
                self.parts += 1;
                self.done += result.done;
                self.skipped += result.skipped;
                self.failed += result.failed;
                self.bytes += result.bytes;
                match (options.json, options.quiet) {
                    (true, _) => {
                        context.output.json(&EndedPartRecord { kind: "part", number: *part, result })
                    }
                    (false, true) => Ok(()),
                    (false, false) => {
                        let failed = if result.failed > 0 {
                            format!(", {} failed", result.failed)
                        } else {
                            String::new()
                        };
                        say(&format!(
                            "part {part}: {} done{failed} in {:.1} s",
                            rows_of(result.done + result.skipped),
                            result.seconds
                        ));
                        Ok(())
                    }
                }
            }
            RunEvent::Waiting(parts) if !options.quiet && !options.json => {
                say(&format!("waiting for {} that other runners hold", parts_of(*parts)));
                Ok(())
            }
            _ => Ok(()),
        };
        if let Err(error) = printed {
            self.unprinted.get_or_insert(error);
        }
    }

    fn end(&self, context: &Context, plan: &Plan) -> anyhow::Result<()> {
        if let Some(error) = &self.unprinted {
            return Err(std::io::Error::new(error.kind(), error.to_string()).into());
        }
        if !context.options.json && !context.options.quiet {
            let failed = if self.failed > 0 { format!(", {} failed", self.failed) } else { String::new() };
            say(&format!(
                "{} of {} run: {} done{failed}, {}",
                parts_of(self.parts as usize),
                plan.parts().len(),
                rows_of(self.done + self.skipped),
                quantity::size(self.bytes)
            ));
        }
        Ok(())
    }
}

/// The pause between two looks at a plan's state.
const LOOK: Duration = Duration::from_secs(2);

impl ShowPlan {
    pub(super) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let client: Client = context.client()?;
        let plan = Plan::open(&client, &Location::parse(&self.folder)?)?;
        let begun = Instant::now();
        let mut before = None;
        loop {
            let status = PlanStatus::read(&plan)?;
            let rate = before.map(|(then, rows): (Instant, u64)| {
                (status.rows_done.saturating_sub(rows)) as f64 / then.elapsed().as_secs_f64().max(0.001)
            });
            before.get_or_insert((begun, status.rows_done));
            let is_given_up = |part: &&PartState| matches!(part, PartState::GivenUp(_));
            let given_up = status.parts.iter().filter(is_given_up).count();
            let is_over = status.parts_ended() + given_up == status.parts.len();
            let is_last = is_over || !self.watch;
            if is_last || context.options.json || stderr().is_terminal() {
                show(context, &status, rate)?;
            }
            if is_last {
                return Ok(if status.rows_failed > 0 || given_up > 0 { Exit::Failed } else { Exit::Done });
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// Prints the state of a plan. `rate` is the number of rows a second since the first look.
fn show(context: &Context, status: &PlanStatus, rate: Option<f64>) -> std::io::Result<()> {
    let count = |is: fn(&PartState) -> bool| status.parts.iter().filter(|part| is(part)).count();
    let running = count(|part| matches!(part, PartState::Running(..)));
    let expired = count(|part| matches!(part, PartState::Expired(..)));
    let given_up = count(|part| matches!(part, PartState::GivenUp(_)));
    let (parts, ended) = (status.parts.len(), status.parts_ended());
    if context.options.json {
        return context.output.json(&StatusRecord {
            kind: "plan-status",
            parts,
            ended,
            running,
            expired,
            given_up,
            done: status.rows_done,
            skipped: status.rows_skipped,
            failed: status.rows_failed,
            left: status.rows_left,
            bytes_done: status.bytes_done,
            bytes_left: status.bytes_left,
            failures: &status.failures,
        });
    }
    let rows = status.rows_done + status.rows_skipped + status.rows_failed;
    context.output.line(&format!(
        "parts: {ended} of {parts} ended, {running} running, {expired} expired, {given_up} given up"
    ))?;
    context.output.line(&format!(
        "rows: {rows} of {} ended, {} failed; {} moved",
        rows + status.rows_left,
        status.rows_failed,
        quantity::size(status.bytes_done)
    ))?;
    if let Some(rate) = rate.filter(|rate| *rate > 0.0 && status.rows_left > 0) {
        let left = Duration::from_secs_f64(status.rows_left as f64 / rate);
        context.output.line(&format!("{rate:.0} rows a second, {} left", quantity::duration(left)))?;
    }
    for (class, count) in &status.failures {
        context.output.line(&format!("failed as {class}: {count}"))?;
    }
    for (number, part) in status.parts.iter().enumerate() {
        match part {
            PartState::Expired(runner, attempt) => context.output.line(&format!(
                "part {number}: its runner {runner} is gone (attempt {attempt}); another runner repeats it"
            ))?,
            PartState::GivenUp(attempts) => context.output.line(&format!(
                "part {number}: {attempts} runners have died on it; `laneway plan run --part {number} DIR` runs it alone"
            ))?,
            _ => {}
        }
    }
    context.output.flush()
}
