//! Converts arguments to locations.

use std::ffi::{OsStr, OsString};

use laneway::{Client, Entry, Error, ListRequest, Location};

use crate::exit::BadUsage;

/// Parses URLs that must name a bucket or an object. A `#` and the text after it are part of the key, not a version.
///
/// # Errors
/// Fails if the scheme is unknown, the URL has no bucket, or the path is local.
pub(crate) fn remote(texts: &[OsString]) -> anyhow::Result<Vec<Location>> {
    texts.iter().map(|text| Ok(remote_one(text)?.as_written())).collect()
}

/// Parses URLs of a bucket or an object, for commands that accept versions of objects.
///
/// # Errors
/// Fails in the same cases as [`remote`].
pub(crate) fn versioned(texts: &[OsString]) -> anyhow::Result<Vec<Location>> {
    texts.iter().map(|text| remote_one(text)).collect()
}

/// Returns the objects of a location: the location itself, or the matches of its pattern. A pattern without a match is returned as the name
/// of an object, so that the store's error says that there is no such object.
///
/// # Errors
/// Returns the listing's error.
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

/// Returns the URL in a command line, if there is exactly one. It looks at all words, because the command line couldn't be parsed.
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
