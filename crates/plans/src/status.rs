//! The state of a plan: its results, reports of them, and plans that repeat what has failed.

use std::collections::{BTreeMap, HashSet};
use std::io::{BufRead as _, BufReader, Write};

use laneway::{Client, Error, Location, ObjectMeta, Provider};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::claim::{ATTEMPTS_MAX, Claim, ClaimChoice, StoreClock, choose};
use crate::files::files_at;
use crate::format::{
    FORMAT, KeyRange, PartAction, PartEntry, PlanIndex, PlanKind, ResultRow, ResultSummary, RowOutcome,
    VERSION, local, refused, usage,
};
use crate::names::SortedNames;
use crate::part::{OpenPart, fetch};
use crate::plan::{Plan, is_index};
use crate::planner::{check_folder, now};
use crate::runner::{random_name, stem};

/// The characters that S3's reports don't encode in a key.
const KEPT: AsciiSet = NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The state of a part.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum PartState {
    /// No runner has taken the part.
    Waiting,
    /// A runner holds the part. The number is that of its attempt.
    Running(String, u32),
    /// The lease of a runner has expired, so another runner may take the part.
    Expired(String, u32),
    /// Runners have taken the part as often as allowed, and none has finished it.
    GivenUp(u32),
    /// The part has ended.
    Ended(Box<ResultSummary>),
}

/// The state of a plan.
#[derive(Clone, PartialEq, Default, Debug)]
#[non_exhaustive]
pub struct PlanStatus {
    /// The state of each part.
    pub parts: Vec<PartState>,
    /// Rows that were done.
    pub rows_done: u64,
    /// Rows that needed no action.
    pub rows_skipped: u64,
    /// Rows that failed.
    pub rows_failed: u64,
    /// Rows of parts that haven't ended.
    pub rows_left: u64,
    /// Bytes of the rows that were done.
    pub bytes_done: u64,
    /// Bytes of the rows of parts that haven't ended.
    pub bytes_left: u64,
    /// The number of failures by their class.
    pub failures: BTreeMap<String, u64>,
    /// The sum of the times of all ended parts, in seconds.
    pub seconds: f64,
}

impl PlanStatus {
    /// Reads the state of a plan.
    ///
    /// # Errors
    /// `ErrorKind::Refused` if a result is damaged; else the errors of the store.
    pub fn read(plan: &Plan) -> Result<Self, Error> {
        let files = &*plan.files;
        let ended: HashSet<String> = files.list("results/")?.into_iter().collect();
        let claimed: HashSet<String> = files.list("claims/")?.into_iter().collect();
        let reader = format!("status-{}", random_name());
        let clock = StoreClock::new(files, &reader);
        let mut status = Self::default();
        for (number, entry) in plan.parts().iter().enumerate() {
            if ended.contains(&result_name(entry))
                && let Some(result) = results(plan, number)?
            {
                status.rows_done += result.done;
                status.rows_skipped += result.skipped;
                status.rows_failed += result.failed;
                status.bytes_done += result.bytes;
                status.seconds += result.seconds;
                for (class, count) in &result.failures {
                    *status.failures.entry(class.clone()).or_default() += count;
                }
                status.parts.push(PartState::Ended(Box::new(result)));
                continue;
            }
            status.rows_left += entry.rows;
            status.bytes_left += entry.bytes;
            let name = format!("claims/{}.json", stem(entry));
            let file = if claimed.contains(&name) { files.read(&name)? } else { None };
            let Some(file) = file else {
                status.parts.push(PartState::Waiting);
                continue;
            };
            let claim: Claim = serde_json::from_slice(&file.bytes)
                .map_err(|e| refused(files.shown(&name), format!("isn't a lease of a plan: {e}")))?;
            status.parts.push(match choose(Some((&claim, file.changed)), clock.now()?) {
                ClaimChoice::Wait => PartState::Running(claim.runner, claim.attempt),
                ClaimChoice::GiveUp => PartState::GivenUp(ATTEMPTS_MAX),
                _ if claim.term_s == 0 => PartState::Waiting,
                _ => PartState::Expired(claim.runner, claim.attempt),
            });
        }
        Ok(status)
    }

    /// Returns the number of parts that have ended.
    pub fn parts_ended(&self) -> usize {
        self.parts.iter().filter(|part| matches!(part, PartState::Ended(_))).count()
    }

    /// Returns whether every part has ended, and no row has failed.
    pub fn is_clean(&self) -> bool {
        self.parts_ended() == self.parts.len() && self.rows_failed == 0
    }
}

/// Returns the name of a part's result.
pub(crate) fn result_name(entry: &PartEntry) -> String {
    format!("results/{}.json", stem(entry))
}

/// Returns the result of a part, or `None` if the part hasn't ended.
pub(crate) fn results(plan: &Plan, number: usize) -> Result<Option<ResultSummary>, Error> {
    let entry = plan.part(number)?;
    let name = result_name(entry);
    let Some(file) = plan.files.read(&name)? else { return Ok(None) };
    let shown = plan.files.shown(&name);
    let result: ResultSummary = serde_json::from_slice(&file.bytes)
        .map_err(|e| refused(&shown, format!("isn't the result of a part: {e}")))?;
    if result.format != FORMAT || result.version != VERSION {
        return Err(refused(
            shown,
            format!("has version {} of the format {:?}", result.version, result.format),
        ));
    }
    if (&result.part, &result.part_crc32c) != (&entry.name, &entry.crc32c) {
        return Err(refused(shown, format!("is the result of another part than {}", entry.name)));
    }
    Ok(Some(result))
}

/// Passes on the outcome of each row of a part that has ended. Returns false if the part hasn't ended.
fn rows(
    plan: &Plan,
    number: usize,
    each: &mut dyn FnMut(ResultRow) -> Result<(), Error>,
) -> Result<bool, Error> {
    let Some(result) = results(plan, number)? else { return Ok(false) };
    let file = fetch(&*plan.files, &result.data, (result.data_size, &result.data_crc32c))?;
    let shown = plan.files.shown(&result.data);
    let failed = |e: std::io::Error| refused(&shown, format!("can't be read: {e}"));
    let mut lines = BufReader::new(zstd::Decoder::new(file.reopen().map_err(failed)?).map_err(failed)?);
    let mut line = Vec::new();
    loop {
        line.clear();
        if lines.read_until(b'\n', &mut line).map_err(failed)? == 0 {
            return Ok(true);
        }
        each(serde_json::from_slice(&line).map_err(|e| refused(&shown, format!("has a broken line: {e}")))?)?;
    }
}

/// Writes the outcomes of all parts that have ended as a completion report of S3 Batch Operations. The report is CSV
/// without a header. Its columns are Bucket, Key, VersionId, TaskStatus, ErrorCode, HTTPStatusCode and ResultMessage.
/// Returns the number of rows.
///
/// # Errors
/// If a result is damaged, or the report can't be written.
pub fn write_report(plan: &Plan, to: &mut dyn Write) -> Result<u64, Error> {
    let mut count = 0;
    for number in 0..plan.parts().len() {
        rows(plan, number, &mut |row| {
            let (_, place) = row.url.split_once("://").unwrap_or(("", &row.url));
            let (bucket, key) = place.split_once('/').unwrap_or((place, ""));
            let has_failed = row.outcome == RowOutcome::Failed;
            let status = if has_failed { "failed" } else { "succeeded" };
            let http = row.status.or((!has_failed).then_some(200)).map(|status| status.to_string());
            let message = row.error.or(row.skipped).unwrap_or_default();
            let fields = [
                bucket,
                &utf8_percent_encode(key, &KEPT).to_string(),
                "",
                status,
                row.class.as_deref().unwrap_or_default(),
                http.as_deref().unwrap_or_default(),
                &message,
            ];
            let line: Vec<String> = fields.iter().map(|field| quoted(field)).collect();
            count += 1;
            writeln!(to, "{}", line.join(","))
                .map_err(|e| local("the report", format!("can't be written: {e}")))
        })?;
    }
    Ok(count)
}

fn quoted(field: &str) -> String {
    match field.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.to_owned(),
    }
}

/// Makes a plan that repeats the failed rows of a plan. Objects that are gone are left out, and rows that copy get the
/// present version of their object. The removals of a sync that wait for copies become a part of the new plan. Returns
/// the new plan's index, or `None` if nothing is left to do.
///
/// # Errors
/// `ErrorKind::Usage` if a part that copies hasn't ended, or the folder overlaps with the prefixes of the plan.
/// `ErrorKind::Refused` if the folder has a plan already.
pub fn retry(client: &Client, plan: &Plan, folder: &Location) -> Result<Option<PlanIndex>, Error> {
    let files = files_at(client, folder)?;
    check_folder(folder, [&plan.source()?, &plan.destination()?])?;
    let names: Vec<String> = files.list("index")?.into_iter().filter(|name| is_index(name)).collect();
    if let Some(there) = names.first().or(files.list("planning")?.first()) {
        return Err(refused(files.shown(there), "this folder already has a plan; use another folder"));
    }
    let old = plan.index();
    if old.kind == PlanKind::Verify {
        return Err(usage(plan.folder(), "a comparison can't be repeated for some rows; make a new plan"));
    }
    let planner = random_name();
    let mut parts: Vec<PartEntry> = Vec::new();
    for (number, entry) in plan.parts().iter().enumerate() {
        let mut failed = HashSet::new();
        let has_ended = rows(plan, number, &mut |row| {
            if row.outcome == RowOutcome::Failed {
                failed.insert(row.url);
            }
            Ok(())
        })?;
        let waits = !has_ended && entry.action == PartAction::Remove && old.kind == PlanKind::Sync;
        if !has_ended && !waits {
            return Err(usage(plan.folder(), format!("part {number} hasn't ended yet; run it first")));
        }
        if failed.is_empty() && !waits {
            continue;
        }
        let file = fetch(&*plan.files, &entry.name, (entry.size, &entry.crc32c))?;
        let at = match (entry.action, old.kind) {
            (PartAction::Remove, PlanKind::Sync) => plan.destination()?,
            _ => plan.source()?,
        };
        let Location::Object { provider, .. } = &at else { continue };
        let mut found = SortedNames::rows(
            client,
            &at,
            (&entry.range, entry.rows),
            (file.path(), plan.files.shown(&entry.name)),
        );
        let mut again = OpenPart::begin(entry.action)?;
        let mut looked_up: Vec<ObjectMeta> = Vec::new();
        while let Some(object) = found.take()? {
            if !waits && !failed.contains(&format!("{}://{}", provider.scheme(), object.id)) {
                continue;
            }
            match entry.action {
                PartAction::Copy => looked_up.push(*object),
                _ => again.add(*provider, &object)?,
            }
        }
        for object in present(client, *provider, looked_up)? {
            again.add(*provider, &object)?;
        }
        let reached = parts.iter().rfind(|part| part.action == entry.action);
        let after = reached.and_then(|part| part.range.through.clone());
        let name = format!("parts/{:06}-{planner}.jsonl.zst", parts.len());
        let (part, file) = again.finish(name, KeyRange::new(after, entry.range.through.clone()), true)?;
        files.put_file(&part.name, file.path())?;
        parts.push(part);
    }
    // The parts in between have no failures, so the last part of each action covers the rest of the names.
    for action in [PartAction::Copy, PartAction::Remove] {
        if let Some(last) = parts.iter_mut().rfind(|part| part.action == action) {
            last.range.through = None;
        }
    }
    if parts.is_empty() {
        return Ok(None);
    }
    let index = PlanIndex {
        retry_of: Some(plan.folder().to_owned()),
        created: now(),
        range: KeyRange::default(),
        rows: parts.iter().map(|part| part.rows).sum(),
        bytes: parts.iter().map(|part| part.bytes).sum(),
        parts,
        ..old.clone()
    };
    let (index, json) = index.sealed()?;
    match files.create("index.json", &json)? {
        Some(_) => Ok(Some(index)),
        None => {
            Err(refused(files.shown("index.json"), "another process has made this plan at the same time"))
        }
    }
}

/// Looks objects up again, and leaves out those that are gone.
fn present(client: &Client, provider: Provider, objects: Vec<ObjectMeta>) -> Result<Vec<ObjectMeta>, Error> {
    let places =
        objects.iter().map(|object| Location::object(provider, &object.id.bucket, &object.id.key)).collect();
    let mut stats = client.stats(places);
    let mut found = Vec::with_capacity(objects.len());
    while let Some((_, answer)) = stats.next_blocking() {
        match answer {
            Ok(object) => found.push(object),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    found.sort_by(|a, b| a.id.key.cmp(&b.id.key));
    Ok(found)
}
