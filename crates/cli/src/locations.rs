//! From what was typed to what is meant.

use std::ffi::{OsStr, OsString};

use laneway::Location;

use crate::exit::BadUsage;

/// Reads places that must be in a store.
///
/// # Errors
/// An unknown scheme, a URL without a bucket, a local path.
pub(crate) fn remote(texts: &[OsString]) -> anyhow::Result<Vec<Location>> {
    texts.iter().map(|text| remote_one(text)).collect()
}

fn remote_one(text: &OsStr) -> anyhow::Result<Location> {
    match Location::parse(text)? {
        Location::Local(path) => Err(BadUsage(format!(
            "{}: this is a local path; write gs://bucket/key or s3://bucket/key",
            path.display()
        ))
        .into()),
        Location::Standard => {
            Err(BadUsage("-: an object is wanted here, as gs://bucket/key or s3://bucket/key".into()).into())
        }
        place => Ok(place),
    }
}
