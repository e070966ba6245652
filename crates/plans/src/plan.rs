//! A plan that was made, as its runners see it.

use std::cmp::Ordering;

use laneway::{Client, Error, Location};

use crate::files::{PlanFiles, files_at};
use crate::format::{KeyRange, PartAction, PartEntry, PlanIndex, refused};

/// A plan.
pub struct Plan {
    pub(crate) client: Client,
    pub(crate) files: Box<dyn PlanFiles>,
    folder: String,
    index: PlanIndex,
}

impl std::fmt::Debug for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plan").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Plan {
    /// Opens the plan in a folder, which may be a prefix of a bucket.
    ///
    /// # Errors
    /// `ErrorKind::Refused` if the plan isn't finished, is damaged, or has another version; else the errors of the
    /// store.
    pub fn open(client: &Client, folder: &Location) -> Result<Self, Error> {
        let files = files_at(client, folder)?;
        let names = files.list("index")?;
        let mut indexes = Vec::with_capacity(names.len());
        for name in names.iter().filter(|name| is_index(name)) {
            let Some(file) = files.read(name)? else { continue };
            indexes.push(PlanIndex::parse(&files.shown(name), &file.bytes)?);
        }
        if indexes.is_empty() {
            let why = match files.list("planning")?.is_empty() {
                true => "there is no plan in this folder",
                false => "this plan isn't finished; run the command that makes it again, and it continues",
            };
            return Err(refused(folder.to_string(), why));
        }
        let index = joined(indexes).map_err(|why| refused(folder.to_string(), why))?;
        Ok(Self { client: client.clone(), files, folder: folder.to_string(), index })
    }

    /// Returns the index. If the plan was made in several ranges, it covers all of them.
    pub fn index(&self) -> &PlanIndex {
        &self.index
    }

    /// Returns the parts. First come those that copy or compare, in the order of their keys, then those that remove.
    pub fn parts(&self) -> &[PartEntry] {
        &self.index.parts
    }

    /// Returns the folder of the plan, as it was given.
    pub fn folder(&self) -> &str {
        &self.folder
    }

    /// Returns the part with a number, counted from 0.
    ///
    /// # Errors
    /// `ErrorKind::Usage` if the plan has fewer parts.
    pub fn part(&self, number: usize) -> Result<&PartEntry, Error> {
        self.index.parts.get(number).ok_or_else(|| {
            let parts = self.index.parts.len();
            crate::format::usage(
                &self.folder,
                format!("there is no part {number}: the plan has {parts} parts, from 0"),
            )
        })
    }

    pub(crate) fn source(&self) -> Result<Location, Error> {
        self.index.source.parse::<Location>().map(Location::as_written)
    }

    pub(crate) fn destination(&self) -> Result<Location, Error> {
        match &self.index.destination {
            Some(url) => url.parse::<Location>().map(Location::as_written),
            None => self.source(),
        }
    }
}

/// Returns whether a file is the index of a plan or of a range.
pub(crate) fn is_index(name: &str) -> bool {
    let tag = name.strip_prefix("index").and_then(|rest| rest.strip_suffix(".json"));
    tag.is_some_and(|tag| {
        let digits = tag.strip_prefix('-').unwrap_or_default();
        tag.is_empty() || (digits.len() == 8 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
    })
}

/// Returns the key that begins all keys below a location.
pub(crate) fn prefix_of(at: &Location) -> &str {
    match at {
        Location::Object { key, .. } => key,
        _ => "",
    }
}

/// Joins the indexes of the ranges of a plan.
fn joined(mut indexes: Vec<PlanIndex>) -> Result<PlanIndex, String> {
    indexes.sort_by(|a, b| match (&a.range.after, &b.range.after) {
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Less,
        (Some(_), None) => Ordering::Greater,
        (Some(a), Some(b)) => a.cmp(b),
    });
    let mut indexes = indexes.into_iter();
    let Some(mut whole) = indexes.next() else { return Err("there is no plan in this folder".to_owned()) };
    if whole.range.after.is_some() {
        return Err(missing(None, whole.range.after.as_deref()));
    }
    for next in indexes {
        let of = |index: &PlanIndex| {
            (
                index.kind,
                index.source.clone(),
                index.destination.clone(),
                index.options.clone(),
                index.selection.clone(),
            )
        };
        if of(&whole) != of(&next) {
            return Err(
                "the plan's ranges were planned with different sources, destinations or options".to_owned()
            );
        }
        match (&whole.range.through, &next.range.after) {
            (Some(through), Some(after)) if through == after => {}
            (Some(through), Some(after)) if through < after => {
                return Err(missing(Some(through), Some(after)));
            }
            _ => {
                let at = next.range.after.as_deref().unwrap_or_default();
                return Err(format!("two ranges of the plan overlap at {at:?}"));
            }
        }
        whole.range = KeyRange::new(None, next.range.through);
        whole.rows += next.rows;
        whole.bytes += next.bytes;
        whole.parts.extend(next.parts);
    }
    if let Some(through) = &whole.range.through {
        return Err(missing(Some(through), None));
    }
    // A stable sort keeps the order of the keys.
    whole.parts.sort_by_key(|part| part.action == PartAction::Remove);
    Ok(whole)
}

fn missing(after: Option<&str>, through: Option<&str>) -> String {
    let bounds = match (after, through) {
        (Some(after), Some(through)) => format!("after {after:?}, up to {through:?}"),
        (Some(after), None) => format!("after {after:?}"),
        (None, Some(through)) => format!("up to {through:?}"),
        (None, None) => "of all keys".to_owned(),
    };
    format!("the range of the keys {bounds} isn't planned yet")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{FORMAT, PlanKind, PlanOptions, VERSION};

    fn index(after: Option<&str>, through: Option<&str>) -> PlanIndex {
        PlanIndex {
            format: FORMAT.to_owned(),
            version: VERSION,
            kind: PlanKind::Copy,
            source: "s3://a/".to_owned(),
            destination: Some("s3://b/".to_owned()),
            options: PlanOptions::default(),
            selection: String::new(),
            filtered: false,
            crc32c: String::new(),
            range: KeyRange::new(after.map(str::to_owned), through.map(str::to_owned)),
            retry_of: None,
            created: String::new(),
            rows: 1,
            bytes: 1,
            parts: Vec::new(),
        }
    }

    #[test]
    fn ranges_that_meet_are_one_plan() {
        let whole = joined(vec![index(Some("k"), None), index(None, Some("k"))]).expect("both are there");
        assert_eq!((whole.range, whole.rows), (KeyRange::default(), 2));
    }

    #[test]
    fn ranges_that_are_missing_or_overlap_are_named() {
        let error = |indexes| joined(indexes).unwrap_err();
        assert!(error(vec![index(None, Some("k"))]).contains("after \"k\" isn't planned"));
        assert!(error(vec![index(Some("k"), None)]).contains("up to \"k\" isn't planned"));
        assert!(
            error(vec![index(None, Some("k")), index(Some("m"), None)]).contains("after \"k\", up to \"m\"")
        );
        assert!(error(vec![index(None, Some("k")), index(Some("j"), None)]).contains("overlap at \"j\""));
        let mut other = index(Some("k"), None);
        other.source = "s3://c/".to_owned();
        assert!(error(vec![index(None, Some("k")), other]).contains("different sources"));
    }
}
