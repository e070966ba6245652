//! Plans of very large transfers. A [`PlanTask`] makes a plan, or runs or checks its parts, on a thread of its own. Its
//! result is JSON, whose fields have the same names in every language.

use std::cell::Cell;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use laneway::{Client, ErrorKind, Location};
pub use laneway_plans::Stop;
use laneway_plans::{
    KeyRange, PartAction, PartState, Plan, PlanCheck, PlanIndex, PlanProgress, PlanRequest, PlanStatus,
    ResultRow, ResultSummary, RowOutcome, RunEvent, Runner, with_share,
};
use serde_json::{Value as Json, json};
use tokio::sync::mpsc;

use crate::failure::Failure;
use crate::options;
use crate::settings::BuiltClient;
use crate::value::{FromValue, InvalidValue, NamedValues, Value, ValueKind};

/// An action on plans.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlanTaskKind {
    /// Makes a plan that copies a prefix.
    Copy,
    /// Makes a plan that makes a prefix equal to another.
    Sync,
    /// Makes a plan that removes the objects below a prefix.
    Remove,
    /// Makes a plan that compares two prefixes.
    Verify,
    /// Opens a plan.
    Open,
    /// Runs a part.
    Run,
    /// Reads the state of the parts.
    Status,
    /// Compares parts with the destination.
    Check,
    /// Makes a plan that repeats the failed rows.
    Retry,
    /// Writes the outcome of each row to a file.
    Report,
}

impl PlanTaskKind {
    /// All actions.
    pub const ALL: [Self; 10] = [
        Self::Copy,
        Self::Sync,
        Self::Remove,
        Self::Verify,
        Self::Open,
        Self::Run,
        Self::Status,
        Self::Check,
        Self::Retry,
        Self::Report,
    ];

    /// Returns the action's name, which is the same in every language.
    pub fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Sync => "sync",
            Self::Remove => "remove",
            Self::Verify => "verify",
            Self::Open => "open",
            Self::Run => "run",
            Self::Status => "status",
            Self::Check => "check",
            Self::Retry => "retry",
            Self::Report => "report",
        }
    }

    /// Returns the action with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.name() == name)
    }
}

/// An option of actions on plans.
#[derive(Debug)]
pub struct PlanOption {
    /// The name, which is the same in every language.
    pub name: &'static str,
    /// The type of its values.
    pub kind: ValueKind,
    /// A description, usually in one sentence.
    pub meaning: &'static str,
    /// The actions that have the option.
    pub verbs: &'static [PlanTaskKind],
}

/// The term of a lease, if the host sets none.
const LEASE: Duration = Duration::from_secs(60);

const COPIES: &[PlanTaskKind] = &[PlanTaskKind::Copy, PlanTaskKind::Sync];
const MAKE: &[PlanTaskKind] =
    &[PlanTaskKind::Copy, PlanTaskKind::Sync, PlanTaskKind::Remove, PlanTaskKind::Verify];
const SYNC: &[PlanTaskKind] = &[PlanTaskKind::Sync];

macro_rules! plan_options {
    ($($name:ident, $kind:ident, $verbs:expr, $meaning:literal;)*) => {
        /// All options, in the order of their names. Sync rules and filters have the meanings that they have in jobs.
        pub static PLAN_OPTIONS: &[PlanOption] = &[$(PlanOption {
            name: stringify!($name),
            kind: ValueKind::$kind,
            meaning: $meaning,
            verbs: $verbs,
        },)*];
    };
}

plan_options! {
    after, Text, MAKE, "Plans only names after this one, relative to the prefix.";
    allow_empty, Flag, SYNC, "Lets `delete` remove everything when the source is empty.";
    bandwidth_limit, Number, COPIES, "The bytes a second that all runners together may use. It needs `runners`.";
    checksum, Flag, SYNC, "Compares objects of equal size by checksum, not by time.";
    delete, Flag, SYNC, "Removes objects from the destination that the source lacks, once all copies have succeeded.";
    destination, Place, &[PlanTaskKind::Copy, PlanTaskKind::Sync, PlanTaskKind::Verify], "The URL of the destination's prefix.";
    destination_inventory, Place, SYNC, "An inventory that is read instead of a listing of the destination.";
    dry_run, Flag, MAKE, "Only counts, and writes nothing.";
    extra, Flag, &[PlanTaskKind::Check], "Also reports objects at the destination that the plan doesn't name.";
    file, Place, &[PlanTaskKind::Report], "The file to write.";
    filters, Texts, MAKE, "Rules that select names.";
    folder, Place, &[
        PlanTaskKind::Copy, PlanTaskKind::Sync, PlanTaskKind::Remove, PlanTaskKind::Verify, PlanTaskKind::Open, PlanTaskKind::Retry,
    ], "The plan's folder: a path, or a URL of a prefix.";
    inventory, Place, MAKE, "An inventory that is read instead of a listing of the source. It must be sorted by key.";
    lease, Duration, &[PlanTaskKind::Run], "The time after which another runner repeats the part of a runner that has died.";
    max_delete, Number, SYNC, "Plans nothing if more objects than this would be removed.";
    max_size, Number, MAKE, "Takes only objects with at most this many bytes.";
    min_size, Number, MAKE, "Takes only objects with at least this many bytes.";
    newer, Time, MAKE, "Takes only objects that changed at this time or later.";
    no_clobber, Flag, &[PlanTaskKind::Copy], "Skips destinations that exist when a part runs.";
    older, Time, MAKE, "Takes only objects that changed before this time.";
    part, Number, &[PlanTaskKind::Run, PlanTaskKind::Check], "The number of the only part to run or check, counted from 0.";
    part_bytes, Number, MAKE, "Ends a part after objects of this total size.";
    part_rows, Number, MAKE, "Ends a part after this many objects.";
    runners, Number, COPIES, "The number of runners that share `bandwidth_limit`. Further runners wait.";
    single_runner, Flag, &[PlanTaskKind::Run], "Uses a store that ignores conditional writes. Nobody else may run the plan.";
    size_only, Flag, SYNC, "Compares sizes only.";
    source, Place, MAKE, "The URL of the prefix that is copied, removed or compared.";
    storage_class, Text, COPIES, "The storage class of the copies.";
    through, Text, MAKE, "Plans only names up to this one, relative to the prefix. Names that equal it are included.";
}

/// Returns the type of an option's values.
///
/// # Errors
/// Fails if the name isn't in the table.
pub fn kind_of(name: &str) -> Result<ValueKind, Failure> {
    let unknown = || Failure::usage(format!("{name}: plans have no such option"));
    PLAN_OPTIONS.iter().find(|option| option.name == name).map(|option| option.kind).ok_or_else(unknown)
}

/// A plan that was opened, and the client that opened it.
pub struct OpenPlan {
    built: BuiltClient,
    plan: Plan,
}

/// The object on which an action begins.
#[derive(Clone)]
pub enum PlanHost {
    /// A client, which makes or opens a plan.
    Client(Box<BuiltClient>),
    /// A plan that was opened.
    Plan(Arc<OpenPlan>),
}

impl PlanHost {
    /// Returns the client.
    pub fn client(&self) -> &Client {
        match self {
            Self::Client(built) => &built.client,
            Self::Plan(opened) => &opened.built.client,
        }
    }

    fn opened(&self) -> Result<Arc<OpenPlan>, Failure> {
        match self {
            Self::Client(_) => Err(Failure::internal("this action needs a plan")),
            Self::Plan(opened) => Ok(Arc::clone(opened)),
        }
    }
}

/// The result of a task.
pub struct PlanAnswer {
    /// The result as JSON. It is `null` if there was nothing to do.
    pub json: Json,
    /// The plan that the task has opened.
    pub opened: Option<Arc<OpenPlan>>,
}

/// Events of a task since the last call.
#[derive(Default)]
pub struct PlanEvents {
    /// Rows that failed, or that a check found fault with.
    pub rows: Vec<ResultRow>,
    /// Warnings.
    pub warnings: Vec<String>,
    /// The latest progress of planning.
    pub progress: Option<PlanProgress>,
    /// The result, once the task has ended.
    pub ended: Option<Result<PlanAnswer, Failure>>,
}

enum PlanEvent {
    Row(Box<ResultRow>),
    Warning(String),
    Progress(PlanProgress),
    Ended(Result<PlanAnswer, Failure>),
}

/// The number of events that wait for the host. If the host doesn't fetch them, the task pauses.
const EVENTS_MAX: usize = 1024;

/// An action on a plan, which runs on a thread of its own. Dropping it stops the action.
#[derive(Debug)]
pub struct PlanTask {
    events: mpsc::Receiver<PlanEvent>,
    stop: Stop,
}

impl PlanTask {
    /// Starts an action on a plan, or an action of a client that makes or opens a plan.
    ///
    /// # Errors
    /// Fails if the action doesn't have an option, if a value is invalid, or if the system refuses a thread.
    pub fn begin(host: &PlanHost, verb: PlanTaskKind, options: NamedValues) -> Result<Self, Failure> {
        let stop = Stop::default();
        let work = work(host, verb, PlanWishes::checked(verb, options)?)?;
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        let told = TaskReport { sender, stop: stop.clone() };
        let run = move || {
            let ended = work(&told);
            told.send(PlanEvent::Ended(ended));
        };
        let named = thread::Builder::new().name("laneway-plan".to_owned());
        named.spawn(run).map_err(|e| Failure::own(ErrorKind::Local, format!("a thread can't start: {e}")))?;
        Ok(Self { events, stop })
    }

    /// Returns the value that stops the action. A runner then gives up its part, so that another runner can take it
    /// at once. Planning and checks end soon. Other actions continue.
    pub fn stop(&self) -> &Stop {
        &self.stop
    }

    /// Waits for events, and returns those that have arrived.
    pub async fn next_events(&mut self) -> PlanEvents {
        let mut events = PlanEvents::default();
        let mut next = match self.events.recv().await {
            Some(event) => Some(event),
            None => {
                let why = "this task has ended, or runs in another process";
                events.ended = Some(Err(Failure::own(ErrorKind::Cancelled, why)));
                None
            }
        };
        while let Some(event) = next {
            match event {
                PlanEvent::Row(row) => events.rows.push(*row),
                PlanEvent::Warning(warning) => events.warnings.push(warning),
                PlanEvent::Progress(progress) => events.progress = Some(progress),
                PlanEvent::Ended(ended) => events.ended = Some(ended),
            }
            next = self.events.try_recv().ok().filter(|_| events.ended.is_none());
        }
        events
    }
}

impl Drop for PlanTask {
    fn drop(&mut self) {
        self.stop.stop();
    }
}

/// Passes the events of a task to its host.
struct TaskReport {
    sender: mpsc::Sender<PlanEvent>,
    stop: Stop,
}

impl TaskReport {
    /// Passes an event on. Does nothing if the host has dropped the task.
    fn send(&self, event: PlanEvent) {
        drop(self.sender.blocking_send(event));
    }

    fn row(&self, row: &ResultRow) {
        self.send(PlanEvent::Row(Box::new(row.clone())));
    }

    fn progress(&self, progress: PlanProgress) {
        self.send(PlanEvent::Progress(progress));
    }
}

/// The options of an action, of which each is taken once.
struct PlanWishes(NamedValues);

impl PlanWishes {
    fn checked(verb: PlanTaskKind, options: NamedValues) -> Result<Self, Failure> {
        for (name, _) in &options {
            let has = |option: &PlanOption| option.name == name && option.verbs.contains(&verb);
            if !PLAN_OPTIONS.iter().any(has) {
                let why = format!("{name}: the action {} of plans has no such option", verb.name());
                return Err(Failure::usage(why));
            }
        }
        Ok(Self(options))
    }

    fn take<T: FromValue>(&mut self, name: &str) -> Result<Option<T>, Failure> {
        let Some(at) = self.0.iter().position(|(known, _)| known == name) else { return Ok(None) };
        let (_, value): (_, Value) = self.0.swap_remove(at);
        value.read().map(Some).map_err(|why: InvalidValue| why.of(name))
    }

    fn need<T: FromValue>(&mut self, name: &str) -> Result<T, Failure> {
        self.take(name)?.ok_or_else(|| Failure::usage(format!("{name}: is missing")))
    }

    fn is(&mut self, name: &str) -> Result<bool, Failure> {
        Ok(self.take(name)?.unwrap_or_default())
    }

    /// Returns the request for a plan, from all options that are left.
    fn request(mut self, verb: PlanTaskKind) -> Result<PlanRequest, Failure> {
        let source: Location = self.need("source")?;
        let range = KeyRange::new(self.take("after")?, self.take("through")?);
        let inventory: Option<Location> = self.take("inventory")?;
        let (rows, bytes) = (self.take("part_rows")?, self.take("part_bytes")?);
        let to_inventory = self.take("destination_inventory")?;
        let (class, no_clobber) = (self.take("storage_class")?, self.is("no_clobber")?);
        let (limit, runners): (Option<u64>, Option<u64>) =
            (self.take("bandwidth_limit")?, self.take("runners")?);
        let runners = match (limit, runners) {
            (None, None) => None,
            (Some(1..), Some(runners @ 1..)) => Some(u32::try_from(runners).unwrap_or(u32::MAX)),
            _ => {
                let why = "a plan needs both runners and bandwidth_limit, or neither, and both at least 1";
                return Err(Failure::usage(format!("runners: {why}")));
            }
        };
        let mut request = match verb {
            PlanTaskKind::Sync => {
                let destination = self.need("destination")?;
                let mut sync = options::sync_request(source, destination, self.0)?;
                sync.inventory.clone_from(&inventory);
                PlanRequest::sync(sync)
            }
            verb => {
                let mut request = match verb {
                    PlanTaskKind::Copy => PlanRequest::copy(source, self.need("destination")?),
                    PlanTaskKind::Verify => PlanRequest::verify(source, self.need("destination")?),
                    _ => PlanRequest::remove(source),
                };
                request.filter = options::filter(self.0)?;
                request
            }
        };
        request.range = range;
        request.source_inventory = inventory;
        request.destination_inventory = to_inventory;
        request.part_rows = rows.unwrap_or(request.part_rows);
        request.part_bytes = bytes.unwrap_or(request.part_bytes);
        request.options.storage_class = class;
        request.options.bandwidth_limit = limit;
        request.options.runners = runners;
        request.options.no_clobber = no_clobber;
        Ok(request)
    }
}

type PlanWork = Box<dyn FnOnce(&TaskReport) -> Result<PlanAnswer, Failure> + Send>;

/// Returns the function that carries an action out. It blocks.
fn work(host: &PlanHost, verb: PlanTaskKind, mut wishes: PlanWishes) -> Result<PlanWork, Failure> {
    Ok(match verb {
        PlanTaskKind::Copy | PlanTaskKind::Sync | PlanTaskKind::Remove | PlanTaskKind::Verify => {
            let folder: Option<Location> = wishes.take("folder")?;
            let is_dry = wishes.is("dry_run")?;
            let folder = match (folder, is_dry) {
                (_, true) => None,
                (Some(folder), false) => Some(folder),
                (None, false) => return Err(Failure::usage("folder: is missing")),
            };
            let (mut request, client) = (wishes.request(verb)?, host.client().clone());
            Box::new(move |told| {
                request.stop = told.stop.clone();
                let progress = |progress| told.progress(progress);
                let totals = match folder {
                    Some(folder) => request.plan(&client, &folder, &progress)?,
                    None => request.dry_run(&client, &progress)?,
                };
                done(json!({
                    "objects": totals.objects,
                    "bytes": totals.bytes,
                    "removed": totals.removed,
                    "parts": totals.parts,
                    "resumed_rows": totals.resumed_rows,
                }))
            })
        }
        PlanTaskKind::Open => {
            let folder: Location = wishes.need("folder")?;
            let built = match host {
                PlanHost::Client(built) => (**built).clone(),
                PlanHost::Plan(opened) => opened.built.clone(),
            };
            Box::new(move |_| {
                let plan = Plan::open(&built.client, &folder)?;
                let json = json_of(plan.index())?;
                Ok(PlanAnswer { json, opened: Some(Arc::new(OpenPlan { built, plan })) })
            })
        }
        PlanTaskKind::Run => {
            let opened = host.opened()?;
            let (part, lease) = (wishes.take("part")?, wishes.take("lease")?);
            let is_single = wishes.is("single_runner")?;
            Box::new(move |told| run(&opened, part, lease, is_single, told))
        }
        PlanTaskKind::Status => {
            let opened = host.opened()?;
            Box::new(move |_| done(status(&PlanStatus::read(&opened.plan)?)))
        }
        PlanTaskKind::Check => {
            let opened = host.opened()?;
            let (part, has_extra): (Option<usize>, _) = (wishes.take("part")?, wishes.is("extra")?);
            Box::new(move |told| check(&opened.plan, part, has_extra, told))
        }
        PlanTaskKind::Retry => {
            let opened = host.opened()?;
            let folder: Location = wishes.need("folder")?;
            Box::new(move |_| {
                let index = laneway_plans::retry(&opened.built.client, &opened.plan, &folder)?;
                done(index.as_ref().map_or(Json::Null, totals_of))
            })
        }
        PlanTaskKind::Report => {
            let opened = host.opened()?;
            let file: OsString = wishes.need("file")?;
            Box::new(move |_| {
                let failed = |e: std::io::Error| {
                    let name = file.to_string_lossy().into_owned();
                    let why = format!("{name}: the report can't be written: {e}");
                    let system_code = e.raw_os_error();
                    // A missing local file also counts as not found.
                    let is_missing = e.kind() == std::io::ErrorKind::NotFound;
                    let kind = if is_missing { ErrorKind::NotFound } else { ErrorKind::Local };
                    Failure { url: Some(name), system_code, ..Failure::own(kind, why) }
                };
                let mut to = BufWriter::new(File::create(&file).map_err(failed)?);
                let rows = laneway_plans::write_report(&opened.plan, &mut to)?;
                to.flush().map_err(failed)?;
                done(json!(rows))
            })
        }
    })
}

/// Returns a row as JSON.
pub fn row_json(row: &ResultRow) -> Json {
    serde_json::to_value(row).unwrap_or_default()
}

fn done(json: Json) -> Result<PlanAnswer, Failure> {
    Ok(PlanAnswer { json, opened: None })
}

fn json_of(value: &impl serde::Serialize) -> Result<Json, Failure> {
    serde_json::to_value(value).map_err(|e| Failure::internal(&e.to_string()))
}

/// Runs a part, or the next one that is free. The result is `null` if none is left.
fn run(
    opened: &OpenPlan,
    part: Option<usize>,
    lease: Option<Duration>,
    is_single: bool,
    told: &TaskReport,
) -> Result<PlanAnswer, Failure> {
    let OpenPlan { built, plan } = opened;
    let ran = with_share(plan, lease.unwrap_or(LEASE), &told.stop, |share| {
        let client = match share {
            Some(share) => built.within(share)?,
            None => built.client.clone(),
        };
        let runner = if is_single { Runner::single(&client, plan) } else { Runner::new(&client, plan)? };
        let runner = runner.term(lease.unwrap_or(LEASE)).stop(told.stop.clone());
        let number = Cell::new(part);
        let events = |event: RunEvent<'_>| match event {
            RunEvent::Begun(begun, _) => number.set(Some(begun)),
            RunEvent::Row(row) if row.outcome == RowOutcome::Failed => told.row(row),
            RunEvent::Warning(warning) => told.send(PlanEvent::Warning(warning.to_string())),
            _ => {}
        };
        let result: Option<ResultSummary> = match part {
            Some(part) => Some(runner.run_part(part, &events)?),
            None => runner.run_next(&events)?,
        };
        let Some(result) = result else { return Ok(Json::Null) };
        let mut json = json_of(&result)?;
        if let Json::Object(fields) = &mut json {
            fields.insert("number".to_owned(), json!(number.get()));
        }
        Ok::<_, Failure>(json)
    })?;
    match ran.transpose()? {
        Some(json) if !json.is_null() || !told.stop.is_stopped() => done(json),
        _ => Err(Failure::own(ErrorKind::Cancelled, "the runner was stopped")),
    }
}

/// Returns the state of a plan, with the names that `laneway plan status --json` uses.
fn status(status: &PlanStatus) -> Json {
    let states: Vec<_> = status
        .parts
        .iter()
        .map(|part| match part {
            PartState::Waiting => "waiting",
            PartState::Running(..) => "running",
            PartState::Expired(..) => "expired",
            PartState::GivenUp(_) => "given_up",
            PartState::Ended(_) => "ended",
            _ => "unknown",
        })
        .collect();
    let count = |state| states.iter().filter(|known| **known == state).count();
    json!({
        "parts": states.len(),
        "ended": count("ended"),
        "running": count("running"),
        "expired": count("expired"),
        "given_up": count("given_up"),
        "done": status.rows_done,
        "skipped": status.rows_skipped,
        "failed": status.rows_failed,
        "left": status.rows_left,
        "bytes_done": status.bytes_done,
        "bytes_left": status.bytes_left,
        "seconds": status.seconds,
        "failures": status.failures,
        "states": states,
    })
}

/// Compares parts with the destination.
fn check(
    plan: &Plan,
    part: Option<usize>,
    has_extra: bool,
    told: &TaskReport,
) -> Result<PlanAnswer, Failure> {
    let parts = part.map_or(0..plan.parts().len(), |part| part..part.saturating_add(1));
    let mut check = PlanCheck::default();
    for part in parts {
        if told.stop.is_stopped() {
            return Err(Failure::own(ErrorKind::Cancelled, "the check was stopped"));
        }
        check.add(&PlanCheck::of_part(plan, part, &mut |row| {
            if has_extra || row.class.as_deref() != Some("extra") {
                told.row(row);
            }
        })?);
    }
    done(json!({
        "is_clean": check.is_clean(),
        "same": check.same,
        "unverified": check.unverified,
        "missing": check.missing,
        "different": check.different,
        "left": check.left,
        "extra": check.extra,
    }))
}

fn totals_of(index: &PlanIndex) -> Json {
    let sum = |is_removal: bool, of: fn(&laneway_plans::PartEntry) -> u64| -> u64 {
        let chosen = index.parts.iter().filter(|part| (part.action == PartAction::Remove) == is_removal);
        chosen.map(of).sum()
    };
    json!({
        "objects": sum(false, |part| part.rows),
        "bytes": sum(false, |part| part.bytes),
        "removed": sum(true, |part| part.rows),
        "parts": index.parts.len(),
        "resumed_rows": 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(verb: PlanTaskKind, options: &[(&str, Value)]) -> Result<PlanTask, String> {
        let settings = vec![("anonymous".to_owned(), Value::Flag(true))];
        let host = PlanHost::Client(Box::new(
            BuiltClient::new(settings, None, |builder| builder).expect("a client"),
        ));
        let options = options.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        PlanTask::begin(&host, verb, options).map_err(|failure| failure.message)
    }

    #[test]
    fn refuses_an_option_that_the_action_has_no_use_for() {
        let refused = begun(PlanTaskKind::Remove, &[("no_clobber", Value::Flag(true))]).unwrap_err();
        assert_eq!(refused, "no_clobber: the action remove of plans has no such option");
        assert!(begun(PlanTaskKind::Copy, &[("colour", Value::Flag(true))]).is_err());
    }

    #[test]
    fn every_action_names_the_option_that_it_lacks() {
        let place = |text: &str| Value::Place(text.into());
        for (verb, options, lacking) in [
            (PlanTaskKind::Copy, vec![], "folder"),
            (PlanTaskKind::Copy, vec![("folder", place("p"))], "source"),
            (PlanTaskKind::Sync, vec![("folder", place("p")), ("source", place("s3://a/"))], "destination"),
            (PlanTaskKind::Open, vec![], "folder"),
        ] {
            assert_eq!(begun(verb, &options).unwrap_err(), format!("{lacking}: is missing"));
        }
        let shared = [("folder", place("p")), ("source", place("s3://a/")), ("runners", Value::Number(2))];
        assert!(begun(PlanTaskKind::Copy, &shared).unwrap_err().contains("needs both"));
        assert!(begun(PlanTaskKind::Run, &[]).unwrap_err().contains("needs a plan"));
    }

    #[test]
    fn actions_have_names_and_their_options_one_kind() {
        for verb in PlanTaskKind::ALL {
            assert_eq!(PlanTaskKind::named(verb.name()), Some(verb));
        }
        // A filter or a rule of syncs has the same kind in jobs.
        for option in PLAN_OPTIONS.iter().filter(|option| option.verbs == SYNC || option.verbs == MAKE) {
            if let Ok(kind) = options::kind_of(option.name) {
                assert_eq!(kind, option.kind, "{}", option.name);
            }
        }
    }
}
