//! Makes a destination equal to a source. Laneway reads both sides as streams of sorted names, and merges the
//! two streams. Items that differ are copied as in a copy job. Removals wait until all copies are done.

mod carry;
mod compare;
mod content;
mod merge;
mod named;
pub(crate) mod planned;
mod removals;
mod side;
pub(crate) mod verify;

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use laneway_store::List;

use crate::inventory::InventoryScope;
use crate::job::pump::{CancelledJob, Units, pumped};
use crate::job::running::{FILTERED, JobState};
use crate::job::search::{FOLDED, Search};
use crate::listing::folder_prefix;
use crate::listing::names_from::NameList;
use crate::listing::walk::Links;
use crate::local::folder;
use crate::location::mapping::{SourceName, name_of_key, name_of_path};
use crate::{Error, Location, Op, SyncRequest, Warning};

use carry::Carrier;
use compare::{SyncAction, SyncRules};
use content::IncomparableCount;
use merge::{BlockingFiles, Turn, turn};
use removals::{Removal, Removals};
use side::{EntryPlace, Side, SideEntry, SideRole};

/// The maximum number of copies that wait until a removal clears their destination. Further copies don't
/// wait: they are tried immediately, and fail.
const BLOCKED_MAX: usize = 1 << 14;

/// Carries out a sync request. Returns after the job's last event.
pub(crate) async fn run(job: Arc<JobState>, request: SyncRequest) {
    match request.check() {
        Err(error) => fail(&job, &request, error).await,
        Ok(()) => {
            let subject = request.subject(&job.added_at(&request.destination));
            if let Err(error) = job.keep_manifest(request.manifest.as_ref(), subject, request.dry_run).await {
                fail(&job, &request, error).await;
                return job.finish().await;
            }
            if op(&request) == Op::Upload {
                job.progress.counts_sent();
            }
            let request = Arc::new(request);
            let unknown = Arc::new(IncomparableCount::default());
            let searching =
                |units| look_through(Arc::clone(&job), Arc::clone(&request), units, Arc::clone(&unknown));
            if let Some(found) = pumped(&job, searching).await {
                unknown.tell(&job, &request).await;
                clean_up(&job, &request, found).await;
                job.progress.scanned();
            }
        }
    }
    job.finish().await;
}

/// The work that waits until every copy has ended.
#[derive(Default)]
struct DeferredWork {
    removals: Removals,
    /// Copies that wait for a removal, because a file is where they need a folder, or a folder is where they
    /// need a file.
    blocked: Vec<SideEntry>,
    /// The number of names in the source that the filter includes.
    taken: u64,
}

struct SyncMerge<'a> {
    job: &'a JobState,
    request: &'a SyncRequest,
    rules: SyncRules,
    carrier: Carrier<'a>,
    in_the_way: BlockingFiles,
    /// The names seen so far. `None` if the destination distinguishes names that differ only in case.
    folded: Option<FoldedNames>,
    /// True if the names come from a file, which may list them in any order.
    is_named: bool,
    found: DeferredWork,
}

async fn look_through(
    job: Arc<JobState>,
    request: Arc<SyncRequest>,
    units: Units,
    unknown: Arc<IncomparableCount>,
) -> DeferredWork {
    let mut search = search(&job, &request, units);
    let mut found = DeferredWork::default();
    match merge(&job, &request, &mut search, unknown, &mut found).await {
        Ok(()) if found.removals.count == 0 && found.blocked.is_empty() => job.progress.scanned(),
        Ok(()) => {}
        Err(error) => fail(&job, &request, error).await,
    }
    found
}

/// Returns the search that starts the copies. The search doesn't look for existing destinations, because the
/// sync has already compared both sides.
fn search(job: &Arc<JobState>, request: &SyncRequest, units: Units) -> Search {
    let copying = Arc::new(request.copying().with_condition());
    Search { existing: None, ..Search::new(Arc::clone(job), copying, units) }
}

/// Reads both sides to their ends, and starts the copies. Collects removals and blocked copies in `found`.
///
/// # Errors
/// The error of a listing or of the destination's folder. After an error nothing may be removed, because one
/// side is only partly known.
async fn merge(
    job: &JobState,
    request: &SyncRequest,
    search: &mut Search,
    unknown: Arc<IncomparableCount>,
    found: &mut DeferredWork,
) -> Result<(), Error> {
    let folds = match &request.destination {
        Location::Local(root) => folder::folds_case(root),
        _ => false,
    };
    let mut merging = SyncMerge {
        job,
        request,
        rules: request.rules(),
        carrier: Carrier::new(search, request, unknown)?,
        in_the_way: BlockingFiles::default(),
        folded: folds.then(FoldedNames::default),
        is_named: request.files_from.is_some(),
        found: std::mem::take(found),
    };
    let merged = match &request.files_from {
        Some(at) => {
            let names = NameList::start(at, request.reading())?;
            let why = |is_empty| match is_empty {
                true => "contains no names",
                false if request.filter.is_empty() => "contains only names that the source doesn't have",
                false => FILTERED,
            };
            merging.named(names).await.map(|is_empty| (at.to_string(), why(is_empty)))
        }
        None => {
            let mut source = side(job, request, SideRole::Source)?;
            let mut destination = side(job, request, SideRole::Destination)?;
            refuse_a_second_copy(job, request, &mut source, &mut destination).await?;
            let merged = merging.merge(&mut source, &mut destination).await;
            // A prefix without objects is an error, because it may be mistyped. A bucket that can be listed
            // exists, so an empty one isn't an error.
            let is_prefix = matches!(&request.source, Location::Object { key, .. } if !key.is_empty());
            let is_missing = is_prefix && source.is_empty && !source.has_itself;
            if merged.is_ok() && is_missing && !request.allow_empty {
                let why = "does not exist: no object lies below it";
                return Err(Error::not_found(request.source.to_string(), why));
            }
            let why = if source.is_empty { "is empty" } else { FILTERED };
            merged.map(|()| (request.source.to_string(), why))
        }
    };
    let sent = merging.carrier.flush().await;
    let SyncMerge { folded, found: merged_found, .. } = merging;
    *found = merged_found;
    if let Some(folded) = folded {
        found.removals.keep(|name| folded.may_go(name)).map_err(spool)?;
    }
    // Sending fails only if the job was cancelled.
    drop(sent);
    let (target, why) = merged?;
    if found.taken == 0 && job.failed() == 0 {
        job.warn(Warning { target, message: why.to_owned() }).await;
    }
    Ok(())
}

impl SyncMerge<'_> {
    async fn merge(&mut self, source: &mut Side, destination: &mut Side) -> Result<(), Error> {
        loop {
            if source.is_waiting() || destination.is_waiting() {
                // Send the copies found so far before waiting for a page.
                if self.carrier.flush().await.is_err() {
                    return Ok(());
                }
            }
            let next = source.peek(self.job).await?.map(|entry| entry.name.as_str());
            let there = destination.peek(self.job).await?.map(|entry| entry.name.as_str());
            let Some(turn) = turn(next, there) else { return Ok(()) };
            let entry = if turn == Turn::Destination { None } else { source.take() };
            let there = if turn == Turn::Source { None } else { destination.take() };
            if let Some(there) = there.as_ref().filter(|_| turn == Turn::Destination)
                && source.leaves_out(&there.name)
            {
                continue;
            }
            if self.one(entry, there).await?.is_err() {
                return Ok(());
            }
        }
    }

    /// Copies, compares, skips or removes one name.
    async fn one(
        &mut self,
        source: Option<SideEntry>,
        there: Option<SideEntry>,
    ) -> Result<Result<(), CancelledJob>, Error> {
        let Some(name) = source.as_ref().or(there.as_ref()).map(|entry| entry.name.clone()) else {
            return Ok(Ok(()));
        };
        if let Some(source) = &source {
            self.spares(&name);
            if self.rules.filter.takes(&name, source.facts.size, source.facts.changed) {
                self.found.taken += 1;
            }
        }
        let action =
            self.rules.action(&name, source.as_ref().map(|e| &e.facts), there.as_ref().map(|e| &e.facts));
        if let (SyncAction::Copy | SyncAction::Compare(_), Some(source), Some(EntryPlace::Object(made))) =
            (action, &source, there.as_ref().map(|there| &there.at))
            && self.job.has_manifest()
            && self.job.has_made(&self.carrier.begin(self.job, source), made.version.as_ref())
        {
            self.job.unchanged(1);
            self.folds_into(&name);
            return Ok(Ok(()));
        }
        match (action, source, there) {
            (SyncAction::Nothing, ..) => {}
            (SyncAction::Unchanged, ..) => {
                self.job.unchanged(1);
                self.folds_into(&name);
            }
            (SyncAction::Skip(why), Some(entry), _) if !self.is_folder_there(&entry) => {
                self.job.progress.found(1, entry.facts.size);
                let begun = self.carrier.begin(self.job, &entry);
                self.job.skip(begun, entry.facts.size, why).await;
            }
            (SyncAction::Delete, _, Some(entry)) if !self.is_folder_there(&entry) => self.removes(entry)?,
            (SyncAction::Copy, Some(entry), there) if !self.is_folder_there(&entry) => {
                if !self.folds_into(&name) {
                    self.job.progress.found(1, entry.facts.size);
                    let begun = self.carrier.begin(self.job, &entry);
                    let error = Error::refused(entry.place(self.carrier.source()), FOLDED);
                    self.job.end(begun, entry.facts.size, Err(error)).await;
                } else if there.is_none() && self.is_blocked(&entry) && self.found.blocked.len() < BLOCKED_MAX
                {
                    self.found.blocked.push(entry);
                } else {
                    return Ok(self.carrier.copy(entry).await);
                }
            }
            (SyncAction::Compare(by), Some(source), Some(there)) => {
                self.folds_into(&name);
                return Ok(self.carrier.compare(source, there, by).await);
            }
            (SyncAction::Skip(_) | SyncAction::Delete | SyncAction::Copy | SyncAction::Compare(_), ..) => {}
        }
        Ok(Ok(()))
    }

    fn removes(&mut self, entry: SideEntry) -> Result<(), Error> {
        let version = match &entry.at {
            EntryPlace::File(_) => {
                self.in_the_way.deletes(&entry.name);
                None
            }
            EntryPlace::Object(meta) => meta.version.clone(),
        };
        let removal = Removal { name: entry.name, size: entry.facts.size, version };
        self.found.removals.add(removal).map_err(spool)
    }

    /// Returns whether the entry is an object that stands for a folder, and a local folder of that name
    /// exists.
    fn is_folder_there(&self, entry: &SideEntry) -> bool {
        let root = match (&self.request.source, &self.request.destination) {
            (Location::Local(root), _) | (_, Location::Local(root)) => root,
            _ => return false,
        };
        entry.is_folder() && root.join(&entry.name).is_dir()
    }

    /// Returns whether something that will be removed is in the way of this file. A folder with the file's
    /// name is in the way, and so is a file where this file needs a parent folder.
    fn is_blocked(&mut self, entry: &SideEntry) -> bool {
        let Location::Local(root) = &self.request.destination else { return false };
        let at = root.join(&entry.name);
        let is_below = match self.is_named {
            // With a list of names, the removals are known only once the last name is read. So look for the
            // obstacle on disk.
            true => folder::file_in_the_way(&at).is_some(),
            false => self.in_the_way.is_below(&entry.name),
        };
        self.rules.delete && (is_below || at.is_dir())
    }

    /// Records a name of the source, so that the sync doesn't remove a name at the destination that differs
    /// only in case.
    fn spares(&mut self, name: &str) {
        if let Some(folded) = &mut self.folded {
            folded.spare(name);
        }
    }

    /// Records a name that the destination has or will get. Returns false if the destination treats it as
    /// equal to an earlier name.
    fn folds_into(&mut self, name: &str) -> bool {
        self.folded.as_mut().is_none_or(|folded| folded.is_given(name))
    }
}

/// Removes items that the source doesn't have, if nothing has failed. Then copies the items whose
/// destinations the removed items blocked.
async fn clean_up(job: &Arc<JobState>, request: &Arc<SyncRequest>, found: DeferredWork) {
    let DeferredWork { removals, blocked, taken } = found;
    let is_cleared = removals.count > 0 && may_remove(job, request, &removals, taken).await;
    if is_cleared {
        job.progress.found(removals.count, 0);
        let removing = |units| removals::remove_all(job, request, removals, units);
        match pumped(job, removing).await {
            Some(Ok(())) => {}
            Some(Err(error)) => fail(job, request, error).await,
            None => return,
        }
    }
    if blocked.is_empty() {
        return;
    }
    let copying = |units| async move {
        let mut search = search(job, request, units);
        let unknown = Arc::new(IncomparableCount::default());
        match Carrier::new(&mut search, request, unknown) {
            Ok(mut carrier) => {
                for entry in blocked {
                    // If the planned removals would clear the destination, a dry run only reports the copy.
                    // Otherwise try the copy: it fails, and the error names the obstacle.
                    let sent = match request.dry_run && is_cleared {
                        true => carrier.plan(job, entry).await,
                        false => carrier.copy(entry).await,
                    };
                    if sent.is_err() {
                        return;
                    }
                }
                drop(carrier.flush().await);
            }
            Err(error) => fail(job, request, error).await,
        }
    };
    pumped(job, copying).await;
}

/// Returns whether this many removals are allowed. Reports an error if they aren't.
async fn may_remove(job: &JobState, request: &SyncRequest, removals: &Removals, taken: u64) -> bool {
    let (target, count) = (request.destination.to_string(), removals.count);
    let failed = job.failed();
    if failed > 0 {
        let message =
            format!("nothing was removed ({count} would have been), because {failed} of the items failed");
        job.warn(Warning { target, message }).await;
        return false;
    }
    let why = match request.max_delete {
        _ if taken == 0 && !request.allow_empty => {
            format!(
                "the source is empty, so {count} would be removed from the destination; add --allow-empty to do so"
            )
        }
        Some(max) if count > max => {
            format!("{count} would be removed from the destination, but --max-delete allows only {max}")
        }
        _ => return true,
    };
    let error = Error::refused(&target, why);
    job.fail(Op::Remove, target, None, error).await;
    false
}

/// Returns an error if the sync would copy the source a second time and then remove an earlier copy of it.
/// The earlier copy is a folder with the source's name. To save requests, this function lists folders only if
/// the first names on both sides make an earlier copy likely.
async fn refuse_a_second_copy(
    job: &JobState,
    request: &SyncRequest,
    source: &mut Side,
    destination: &mut Side,
) -> Result<(), Error> {
    let own_name = match &request.source {
        Location::Local(path) => match name_of_path(path) {
            SourceName::Named(name) => name,
            SourceName::Contents | SourceName::NotUtf8 => return Ok(()),
        },
        Location::Object { bucket, key, .. } => name_of_key(bucket, key).to_owned(),
        Location::Version { .. } | Location::Standard => return Ok(()),
    };
    let folder = format!("{own_name}/");
    let is_below = |entry: &SideEntry| entry.name.starts_with(&folder);
    if !request.delete || request.force || !destination.peek(job).await?.is_some_and(is_below) {
        return Ok(());
    }
    // Go on if the source is empty, because [`may_remove`] refuses it. Go on too if the source itself has a
    // folder with this name.
    if source.peek(job).await?.is_none_or(is_below) {
        return Ok(());
    }
    let there = first_names(job, &request.destination, "").await?;
    let source_has_it = !first_names(job, &request.source, &folder).await?.is_empty();
    if !compare::holds_only_a_copy(&own_name, &there, source_has_it) {
        return Ok(());
    }
    let at = request.destination.to_string();
    let copy = format!("{}/{own_name}", at.trim_end_matches('/'));
    let why = format!(
        "holds only the folder {folder}, which looks like an earlier copy of {}. --delete would copy \
         everything again next to this folder, and then remove the folder. Sync to {copy}, or add --force",
        request.source
    );
    Err(Error::refused(at, why))
}

/// Returns the first two names directly below a folder of the source or destination, or fewer if the folder
/// has fewer. The names of folders end in a slash.
async fn first_names(job: &JobState, at: &Location, folder: &str) -> Result<Vec<String>, Error> {
    const NAMES: usize = 2;
    let mut names = Vec::new();
    match at {
        Location::Object { provider, bucket, key } => {
            let prefix = format!("{}{folder}", folder_prefix(key));
            let list = List::new(bucket, prefix.clone());
            // Request one name more, because an object with exactly the prefix as its key is left out below.
            let max = Some(NAMES as u32 + 1);
            let mut list = List { delimiter: Some("/".to_owned()), max, ..list };
            while names.len() < NAMES {
                let page = job.store(*provider)?.list(&list).await?;
                let keys = page.objects.into_iter().map(|meta| meta.id.key).chain(page.prefixes);
                names.extend(keys.filter_map(|key| Some(key.strip_prefix(&prefix)?.to_owned())));
                names.retain(|name| !name.is_empty());
                list.token = page.next;
                if list.token.is_none() {
                    break;
                }
            }
        }
        Location::Local(root) => {
            let Ok(entries) = std::fs::read_dir(root.join(folder)) else { return Ok(names) };
            for entry in entries.take(NAMES).flatten() {
                let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                let name = entry.file_name().to_string_lossy().into_owned();
                names.push(if is_folder { name + "/" } else { name });
            }
        }
        Location::Version { .. } | Location::Standard => {}
    }
    Ok(names)
}

/// Returns the rule for the source's links: which of them the sync follows.
fn links(request: &SyncRequest) -> Links {
    match (request.follow_symlinks, request.ignore_symlinks) {
        (_, true) => Links::None,
        (true, false) => Links::All,
        (false, false) => Links::ToFiles,
    }
}

fn side(job: &JobState, request: &SyncRequest, role: SideRole) -> Result<Side, Error> {
    let at = if role == SideRole::Source { &request.source } else { &request.destination };
    match at {
        Location::Object { provider, bucket, key } => {
            if let Some(at) = request.inventory.as_ref().filter(|_| role == SideRole::Source) {
                let place = InventoryScope {
                    provider: *provider,
                    bucket: bucket.clone(),
                    prefix: folder_prefix(key),
                };
                return Side::inventory(job, at, place, role);
            }
            let store = job.store(*provider)?;
            Side::prefix(store, bucket, &folder_prefix(key), role)
        }
        Location::Local(root) => {
            let links = if role == SideRole::Source { links(request) } else { Links::None };
            Side::tree(root.clone(), role, links, &request.filter)
        }
        Location::Version { .. } => Err(Error::usage(at.to_string(), "a version is not a folder")),
        Location::Standard => Err(Error::usage("-", "a stream can't be synced")),
    }
}

fn op(request: &SyncRequest) -> Op {
    match (&request.source, &request.destination) {
        (Location::Object { .. }, Location::Object { .. }) => Op::Copy,
        (_, Location::Object { .. }) => Op::Upload,
        _ => Op::Download,
    }
}

async fn fail(job: &JobState, request: &SyncRequest, error: Error) {
    let (source, destination) = (request.source.to_string(), request.destination.to_string());
    job.fail(op(request), source, Some(destination), error).await;
}

fn spool(error: std::io::Error) -> Error {
    Error::local("a temporary file", "can't be used", error)
}

impl SyncRequest {
    fn rules(&self) -> SyncRules {
        SyncRules {
            filter: self.filter.clone(),
            delete: self.delete,
            checksum: self.checksum,
            size_only: self.size_only,
            update: self.update,
            existing: self.existing,
            ignore_existing: self.ignore_existing,
            keeps_times: self.preserve || !self.destination.is_object(),
            asks_times: self.preserve && self.source.is_object() && !self.destination.is_object(),
        }
    }
}

/// The names of a sync, to find those that differ only in case. The set holds 63 bits of a keyed hash of each
/// name in lower case. The last bit is 1 for names that the destination has or will get, and 0 for other
/// names of the source.
#[derive(Debug, Default)]
struct FoldedNames {
    names: HashSet<u64>,
    keys: RandomState,
}

impl FoldedNames {
    /// Records a name that the destination has or will get. Returns false if such a name that differs at most
    /// in case was recorded before.
    fn is_given(&mut self, name: &str) -> bool {
        let (spared, given) = self.marks(name);
        self.names.remove(&spared);
        self.names.insert(given)
    }

    /// Records a name of the source, even if filters exclude it. A name at the destination that differs at
    /// most in case must not be removed.
    fn spare(&mut self, name: &str) {
        let (spared, given) = self.marks(name);
        if !self.names.contains(&given) {
            self.names.insert(spared);
        }
    }

    /// Returns whether a name may be removed from the destination, because it differs in more than case from
    /// every name of the source.
    fn may_go(&self, name: &str) -> bool {
        let (spared, given) = self.marks(name);
        !self.names.contains(&spared) && !self.names.contains(&given)
    }

    /// Returns the two entries that a name can have in the set: as a name of the source, and as a name at the
    /// destination.
    fn marks(&self, name: &str) -> (u64, u64) {
        let hash = self.keys.hash_one(name.to_lowercase());
        (hash & !1, hash | 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_source_has_under_one_name_does_not_go_under_another() {
        let mut folded = FoldedNames::default();
        assert!(folded.is_given("Read.me") && !folded.is_given("read.ME"));
        folded.spare("Kept");
        assert!(folded.is_given("kept"), "a spared name isn't taken by another source");
        assert!(!folded.may_go("KEPT") && folded.may_go("other"));
        folded.spare("READ.me");
        assert!(!folded.is_given("Read.Me"), "a name that was given stays given");
    }
}
