//! Runs the parts of a plan.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use laneway::{
    Canceller, CopyRequest, Error, ErrorKind, Event, Item, Job, Outcome, PutOptions, RemoveRequest, Verified,
    Warning,
};

use crate::check::compare;
use crate::claim::{ClaimOutcome, Lease, StoreClock, TERM_MAX, check_conditions};
use crate::files::PlanFiles;
use crate::format::{
    FORMAT, PartAction, PartEntry, PlanKind, ResultRow, ResultSummary, RowOutcome, VERSION, local, refused,
    usage,
};
use crate::part::{LinesWriter, fetch};
use crate::plan::Plan;
use crate::status::{result_name, results};

/// The term of a lease, unless the caller sets another. A part whose runner dies waits this long for the next one.
pub(crate) const TERM: Duration = Duration::from_secs(60);
/// The shortest term. Stores report times in whole seconds.
const TERM_MIN: Duration = Duration::from_secs(3);
/// The part of a term after which a runner looks again at parts that other runners hold: every five seconds.
const LOOKS_A_TERM: u32 = 12;

/// The number of claimed parts that a runner looks at before it waits again. At the end of a plan, many runners look for
/// work, and each part that is left has a lease.
const CLAIMS_A_LOOK: usize = 8;

/// The parts of a plan without a result.
struct LeftParts {
    free: Vec<usize>,
    claimed: Vec<usize>,
}

/// Stops runners.
#[derive(Clone, Default, Debug)]
pub struct Stop(Arc<StopState>);

#[derive(Default, Debug)]
struct StopState {
    stopped: Mutex<StopTargets>,
    changed: Condvar,
}

#[derive(Default, Debug)]
struct StopTargets {
    is_stopped: bool,
    job: Option<Canceller>,
    children: Vec<Weak<StopState>>,
}

impl Stop {
    /// Stops all runners that have this value, and returns at once. Each gives up its part, so that another runner
    /// can take it at once.
    pub fn stop(&self) {
        let (job, children) = {
            let mut state = self.state();
            state.is_stopped = true;
            (state.job.take(), std::mem::take(&mut state.children))
        };
        if let Some(job) = job {
            job.cancel();
        }
        children.iter().filter_map(Weak::upgrade).for_each(|child| Self(child).stop());
        self.0.changed.notify_all();
    }

    /// Returns whether the runners were stopped.
    pub fn is_stopped(&self) -> bool {
        self.state().is_stopped
    }

    fn state(&self) -> MutexGuard<'_, StopTargets> {
        self.0.stopped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a value that is stopped together with this one, and can be stopped alone.
    fn child(&self) -> Self {
        let child = Self::default();
        let mut state = self.state();
        child.state().is_stopped = state.is_stopped;
        state.children.retain(|child| child.strong_count() > 0);
        state.children.push(Arc::downgrade(&child.0));
        child
    }

    /// Also cancels this job when it is stopped.
    fn cancels(&self, job: Canceller) {
        let mut state = self.state();
        match state.is_stopped {
            true => job.cancel(),
            false => state.job = Some(job),
        }
    }

    /// Waits until the runners are stopped, or a time has passed.
    fn wait(&self, time: Duration) {
        drop(self.0.changed.wait_timeout_while(self.state(), time, |state| !state.is_stopped));
    }
}

/// An event of a runner.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunEvent<'a> {
    /// A part begins. The numbers are the part's and that of its attempt.
    Begun(usize, u32),
    /// A row has ended.
    Row(&'a ResultRow),
    /// The job of a part has a warning.
    Warning(&'a Warning),
    /// A part has ended, now or before.
    Ended(usize, &'a ResultSummary),
    /// The other parts are held by other runners. The runner looks again after a pause.
    Waiting(usize),
}

/// A runner of a plan's parts.
#[derive(Debug)]
pub struct Runner<'a> {
    plan: &'a Plan,
    client: laneway::Client,
    name: String,
    term: Duration,
    single: bool,
    stop: Stop,
    seed: u64,
    /// True once all copies of a sync are known to have succeeded.
    has_copied: AtomicBool,
}

/// Returns a name that no other process uses.
pub(crate) fn random_name() -> String {
    let random = RandomState::new().hash_one((std::process::id(), Instant::now()));
    format!("{random:016x}")
}

impl<'a> Runner<'a> {
    /// Returns a runner, and checks that the store of the plan's folder keeps the conditions of writes.
    ///
    /// # Errors
    /// `ErrorKind::Unsupported` if the store ignores conditions, so that two runners could take the same part; else the
    /// errors of the store.
    pub fn new(client: &laneway::Client, plan: &'a Plan) -> Result<Self, Error> {
        let runner = Self::single(client, plan);
        check_conditions(&*plan.files, &runner.name)?;
        Ok(Self { single: false, ..runner })
    }

    /// Returns a runner for a plan that no other runner works on. It works with stores that ignore the conditions of
    /// writes.
    pub fn single(client: &laneway::Client, plan: &'a Plan) -> Self {
        let name = random_name();
        let seed = RandomState::new().hash_one(&name);
        Self {
            plan,
            client: client.clone(),
            name,
            term: TERM,
            single: true,
            stop: Stop::default(),
            seed,
            has_copied: AtomicBool::new(false),
        }
    }

    /// Sets the term of the leases: three seconds at least, a day at most. If the runner dies, its part waits this long for
    /// another runner.
    #[must_use]
    pub fn term(mut self, term: Duration) -> Self {
        self.term = term.clamp(TERM_MIN, TERM_MAX);
        self
    }

    /// Sets the value that stops the runner.
    #[must_use]
    pub fn stop(mut self, stop: Stop) -> Self {
        self.stop = stop;
        self
    }

    /// Returns the runner's name in leases and results.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs the part with a number, unless it has a result. If another runner holds the part, waits until that runner has
    /// ended the part or lost its lease. Returns the part's result, whoever has run it.
    ///
    /// # Errors
    /// `ErrorKind::Refused` if the part's file was changed. Also if this part removes objects, and copies haven't ended.
    /// `ErrorKind::Cancelled` if the runner was stopped. Else the errors that concern the whole part.
    pub fn run_part(&self, number: usize, events: &dyn Fn(RunEvent<'_>)) -> Result<ResultSummary, Error> {
        let entry = self.plan.part(number)?;
        while !self.stop.is_stopped() {
            if let Some(result) = results(self.plan, number)? {
                events(RunEvent::Ended(number, &result));
                return Ok(result);
            }
            if entry.action == PartAction::Remove && self.plan.index().kind == PlanKind::Sync {
                self.check_copies()?;
            }
            let clock = StoreClock::new(&*self.plan.files, &self.name);
            match Lease::take(&clock, &claim_name(entry), (&self.name, self.term), true)? {
                ClaimOutcome::Taken(lease) => {
                    if let Some(result) = self.run(number, entry, lease, events)? {
                        return Ok(result);
                    }
                }
                ClaimOutcome::Held | ClaimOutcome::GivenUp => events(RunEvent::Waiting(1)),
            }
            self.stop.wait(self.term / LOOKS_A_TERM);
        }
        Err(self.stopped())
    }

    fn stopped(&self) -> Error {
        laneway::internal::error(ErrorKind::Cancelled, self.plan.folder(), "the runner was stopped")
    }

    /// Runs a part that has no result and that no other runner holds. If other runners hold all such parts, waits until
    /// they end or their leases expire. Returns `None` once every part has a result, once the runner was stopped, or
    /// once only parts are left whose runners always died.
    ///
    /// # Errors
    /// Fails as [`run_part`](Self::run_part) does.
    pub fn run_next(&self, events: &dyn Fn(RunEvent<'_>)) -> Result<Option<ResultSummary>, Error> {
        let (mut looks, mut given_up) = (0, BTreeSet::new());
        while !self.stop.is_stopped() {
            let LeftParts { free, mut claimed } = self.left()?;
            claimed.retain(|number| !given_up.contains(number));
            if free.is_empty() && claimed.is_empty() {
                return Ok(None);
            }
            // Runners that look at the parts in different orders seldom want the same one.
            let turned = |parts: &[usize], most: usize| -> Vec<usize> {
                let start = (self.seed.wrapping_add(looks) % parts.len().max(1) as u64) as usize;
                parts.iter().cycle().skip(start).take(parts.len().min(most)).copied().collect()
            };
            let mut held = claimed.len();
            let clock = StoreClock::new(&*self.plan.files, &self.name);
            for number in turned(&free, usize::MAX).into_iter().chain(turned(&claimed, CLAIMS_A_LOOK)) {
                if self.stop.is_stopped() {
                    return Ok(None);
                }
                let entry = self.plan.part(number)?;
                match Lease::take(&clock, &claim_name(entry), (&self.name, self.term), false)? {
                    ClaimOutcome::Taken(lease) => {
                        // The part may have ended after this runner looked for its result.
                        let ended = match results(self.plan, number)? {
                            Some(_) => None,
                            None => self.run(number, entry, lease, events)?,
                        };
                        match ended {
                            Some(result) => return Ok(Some(result)),
                            None => held = 0,
                        }
                        break;
                    }
                    ClaimOutcome::Held => {}
                    ClaimOutcome::GivenUp => {
                        given_up.insert(number);
                    }
                }
            }
            looks += CLAIMS_A_LOOK as u64;
            if held > 0 {
                events(RunEvent::Waiting(held));
                self.stop.wait(self.term / LOOKS_A_TERM);
            }
        }
        Ok(None)
    }

    /// Returns the parts without a result that may run now.
    fn left(&self) -> Result<LeftParts, Error> {
        let files = &*self.plan.files;
        // List the leases first. A part that ends in between then counts as ended.
        let (claims, ended) = (files.list("claims/")?, files.list("results/")?);
        let parts = self.plan.parts();
        let left =
            parts.iter().enumerate().filter(|(_, entry)| ended.binary_search(&result_name(entry)).is_err());
        let mut left: Vec<(usize, &PartEntry)> = left.collect();
        let is_removal = |(_, entry): &(usize, &PartEntry)| entry.action == PartAction::Remove;
        if self.plan.index().kind == PlanKind::Sync && left.iter().any(is_removal) {
            match left.iter().position(is_removal) {
                Some(copies) if copies > 0 => left.truncate(copies),
                _ => self.check_copies()?,
            }
        }
        let is_claimed = |(_, entry): &(usize, &PartEntry)| claims.binary_search(&claim_name(entry)).is_ok();
        let (claimed, free): (Vec<_>, Vec<_>) = left.into_iter().partition(is_claimed);
        let numbers = |parts: Vec<(usize, &PartEntry)>| parts.into_iter().map(|(number, _)| number).collect();
        Ok(LeftParts { free: numbers(free), claimed: numbers(claimed) })
    }

    /// Checks that all copies of a sync have succeeded, before anything is removed.
    fn check_copies(&self) -> Result<(), Error> {
        if self.has_copied.load(Ordering::Relaxed) {
            return Ok(());
        }
        for (number, _) in
            self.plan.parts().iter().enumerate().filter(|(_, part)| part.action == PartAction::Copy)
        {
            let why = match results(self.plan, number)? {
                None => format!("part {number}, which copies objects, hasn't ended yet"),
                Some(result) if result.failed > 0 => {
                    format!(
                        "{} of the copies of part {number} have failed; repeat them with `laneway plan retry`",
                        result.failed
                    )
                }
                Some(_) => continue,
            };
            return Err(refused(self.plan.folder(), format!("nothing is removed, because {why}")));
        }
        self.has_copied.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Runs a part, whose lease this runner holds. Returns `None` if another runner has taken the lease over.
    fn run(
        &self,
        number: usize,
        entry: &PartEntry,
        lease: Lease,
        events: &dyn Fn(RunEvent<'_>),
    ) -> Result<Option<ResultSummary>, Error> {
        let files = &*self.plan.files;
        let attempt = lease.attempt();
        events(RunEvent::Begun(number, attempt));
        let part_stop = self.stop.child();
        let lease = Mutex::new(Some(lease));
        let renewing = &lease;
        let (ran, renewals) = thread::scope(|scope| {
            let renewal = scope.spawn(|| renew(files, renewing, self.term, &part_stop));
            let ran = self.rows(entry, (number, attempt), &part_stop, events);
            part_stop.stop();
            (ran, renewal.join().unwrap_or(RenewalEnd::Stopped))
        });
        let lease = lease.into_inner().unwrap_or_else(PoisonError::into_inner);
        let summary = match (ran, renewals) {
            (Ok(summary), _) => summary,
            (Err(_), RenewalEnd::TakenOver) => return Ok(None),
            (Err(_), RenewalEnd::Failed(error)) => return Err(error),
            (Err(error), RenewalEnd::Stopped) => {
                if let Some(lease) = lease {
                    // The error of the part matters more than one of the lease, which then expires.
                    drop(lease.give_up(files));
                }
                return Err(error);
            }
        };
        if conclude(files, &result_name(entry), &summary, self.single)? {
            events(RunEvent::Ended(number, &summary));
            return Ok(Some(summary));
        }
        match results(self.plan, number)? {
            Some(result) => Ok(Some(result)),
            None => Err(refused(files.shown(&result_name(entry)), "was removed while the plan runs")),
        }
    }

    /// Runs the rows of a part, and writes their outcomes to a file of the plan.
    fn rows(
        &self,
        entry: &PartEntry,
        (number, attempt): (usize, u32),
        part_stop: &Stop,
        events: &dyn Fn(RunEvent<'_>),
    ) -> Result<ResultSummary, Error> {
        let files: &dyn PlanFiles = &*self.plan.files;
        let begun = Instant::now();
        let mut outcomes = Outcomes { lines: LinesWriter::begin()?, tally: OutcomeCount::default(), events };
        let mut requests = 0;
        if entry.rows > 0 || entry.action == PartAction::Verify {
            let part = fetch(files, &entry.name, (entry.size, &entry.crc32c))?;
            if entry.action == PartAction::Verify {
                compare(self.plan, entry, part.path(), &mut |row| outcomes.add(&row))?;
            } else {
                let (job, target) = self.job(entry, part.path())?;
                part_stop.cancels(job.canceller());
                let shown = files.shown(&entry.name);
                requests = follow(job, (&target, entry.rows, &shown), &mut outcomes)?;
            }
        }
        let OutcomeCount { done, skipped, failed, unverified, bytes, failures } = outcomes.tally;
        let rows = done + skipped + failed;
        if part_stop.is_stopped() {
            return Err(self.stopped());
        }
        let is_whole = rows == entry.rows || (entry.action == PartAction::Verify && rows > entry.rows);
        if !is_whole {
            let why = format!(
                "part {number} has {} rows, but only {rows} have an outcome; run the part again",
                entry.rows
            );
            return Err(refused(self.plan.folder(), why));
        }
        let data = outcomes.lines.finish()?;
        let name = format!("{}-{}-{attempt}.jsonl.zst", result_stem(entry), self.name);
        files.put_file(&name, data.file.path())?;
        Ok(ResultSummary {
            format: FORMAT.to_owned(),
            version: VERSION,
            part: entry.name.clone(),
            part_crc32c: entry.crc32c.clone(),
            data: name,
            data_size: data.size,
            data_crc32c: data.crc32c,
            runner: self.name.clone(),
            attempt,
            rows,
            done,
            skipped,
            failed,
            unverified,
            bytes,
            requests,
            seconds: (begun.elapsed().as_secs_f64() * 1e3).round() / 1e3,
            failures,
        })
    }

    /// Starts the job that carries out a part. The part is the inventory of the job. Also returns the URL of the prefix
    /// that the inventory describes.
    fn job(&self, entry: &PartEntry, part: &std::path::Path) -> Result<(Job, String), Error> {
        let (source, destination) = (self.plan.source()?, self.plan.destination()?);
        let options = &self.plan.index().options;
        match entry.action {
            PartAction::Copy => {
                let mut put = PutOptions::default();
                put.storage_class.clone_from(&options.storage_class);
                let target = source.to_string();
                let request = CopyRequest::new(vec![source], destination).recursive(true).contents(true);
                let request = request.no_clobber(options.no_clobber).put(put).inventory(part.to_path_buf());
                Ok((self.client.copy(request), target))
            }
            PartAction::Remove => {
                let target = if self.plan.index().kind == PlanKind::Sync { destination } else { source };
                let shown = target.to_string();
                let request = RemoveRequest::new(vec![target]).recursive(true).missing_is_fine(true);
                Ok((self.client.remove(request.inventory(part.to_path_buf())), shown))
            }
            PartAction::Verify => Err(usage(&entry.name, "is compared, and needs no job")),
        }
    }
}

/// Writes the result of a part, whose data file is written already. If another runner has ended the same part before, its
/// result counts. Then removes the data file and returns false.
pub(crate) fn conclude(
    files: &dyn PlanFiles,
    name: &str,
    summary: &ResultSummary,
    is_single: bool,
) -> Result<bool, Error> {
    let json = serde_json::to_vec_pretty(summary).map_err(|e| local("a result", e))?;
    let is_first = match is_single {
        true => files.put(name, &json).map(|()| true),
        false => files.create(name, &json).map(|created| created.is_some()),
    }?;
    if !is_first {
        files.remove(&summary.data)?;
    }
    Ok(is_first)
}

/// The end of the renewals of a lease.
#[derive(Debug)]
pub(crate) enum RenewalEnd {
    /// The work has ended, or was stopped.
    Stopped,
    /// Another runner has taken the lease over.
    TakenOver,
    /// The store couldn't be reached for so long that the lease is about to expire.
    Failed(Error),
}

/// Renews a lease until `stop` is stopped. If the lease is lost, stops it.
pub(crate) fn renew(
    files: &dyn PlanFiles,
    lease: &Mutex<Option<Lease>>,
    term: Duration,
    stop: &Stop,
) -> RenewalEnd {
    let mut renewed = Instant::now();
    loop {
        stop.wait(term / 4);
        if stop.is_stopped() {
            return RenewalEnd::Stopped;
        }
        let begun = Instant::now();
        let mut lease = lease.lock().unwrap_or_else(PoisonError::into_inner);
        let end = match lease.as_mut().map(|held| held.renew(files)) {
            Some(Ok(true)) => {
                renewed = begun;
                continue;
            }
            Some(Err(_)) if renewed.elapsed() < term / 2 => continue,
            Some(Err(error)) => RenewalEnd::Failed(error),
            Some(Ok(false)) => RenewalEnd::TakenOver,
            None => RenewalEnd::Stopped,
        };
        *lease = None;
        stop.stop();
        return end;
    }
}

/// Runs `run` with this process's share of the plan's bandwidth in bytes a second, or `None` if the plan has no limit.
/// The share is a lease, so all processes together never use more than the plan's limit. While all shares are taken,
/// waits for one. Returns `None` if `stop` was stopped before.
///
/// # Errors
/// The errors of the store that holds the leases.
pub fn with_share<T>(
    plan: &Plan,
    term: Duration,
    stop: &Stop,
    run: impl FnOnce(Option<u64>) -> T,
) -> Result<Option<T>, Error> {
    let options = &plan.index().options;
    let (Some(limit), Some(runners)) = (options.bandwidth_limit, options.runners) else {
        return Ok(Some(run(None)));
    };
    let (files, name) = (&*plan.files, random_name());
    let lease = 'taken: loop {
        let clock = StoreClock::new(files, &name);
        for share in 0..runners {
            let lease = format!("shares/{share:04}.json");
            // A share has no limit of attempts: nothing is wrong with it if its holders die.
            if let ClaimOutcome::Taken(lease) = Lease::take(&clock, &lease, (&name, term), true)? {
                break 'taken lease;
            }
        }
        stop.wait(term / LOOKS_A_TERM);
        if stop.is_stopped() {
            return Ok(None);
        }
    };
    let lease = Mutex::new(Some(lease));
    let ended = Stop::default();
    let result = thread::scope(|scope| {
        scope.spawn(|| {
            if !matches!(renew(files, &lease, term, &ended), RenewalEnd::Stopped) {
                // Another process may use the share now.
                stop.stop();
            }
        });
        let result = run(Some((limit / u64::from(runners.max(1))).max(1)));
        ended.stop();
        result
    });
    if let Some(lease) = lease.into_inner().unwrap_or_else(PoisonError::into_inner) {
        // If this fails, the lease expires by itself.
        drop(lease.give_up(files));
    }
    Ok(Some(result))
}

/// Writes the outcomes of rows, and counts them.
struct Outcomes<'a> {
    lines: LinesWriter,
    tally: OutcomeCount,
    events: &'a dyn Fn(RunEvent<'_>),
}

#[derive(Default)]
struct OutcomeCount {
    done: u64,
    skipped: u64,
    failed: u64,
    unverified: u64,
    bytes: u64,
    failures: BTreeMap<String, u64>,
}

impl Outcomes<'_> {
    fn add(&mut self, row: &ResultRow) -> Result<(), Error> {
        let tally = &mut self.tally;
        match row.outcome {
            RowOutcome::Done => {
                tally.done += 1;
                tally.bytes = tally.bytes.saturating_add(row.bytes);
                tally.unverified += u64::from(row.verified.as_deref() == Some("unverified"));
            }
            RowOutcome::Skipped => tally.skipped += 1,
            RowOutcome::Failed => {
                tally.failed += 1;
                let class = row.class.clone().unwrap_or_default();
                *tally.failures.entry(class).or_default() += 1;
            }
        }
        (self.events)(RunEvent::Row(row));
        self.lines.line(row)
    }
}

/// Passes the outcomes of a job on until it has ended. `target` is the URL of the part's prefix. Returns the number of the
/// job's requests.
fn follow(
    mut job: Job,
    (target, rows, shown): (&str, u64, &str),
    outcomes: &mut Outcomes<'_>,
) -> Result<u64, Error> {
    // A failure of the whole job names the prefix. So does the row of the prefix's own object, the marker of a folder.
    let mut of_prefix = None;
    loop {
        match job.next_blocking() {
            Some(Event::Item(item))
                if item.source == target && matches!(item.outcome, Outcome::Failed(_)) =>
            {
                of_prefix = Some(row_of(item));
            }
            Some(Event::Item(item)) => outcomes.add(&row_of(item))?,
            Some(Event::Warning(warning)) => (outcomes.events)(RunEvent::Warning(&warning)),
            Some(Event::Done(summary)) => {
                let ended = outcomes.tally.done + outcomes.tally.skipped + outcomes.tally.failed;
                match of_prefix {
                    Some(row) if ended + 1 == rows && !summary.stopped => outcomes.add(&row)?,
                    Some(row) => return Err(refused(shown, row.error.unwrap_or_default())),
                    None if summary.stopped => {
                        let why = "the part was stopped, because a failure concerns every row; see the errors above";
                        return Err(refused(shown, why));
                    }
                    None => {}
                }
                return Ok(summary.requests);
            }
            Some(_) => {}
            None => return Err(local("a job", "has ended without its last event")),
        }
    }
}

fn row_of(item: Item) -> ResultRow {
    let mut row = ResultRow {
        url: item.source,
        destination: item.destination,
        outcome: RowOutcome::Done,
        bytes: item.bytes,
        attempts: item.attempts,
        verified: None,
        skipped: None,
        error: None,
        class: None,
        status: None,
    };
    match item.outcome {
        Outcome::Done { verified: Verified::NotApplicable } => {}
        Outcome::Done { verified } => row.verified = Some(verified.to_string()),
        Outcome::Skipped { why } => {
            row.outcome = RowOutcome::Skipped;
            row.skipped = Some(why.to_owned());
        }
        Outcome::Failed(error) => {
            row.outcome = RowOutcome::Failed;
            row.error = Some(error.to_string());
            row.class = Some(error.kind().name().to_owned());
            row.status = error.status();
        }
        _ => row.outcome = RowOutcome::Skipped,
    }
    row
}

/// Returns the start of the names of a part's other files: the part's own name without its folder and endings.
pub(crate) fn stem(entry: &PartEntry) -> &str {
    let name = entry.name.rsplit('/').next().unwrap_or_default();
    name.split('.').next().unwrap_or_default()
}

fn claim_name(entry: &PartEntry) -> String {
    format!("claims/{}.json", stem(entry))
}

fn result_stem(entry: &PartEntry) -> String {
    format!("results/{}", stem(entry))
}
