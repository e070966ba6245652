//! Packs metadata of objects, results of writes, summaries of jobs, and counters.

use laneway::{Counters, ObjectMeta, Summary, Version, Written};

use crate::attributes::ATTRIBUTES;
use crate::packed::Packed;

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
