//! Packs metadata of objects, results of writes, summaries of jobs, and counters. Converts the attributes of objects by
//! the names of their headers.

use laneway::dialect::VersionNames;
use laneway::{Condition, Counters, ObjectMeta, PutOptions, Summary, Version, Written};

use crate::failure::Failure;
use crate::packed::{Packed, Unpacked};

/// Packs an object's metadata.
pub(crate) fn meta(to: &mut Packed, meta: &ObjectMeta) {
    to.text(&meta.id.key).number(meta.size);
    to.maybe_text(meta.version.as_ref().map(state).as_deref());
    let etag = match &meta.version {
        Some(Version::ETag(etag)) => Some(etag),
        _ => meta.etag.as_ref(),
    };
    to.maybe_text(etag.map(String::as_str)).maybe_time(meta.updated);
    let attributes: Vec<_> = ATTRIBUTES
        .iter()
        .filter_map(|attribute| Some((attribute.header.to_ascii_lowercase(), attribute.of(meta)?)))
        .collect();
    to.texts(attributes.iter().map(|(name, value)| (&**name, *value))).flag(meta.metadata.is_some());
    if let Some(metadata) = &meta.metadata {
        to.texts(metadata.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    }
}

/// Packs the result of a write.
pub(crate) fn written(written: &Written) -> Packed {
    let mut packed = Packed::default();
    packed
        .number(written.size)
        .maybe_text(written.version.as_ref().map(state).as_deref())
        .text(&written.verified.to_string())
        .flag(written.atomic);
    packed
}

fn state(version: &Version) -> String {
    match version {
        Version::ETag(etag) => etag.clone(),
        Version::Generation(generation) => generation.to_string(),
        // `Version` is non-exhaustive, so it may get more variants.
        other => other.to_string(),
    }
}

/// Returns the counts in a job's summary by name. The summary's time and its two flags aren't included.
pub fn counts(summary: &Summary) -> [(&'static str, u64); 17] {
    [
        ("files", summary.files),
        ("failed", summary.failed),
        ("skipped", summary.skipped),
        ("removed", summary.removed),
        ("unchanged", summary.unchanged),
        ("asked", summary.asked),
        ("bytes", summary.bytes),
        ("network_bytes", summary.network_bytes),
        ("connections", summary.connections),
        ("handshakes", summary.handshakes),
        ("requests", summary.requests),
        ("retries", summary.retries),
        ("hedges", summary.hedges),
        ("unverified", summary.unverified),
        ("kept_bytes", summary.kept_bytes),
        ("resumed_bytes", summary.resumed_bytes),
        ("not_done", summary.not_done),
    ]
}

/// Packs a job's summary as named numbers.
pub(crate) fn summary(to: &mut Packed, summary: &Summary) {
    let others = [
        ("milliseconds", (summary.seconds * 1000.0) as u64),
        ("interrupted", summary.interrupted.into()),
        ("stopped", summary.stopped.into()),
    ];
    numbers(to, counts(summary).into_iter().chain(others).collect());
}

/// Returns the counters of the process's engine by name.
pub fn counters(counters: &Counters) -> [(&'static str, u64); 10] {
    [
        ("connections", counters.connections),
        ("connections_open", counters.connections_open),
        ("connections_peak", counters.connections_peak),
        ("handshakes", counters.handshakes),
        ("requests", counters.requests),
        ("retries", counters.retries),
        ("hedges", counters.hedges),
        ("throttles", counters.throttles),
        ("bytes_received", counters.bytes_received),
        ("bytes_sent", counters.bytes_sent),
    ]
}

/// Packs named numbers: first how many there are, and then each name with its number.
pub fn numbers(to: &mut Packed, named: Vec<(&str, u64)>) {
    to.number(named.len() as u64);
    for (name, number) in named {
        to.text(name).number(number);
    }
}

/// An attribute that stores keep with an object.
#[derive(Debug)]
pub struct Attribute {
    /// The name of the attribute's header, in any case.
    pub header: &'static str,
    of: fn(&ObjectMeta) -> &Option<String>,
    put: fn(PutOptions, String) -> PutOptions,
}

impl Attribute {
    /// Returns the attribute's value in an object's metadata.
    pub fn of<'m>(&self, meta: &'m ObjectMeta) -> Option<&'m str> {
        (self.of)(meta).as_deref()
    }
}

/// All attributes that have a header. Everything else is user metadata.
pub static ATTRIBUTES: &[Attribute] = &[
    Attribute { header: "Content-Type", of: |meta| &meta.content_type, put: PutOptions::content_type },
    Attribute {
        header: "Content-Encoding",
        of: |meta| &meta.content_encoding,
        put: PutOptions::content_encoding,
    },
    Attribute {
        header: "Content-Disposition",
        of: |meta| &meta.content_disposition,
        put: PutOptions::content_disposition,
    },
    Attribute {
        header: "Content-Language",
        of: |meta| &meta.content_language,
        put: PutOptions::content_language,
    },
    Attribute { header: "Cache-Control", of: |meta| &meta.cache_control, put: PutOptions::cache_control },
    Attribute { header: "Storage-Class", of: |meta| &meta.storage_class, put: PutOptions::storage_class },
];

fn attribute(name: &str) -> Option<&'static Attribute> {
    ATTRIBUTES.iter().find(|attribute| attribute.header.eq_ignore_ascii_case(name))
}

/// Adds attributes to a write. Names that aren't in [`ATTRIBUTES`] become user metadata.
pub fn with_attributes(
    options: PutOptions,
    attributes: impl IntoIterator<Item = (String, String)>,
) -> PutOptions {
    attributes.into_iter().fold(options, |options, (name, value)| match attribute(&name) {
        Some(attribute) => (attribute.put)(options, value),
        None => options.metadata(name, value),
    })
}

/// Unpacks the options of a write: first attributes and conditions by name, then user metadata, then tags.
///
/// # Errors
/// Fails for a condition on a version that the store can't compare, and for an unknown attribute.
pub(crate) fn put_options(names: VersionNames, from: &mut Unpacked<'_>) -> Result<PutOptions, Failure> {
    let mut options = PutOptions::default();
    for (name, value) in from.texts()? {
        options = match name {
            "if-absent" => options.condition(Condition::Absent),
            "if-version" => options.condition(Condition::Matches(version(names, value)?)),
            "acl" => options.acl(value),
            "kms-key" => options.kms_key(value),
            _ => {
                let attribute = attribute(name).ok_or_else(Failure::of_another_version)?;
                (attribute.put)(options, value.to_owned())
            }
        };
    }
    for (name, value) in from.texts()? {
        options = options.metadata(name, value);
    }
    for (name, value) in from.texts()? {
        options = options.tag(name, value);
    }
    Ok(options)
}

/// Parses the version of an object for a condition. The text is a GCS generation, or an ETag with or without quotes.
///
/// # Errors
/// Fails if the store names versions by generation and the text isn't a generation.
pub fn version(names: VersionNames, text: &str) -> Result<Version, Failure> {
    match names {
        VersionNames::Generation => text
            .parse()
            .map(Version::Generation)
            .map_err(|_| Failure::usage(format!("{text:?} isn't a GCS generation"))),
        _ => {
            let (weak, quoted) = text.strip_prefix("W/").map_or(("", text), |rest| ("W/", rest));
            Ok(Version::ETag(format!("{weak}{}", quoted.trim_matches('"'))))
        }
    }
}
