//! The lines of a manifest: the first names the job, and each other line is an item or a command.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use laneway_store::{Checksums, Provider, PutOptions, Version};
use md5::{Digest as _, Md5};
use serde::{Deserialize, Serialize};

use crate::content::checksum::written;
use crate::{Gzip, Location, Outcome};

/// The version of the format. Raise it when a line changes its meaning.
const FORMAT: u32 = 1;
/// The outcome of an item or a command that was done.
pub(super) const DONE: &str = "done";
/// The outcome of a command that is still running.
const BEGUN: &str = "begun";
/// The job name of commands that share a manifest.
const RUN: &str = "run";

/// The job that a manifest belongs to.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub(crate) struct ManifestSubject {
    kind: String,
    format: u32,
    /// `copy`, `move`, `remove`, `sync`, or `run`.
    job: String,
    /// The sources. Local paths are absolute, because a relative path means other files in another folder.
    /// For a run, the only source is its working folder.
    sources: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    destination: Option<String>,
    /// The endpoints of the stores, by URL scheme. The same URLs mean other objects at other endpoints.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    endpoints: BTreeMap<String, String>,
    /// A digest of the properties of new objects or files, besides their content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    settings: Option<String>,
}

impl ManifestSubject {
    pub(crate) fn new(job: &str, sources: &[Location], destination: Option<&Location>) -> Self {
        Self {
            kind: "manifest".to_owned(),
            format: FORMAT,
            job: job.to_owned(),
            sources: sources.iter().map(from_the_root).collect(),
            destination: destination.map(from_the_root),
            endpoints: BTreeMap::new(),
            settings: None,
        }
    }

    /// Describes a run of commands in a folder.
    pub(crate) fn run(folder: &Path, added: String) -> Self {
        let folder = Location::Local(folder.to_owned());
        Self { settings: Some(added), ..Self::new(RUN, &[folder], None) }
    }

    /// Adds the endpoints of the job's stores.
    pub(crate) fn at(
        self,
        providers: impl IntoIterator<Item = Provider>,
        endpoint: impl Fn(Provider) -> String,
    ) -> Self {
        let endpoints = providers.into_iter().filter(|provider| self.is_about(*provider));
        let endpoints =
            endpoints.map(|provider| (provider.scheme().to_owned(), endpoint(provider))).collect();
        Self { endpoints, ..self }
    }

    /// Returns whether a source or the destination is, or may be, in a provider's store. For a run, and for a
    /// list of full URLs, the stores aren't known yet, so any may be used.
    fn is_about(&self, provider: Provider) -> bool {
        let mut ends = self.sources.iter().chain(&self.destination);
        let is_open = self.job == RUN || self.sources.is_empty();
        is_open
            || ends.any(|end| end.strip_prefix(provider.scheme()).is_some_and(|rest| rest.starts_with("://")))
    }

    /// Returns whether commands of a run share the manifest.
    pub(super) fn is_run(&self) -> bool {
        self.job == RUN
    }

    /// Adds the settings for the objects or files that the job writes.
    pub(crate) fn making(self, settings: &ObjectSettings<'_>) -> Self {
        Self { settings: Some(settings.digest()), ..self }
    }

    pub(super) fn line(&self) -> Vec<u8> {
        line(self)
    }

    /// Checks that the first line of a manifest describes this job.
    ///
    /// # Errors
    /// A message that says how the job in the first line differs.
    pub(super) fn check(&self, first: &[u8]) -> Result<(), String> {
        let found: Self = match serde_json::from_slice(first) {
            Ok(found) => found,
            Err(_) => return Err("this is not a manifest".to_owned()),
        };
        if found.kind != self.kind {
            return Err("this is not a manifest".to_owned());
        }
        if found.format != FORMAT {
            return Err(format!(
                "this manifest has format {}, which this version of Laneway can't read",
                found.format
            ));
        }
        match found == *self {
            true => Ok(()),
            false if (Self { settings: self.settings.clone(), ..found.clone() }) == *self => Err(format!(
                "this manifest belongs to the same job ({}), but that job ran with other settings for the objects or \
                 files that it writes (such as metadata, storage class, gzip, --preserve)",
                found.described()
            )),
            false if (Self { endpoints: self.endpoints.clone(), ..found.clone() }) == *self => Err(format!(
                "this is the manifest of this job at other endpoints: {} instead of {}",
                found.at_endpoints(),
                self.at_endpoints()
            )),
            false => Err(format!("this is the manifest of another job: {}", found.described())),
        }
    }

    fn at_endpoints(&self) -> String {
        let at = self.endpoints.iter().map(|(scheme, endpoint)| format!("{scheme}:// at {endpoint}"));
        match self.endpoints.is_empty() {
            true => "unknown ones".to_owned(),
            false => at.collect::<Vec<_>>().join(", "),
        }
    }

    fn described(&self) -> String {
        let sources = self.sources.join(", ");
        let to = self.destination.iter().map(|destination| format!(" -> {destination}"));
        let at = self.endpoints.iter().map(|(scheme, endpoint)| format!(", {scheme}:// at {endpoint}"));
        to.chain(at).fold(format!("{} {sources}", self.job), |text, more| text + &more)
    }
}

fn from_the_root(at: &Location) -> String {
    match at {
        Location::Local(path) => {
            let text = |path: &Path| path.as_os_str().to_string_lossy().into_owned();
            // `absolute` keeps a trailing slash or dot, and these change the destination of a tree.
            std::path::absolute(path).map_or_else(|_| text(path), |path| text(&path))
        }
        other => other.to_string(),
    }
}

/// The outcome of an item.
#[derive(Debug)]
pub(crate) struct ManifestRecord<'a> {
    /// The number of the item's command, if it belongs to a run.
    pub(crate) command: Option<u64>,
    pub(crate) op: &'static str,
    pub(crate) source: &'a str,
    pub(crate) destination: Option<&'a str>,
    pub(crate) size: u64,
    /// The state of the source when it was found, and its size then.
    pub(crate) state: Option<&'a str>,
    pub(crate) source_size: u64,
    /// The version that was written, or that a download read.
    pub(crate) version: Option<&'a Version>,
    pub(crate) checksums: &'a Checksums,
    pub(crate) attempts: u32,
    pub(crate) seconds: f64,
    pub(crate) outcome: &'a Outcome,
}

#[derive(Serialize, Debug)]
struct ItemLine<'a> {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<u64>,
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

impl ManifestRecord<'_> {
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
        line(&ItemLine {
            kind: "item",
            command: self.command,
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
            seconds: rounded(self.seconds),
            outcome,
            why,
            error,
            class,
        })
    }
}

/// The fields of an item's line that the next run uses.
#[derive(Deserialize, Debug)]
pub(super) struct PastItem {
    kind: String,
    #[serde(default)]
    pub(super) command: Option<u64>,
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

impl PastItem {
    /// Returns the version that was written, in the form of [`of_version`].
    pub(super) fn made(&self) -> Option<String> {
        let generation = self.generation.as_ref().map(|generation| format!("generation {generation}"));
        generation.or_else(|| self.etag.as_ref().map(|etag| format!("ETag {etag}")))
    }
}

/// Returns a version as text.
pub(super) fn of_version(version: &Version) -> String {
    version.to_string()
}

/// Reads an item's line.
///
/// # Errors
/// A message that says what is wrong with the line.
pub(super) fn read_item(line: &[u8]) -> Result<PastItem, String> {
    let item: PastItem =
        serde_json::from_slice(line).map_err(|e| format!("this line of the manifest is broken ({e})"))?;
    match item.kind == "item" {
        true => Ok(item),
        false => Err(format!("this line of the manifest is of an unknown kind, {:?}", item.kind)),
    }
}

/// The record of a command, either when it begins or after it has ended.
#[derive(Serialize, Deserialize, Debug)]
pub(super) struct Command {
    kind: String,
    /// The number of the command's line.
    pub(super) number: u64,
    line: String,
    /// The line's bytes in hexadecimal, if they aren't UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
    pub(super) outcome: String,
}

impl Command {
    /// Returns the record of a command that begins.
    pub(super) fn begun(number: u64, line: &[u8]) -> Self {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Self {
            kind: "command".to_owned(),
            number,
            line: String::from_utf8_lossy(line).into_owned(),
            bytes: std::str::from_utf8(line).is_err().then(|| hex(line)),
            seconds: None,
            outcome: BEGUN.to_owned(),
        }
    }

    /// Returns the record of a command that has ended.
    pub(super) fn ended(number: u64, line: &[u8], is_done: bool, seconds: f64) -> Self {
        let outcome = if is_done { DONE } else { "failed" }.to_owned();
        Self { seconds: Some(rounded(seconds)), outcome, ..Self::begun(number, line) }
    }

    pub(super) fn line(&self) -> Vec<u8> {
        line(self)
    }

    /// Returns the text of the command's line, or `None` if its hexadecimal form is broken.
    pub(super) fn text(&self) -> Option<Vec<u8>> {
        let Some(hex) = &self.bytes else { return Some(self.line.clone().into_bytes()) };
        let digits: Option<Vec<u8>> = hex.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
        Some(digits?.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect())
    }
}

/// Reads a command's line. Returns `None` for any other line.
pub(super) fn read_command(line: &[u8]) -> Option<Command> {
    serde_json::from_slice(line).ok().filter(|command: &Command| command.kind == "command")
}

/// Rounds to the microsecond. Further digits would only be noise from the conversion.
fn rounded(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}

/// Returns the key in a URL.
fn key(url: &str) -> Option<&str> {
    let (scheme, rest) = url.split_once("://")?;
    Provider::of_scheme(scheme)?;
    Some(rest.split_once('/')?.1)
}

/// Returns the strongest of the checksums, with its name and in the stores' notation, such as `md5=` and
/// base64.
fn checksum(sums: &Checksums) -> Option<String> {
    let named = |name: &str, sum: &[u8]| format!("{name}={}", written(sum));
    let crc32c = sums.crc32c.map(|sum| named("crc32c", &sum.to_be_bytes()));
    let crc64 = || sums.crc64nvme.map(|sum| named("crc64nvme", &sum.to_be_bytes()));
    let crc32 = || sums.crc32.map(|sum| named("crc32", &sum.to_be_bytes()));
    let md5 = || sums.md5.map(|sum| named("md5", &sum));
    let parts = || {
        let sum = sums.parts?;
        Some(format!("{}-{}", named(sum.digest.algorithm().name(), &sum.digest.bytes()), sum.parts))
    };
    crc32c.or_else(crc64).or_else(crc32).or_else(md5).or_else(parts)
}

fn line(value: &impl Serialize) -> Vec<u8> {
    // This can't fail: the fields are texts and numbers.
    let mut line = serde_json::to_vec(value).unwrap_or_default();
    line.push(b'\n');
    line
}

/// The properties of new objects or files, besides their content.
#[derive(Debug)]
pub(crate) struct ObjectSettings<'a> {
    pub(crate) put: &'a PutOptions,
    pub(crate) gzip: Option<&'a Gzip>,
    /// True if downloaded objects are decompressed.
    pub(crate) decompress: bool,
    /// True if times, modes and owners are kept.
    pub(crate) preserve: bool,
    /// A digest of the properties that the destination's store adds by itself.
    pub(crate) added: &'a str,
}

impl ObjectSettings<'_> {
    /// Returns a digest that doesn't reveal the settings. The digest leaves out the condition, which decides
    /// whether an object is written but doesn't change the object.
    pub(crate) fn digest(&self) -> String {
        let put = self.put;
        let seconds = |time: SystemTime| time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let until = put.retention.map(|retention| (retention.mode.name(), seconds(retention.until)));
        let mut gzip = self.gzip.map(|gzip| gzip.endings().to_vec()).unwrap_or_default();
        gzip.sort_unstable();
        let value = serde_json::json!({
            "content_type": put.content_type,
            "content_encoding": put.content_encoding,
            "cache_control": put.cache_control,
            "content_disposition": put.content_disposition,
            "content_language": put.content_language,
            "expires": put.expires.map(seconds),
            "custom_time": put.custom_time.map(seconds),
            "storage_class": put.storage_class,
            "metadata": put.metadata,
            "kms_key": put.kms_key,
            "acl": put.acl,
            "tags": put.tags,
            "retention": until,
            "legal_hold": put.legal_hold,
            "gzip": gzip,
            "decompress": self.decompress,
            "preserve": self.preserve,
            "added": self.added,
        });
        Md5::digest(value.to_string().as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }
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
        let record = ManifestRecord {
            command: None,
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
        let of_command = ManifestRecord { command: Some(3), ..record };
        assert_eq!(read_item(of_command.line().trim_ascii_end()).unwrap().command, Some(3));
    }

    #[test]
    fn a_command_is_read_as_it_was_written() {
        let begun = Command::begun(7, b"cp -r gs://b/p d");
        let line = begun.line();
        assert_eq!(
            String::from_utf8_lossy(&line),
            "{\"kind\":\"command\",\"number\":7,\"line\":\"cp -r gs://b/p d\",\"outcome\":\"begun\"}\n"
        );
        let read = read_command(line.trim_ascii_end()).unwrap();
        assert_eq!((read.number, read.outcome.as_str()), (7, BEGUN));
        let ended = Command::ended(8, b"rm \xff", true, 0.25).line();
        let read = read_command(ended.trim_ascii_end()).unwrap();
        assert_eq!((read.text().as_deref(), read.seconds), (Some(&b"rm \xff"[..]), Some(0.25)));
        assert!(read_command(b"{\"kind\":\"item\"}").is_none());
    }

    #[test]
    fn the_same_urls_at_another_endpoint_are_another_job() {
        let at = |endpoint: &'static str| {
            let subject = ManifestSubject::new("copy", &[place("/d")], Some(&place("s3://b/p")));
            subject.at(Provider::CLOUDS, move |provider| format!("{endpoint}/{}", provider.scheme()))
        };
        let first = at("http://here").line();
        assert!(!String::from_utf8_lossy(&first).contains("gs"), "the job concerns only one store");
        let first = first.trim_ascii_end();
        assert_eq!(at("http://here").check(first), Ok(()));
        let why = at("http://there").check(first).unwrap_err();
        assert!(
            why.ends_with(
                "this job at other endpoints: s3:// at http://here/s3 instead of s3:// at http://there/s3"
            ),
            "{why}"
        );
        // A manifest of an older version, which wrote no endpoints.
        let before = ManifestSubject::new("copy", &[place("/d")], Some(&place("s3://b/p"))).line();
        let why = at("http://there").check(before.trim_ascii_end()).unwrap_err();
        assert!(why.ends_with("endpoints: unknown ones instead of s3:// at http://there/s3"), "{why}");
        let other = ManifestSubject::new("copy", &[place("/e")], Some(&place("s3://b/p"))).line();
        assert!(at("http://there").check(other.trim_ascii_end()).unwrap_err().contains("another job"));
        // A run's commands, and a list of full URLs, may use any store.
        for open in
            [ManifestSubject::run(Path::new("/f"), String::new()), ManifestSubject::new("remove", &[], None)]
        {
            assert_eq!(open.at(Provider::CLOUDS, |provider| provider.scheme().to_owned()).endpoints.len(), 3);
        }
    }

    #[test]
    fn a_manifest_is_its_jobs_alone() {
        let ours = ManifestSubject::new("copy", &[place("gs://b/p")], Some(&place("/d")));
        let first = ours.line();
        let first = first.trim_ascii_end();
        assert_eq!(ours.check(first), Ok(()));
        let older = String::from_utf8_lossy(first).replace("}", ",\"into_folder\":false}");
        assert_eq!(
            ours.check(older.as_bytes()),
            Ok(()),
            "older versions recorded whether the destination existed"
        );
        let others = [
            ManifestSubject::new("move", &[place("gs://b/p")], Some(&place("/d"))),
            ManifestSubject::new("copy", &[place("gs://b/q")], Some(&place("/d"))),
            ManifestSubject::new("copy", &[place("gs://b/p")], Some(&place("/e"))),
        ];
        for other in others {
            let why = other.check(first).unwrap_err();
            assert!(why.contains("another job: copy gs://b/p -> /d"), "{why}");
        }
        assert!(ours.check(b"name,size").unwrap_err().contains("not a manifest"));
        assert!(ours.check(b"{\"kind\":\"item\"}").unwrap_err().contains("not a manifest"));
    }

    #[test]
    fn whatever_makes_another_object_makes_another_digest() {
        let digest = |put: &PutOptions, gzip: Option<&Gzip>, preserve, added| {
            ObjectSettings { put, gzip, decompress: false, preserve, added }.digest()
        };
        let plain = PutOptions::default();
        let gzip = Gzip::extensions(["html"]).unwrap();
        let digests = [
            digest(&plain, None, false, ""),
            digest(&PutOptions::default().storage_class("GLACIER"), None, false, ""),
            digest(&PutOptions::default().content_type("GLACIER"), None, false, ""),
            digest(&PutOptions::default().kms_key("k"), None, false, ""),
            digest(&plain, Some(&gzip), false, ""),
            digest(&plain, None, true, ""),
            digest(&plain, None, false, "headers"),
        ];
        let distinct: std::collections::HashSet<_> = digests.iter().collect();
        assert_eq!(distinct.len(), digests.len());
        assert_eq!(digests[0], digest(&PutOptions::default(), Some(&Gzip::default()), false, ""));
    }
}
