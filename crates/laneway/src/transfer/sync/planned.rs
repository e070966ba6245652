//! Decides what a sync does with the objects of two listings, without any further request. Plans of large
//! syncs (`crates/plans`) use these decisions.

use laneway_store::{ObjectMeta, Store};

use super::compare::{SyncAction, SyncRules, is_as_new};
use super::content::{compared, listed_sums};
use super::side::SideEntry;
use super::verify::finding::{Finding, finding};
use crate::location::mapping::tree_prefix;
use crate::{CopyRequest, Error, Location, SyncRequest, Verified};

/// The decision on one name of a sync between two prefixes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SyncDecision {
    /// Both sides are equal, or the request leaves the name out.
    Leave,
    /// The source's object is copied.
    Copy,
    /// The destination's object is removed.
    Remove,
}

/// Decides on the names of a sync between two prefixes.
#[derive(Debug)]
pub struct SyncPlanner {
    rules: SyncRules,
    from: Store,
    to: Store,
}

impl SyncPlanner {
    /// Returns a planner for a request between two stores.
    pub(crate) fn new(from: Store, to: Store, request: &SyncRequest) -> Self {
        Self { rules: request.rules(), from: from.as_source(), to }
    }

    /// Decides on a name. If the listings don't show whether two objects are equal, the source's object is
    /// copied.
    pub fn decide(
        &self,
        name: &str,
        source: Option<&ObjectMeta>,
        destination: Option<&ObjectMeta>,
    ) -> SyncDecision {
        let entry = |meta: &ObjectMeta| SideEntry::of_object(name.to_owned(), meta.clone()).facts;
        let facts = (source.map(entry), destination.map(entry));
        match self.rules.action(name, facts.0.as_ref(), facts.1.as_ref()) {
            SyncAction::Nothing | SyncAction::Unchanged | SyncAction::Skip(_) => SyncDecision::Leave,
            SyncAction::Copy => SyncDecision::Copy,
            SyncAction::Delete => SyncDecision::Remove,
            SyncAction::Compare(_) => match (source, destination, facts.0, facts.1) {
                (Some(a), Some(b), Some(source), Some(destination)) => {
                    let same = compared(&listed_sums(&self.from, a), &listed_sums(&self.to, b));
                    let is_same =
                        same.unwrap_or_else(|| !self.rules.checksum && is_as_new(&source, &destination));
                    if is_same { SyncDecision::Leave } else { SyncDecision::Copy }
                }
                _ => SyncDecision::Copy,
            },
        }
    }
}

/// Compares the objects of one name as listings show them, like `verify`. Returns the kind of checksum that is
/// equal.
///
/// # Errors
/// A message that says how the objects differ, or which of them is missing.
pub fn compare_listed(
    source: Option<&ObjectMeta>,
    destination: Option<&ObjectMeta>,
) -> Result<Verified, String> {
    let entry = |meta: &ObjectMeta| SideEntry::of_object(String::new(), meta.clone());
    match finding(source.map(entry).as_ref(), destination.map(entry).as_ref()) {
        Finding::Same(verified) => Ok(verified),
        other => Err(other.message()),
    }
}

/// Returns the prefix below which a copy of one prefix puts the objects, as a location that ends in a slash or
/// names a whole bucket.
///
/// # Errors
/// `ErrorKind::Usage` if the request is invalid, or doesn't copy one prefix to another.
pub fn tree_destination(request: &CopyRequest) -> Result<Location, Error> {
    request.check()?;
    match (&request.sources[..], &request.destination) {
        (
            [Location::Object { bucket: from, key: source, .. }],
            Location::Object { provider, bucket, key },
        ) if request.recursive && !request.sources[0].is_pattern() => {
            let is_folder = request.destination.is_written_as_folder();
            let prefix = tree_prefix(key, is_folder, &request.tree_name(from, source));
            Ok(Location::object(*provider, bucket, prefix))
        }
        _ => Err(Error::usage(
            request.destination.to_string(),
            "only a copy from one prefix to another can be planned",
        )),
    }
}
