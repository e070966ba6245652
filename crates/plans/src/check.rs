//! Compares the rows of parts with a fresh listing of the destination.

use std::path::Path;

use laneway::internal::compare_listed;
use laneway::{Client, Entry, Error, ErrorKind, ListRequest, Listing, Location, ObjectMeta};

use crate::format::{PartAction, PartEntry, PlanKind, ResultRow, RowOutcome, refused};
use crate::part::fetch;
use crate::plan::{Plan, prefix_of};

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
        let Self { same, unverified, missing, different, left, extra } = other;
        self.same += same;
        self.unverified += unverified;
        self.missing += missing;
        self.different += different;
        self.left += left;
        self.extra += extra;
    }

    /// Returns whether everything that the plan names is as planned. Extra objects are no fault of a copy.
    pub fn is_clean(&self) -> bool {
        self.missing == 0 && self.different == 0 && self.left == 0
    }
}

/// Compares the rows of a part that compares. Each row, and each extra object at the destination, becomes a result.
pub(crate) fn verify_part(
    plan: &Plan,
    entry: &PartEntry,
    file: &Path,
    rows: &mut dyn FnMut(ResultRow) -> Result<(), Error>,
) -> Result<(), Error> {
    compare(plan, entry, file, rows)
}

/// Merges the rows of a part with a listing of the same range of names.
fn compare(
    plan: &Plan,
    entry: &PartEntry,
    file: &Path,
    rows: &mut dyn FnMut(ResultRow) -> Result<(), Error>,
) -> Result<(), Error> {
    let (source, destination) = (plan.source()?, plan.destination()?);
    let is_removal = entry.action == PartAction::Remove;
    // Only these plans name every object of the range.
    let is_complete = matches!(plan.index().kind, PlanKind::Copy | PlanKind::Verify);
    let has_extra = is_complete && plan.index().retry_of.is_none();
    // A sync removes objects of its destination.
    let planned_at = match (is_removal, plan.index().kind) {
        (true, PlanKind::Sync) => &destination,
        _ => &source,
    };
    let mut planned = Names::of_part(&plan.client, planned_at, entry, file);
    let mut there = Names::listed(&plan.client, &destination, entry);
    loop {
        let order = match (planned.name()?, there.name()?) {
            (None, None) => return Ok(()),
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(a), Some(b)) => a.cmp(b),
        };
        let row = if order.is_le() { planned.next.take() } else { None };
        let found = if order.is_ge() { there.next.take() } else { None };
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
            (true, Some(_), _) => None,
            (true, None, _) => continue,
            (false, None, _) if !has_extra => continue,
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

/// Objects in the order of their names below a prefix.
struct Names {
    listing: Listing,
    prefix_len: usize,
    entry: PartEntry,
    next: Option<Box<ObjectMeta>>,
    is_over: bool,
    /// The number of objects that are still expected, and the part's file for an error about them.
    rows_left: Option<u64>,
}

impl Names {
    fn of_part(client: &Client, at: &Location, entry: &PartEntry, file: &Path) -> Self {
        let request = ListRequest::new(at.clone()).recursive(true).inventory(file.to_path_buf());
        Self::new(client.list(request), at, entry, Some(entry.rows))
    }

    fn listed(client: &Client, at: &Location, entry: &PartEntry) -> Self {
        let key = |name: String| format!("{}{name}", prefix_of(at));
        let mut request = ListRequest::new(at.clone()).recursive(true);
        request.start_after = entry.range.after.clone().map(key);
        request.end_before = entry.range.end_before().map(key);
        Self::new(client.list(request), at, entry, None)
    }

    fn new(listing: Listing, at: &Location, entry: &PartEntry, rows_left: Option<u64>) -> Self {
        let is_over = rows_left == Some(0);
        Self {
            listing,
            prefix_len: prefix_of(at).len(),
            entry: entry.clone(),
            next: None,
            is_over,
            rows_left,
        }
    }

    fn name(&mut self) -> Result<Option<&str>, Error> {
        while self.next.is_none() && !self.is_over {
            match self.listing.next_blocking() {
                Some(Ok(Entry::Object(object))) => {
                    let name = object.id.key.get(self.prefix_len..).unwrap_or_default();
                    let is_row = self.rows_left.is_some();
                    if !self.entry.range.has(name) && is_row {
                        return Err(refused(
                            &self.entry.name,
                            format!("row {name:?} lies outside of the part's range"),
                        ));
                    }
                    if self.entry.range.has(name) && (is_row || !name.is_empty()) {
                        self.rows_left = self.rows_left.map(|left| left.saturating_sub(1));
                        self.next = Some(object);
                    }
                }
                Some(Ok(_)) => {}
                // Nothing is below the prefix.
                Some(Err(error))
                    if error.kind() == ErrorKind::NotFound
                        && error.status().is_none()
                        && self.rows_left.is_none() =>
                {
                    self.is_over = true;
                }
                Some(Err(error)) => return Err(error),
                None => {
                    if let Some(left) = self.rows_left.filter(|left| *left > 0) {
                        return Err(refused(&self.entry.name, format!("lacks {left} of its rows")));
                    }
                    self.is_over = true;
                }
            }
        }
        let prefix_len = self.prefix_len;
        Ok(self.next.as_ref().map(|object| object.id.key.get(prefix_len..).unwrap_or_default()))
    }
}
