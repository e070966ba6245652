//! Compares the rows of parts with a fresh listing of the destination.

use std::path::Path;

use laneway::internal::compare_listed;
use laneway::{Error, Filter, Location, ObjectMeta};

use crate::format::{PartAction, PartEntry, PlanKind, ResultRow, RowOutcome};
use crate::names::SortedNames;
use crate::part::fetch;
use crate::plan::Plan;

/// The outcome of a check of a plan, or of some of its parts.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct PlanCheck {
    /// Rows whose object is as planned.
    pub same: u64,
    /// Rows whose object is as planned by its size, but has no checksum to compare.
    pub unverified: u64,
    /// Rows whose copy is missing at the destination.
    pub missing: u64,
    /// Rows whose copy differs.
    pub different: u64,
    /// Objects that should have been removed, and are still there.
    pub left: u64,
    /// Objects that should have been removed, but were replaced by new versions. These stay.
    pub replaced: u64,
    /// Objects at the destination that the plan doesn't name.
    pub extra: u64,
}

impl PlanCheck {
    /// Compares the rows of one part with a listing of the destination, and passes on what is missing, different or
    /// extra.
    ///
    /// # Errors
    /// If the part's file was changed, or the destination can't be listed.
    pub fn of_part(plan: &Plan, number: usize, findings: &mut dyn FnMut(&ResultRow)) -> Result<Self, Error> {
        let entry = plan.part(number)?;
        let mut check = Self::default();
        let mut count = |row: ResultRow| {
            match (row.outcome, row.class.as_deref()) {
                (RowOutcome::Failed, Some("missing")) => check.missing += 1,
                (RowOutcome::Failed, Some("extra")) => check.extra += 1,
                (RowOutcome::Failed, Some("left")) => check.left += 1,
                (RowOutcome::Failed, Some("replaced")) => check.replaced += 1,
                (RowOutcome::Failed, _) => check.different += 1,
                (_, _) => {
                    check.same += 1;
                    check.unverified += u64::from(row.verified.as_deref() == Some("unverified"));
                    return Ok(());
                }
            }
            findings(&row);
            Ok(())
        };
        if entry.rows > 0 || entry.action != PartAction::Remove {
            let file = fetch(&*plan.files, &entry.name, (entry.size, &entry.crc32c))?;
            compare(plan, entry, file.path(), &mut count)?;
        }
        Ok(check)
    }

    /// Adds the counts of another part.
    pub fn add(&mut self, other: &Self) {
        let Self { same, unverified, missing, different, left, replaced, extra } = other;
        self.same += same;
        self.unverified += unverified;
        self.missing += missing;
        self.different += different;
        self.left += left;
        self.replaced += replaced;
        self.extra += extra;
    }

    /// Returns whether everything that the plan names is as planned. Extra objects are no fault of a copy, and new versions
    /// no fault of a removal.
    pub fn is_clean(&self) -> bool {
        self.missing == 0 && self.different == 0 && self.left == 0
    }
}

/// Merges the rows of a part with a listing of the same range of names. Each row, and each extra object at the
/// destination, becomes a result.
pub(crate) fn compare(
    plan: &Plan,
    entry: &PartEntry,
    file: &Path,
    rows: &mut dyn FnMut(ResultRow) -> Result<(), Error>,
) -> Result<(), Error> {
    let (source, destination) = (plan.source()?, plan.destination()?);
    let is_removal = entry.action == PartAction::Remove;
    // Only these plans name every object of the range.
    let index = plan.index();
    let has_extra = index.kind.is_complete() && index.retry_of.is_none() && !index.filtered;
    // A sync removes objects of its destination.
    let planned_at = match (is_removal, plan.index().kind) {
        (true, PlanKind::Sync) => &destination,
        _ => &source,
    };
    let part = (file, plan.files.shown(&entry.name));
    let mut planned = SortedNames::rows(&plan.client, planned_at, (&entry.range, entry.rows), part);
    let mut there = SortedNames::list(&plan.client, &destination, &entry.range, None, Filter::default());
    there.may_be_missing = true;
    loop {
        let order = match (planned.name()?, there.name()?) {
            (None, None) => return Ok(()),
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(a), Some(b)) => a.cmp(b),
        };
        let row = if order.is_le() { planned.take()? } else { None };
        let found = if order.is_ge() { there.take()? } else { None };
        let url = |at: &Location, meta: &ObjectMeta| match at {
            Location::Object { provider, .. } => format!("{}://{}", provider.scheme(), meta.id),
            _ => meta.id.to_string(),
        };
        let shown = match (&row, &found) {
            (Some(row), _) => url(planned_at, row),
            (None, Some(found)) => url(&destination, found),
            (None, None) => continue,
        };
        let bytes = row.as_ref().or(found.as_ref()).map_or(0, |meta| meta.size);
        let mut result = ResultRow {
            url: shown,
            destination: found.as_ref().map(|found| url(&destination, found)),
            outcome: RowOutcome::Done,
            bytes,
            attempts: 1,
            verified: None,
            skipped: None,
            error: None,
            class: None,
            status: None,
        };
        let failure = match (is_removal, &row, &found) {
            (true, Some(row), Some(found)) if row.version == found.version => {
                Some(("left", "it should have been removed, but is still there".to_owned()))
            }
            (true, Some(_), Some(_)) => Some(("replaced", "a new version was written, and stays".to_owned())),
            (true, Some(_), None) => None,
            (true, None, _) => continue,
            (false, None, _) if !has_extra => continue,
            // The destination's object may be older than the plan.
            (false, Some(_), Some(_)) if index.options.no_clobber => None,
            (false, row, found) => match compare_listed(row.as_deref(), found.as_deref()) {
                Ok(verified) => {
                    result.verified = Some(verified.to_string());
                    None
                }
                Err(why) => {
                    let class = match (row, found) {
                        (Some(_), Some(_)) => "different",
                        (Some(_), None) => "missing",
                        _ => "extra",
                    };
                    Some((class, why))
                }
            },
        };
        if let Some((class, why)) = failure {
            result.outcome = RowOutcome::Failed;
            result.class = Some(class.to_owned());
            result.error = Some(why);
        }
        rows(result)?;
    }
}
