//! The files of a plan as JSON. `docs/plans.md` describes them field by field.

use std::collections::{BTreeMap, BTreeSet};

use laneway::{Error, ErrorKind};
use serde::{Deserialize, Serialize};

pub(crate) const FORMAT: &str = "laneway-plan";
pub(crate) const VERSION: u32 = 1;

/// The purpose of a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum PlanKind {
    /// Copies a prefix to another.
    Copy,
    /// Makes a prefix equal to another.
    Sync,
    /// Removes the objects below a prefix.
    Remove,
    /// Compares two prefixes.
    Verify,
}

impl PlanKind {
    /// Returns whether a plan of this kind can have parts with an action.
    fn has(self, action: PartAction) -> bool {
        match action {
            PartAction::Copy => matches!(self, Self::Copy | Self::Sync),
            PartAction::Remove => matches!(self, Self::Sync | Self::Remove),
            PartAction::Verify => self == Self::Verify,
        }
    }

    /// Returns whether a plan of this kind names each object of its source.
    pub(crate) fn is_complete(self) -> bool {
        matches!(self, Self::Copy | Self::Verify)
    }
}

/// The action on each object of a part.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum PartAction {
    /// Copy the object to the destination.
    Copy,
    /// Remove the object. An object that is gone already counts as removed.
    Remove,
    /// Compare the object with the destination's.
    Verify,
}

impl PartAction {
    /// Returns `copy`, `remove` or `verify`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Remove => "remove",
            Self::Verify => "verify",
        }
    }
}

/// A range of keys. A bound that is `None` leaves the range open.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct KeyRange {
    /// The range has only keys that sort after this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// The last key of the range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<String>,
}

impl KeyRange {
    /// Returns the range of the keys after `after`, up to and including `through`.
    pub fn new(after: Option<String>, through: Option<String>) -> Self {
        Self { after, through }
    }

    /// Returns whether a key lies in the range.
    pub fn has(&self, key: &str) -> bool {
        self.after.as_deref().is_none_or(|after| key > after)
            && self.through.as_deref().is_none_or(|through| key <= through)
    }

    /// Returns whether two ranges can have a key in common.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let begins_before_end = |one: &Self, other: &Self| match (&one.after, &other.through) {
            (Some(after), Some(through)) => after < through,
            _ => true,
        };
        begins_before_end(self, other) && begins_before_end(other, self)
    }

    /// Returns the bound for a listing, which excludes the bound itself. A few keys before it may lie behind the
    /// range: [`has`](Self::has) finds them.
    pub(crate) fn end_before(&self) -> Option<String> {
        self.through.as_ref().map(|through| format!("{through} "))
    }
}

/// The settings of a plan that change the outcome of its parts.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PlanOptions {
    /// The storage class of the copies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class: Option<String>,
    /// Skip objects whose destination exists.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_clobber: bool,
    /// The bandwidth in bytes a second that all runners together may use. Each runner uses an equal share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth_limit: Option<u64>,
    /// The number of runners that share the bandwidth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runners: Option<u32>,
}

/// The index of a plan, or of one range of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PlanIndex {
    /// Always `laneway-plan`.
    pub format: String,
    /// The version of the format.
    pub version: u32,
    /// The purpose of the plan.
    pub kind: PlanKind,
    /// The URL of the source's prefix. For a removal, the prefix whose objects are removed.
    pub source: String,
    /// The URL of the destination's prefix.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
    /// The settings that change the outcome.
    #[serde(default)]
    pub options: PlanOptions,
    /// A checksum of the filters and comparison rules. Indexes of one plan must have the same.
    pub selection: String,
    /// True if filters left out objects, so that a check can't tell which objects at the destination are extra.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub filtered: bool,
    /// The range of names, relative to the source's prefix, that this index covers.
    #[serde(default)]
    pub range: KeyRange,
    /// The plan whose failed rows this plan repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<String>,
    /// The time when the planning began, in RFC 3339.
    pub created: String,
    /// The number of rows in all parts.
    pub rows: u64,
    /// The sum of the sizes of all rows' objects.
    pub bytes: u64,
    /// The parts, in the order of their keys. Parts that remove objects come last.
    pub parts: Vec<PartEntry>,
    /// The CRC32C of all other fields, in hexadecimal.
    pub crc32c: String,
}

/// A part in an index.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PartEntry {
    /// The name of the part's file, relative to the plan's folder.
    pub name: String,
    /// The action on each row.
    pub action: PartAction,
    /// The range of names, relative to the prefix, that the part covers. It can be wider than its rows.
    pub range: KeyRange,
    /// The number of rows.
    pub rows: u64,
    /// The sum of the sizes of the rows' objects.
    pub bytes: u64,
    /// The size of the part's file in bytes.
    pub size: u64,
    /// The CRC32C of the part's file, in hexadecimal.
    pub crc32c: String,
    /// True for the last part that ends at its range's end. The planning can continue after this part.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub closes: bool,
}

/// The outcome of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum RowOutcome {
    /// The action was done.
    Done,
    /// The action was not needed.
    Skipped,
    /// The action failed.
    Failed,
}

/// A line of a result's data file: the outcome of one row.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResultRow {
    /// The URL of the row's object.
    pub url: String,
    /// The URL of the copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
    /// The outcome.
    pub outcome: RowOutcome,
    /// The object's size in bytes.
    pub bytes: u64,
    /// The largest number of attempts of one of the row's requests.
    pub attempts: u32,
    /// The checksum that was equal on both sides: see `verified` in the records of `cp --json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<String>,
    /// The reason why nothing had to be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// The error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The class of the error: see `class` in the records of `cp --json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// The HTTP status of the error, if a store answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}

/// The result of a part. Its existence means that the part has ended.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResultSummary {
    /// Always `laneway-plan`.
    pub format: String,
    /// The version of the format.
    pub version: u32,
    /// The name of the part's file.
    pub part: String,
    /// The CRC32C of the part's file.
    pub part_crc32c: String,
    /// The name of the file with the rows, relative to the plan's folder.
    pub data: String,
    /// The size of this file in bytes.
    pub data_size: u64,
    /// The CRC32C of this file.
    pub data_crc32c: String,
    /// The runner.
    pub runner: String,
    /// The number of the attempt to run the part, counted from 1.
    pub attempt: u32,
    /// The number of rows.
    pub rows: u64,
    /// Rows that were done.
    pub done: u64,
    /// Rows that needed no action.
    pub skipped: u64,
    /// Rows that failed.
    pub failed: u64,
    /// Rows that were done, but without a checksum to compare.
    pub unverified: u64,
    /// Bytes of the rows that were done.
    pub bytes: u64,
    /// Requests sent, counting every attempt.
    pub requests: u64,
    /// The time that the part took, in seconds.
    pub seconds: f64,
    /// The number of failures by their class.
    #[serde(default)]
    pub failures: BTreeMap<String, u64>,
}

/// Returns a CRC32C in hexadecimal.
pub(crate) fn crc_of(bytes: &[u8]) -> String {
    format!("{:08x}", crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes))
}

pub(crate) fn refused(target: impl Into<String>, why: impl Into<String>) -> Error {
    laneway::internal::error(ErrorKind::Refused, target, why)
}

pub(crate) fn usage(target: impl Into<String>, why: impl Into<String>) -> Error {
    laneway::internal::error(ErrorKind::Usage, target, why)
}

pub(crate) fn local(target: impl Into<String>, why: impl std::fmt::Display) -> Error {
    laneway::internal::error(ErrorKind::Local, target, why.to_string())
}

impl PlanIndex {
    /// Returns the index as JSON, with its checksum.
    pub(crate) fn sealed(mut self) -> Result<(Self, Vec<u8>), Error> {
        self.check().map_err(|why| local("the index", why))?;
        self.crc32c = self.checksum();
        let json = serde_json::to_vec_pretty(&self).map_err(|e| local("the index", e))?;
        Ok((self, json))
    }

    fn checksum(&self) -> String {
        let bare = Self { crc32c: String::new(), ..self.clone() };
        crc_of(&serde_json::to_vec(&bare).unwrap_or_default())
    }

    /// Parses an index and checks that it is whole. `name` is its URL or path, for errors.
    pub(crate) fn parse(name: &str, json: &[u8]) -> Result<Self, Error> {
        let index = Self::parse_header(name, json)?;
        let checked = match index.crc32c == index.checksum() {
            true => index.check(),
            false => Err("its checksum differs".to_owned()),
        };
        checked.map_err(|why| refused(name, format!("the index was changed or is damaged: {why}")))?;
        Ok(index)
    }

    /// Parses an index whose parts aren't known yet.
    pub(crate) fn parse_header(name: &str, json: &[u8]) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct Header {
            format: String,
            version: u32,
        }
        let header: Header =
            serde_json::from_slice(json).map_err(|e| refused(name, format!("isn't a plan's index: {e}")))?;
        if header.format != FORMAT {
            return Err(refused(name, format!("isn't a plan's index: its format is {:?}", header.format)));
        }
        if header.version != VERSION {
            let why = format!(
                "this plan has version {}, but this program reads version {VERSION}; use the program that made it",
                header.version
            );
            return Err(refused(name, why));
        }
        serde_json::from_slice(json).map_err(|e| refused(name, format!("the index is damaged: {e}")))
    }

    fn check(&self) -> Result<(), String> {
        let sums = self.parts.iter().fold((0_u64, 0_u64), |(rows, bytes), part| {
            (rows.saturating_add(part.rows), bytes.saturating_add(part.bytes))
        });
        if sums != (self.rows, self.bytes) {
            return Err(format!(
                "its parts have {} rows and {} bytes, but it says {} and {}",
                sums.0, sums.1, self.rows, self.bytes
            ));
        }
        if (self.destination.is_none()) != (self.kind == PlanKind::Remove) {
            return Err("its destination is missing, or superfluous".to_owned());
        }
        if self.options.runners == Some(0) {
            return Err("its bandwidth has no runners".to_owned());
        }
        let mut names = BTreeSet::new();
        let mut reached: BTreeMap<PartAction, &Option<String>> = BTreeMap::new();
        for part in &self.parts {
            let is_plain =
                !part.name.is_empty() && !part.name.split('/').any(|step| matches!(step, "" | "." | ".."));
            if !is_plain || !names.insert(&part.name) {
                return Err(format!("part {:?} is there twice, or has no proper name", part.name));
            }
            if !self.kind.has(part.action) {
                return Err(format!("part {:?} has another action than the plan", part.name));
            }
            let before = reached.insert(part.action, &part.range.through);
            if before.is_some_and(|through| through.is_none() || *through != part.range.after) {
                return Err(format!("part {:?} doesn't begin where the part before it ends", part.name));
            }
            if before.is_none() && part.range.after != self.range.after {
                return Err(format!("the part before {:?} is missing", part.name));
            }
        }
        let is_bare = self.kind.is_complete() && reached.is_empty();
        match is_bare || reached.values().any(|through| **through != self.range.through) {
            true => Err("its last part is missing".to_owned()),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &str, action: PartAction, after: Option<&str>, through: Option<&str>) -> PartEntry {
        PartEntry {
            name: name.to_owned(),
            action,
            range: KeyRange::new(after.map(str::to_owned), through.map(str::to_owned)),
            rows: 1,
            bytes: 10,
            size: 5,
            crc32c: "00000000".to_owned(),
            closes: true,
        }
    }

    fn index(parts: Vec<PartEntry>) -> PlanIndex {
        PlanIndex {
            format: FORMAT.to_owned(),
            version: VERSION,
            kind: PlanKind::Sync,
            source: "s3://a/".to_owned(),
            destination: Some("s3://b/".to_owned()),
            options: PlanOptions::default(),
            selection: String::new(),
            filtered: false,
            range: KeyRange::default(),
            retry_of: None,
            created: "2026-11-29T00:00:00Z".to_owned(),
            rows: parts.len() as u64,
            bytes: 10 * parts.len() as u64,
            parts,
            crc32c: String::new(),
        }
    }

    fn parsed(index: &PlanIndex) -> Result<PlanIndex, String> {
        let sealed = PlanIndex { crc32c: index.checksum(), ..index.clone() };
        let json = serde_json::to_vec(&sealed).expect("an index is JSON");
        PlanIndex::parse("plan/index.json", &json).map_err(|error| error.to_string())
    }

    #[test]
    fn a_whole_index_is_read_as_it_was_written() {
        let parts = vec![
            part("parts/0", PartAction::Copy, None, Some("k")),
            part("parts/1", PartAction::Copy, Some("k"), None),
            part("parts/2", PartAction::Remove, None, None),
        ];
        let (whole, json) = index(parts).sealed().expect("it is whole");
        assert_eq!(parsed(&whole).as_ref(), Ok(&whole));
        let text = String::from_utf8(json).expect("JSON");
        let edited = text.replace("\"copy\"", "\"remove\"");
        let error = PlanIndex::parse("plan/index.json", edited.as_bytes()).unwrap_err();
        assert!(error.to_string().contains("its checksum differs"), "{error}");
    }

    #[test]
    fn parts_that_are_missing_twice_or_changed_are_named() {
        let (first, last) = (
            part("parts/0", PartAction::Copy, None, Some("k")),
            part("parts/1", PartAction::Copy, Some("k"), None),
        );
        let cases = [
            (vec![first.clone()], "last part is missing"),
            (vec![last.clone()], "part before \"parts/1\" is missing"),
            (vec![first.clone(), first.clone()], "is there twice"),
            (vec![first.clone(), part("parts/1", PartAction::Copy, Some("j"), None)], "doesn't begin where"),
            (vec![part("../etc", PartAction::Copy, None, None)], "no proper name"),
            (vec![part("parts/0", PartAction::Verify, None, None)], "another action"),
        ];
        for (parts, why) in cases {
            let error = parsed(&index(parts)).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        let mut fewer = index(vec![first, last]);
        fewer.rows -= 1;
        assert!(parsed(&fewer).unwrap_err().contains("2 rows"));
    }

    #[test]
    fn other_formats_and_versions_are_refused_by_name() {
        let mut other = index(vec![part("p", PartAction::Copy, None, None)]);
        other.version = 2;
        assert!(parsed(&other).unwrap_err().contains("version 2"));
        other.format = "another".to_owned();
        assert!(parsed(&other).unwrap_err().contains("another"));
        assert!(PlanIndex::parse("x", b"{}").is_err());
    }
}
