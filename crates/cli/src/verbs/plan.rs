//! `laneway plan`: divides a very large transfer into parts, and checks the outcome. `running` runs the parts.

mod running;

use std::cell::Cell;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, IsTerminal as _, Write as _, stderr};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use clap::{Args, Subcommand};
use laneway::dialect::{RequestPrices, capabilities_of};
use laneway::{Location, SyncRequest};
use laneway_plans::{KeyRange, Plan, PlanCheck, PlanProgress, PlanRequest, PlanTotals, ResultRow, Stop};
use laneway_quantity as quantity;
use serde::Serialize;

use crate::arguments::filters::FilterOptions;
use crate::context::{Context, complain, say};
use crate::exit::{BadUsage, Exit};
use crate::job::Interrupt;
use running::{RunPlan, ShowPlan};

/// Divide a very large transfer into parts that many machines can run
///
/// A plan is a folder, local or in a bucket, that lists every object with its version and checksum. Any number of processes run its parts:
/// `laneway plan run DIR`. They need no manager, and may be killed at any time. `laneway plan status DIR` shows their state, and
/// `laneway plan verify DIR` compares the plan with the destination.
#[derive(Args, Debug)]
pub(crate) struct PlanVerb {
    #[command(subcommand)]
    action: PlanAction,
}

#[derive(Subcommand, Debug)]
enum PlanAction {
    Cp(CopyPlan),
    Sync(SyncPlan),
    Rm(RemovePlan),
    Verify(VerifyPlan),
    Run(RunPlan),
    Status(ShowPlan),
    Retry(RetryPlan),
    Report(ReportPlan),
}

/// Plan a copy of everything below a prefix
///
/// The copies go where `cp -r` puts them.
#[derive(Args, Debug)]
struct CopyPlan {
    /// Prefix, such as s3://bucket/prefix
    #[arg(value_name = "SRC")]
    source: OsString,
    /// Prefix that receives the copies
    #[arg(value_name = "DST")]
    destination: OsString,
    /// Skip objects that exist at DST
    ///
    /// Example: laneway plan cp --no-clobber s3://my-bucket/data gs://other-bucket/ --parts plan
    #[arg(long)]
    no_clobber: bool,
    /// Give the copies this storage class
    ///
    /// Example: laneway plan cp --storage-class NEARLINE s3://my-bucket/data gs://other-bucket/ --parts plan
    #[arg(long, value_name = "CLASS")]
    storage_class: Option<String>,
    #[command(flatten)]
    share: ShareOptions,
    #[command(flatten)]
    options: PlanningOptions,
}

/// Plan a sync between two prefixes
///
/// The plan compares objects as `sync` does, but only by what the listings show: sizes, times, and with --checksum checksums. If they don't
/// show whether two objects are equal, the object is copied. With --delete, the parts that remove objects only run once every copy has succeeded.
#[derive(Args, Debug)]
struct SyncPlan {
    /// Prefix, such as s3://bucket/prefix
    #[arg(value_name = "SRC")]
    source: OsString,
    /// Prefix that becomes equal to SRC
    #[arg(value_name = "DST")]
    destination: OsString,
    /// Remove objects from DST that SRC lacks
    ///
    /// Example: laneway plan sync --delete s3://my-bucket/data gs://other-bucket/data --parts plan
    #[arg(long)]
    delete: bool,
    /// Plan nothing if more than N objects would be removed
    ///
    /// With --range, N is the limit of each range.
    ///
    /// Example: laneway plan sync --delete --max-delete 1000 s3://a/data s3://b/data --parts plan
    #[arg(long, value_name = "N", requires = "delete")]
    max_delete: Option<u64>,
    /// Let --delete remove everything when SRC is empty
    ///
    /// Example: laneway plan sync --delete --allow-empty s3://a/data s3://b/data --parts plan
    #[arg(long, requires = "delete")]
    allow_empty: bool,
    /// Compare contents by checksum, not times
    ///
    /// Example: laneway plan sync -c s3://a/data s3://b/data --parts plan
    #[arg(long, short)]
    checksum: bool,
    /// Compare sizes only
    ///
    /// Example: laneway plan sync --size-only s3://a/data s3://b/data --parts plan
    #[arg(long, conflicts_with = "checksum")]
    size_only: bool,
    #[command(flatten)]
    share: ShareOptions,
    #[command(flatten)]
    options: PlanningOptions,
}

/// Plan the removal of everything below a prefix
///
/// An object is only removed if it still has the version that was planned.
#[derive(Args, Debug)]
struct RemovePlan {
    /// Prefix, such as s3://bucket/prefix
    #[arg(value_name = "URL")]
    target: OsString,
    #[command(flatten)]
    options: PlanningOptions,
}

/// Compare a plan with its destination; with SRC, DST and --parts, plan a comparison
///
/// Each object that is missing or differs is an error, and the exit status is then 1. With --part, only one part is compared, so that many
/// machines can share the work.
#[derive(Args, Debug)]
struct VerifyPlan {
    /// The plan's folder; with --parts, the prefix to compare
    #[arg(value_name = "DIR|SRC")]
    first: OsString,
    /// Prefix to compare with SRC, with --parts
    #[arg(value_name = "DST", requires = "parts")]
    destination: Option<OsString>,
    /// Compare only this part of the plan, counted from 0
    ///
    /// Example: laneway plan verify plan --part 17
    #[arg(long, value_name = "N", conflicts_with = "parts")]
    part: Option<usize>,
    /// Also print objects that are no faults: those that the plan doesn't name, and those that were replaced instead of removed
    ///
    /// Example: laneway plan verify --extra plan
    #[arg(long, conflicts_with = "parts")]
    extra: bool,
    /// Write the plan to this folder, which may be in a bucket
    ///
    /// Example: laneway plan verify s3://my-bucket/data gs://other-bucket/data --parts plan
    #[arg(long, value_name = "DIR", requires = "destination")]
    parts: Option<OsString>,
    #[command(flatten)]
    sources: SourceOptions,
}

/// The bandwidth that the runners of a plan share.
#[derive(Args, Debug, Default)]
struct ShareOptions {
    /// Number of runners that share the bandwidth of --bandwidth-limit
    ///
    /// Each runner takes one of N leases, and uses an Nth of the bandwidth. So all runners together never use more. Further runners wait.
    ///
    /// Example: laneway plan cp --bandwidth-limit 1GB/s --runners 16 s3://a/data gs://b/data --parts plan
    #[arg(long, value_name = "N")]
    runners: Option<u32>,
}

/// The options of every action that makes a plan.
#[derive(Args, Debug)]
struct PlanningOptions {
    /// Write the plan to this folder, which may be in a bucket
    ///
    /// Example: laneway plan cp s3://my-bucket/data gs://other-bucket/data --parts s3://my-bucket/plans/1
    #[arg(long, value_name = "DIR", required_unless_present = "dry_run")]
    parts: Option<OsString>,
    /// Print what the plan would do, and write nothing
    ///
    /// Example: laneway plan rm --dry-run s3://my-bucket/old
    #[arg(long, short = 'n', alias = "dryrun")]
    dry_run: bool,
    #[command(flatten)]
    sources: SourceOptions,
}

/// The objects of a plan, and the sizes of its parts.
#[derive(Args, Debug)]
struct SourceOptions {
    /// Read the objects from an inventory instead of listing the source
    ///
    /// FILE|URL is the manifest.json of S3 Inventory or of a Storage Insights report, or the output of `ls -r --json`, which may be
    /// compressed. The inventory must be sorted by key.
    ///
    /// Example: laneway plan cp --inventory manifest.json s3://my-bucket/data gs://other-bucket/data --parts plan
    #[arg(hide_short_help = true, long, value_name = "FILE|URL")]
    inventory: Option<OsString>,
    /// Plan only the names after FROM, up to and including TO
    ///
    /// Names are relative to the prefix. FROM or TO may be empty. Other machines plan the other ranges into the same folder.
    ///
    /// Example: laneway plan cp --range 2025..2026 s3://my-bucket/data gs://other-bucket/data --parts plan
    #[arg(hide_short_help = true, long, value_name = "FROM..TO", value_parser = range)]
    range: Option<KeyRange>,
    /// End a part after N objects [default: 100000]
    ///
    /// Example: laneway plan rm --part-rows 1000000 s3://my-bucket/old --parts plan
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    part_rows: Option<u64>,
    /// End a part after objects of this total size [default: 256GiB]
    ///
    /// Example: laneway plan cp --part-bytes 1TiB s3://my-bucket/data gs://other-bucket/data --parts plan
    #[arg(hide_short_help = true, long, value_name = "SIZE", value_parser = quantity::parse_size)]
    part_bytes: Option<u64>,
    #[command(flatten)]
    filters: FilterOptions,
}

/// Make a plan that repeats the failed rows of another
///
/// The new plan leaves out objects that are gone, and copies the present versions of the others.
#[derive(Args, Debug)]
struct RetryPlan {
    /// The plan's folder
    #[arg(value_name = "DIR")]
    folder: OsString,
    /// Write the new plan to this folder
    ///
    /// Example: laneway plan retry plan --parts plan-2
    #[arg(long, value_name = "DIR")]
    parts: OsString,
    // Only failed rows can be repeated. The option exists for scripts that say so.
    #[arg(long, hide = true)]
    failed: bool,
}

/// Write the outcome of each row to a file, as S3 Batch Operations do
///
/// The file is CSV without a header. Its columns are Bucket, Key, VersionId, TaskStatus, ErrorCode, HTTPStatusCode, ResultMessage.
#[derive(Args, Debug)]
struct ReportPlan {
    /// The plan's folder
    #[arg(value_name = "DIR")]
    folder: OsString,
    /// File to write
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

fn range(text: &str) -> Result<KeyRange, String> {
    let (from, to) =
        text.split_once("..").ok_or("write a range as FROM..TO, where FROM or TO may be empty")?;
    let bound = |name: &str| Some(name.to_owned()).filter(|name| !name.is_empty());
    Ok(KeyRange::new(bound(from), bound(to)))
}

/// A plan that was made, or would be made, as the record of kind `plan`.
#[derive(Serialize, Debug)]
struct PlanRecord<'a> {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    folder: Option<&'a str>,
    objects: u64,
    bytes: u64,
    removed: u64,
    parts: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dry_run: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    requests: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    list_price: Option<f64>,
}

/// A row that failed, or that a check found fault with, as the record of kind `row`.
#[derive(Serialize, Debug)]
struct RowRecord<'a> {
    kind: &'static str,
    #[serde(flatten)]
    row: &'a ResultRow,
}

/// The outcome of a check, as the record of kind `plan-check`.
#[derive(Serialize, Debug)]
struct CheckRecord {
    kind: &'static str,
    same: u64,
    unverified: u64,
    missing: u64,
    different: u64,
    left: u64,
    replaced: u64,
    extra: u64,
}

impl PlanVerb {
    pub(crate) fn run(self, context: &Context) -> anyhow::Result<Exit> {
        match self.action {
            PlanAction::Cp(plan) => plan.make(context),
            PlanAction::Sync(plan) => plan.make(context),
            PlanAction::Rm(plan) => {
                let request = PlanRequest::remove(Location::parse(&plan.target)?);
                plan.options.make(context, request)
            }
            PlanAction::Verify(plan) => plan.run(context),
            PlanAction::Run(plan) => plan.run(context),
            PlanAction::Status(plan) => plan.run(context),
            PlanAction::Retry(plan) => {
                let client = context.client()?;
                let old = Plan::open(&client, &Location::parse(&plan.folder)?)?;
                let folder = Location::parse(&plan.parts)?;
                match laneway_plans::retry(&client, &old, &folder)? {
                    Some(index) => {
                        let totals = index.parts.iter().fold(PlanTotals::default(), |mut totals, part| {
                            match part.action {
                                laneway_plans::PartAction::Remove => totals.removed += part.rows,
                                _ => {
                                    totals.objects += part.rows;
                                    totals.bytes += part.bytes;
                                }
                            }
                            totals.parts += 1;
                            totals
                        });
                        tell(context, &totals, Some(&folder.to_string()))?;
                    }
                    None => context.complain("nothing has failed, so no plan was made"),
                }
                Ok(Exit::Done)
            }
            PlanAction::Report(plan) => {
                let client = context.client()?;
                let opened = Plan::open(&client, &Location::parse(&plan.folder)?)?;
                let failed =
                    |e| BadUsage::of(plan.file.display().to_string(), format!("can't be written: {e}"));
                let mut file = BufWriter::new(File::create(&plan.file).map_err(failed)?);
                let rows = laneway_plans::write_report(&opened, &mut file)?;
                file.flush().map_err(failed)?;
                if rows < opened.index().rows {
                    context.complain(&format!(
                        "{} of the plan have no outcome yet",
                        rows_of(opened.index().rows - rows)
                    ));
                }
                if !context.options.quiet {
                    say(&format!("{} written", rows_of(rows)));
                }
                Ok(Exit::Done)
            }
        }
    }
}

fn rows_of(count: u64) -> String {
    quantity::count(count, "row", "rows")
}

fn parts_of(count: usize) -> String {
    quantity::count(count as u64, "part", "parts")
}

impl CopyPlan {
    fn make(self, context: &Context) -> anyhow::Result<Exit> {
        let mut request =
            PlanRequest::copy(Location::parse(&self.source)?, Location::parse(&self.destination)?);
        request.options.no_clobber = self.no_clobber;
        request.options.storage_class = self.storage_class;
        self.share.apply(context, &mut request)?;
        self.options.make(context, request)
    }
}

impl SyncPlan {
    fn make(self, context: &Context) -> anyhow::Result<Exit> {
        let sync = SyncRequest::new(Location::parse(&self.source)?, Location::parse(&self.destination)?);
        let mut sync = sync
            .delete(self.delete)
            .allow_empty(self.allow_empty)
            .checksum(self.checksum)
            .size_only(self.size_only)
            .filter(self.options.sources.filters.filter(SystemTime::now())?);
        sync.max_delete = self.max_delete;
        sync.inventory = self.options.sources.inventory.as_deref().map(Location::parse).transpose()?;
        let mut request = PlanRequest::sync(sync);
        self.share.apply(context, &mut request)?;
        self.options.make(context, request)
    }
}

impl ShareOptions {
    /// Divides the bandwidth limit of the command line among the plan's runners.
    fn apply(&self, context: &Context, request: &mut PlanRequest) -> anyhow::Result<()> {
        let limit = context.options.bandwidth_limit;
        match (self.runners, limit) {
            (Some(0), _) => Err(BadUsage::new("--runners needs at least 1").into()),
            (Some(_), None) => {
                Err(BadUsage::new("--runners needs --bandwidth-limit, which the runners share").into())
            }
            (None, Some(_)) => {
                let why = "--bandwidth-limit of a plan needs --runners, the number of runners that share it; \
                           to limit one runner, give --bandwidth-limit to `plan run`";
                Err(BadUsage::new(why).into())
            }
            (runners, limit) => {
                request.options.runners = runners;
                request.options.bandwidth_limit = limit;
                Ok(())
            }
        }
    }
}

impl PlanningOptions {
    fn make(self, context: &Context, request: PlanRequest) -> anyhow::Result<Exit> {
        let Self { parts, dry_run, sources } = self;
        let request = sources.applied(request)?;
        match (parts, dry_run) {
            (Some(folder), false) => made(context, &request, &Location::parse(&folder)?),
            _ => {
                let client = context.client()?;
                let progress = ProgressLine::new(context);
                let totals = request.dry_run(&client, &|progressed| progress.show(progressed))?;
                progress.clear();
                tell(context, &totals, None)?;
                context.print_stats(&client)?;
                Ok(Exit::Done)
            }
        }
    }
}

impl SourceOptions {
    fn is_used(&self) -> bool {
        let Self { inventory, range, part_rows, part_bytes, filters } = self;
        inventory.is_some()
            || range.is_some()
            || part_rows.is_some()
            || part_bytes.is_some()
            || !filters.is_empty()
    }

    /// Adds the options to a request.
    ///
    /// # Errors
    /// Fails for an age such as `--newer 7d`. The same command would mean other objects when it continues the plan, or on another machine.
    fn applied(self, mut request: PlanRequest) -> anyhow::Result<PlanRequest> {
        if self.filters.has_age() {
            return Err(
                BadUsage::new("a plan needs a date or time for --newer and --older, not an age").into()
            );
        }
        request.filter = self.filters.filter(SystemTime::now())?;
        request.source_inventory = self.inventory.as_deref().map(Location::parse).transpose()?;
        request.range = self.range.unwrap_or_default();
        request.part_rows = self.part_rows.unwrap_or(request.part_rows);
        request.part_bytes = self.part_bytes.unwrap_or(request.part_bytes);
        Ok(request)
    }
}

fn made(context: &Context, request: &PlanRequest, folder: &Location) -> anyhow::Result<Exit> {
    let client = context.client()?;
    let progress = ProgressLine::new(context);
    let totals = request.plan(&client, folder, &|progressed| progress.show(progressed))?;
    progress.clear();
    tell(context, &totals, Some(&folder.to_string()))?;
    context.print_stats(&client)?;
    Ok(Exit::Done)
}

/// Prints the totals of a plan. Without a folder, the plan was only counted.
fn tell(context: &Context, totals: &PlanTotals, folder: Option<&str>) -> anyhow::Result<()> {
    let PlanTotals { objects, bytes, removed, parts, .. } = *totals;
    let estimate = totals.providers.filter(|_| folder.is_none()).map(|(from, to)| {
        let prices = |provider| capabilities_of(provider).map_or(RequestPrices::FREE, |can| can.prices);
        let reads = if from == to { 0 } else { objects };
        let requests = reads + objects + removed;
        let price = (reads as f64 * prices(from).reads
            + objects as f64 * prices(to).writes
            + removed as f64 * prices(to).deletes)
            / 1e3;
        (requests, price)
    });
    if context.options.json {
        let record = PlanRecord {
            kind: "plan",
            folder,
            objects,
            bytes,
            removed,
            parts,
            dry_run: folder.is_none(),
            requests: estimate.map(|(requests, _)| requests),
            list_price: estimate.map(|(_, price)| price),
        };
        return Ok(context.output.json(&record)?);
    }
    if context.options.quiet {
        return Ok(());
    }
    let removals = if removed > 0 { format!(", {removed} to remove") } else { String::new() };
    let size = quantity::size(bytes);
    let (objects_shown, parts) = (quantity::count(objects, "object", "objects"), parts_of(parts as usize));
    say(&format!("{objects_shown}, {size}{removals}, in {parts}"));
    match (folder, estimate) {
        (Some(folder), _) => say(&format!("to run the plan: laneway plan run {folder}")),
        (None, Some((requests, price))) => {
            // One machine has moved some thousand small objects a second, and 1 GB/s of large ones.
            let seconds = (objects + removed) as f64 / 2000.0 + bytes as f64 / 1e9;
            let time = quantity::duration(Duration::from_secs_f64(seconds));
            say(&format!(
                "at least {requests} requests, which cost ${price:.2} at list prices without egress; \
                 {time} at 2,000 objects a second and 1 GB/s"
            ));
        }
        (None, None) => {}
    }
    Ok(())
}

/// Draws a line of progress on a terminal.
struct ProgressLine {
    is_shown: bool,
    drawn: Cell<Option<Instant>>,
}

impl ProgressLine {
    fn new(context: &Context) -> Self {
        Self { is_shown: context.shows_progress() && stderr().is_terminal(), drawn: Cell::new(None) }
    }

    fn show(&self, progress: PlanProgress) {
        let is_due = self.drawn.get().is_none_or(|drawn| drawn.elapsed() > Duration::from_millis(200));
        if self.is_shown && is_due {
            self.drawn.set(Some(Instant::now()));
            eprint!(
                "\r\x1b[K{} objects listed, {} in the plan, {} parts",
                progress.listed,
                rows_of(progress.rows),
                progress.parts
            );
        }
    }

    fn clear(&self) {
        if self.drawn.get().is_some() {
            eprint!("\r\x1b[K");
        }
    }
}

impl VerifyPlan {
    fn run(self, context: &Context) -> anyhow::Result<Exit> {
        let first = Location::parse(&self.first)?;
        if let (Some(destination), Some(folder)) = (&self.destination, &self.parts) {
            let request = self.sources.applied(PlanRequest::verify(first, Location::parse(destination)?))?;
            return made(context, &request, &Location::parse(folder)?);
        }
        if self.sources.is_used() {
            return Err(BadUsage::new(
                "filters, --inventory, --range and the sizes of parts need SRC, DST and --parts",
            )
            .into());
        }
        let client = context.client()?;
        let plan = Plan::open(&client, &first)?;
        let stop = Stop::default();
        let stopped = stop.clone();
        let _interrupt = Interrupt::listen(move || stopped.stop())?;
        let parts = match self.part {
            Some(part) => part..part + 1,
            None => 0..plan.parts().len(),
        };
        let mut check = PlanCheck::default();
        let mut unprinted = Ok(());
        for part in parts {
            if stop.is_stopped() {
                return Ok(Exit::Interrupted);
            }
            check.add(&PlanCheck::of_part(&plan, part, &mut |row| {
                let is_fault = !matches!(row.class.as_deref(), Some("extra" | "replaced"));
                if unprinted.is_ok() && (self.extra || is_fault) {
                    unprinted = print_row(context, row);
                }
            })?);
        }
        unprinted?;
        let PlanCheck { same, unverified, missing, different, left, replaced, extra, .. } = check.clone();
        if context.options.json {
            let kind = "plan-check";
            context.output.json(&CheckRecord {
                kind,
                same,
                unverified,
                missing,
                different,
                left,
                replaced,
                extra,
            })?;
        } else if !context.options.quiet {
            let counts = [
                (unverified, "by size only"),
                (missing, "missing"),
                (different, "different"),
                (left, "not removed"),
                (replaced, "replaced since, so not removed"),
                (extra, "extra at the destination"),
            ];
            let counts: String = counts
                .iter()
                .filter(|(count, _)| *count > 0)
                .map(|(count, what)| format!(", {count} {what}"))
                .collect();
            say(&format!("{} as planned{counts}", rows_of(same)));
        }
        context.print_stats(&client)?;
        Ok(if check.is_clean() { Exit::Done } else { Exit::Failed })
    }
}

/// Prints a row that failed.
fn print_row(context: &Context, row: &ResultRow) -> std::io::Result<()> {
    if context.options.json {
        return context.output.json(&RowRecord { kind: "row", row });
    }
    let why = row.error.as_deref().unwrap_or_default();
    complain(&if why.contains(&row.url) { why.to_owned() } else { format!("{}: {why}", row.url) });
    Ok(())
}
