//! Makes plans from listings or inventories.

use std::path::Path;
use std::sync::{Mutex, mpsc};
use std::thread;

use laneway::internal::{SyncDecision, sync_planner, tree_destination};
use laneway::{Client, CopyRequest, Error, ErrorKind, Filter, Location, ObjectMeta, Provider, SyncRequest};

use crate::claim::{ClaimOutcome, Lease, StoreClock};
use crate::files::{PlanFiles, files_at};
use crate::format::{
    FORMAT, KeyRange, PartAction, PartEntry, PlanIndex, PlanKind, PlanOptions, VERSION, crc_of, local,
    refused, usage,
};
use crate::names::SortedNames;
use crate::part::OpenPart;
use crate::plan::is_index;
use crate::runner::{Stop, TERM, random_name, renew};

/// The number of rows after which a part ends. At some thousand objects a second, a part of small objects takes a
/// minute, so a runner that is killed loses little work.
const PART_ROWS: u64 = 100_000;
/// The number of bytes after which a part ends: some minutes at 1 GB/s.
const PART_BYTES: u64 = 256 << 30;

/// A request to make a plan.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PlanRequest {
    kind: PlanKind,
    source: Location,
    /// For a removal, the same as the source.
    destination: Location,
    sync: Option<SyncRequest>,
    /// Chooses objects by their names below the source, and by their sizes and times.
    pub filter: Filter,
    /// An inventory that is read instead of a listing of the source. It must be sorted by key.
    pub source_inventory: Option<Location>,
    /// An inventory that is read instead of a listing of a sync's destination. It must be sorted by key.
    pub destination_inventory: Option<Location>,
    /// The range of names, relative to the source's prefix, that is planned. Other calls plan the other ranges into
    /// the same folder.
    pub range: KeyRange,
    /// The number of rows after which a part ends.
    pub part_rows: u64,
    /// The sum of the objects' sizes after which a part ends.
    pub part_bytes: u64,
    /// The settings that change the outcome.
    pub options: PlanOptions,
    /// Stops the planning. The same call continues it later.
    pub stop: Stop,
}

/// The progress of planning.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct PlanProgress {
    /// Objects that were listed at the source.
    pub listed: u64,
    /// Rows of the plan so far.
    pub rows: u64,
    /// Bytes of these rows' objects.
    pub bytes: u64,
    /// Parts so far.
    pub parts: u64,
}

/// The totals of a plan, or of a plan that would be made.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct PlanTotals {
    /// Objects that are copied or compared.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Objects that are removed.
    pub removed: u64,
    /// The number of parts.
    pub parts: u64,
    /// The rows that an earlier, interrupted call had planned.
    pub resumed_rows: u64,
    /// The provider of the source, and that of the destination.
    pub providers: Option<(Provider, Provider)>,
}

impl PlanRequest {
    fn new(kind: PlanKind, source: Location, destination: Location) -> Self {
        Self {
            kind,
            source,
            destination,
            sync: None,
            filter: Filter::default(),
            source_inventory: None,
            destination_inventory: None,
            range: KeyRange::default(),
            part_rows: PART_ROWS,
            part_bytes: PART_BYTES,
            options: PlanOptions::default(),
            stop: Stop::default(),
        }
    }

    /// Returns a request for a copy of everything below a prefix, which puts the objects where `cp -r` puts them.
    pub fn copy(source: Location, destination: Location) -> Self {
        Self::new(PlanKind::Copy, source, destination)
    }

    /// Returns a request for a sync between two prefixes. The plan follows the sync's rules and filter. If the
    /// listings don't show whether two objects are equal, the plan copies the object.
    pub fn sync(request: SyncRequest) -> Self {
        let mut plan = Self::new(PlanKind::Sync, request.source.clone(), request.destination.clone());
        plan.source_inventory.clone_from(&request.inventory);
        plan.filter = request.filter.clone();
        plan.sync = Some(request);
        plan
    }

    /// Returns a request for the removal of everything below a prefix. An object is only removed if it still has the
    /// version that was planned.
    pub fn remove(target: Location) -> Self {
        Self::new(PlanKind::Remove, target.clone(), target)
    }

    /// Returns a request for a comparison of two prefixes.
    pub fn verify(source: Location, destination: Location) -> Self {
        Self::new(PlanKind::Verify, source, destination)
    }

    /// Makes the plan in a folder, which may be a prefix of a bucket. If an earlier call was interrupted, continues
    /// after the last part that it wrote. Calls `progress` after each few thousand objects.
    ///
    /// # Errors
    /// `ErrorKind::Refused` if the folder has another plan; `ErrorKind::Usage` if an end isn't a prefix of a bucket;
    /// `ErrorKind::Cancelled` if the planning was stopped; else the errors of the stores.
    pub fn plan(
        &self,
        client: &Client,
        folder: &Location,
        progress: &dyn Fn(PlanProgress),
    ) -> Result<PlanTotals, Error> {
        let ends = self.ends()?;
        check_folder(folder, [&ends.0, &ends.1])?;
        let files = files_at(client, folder)?;
        let names = PlanNames::of(&self.range);
        self.check_range(&*files, &names)?;
        // Two processes that make the same plan would remove each other's parts.
        let planner = random_name();
        let taken = Lease::take(&StoreClock::new(&*files, &planner), &names.lease, (&planner, TERM), true)?;
        let ClaimOutcome::Taken(lease) = taken else {
            let why = "another process makes this plan, or was killed less than a minute ago; try again in a minute";
            return Err(refused(folder.to_string(), why));
        };
        let (lease, ended) = (Mutex::new(Some(lease)), Stop::default());
        let made = thread::scope(|scope| {
            scope.spawn(|| renew(&*files, &lease, TERM, &ended));
            let made = self.make(client, &*files, &names, &ends, progress);
            ended.stop();
            made
        });
        if made.is_err() && files.list(&names.parts)?.is_empty() {
            files.remove(&names.planning)?;
        }
        files.remove(&names.lease)?;
        made
    }

    /// Checks that the folder has no other plan of the same names.
    fn check_range(&self, files: &dyn PlanFiles, names: &PlanNames) -> Result<(), Error> {
        let indexes: Vec<String> = files.list("index")?.into_iter().filter(|name| is_index(name)).collect();
        let planned = files.list("planning")?;
        for name in indexes.iter().chain(&planned).filter(|name| **name != names.planning) {
            let Some(file) = files.read(name)? else { continue };
            let shown = files.shown(name);
            let other = PlanIndex::parse_header(&shown, &file.bytes)?;
            if other.range.overlaps(&self.range) {
                return Err(refused(
                    shown,
                    "this folder already has a plan of these names; use another folder",
                ));
            }
        }
        match files.list("results/")?.first() {
            Some(result) if indexes.is_empty() => Err(refused(
                files.shown(result),
                "this folder has results of another plan; use another folder",
            )),
            _ => Ok(()),
        }
    }

    /// Makes the plan, while this process holds the plan's lease.
    fn make(
        &self,
        client: &Client,
        files: &dyn PlanFiles,
        names: &PlanNames,
        ends: &(Location, Location),
        progress: &dyn Fn(PlanProgress),
    ) -> Result<PlanTotals, Error> {
        let header = self.header(ends);
        let entries = begun(files, names, &header)?;
        let is_whole =
            entries.last().is_some_and(|last| last.closes && last.range.through == self.range.through);
        thread::scope(|scope| {
            let (send, finished) = mpsc::sync_channel::<FinishedPart>(1);
            let writing = scope.spawn(|| write_parts(files, finished));
            let writer = PlanWriter::new(self, names, entries, Some(send));
            // An earlier call may have written every part, but not the index.
            let planned = match is_whole {
                true => writer.finish(),
                false => self.read_both(client, ends, writer, progress),
            };
            let written = writing.join().map_err(|_| local("a thread", "has ended early"))?;
            // If a part can't be written, the planning only fails because of it.
            written?;
            let (parts, mut totals) = planned?;
            totals.providers = Some((provider(&ends.0)?, provider(&ends.1)?));
            let index = PlanIndex {
                rows: parts.iter().map(|part| part.rows).sum(),
                bytes: parts.iter().map(|part| part.bytes).sum(),
                parts,
                ..header
            };
            let (_, json) = index.sealed()?;
            if files.create(&names.index, &json)?.is_none() {
                return Err(refused(
                    files.shown(&names.index),
                    "another process has made this plan at the same time",
                ));
            }
            files.remove(&names.planning)?;
            Ok(totals)
        })
    }

    /// Returns the totals of the plan, without writing anything.
    ///
    /// # Errors
    /// Fails as [`plan`](Self::plan) does.
    pub fn dry_run(&self, client: &Client, progress: &dyn Fn(PlanProgress)) -> Result<PlanTotals, Error> {
        let ends = self.ends()?;
        let names = PlanNames::of(&self.range);
        let writer = PlanWriter::new(self, &names, Vec::new(), None);
        self.read_both(client, &ends, writer, progress).map(|(_, totals)| totals)
    }

    /// Returns the prefixes of both sides, as locations whose keys are empty or end in a slash.
    fn ends(&self) -> Result<(Location, Location), Error> {
        for at in [&self.source, &self.destination] {
            match at {
                Location::Object { bucket, .. } if bucket.is_empty() => {
                    return Err(usage(at.to_string(), "names no bucket"));
                }
                Location::Object { .. } if !at.is_pattern() => {}
                Location::Object { .. } => {
                    return Err(usage(
                        at.to_string(),
                        "a plan needs a prefix; choose objects below it by filters",
                    ));
                }
                _ => {
                    let why = "a plan's source and destination must be prefixes of buckets, because each machine that \
                               runs a part must reach them";
                    return Err(usage(at.to_string(), why));
                }
            }
        }
        if self.part_rows == 0 || self.part_bytes == 0 {
            return Err(usage(self.source.to_string(), "a part needs at least one row and one byte"));
        }
        if let (Some(after), Some(through)) = (&self.range.after, &self.range.through)
            && after >= through
        {
            let why = format!("the range after {after:?}, up to {through:?}, is empty");
            return Err(usage(self.source.to_string(), why));
        }
        let source = as_folder(&self.source);
        let destination = match self.kind {
            PlanKind::Copy => {
                let request = CopyRequest::new(vec![self.source.clone()], self.destination.clone());
                tree_destination(&request.recursive(true))?
            }
            _ => as_folder(&self.destination),
        };
        if self.kind != PlanKind::Remove && source == destination {
            return Err(usage(source.to_string(), "source and destination are the same"));
        }
        Ok((source, destination))
    }

    fn header(&self, (source, destination): &(Location, Location)) -> PlanIndex {
        let rules = self.sync.as_ref().map(|sync| {
            let SyncRequest { delete, checksum, size_only, update, existing, ignore_existing, .. } = sync;
            (delete, checksum, size_only, update, existing, ignore_existing)
        });
        let inventories = (&self.source_inventory, &self.destination_inventory);
        let selection = format!("{:?} {rules:?} {inventories:?}", self.filter);
        PlanIndex {
            format: FORMAT.to_owned(),
            version: VERSION,
            kind: self.kind,
            source: source.to_string(),
            destination: (self.kind != PlanKind::Remove).then(|| destination.to_string()),
            options: self.options.clone(),
            selection: crc_of(selection.as_bytes()),
            filtered: !self.filter.is_empty(),
            range: self.range.clone(),
            retry_of: None,
            created: now(),
            rows: 0,
            bytes: 0,
            parts: Vec::new(),
            crc32c: String::new(),
        }
    }

    /// Reads the listings of both sides, and writes a row for each object that needs an action.
    fn read_both(
        &self,
        client: &Client,
        (source, destination): &(Location, Location),
        mut writer: PlanWriter<'_>,
        progress: &dyn Fn(PlanProgress),
    ) -> Result<(Vec<PartEntry>, PlanTotals), Error> {
        let range = writer.left.clone();
        let filter = if self.sync.is_some() { Filter::default() } else { self.filter.clone() };
        let mut from = SortedNames::list(client, source, &range, self.source_inventory.as_ref(), filter);
        from.has_marker = self.kind != PlanKind::Sync;
        from.may_be_missing |= self.sync.as_ref().is_some_and(|sync| sync.allow_empty);
        let action = match self.kind {
            PlanKind::Remove => PartAction::Remove,
            PlanKind::Verify => PartAction::Verify,
            PlanKind::Copy | PlanKind::Sync => PartAction::Copy,
        };
        let providers = (provider(source)?, provider(destination)?);
        let mut listed = 0_u64;
        let mut tell = |writer: &PlanWriter<'_>| {
            listed += 1;
            if listed.is_multiple_of(8192) {
                progress(PlanProgress { listed, ..writer.progress() });
            }
            match self.stop.is_stopped() {
                true => Err(laneway::internal::error(
                    ErrorKind::Cancelled,
                    source.to_string(),
                    "the planning was stopped",
                )),
                false => Ok(()),
            }
        };
        match &self.sync {
            None => {
                while let Some(object) = from.take()? {
                    writer.add(action, providers.0, from.name_of(&object), &object)?;
                    tell(&writer)?;
                }
            }
            Some(sync) => {
                let rules = sync_planner(client, sync)?;
                let inventory = self.destination_inventory.as_ref();
                let mut to = SortedNames::list(client, destination, &range, inventory, Filter::default());
                to.may_be_missing = true;
                loop {
                    let order = match (from.name()?, to.name()?) {
                        (None, None) => break,
                        (Some(_), None) => std::cmp::Ordering::Less,
                        (None, Some(_)) => std::cmp::Ordering::Greater,
                        (Some(a), Some(b)) => a.cmp(b),
                    };
                    let source = if order.is_le() { from.take()? } else { None };
                    let there = if order.is_ge() { to.take()? } else { None };
                    let name = match (&source, &there) {
                        (Some(source), _) => from.name_of(source),
                        (None, Some(there)) => to.name_of(there),
                        (None, None) => break,
                    };
                    match (rules.decide(name, source.as_deref(), there.as_deref()), &source, &there) {
                        (SyncDecision::Copy, Some(object), _) => {
                            writer.add(PartAction::Copy, providers.0, name, object)?;
                        }
                        (SyncDecision::Remove, _, Some(object)) => {
                            writer.add(PartAction::Remove, providers.1, name, object)?;
                        }
                        _ => {}
                    }
                    tell(&writer)?;
                }
                // Look at the whole source, because the range may be a part of it.
                let is_risky = writer.rows_of(PartAction::Remove) > 0 && !sync.allow_empty;
                if is_risky && is_empty(client, source)? {
                    let why = "has no objects, so this sync would remove everything at the destination; --allow-empty permits that";
                    return Err(refused(source.to_string(), why));
                }
                if let Some(most) = sync.max_delete
                    && writer.rows_of(PartAction::Remove) > most
                {
                    let why = format!("more than {most} objects would be removed; --max-delete permits more");
                    return Err(refused(destination.to_string(), why));
                }
            }
        }
        progress(PlanProgress { listed, ..writer.progress() });
        writer.finish().map(|(parts, mut totals)| {
            totals.providers = Some(providers);
            (parts, totals)
        })
    }
}

/// Returns whether there is no object below a prefix.
fn is_empty(client: &Client, source: &Location) -> Result<bool, Error> {
    let bucket = client.bucket(&source.to_string())?;
    bucket.list("").limit(1).next_blocking().transpose().map(|first| first.is_none())
}

pub(crate) fn now() -> String {
    jiff::Timestamp::from_second(jiff::Timestamp::now().as_second())
        .map(|now| now.to_string())
        .unwrap_or_default()
}

fn as_folder(at: &Location) -> Location {
    match at {
        Location::Object { provider, bucket, key } if !key.is_empty() && !key.ends_with('/') => {
            Location::object(*provider, bucket, format!("{key}/"))
        }
        _ => at.clone(),
    }
}

fn provider(at: &Location) -> Result<Provider, Error> {
    match at {
        Location::Object { provider, .. } => Ok(*provider),
        _ => Err(usage(at.to_string(), "isn't in a store")),
    }
}

/// Checks that a plan's folder lies apart from the prefixes that the plan reads and writes.
///
/// # Errors
/// `ErrorKind::Usage` if it doesn't.
pub(crate) fn check_folder(folder: &Location, ends: [&Location; 2]) -> Result<(), Error> {
    let Location::Object { provider, bucket, key } = as_folder(folder) else { return Ok(()) };
    for end in ends {
        let Location::Object { provider: its, bucket: its_bucket, key: prefix } = end else { continue };
        let is_near = key.starts_with(prefix.as_str()) || prefix.starts_with(key.as_str());
        if (*its, its_bucket.as_str()) == (provider, bucket.as_str()) && is_near {
            let why = format!("the plan's folder and {end} overlap; use another folder");
            return Err(usage(folder.to_string(), why));
        }
    }
    Ok(())
}

/// The names of a plan's files, which differ for each range.
struct PlanNames {
    index: String,
    lease: String,
    planning: String,
    parts: String,
}

impl PlanNames {
    fn of(range: &KeyRange) -> Self {
        let tag = match range == &KeyRange::default() {
            true => String::new(),
            false => format!("-{}", crc_of(format!("{range:?}").as_bytes())),
        };
        let parts = tag.strip_prefix('-').map(|tag| format!("{tag}-")).unwrap_or_default();
        Self {
            index: format!("index{tag}.json"),
            lease: format!("claims/planning{tag}.json"),
            planning: format!("planning{tag}.json"),
            parts: format!("parts/{parts}"),
        }
    }

    /// Returns the name of the file that describes a part while the plan is being made.
    fn entry(&self, number: usize) -> String {
        format!("{}{number:06}.json", self.parts)
    }

    fn data(&self, number: usize, planner: &str) -> String {
        format!("{}{number:06}-{planner}.jsonl.zst", self.parts)
    }
}

/// Begins a plan, or continues one. Returns the parts that an earlier call has written.
fn begun(files: &dyn PlanFiles, names: &PlanNames, header: &PlanIndex) -> Result<Vec<PartEntry>, Error> {
    let json = serde_json::to_vec_pretty(header).map_err(|e| local("the plan", e))?;
    let Some(there) = files.read(&names.planning)? else {
        if files.create(&names.planning, &json)?.is_none() {
            return Err(refused(files.shown(&names.planning), "another process makes a plan in this folder"));
        }
        return Ok(Vec::new());
    };
    let shown = files.shown(&names.planning);
    let earlier = PlanIndex::parse_header(&shown, &there.bytes)?;
    if (PlanIndex { created: header.created.clone(), ..earlier }) != *header {
        let why = "another plan was begun in this folder, with another source, destination or options; use another folder";
        return Err(refused(shown, why));
    }
    let mut entries: Vec<PartEntry> = Vec::new();
    for number in 0.. {
        let name = names.entry(number);
        let Some(file) = files.read(&name)? else { break };
        let entry = serde_json::from_slice(&file.bytes)
            .map_err(|e| refused(files.shown(&name), format!("isn't a part of a plan: {e}")))?;
        entries.push(entry);
    }
    // The parts after the last one that closes a range are incomplete without those that the earlier call didn't write.
    let whole = entries.iter().rposition(|entry| entry.closes).map_or(0, |last| last + 1);
    for (number, entry) in entries.iter().enumerate().skip(whole).rev() {
        files.remove(&names.entry(number))?;
        files.remove(&entry.name)?;
    }
    entries.truncate(whole);
    Ok(entries)
}

/// A part whose file is complete.
struct FinishedPart {
    entry: PartEntry,
    entry_name: String,
    file: tempfile::NamedTempFile,
}

/// Writes parts to the plan's folder in their order. Each part's description is written after its file, so an
/// interrupted plan has no incomplete part.
fn write_parts(files: &dyn PlanFiles, finished: mpsc::Receiver<FinishedPart>) -> Result<(), Error> {
    for part in finished {
        let path: &Path = part.file.path();
        files.put_file(&part.entry.name, path)?;
        let json = serde_json::to_vec(&part.entry).map_err(|e| local("a part", e))?;
        if files.create(&part.entry_name, &json)?.is_none() {
            let why = "another process makes a plan in this folder";
            return Err(refused(files.shown(&part.entry_name), why));
        }
    }
    Ok(())
}

/// Cuts rows into parts.
struct PlanWriter<'a> {
    request: &'a PlanRequest,
    entry_names: &'a PlanNames,
    planner: String,
    /// The range that is still to be planned.
    left: KeyRange,
    open: Vec<OpenPart>,
    entries: Vec<PartEntry>,
    resumed_rows: u64,
    last: String,
    /// `None` in a dry run.
    finished: Option<mpsc::SyncSender<FinishedPart>>,
}

impl<'a> PlanWriter<'a> {
    fn new(
        request: &'a PlanRequest,
        entry_names: &'a PlanNames,
        entries: Vec<PartEntry>,
        finished: Option<mpsc::SyncSender<FinishedPart>>,
    ) -> Self {
        let mut left = request.range.clone();
        if let Some(last) = entries.last() {
            left.after.clone_from(&last.range.through);
        }
        Self {
            request,
            entry_names,
            planner: random_name(),
            left,
            open: Vec::new(),
            resumed_rows: entries.iter().map(|entry| entry.rows).sum(),
            entries,
            last: String::new(),
            finished,
        }
    }

    fn add(
        &mut self,
        action: PartAction,
        provider: Provider,
        name: &str,
        object: &ObjectMeta,
    ) -> Result<(), Error> {
        let (rows, bytes) = (self.request.part_rows, self.request.part_bytes);
        if self.open.iter().any(|part| part.rows >= rows || part.bytes >= bytes) {
            let last = std::mem::take(&mut self.last);
            self.cut(Some(last))?;
        }
        name.clone_into(&mut self.last);
        let place = match self.open.iter().position(|part| part.action == action) {
            Some(place) => place,
            None => {
                self.open.push(OpenPart::begin(action)?);
                self.open.len() - 1
            }
        };
        let Some(part) = self.open.get_mut(place) else { return Ok(()) };
        match self.finished {
            Some(_) => part.add(provider, object),
            None => {
                part.count(object);
                Ok(())
            }
        }
    }

    /// Ends the open parts at a name. `None` is the end of the range.
    fn cut(&mut self, through: Option<String>) -> Result<(), Error> {
        let is_last = through.is_none();
        let through = through.or_else(|| self.request.range.through.clone());
        let mut open = std::mem::take(&mut self.open);
        if is_last {
            // Each kind of part must reach the end of the range, so that a missing last part can be found out.
            for action in [PartAction::Copy, PartAction::Remove, PartAction::Verify] {
                let reached = self.entries.iter().rfind(|entry| entry.action == action);
                let is_open = open.iter().any(|part| part.action == action);
                let is_short = match reached {
                    Some(entry) => entry.range.through != through,
                    // A range without objects has a part without rows. A check of it lists the destination.
                    None => match action {
                        PartAction::Copy => self.request.kind == PlanKind::Copy,
                        PartAction::Verify => self.request.kind == PlanKind::Verify,
                        PartAction::Remove => false,
                    },
                };
                if !is_open && is_short {
                    open.push(OpenPart::begin(action)?);
                }
            }
        }
        let count = open.len();
        for (place, part) in open.into_iter().enumerate() {
            let reached = self.entries.iter().rfind(|entry| entry.action == part.action);
            let after =
                reached.map_or_else(|| self.request.range.after.clone(), |entry| entry.range.through.clone());
            let number = self.entries.len();
            let name = self.entry_names.data(number, &self.planner);
            let range = KeyRange::new(after, through.clone());
            let (entry, file) = part.finish(name, range, place + 1 == count)?;
            if let Some(finished) = &self.finished {
                let entry_name = self.entry_names.entry(number);
                // This fails only if the writing thread has ended with an error, which the caller returns.
                finished
                    .send(FinishedPart { entry: entry.clone(), entry_name, file })
                    .map_err(|_| local("the plan", "can't be written"))?;
            }
            self.entries.push(entry);
        }
        Ok(())
    }

    fn rows_of(&self, action: PartAction) -> u64 {
        let ended = self.entries.iter().filter(|entry| entry.action == action).map(|entry| entry.rows);
        let open = self.open.iter().filter(|part| part.action == action).map(|part| part.rows);
        ended.chain(open).sum()
    }

    fn progress(&self) -> PlanProgress {
        let sum = |count: fn(&PartEntry) -> u64, open: fn(&OpenPart) -> u64| {
            self.entries.iter().map(count).chain(self.open.iter().map(open)).sum()
        };
        PlanProgress {
            listed: 0,
            rows: sum(|entry| entry.rows, |part| part.rows),
            bytes: sum(|entry| entry.bytes, |part| part.bytes),
            parts: self.entries.len() as u64,
        }
    }

    fn finish(mut self) -> Result<(Vec<PartEntry>, PlanTotals), Error> {
        self.cut(None)?;
        let removed = self.rows_of(PartAction::Remove);
        let rows: u64 = self.entries.iter().map(|entry| entry.rows).sum();
        let kept = self.entries.iter().filter(|entry| entry.action != PartAction::Remove);
        let totals = PlanTotals {
            objects: rows - removed,
            bytes: kept.map(|entry| entry.bytes).sum(),
            removed,
            parts: self.entries.len() as u64,
            resumed_rows: self.resumed_rows,
            providers: None,
        };
        Ok((self.entries, totals))
    }
}
