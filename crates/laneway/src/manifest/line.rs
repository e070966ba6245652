//! The lines of a manifest: one that says whose it is, and one for each item.

use std::path::Path;

use laneway_store::{Checksums, Version};
use serde::{Deserialize, Serialize};

use super::settings::Settings;
use crate::checksum::written;
use crate::{Location, Outcome};

/// Raised when what a line says changes its meaning.
const FORMAT: u32 = 1;
/// The outcome of an item that was done.
pub(super) const DONE: &str = "done";

/// Whose a manifest is.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub(crate) struct Subject {
    kind: String,
    format: u32,
    /// `copy`, `move`, `remove`, `sync`.
    job: String,
    /// Local ones from the root: the same words mean other files in another folder.
    sources: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    destination: Option<String>,
    /// A digest of what new objects or files are to be, beyond their contents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    settings: Option<String>,
    /// Whether the destination was a folder when the job first began: what it has made since doesn't change what the job means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    into_folder: Option<bool>,
}

impl Subject {
    pub(crate) fn new(job: &str, sources: &[Location], destination: Option<&Location>) -> Self {
        Self {
            kind: "manifest".to_owned(),
            format: FORMAT,
            job: job.to_owned(),
            sources: sources.iter().map(from_the_root).collect(),
            destination: destination.map(from_the_root),
            settings: None,
            into_folder: None,
        }
    }

    /// The same of a job that makes what it makes in this way.
    pub(crate) fn making(self, settings: &Settings<'_>) -> Self {
        Self { settings: Some(settings.digest()), ..self }
    }

    /// The same of a job whose destination is a folder, or isn't.
    pub(crate) fn into_folder(self, is_folder: bool) -> Self {
        Self { into_folder: Some(is_folder), ..self }
    }

    pub(super) fn line(&self) -> Vec<u8> {
        line(self)
    }

    /// Whether the first line of a manifest says this; and whether the destination was a folder then.
    ///
    /// # Errors
    /// What it says instead.
    pub(super) fn check(&self, first: &[u8]) -> Result<Option<bool>, String> {
        let mut found: Self = match serde_json::from_slice(first) {
            Ok(found) => found,
            Err(_) => return Err("this is no manifest".to_owned()),
        };
        if found.kind != self.kind {
            return Err("this is no manifest".to_owned());
        }
        if found.format != FORMAT {
            return Err(format!("this manifest is of format {}, which is not known here", found.format));
        }
        let was_folder = std::mem::replace(&mut found.into_folder, self.into_folder);
        match found == *self {
            true => Ok(was_folder),
            false if (Self { settings: self.settings.clone(), ..found.clone() }) == *self => Err(format!(
                "this is the manifest of another job, of {} with other settings of what it makes",
                found.described()
            )),
            false => Err(format!("this is the manifest of another job, of {}", found.described())),
        }
    }

    fn described(&self) -> String {
        let sources = self.sources.join(", ");
        match &self.destination {
            Some(destination) => format!("{} {sources} -> {destination}", self.job),
            None => format!("{} {sources}", self.job),
        }
    }
}

fn from_the_root(at: &Location) -> String {
    match at {
        Location::Local(path) => {
            let text = |path: &Path| path.as_os_str().to_string_lossy().into_owned();
            // `absolute` keeps what ends in a slash or a dot, which decides what becomes of a tree.
            std::path::absolute(path).map_or_else(|_| text(path), |path| text(&path))
        }
        other => other.to_string(),
    }
}

/// An item's end.
#[derive(Debug)]
pub(crate) struct Record<'a> {
    pub(crate) op: &'static str,
    pub(crate) source: &'a str,
    pub(crate) destination: Option<&'a str>,
    pub(crate) size: u64,
    /// Which state of the source it was, as whoever found it saw it, and its size there.
    pub(crate) state: Option<&'a str>,
    pub(crate) source_size: u64,
    /// What was made, or read by a download.
    pub(crate) version: Option<&'a Version>,
    pub(crate) checksums: &'a Checksums,
    pub(crate) attempts: u32,
    pub(crate) seconds: f64,
    pub(crate) outcome: &'a Outcome,
}

#[derive(Serialize, Debug)]
struct Written<'a> {
    kind: &'static str,
    op: &'a str,
    source: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    destination: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'a str>,
    source_size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    etag: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checksum: Option<String>,
    attempts: u32,
    seconds: f64,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<&'static str>,
}

impl Record<'_> {
    pub(super) fn line(&self) -> Vec<u8> {
        let (generation, etag) = match self.version {
            Some(Version::Generation(generation)) => (Some(generation.to_string()), None),
            Some(Version::ETag(etag)) => (None, Some(etag.as_str())),
            _ => (None, None),
        };
        let (mut why, mut error, mut class) = (None, None, None);
        let outcome = match self.outcome {
            Outcome::Done { .. } => DONE,
            Outcome::Skipped { why: because } => {
                why = Some(*because);
                "skipped"
            }
            Outcome::Planned => "planned",
            Outcome::Failed(e) => {
                error = Some(e.to_string());
                class = Some(e.kind().name());
                "failed"
            }
        };
        line(&Written {
            kind: "item",
            op: self.op,
            source: self.source,
            destination: self.destination,
            key: self.destination.and_then(key).or_else(|| key(self.source)),
            size: self.size,
            state: self.state,
            source_size: self.source_size,
            generation,
            etag,
            checksum: checksum(self.checksums),
            attempts: self.attempts,
            // To the microsecond: further digits would only be noise of the conversion.
            seconds: (self.seconds * 1e6).round() / 1e6,
            outcome,
            why,
            error,
            class,
        })
    }
}

/// What of an item's line the next run goes by.
#[derive(Deserialize, Debug)]
pub(super) struct Item {
    kind: String,
    pub(super) source: String,
    #[serde(default)]
    pub(super) destination: Option<String>,
    #[serde(default)]
    pub(super) state: Option<String>,
    pub(super) source_size: u64,
    #[serde(default)]
    generation: Option<String>,
    #[serde(default)]
    etag: Option<String>,
    pub(super) outcome: String,
}

impl Item {
    /// The version that was made, as [`of_version`] writes it.
    pub(super) fn made(&self) -> Option<String> {
        let generation = self.generation.as_ref().map(|generation| format!("generation {generation}"));
        generation.or_else(|| self.etag.as_ref().map(|etag| format!("ETag {etag}")))
    }
}

/// A version in words.
pub(super) fn of_version(version: &Version) -> String {
    version.to_string()
}

/// Reads an item's line.
///
/// # Errors
/// What is wrong with it.
pub(super) fn read_item(line: &[u8]) -> Result<Item, String> {
    let item: Item =
        serde_json::from_slice(line).map_err(|e| format!("this line of the manifest is broken ({e})"))?;
    match item.kind == "item" {
        true => Ok(item),
        false => Err(format!("this line of the manifest is of an unknown kind, {:?}", item.kind)),
    }
}

/// The key of a URL.
fn key(url: &str) -> Option<&str> {
    let rest = ["gs://", "s3://"].iter().find_map(|scheme| url.strip_prefix(scheme))?;
    Some(rest.split_once('/')?.1)
}

/// The best known checksum, as stores write it.
fn checksum(sums: &Checksums) -> Option<String> {
    let named = |name: &str, sum: &[u8]| format!("{name}={}", written(sum));
    let crc32c = sums.crc32c.map(|sum| named("crc32c", &sum.to_be_bytes()));
    let crc64 = || sums.crc64nvme.map(|sum| named("crc64nvme", &sum.to_be_bytes()));
    let crc32 = || sums.crc32.map(|sum| named("crc32", &sum.to_be_bytes()));
    let md5 = || sums.md5.map(|sum| named("md5", &sum));
    let parts =
        || sums.parts.map(|sum| format!("{}-{}", named("crc32c", &sum.value.to_be_bytes()), sum.parts));
    crc32c.or_else(crc64).or_else(crc32).or_else(md5).or_else(parts)
}

fn line(value: &impl Serialize) -> Vec<u8> {
    // Texts and numbers always serialise.
    let mut line = serde_json::to_vec(value).unwrap_or_default();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verified;

    fn place(text: &str) -> Location {
        text.parse().unwrap()
    }

    #[test]
    fn a_record_has_the_documented_fields_in_their_order() {
        let outcome = Outcome::Done { verified: Verified::Crc32c };
        let record = Record {
            op: "upload",
            source: "d/a",
            destination: Some("gs://b/p/a"),
            size: 5,
            state: Some("modified 17.000000005"),
            source_size: 5,
            version: Some(&Version::Generation(7)),
            checksums: &Checksums::crc32c(1),
            attempts: 2,
            seconds: 0.25,
            outcome: &outcome,
        };
        assert_eq!(
            String::from_utf8(record.line()).unwrap(),
            "{\"kind\":\"item\",\"op\":\"upload\",\"source\":\"d/a\",\"destination\":\"gs://b/p/a\",\"key\":\"p/a\",\"size\":5,\
             \"state\":\"modified 17.000000005\",\"source_size\":5,\"generation\":\"7\",\"checksum\":\"crc32c=AAAAAQ==\",\"attempts\":2,\
             \"seconds\":0.25,\"outcome\":\"done\"}\n"
        );
        let read = read_item(record.line().trim_ascii_end()).unwrap();
        assert_eq!(read.made().as_deref(), Some("generation 7"));
    }

    #[test]
    fn a_manifest_is_its_jobs_alone() {
        let ours = Subject::new("copy", &[place("gs://b/p")], Some(&place("/d")));
        let first = ours.line();
        let first = first.trim_ascii_end();
        assert_eq!(ours.check(first), Ok(None));
        let later = ours.clone().into_folder(true);
        assert_eq!(later.check(ours.clone().into_folder(false).line().trim_ascii_end()), Ok(Some(false)));
        let others = [
            Subject::new("move", &[place("gs://b/p")], Some(&place("/d"))),
            Subject::new("copy", &[place("gs://b/q")], Some(&place("/d"))),
            Subject::new("copy", &[place("gs://b/p")], Some(&place("/e"))),
        ];
        for other in others {
            let why = other.check(first).unwrap_err();
            assert!(why.contains("another job, of copy gs://b/p -> /d"), "{why}");
        }
        assert!(ours.check(b"name,size").unwrap_err().contains("no manifest"));
        assert!(ours.check(b"{\"kind\":\"item\"}").unwrap_err().contains("no manifest"));
    }
}
