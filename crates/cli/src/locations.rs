//! Converts arguments to locations.

use std::ffi::{OsStr, OsString};

use laneway::{Client, Entry, Error, ListRequest, Location};

use crate::exit::BadUsage;

/// Parses places that must be in a store. Text that looks like a version is a part of the key.
///
/// # Errors
/// If the scheme is unknown, the URL has no bucket, or the path is local.
pub(crate) fn remote(texts: &[OsString]) -> anyhow::Result<Vec<Location>> {
    texts.iter().map(|text| Ok(remote_one(text)?.as_written())).collect()
}

/// Parses places in a store, for commands that accept versions of objects.
///
/// # Errors
/// As [`remote`].
pub(crate) fn versioned(texts: &[OsString]) -> anyhow::Result<Vec<Location>> {
    texts.iter().map(|text| remote_one(text)).collect()
}

/// Returns the objects that a place means: itself, or the matches of a pattern. A pattern without a match
/// stands for the object of that name, so that the store reports that there is none.
///
/// # Errors
/// The listing's error.
pub(crate) fn objects(client: &Client, at: &Location) -> Result<Vec<Location>, Error> {
    let Location::Object { provider, .. } = at else { return Ok(vec![at.clone()]) };
    if !at.is_pattern() {
        return Ok(vec![at.clone()]);
    }
    let mut listing = client.list(ListRequest::new(at.clone()));
    let mut found = Vec::new();
    while let Some(entry) = listing.next_blocking() {
        match entry {
            Ok(Entry::Object(meta)) => {
                found.push(Location::object(*provider, meta.id.bucket.clone(), meta.id.key.clone()));
            }
            Ok(_) => {}
            Err(error) if error.is_not_found() && found.is_empty() => break,
            Err(error) => return Err(error),
        }
    }
    if found.is_empty() {
        found.push(at.clone());
    }
    Ok(found)
}

/// Returns the URL in a command line that can't be parsed, if there is exactly one.
pub(crate) fn only_url(line: &[OsString]) -> Option<&str> {
    let is_url = |word: &&str| ["gs://", "s3://"].iter().any(|scheme| word.starts_with(scheme));
    let mut urls = line.iter().filter_map(|word| word.to_str()).filter(is_url);
    urls.next().filter(|_| urls.next().is_none())
}

fn remote_one(text: &OsStr) -> anyhow::Result<Location> {
    match Location::parse(text)? {
        Location::Local(path) => {
            let why = "this is a local path; write gs://bucket/key or s3://bucket/key";
            Err(BadUsage::of(path.display().to_string(), why).into())
        }
        Location::Standard => {
            Err(BadUsage::of("-", "name an object, such as gs://bucket/key or s3://bucket/key").into())
        }
        place => Ok(place),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_cannot_be_understood_is_about_its_only_url() {
        let about = |line: &[&str]| {
            let line: Vec<_> = line.iter().map(OsString::from).collect();
            only_url(&line).map(str::to_owned)
        };
        assert_eq!(about(&["laneway", "ls", "--nonsense", "gs://b/p"]).as_deref(), Some("gs://b/p"));
        assert_eq!(about(&["laneway", "cp", "s3://b/k", "gs://c/"]), None);
        assert_eq!(about(&["laneway", "cp", "f", "--s3-endpoint", "http://h"]), None);
    }
}
