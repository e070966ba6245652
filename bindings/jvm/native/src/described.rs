//! What a store says of objects, as `dev.laneway.ObjectMeta` and `Written` read it.

use laneway::dialect::VersionNames;
use laneway::{ObjectMeta, Version, Written};

use crate::failure::Failure;
use crate::packed::Packed;

/// Packs an object's description.
pub(crate) fn meta(to: &mut Packed, meta: &ObjectMeta) {
    to.text(&meta.id.key).number(meta.size);
    to.maybe_text(meta.version.as_ref().map(state).as_deref());
    let etag = match &meta.version {
        Some(Version::ETag(etag)) => Some(etag),
        _ => meta.etag.as_ref(),
    };
    to.maybe_text(etag.map(String::as_str)).maybe_time(meta.updated);
    let attributes: Vec<_> = [
        ("content-type", &meta.content_type),
        ("content-encoding", &meta.content_encoding),
        ("content-disposition", &meta.content_disposition),
        ("content-language", &meta.content_language),
        ("cache-control", &meta.cache_control),
        ("storage-class", &meta.storage_class),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name, value.as_deref()?)))
    .collect();
    to.texts(attributes).flag(meta.metadata.is_some());
    if let Some(metadata) = &meta.metadata {
        to.texts(metadata.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    }
}

/// What a write says when it is done.
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
        // Of a store that comes later.
        other => other.to_string(),
    }
}

/// A state of an object, as conditions name it.
///
/// # Errors
/// For what is no generation, on GCS.
pub(crate) fn version(names: VersionNames, text: &str) -> Result<Version, Failure> {
    match names {
        VersionNames::Generation => text
            .parse()
            .map(Version::Generation)
            .map_err(|_| Failure::usage(format!("{text:?} is no generation of GCS's"))),
        _ => {
            let (weak, quoted) = text.strip_prefix("W/").map_or(("", text), |rest| ("W/", rest));
            Ok(Version::ETag(format!("{weak}{}", quoted.trim_matches('"'))))
        }
    }
}
