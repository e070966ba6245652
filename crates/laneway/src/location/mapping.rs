//! Maps the names of sources to the names of their copies at a destination.
//!
//! A destination counts as a folder if it names a whole bucket, ends in a slash, or is a local path whose
//! last component is `.` or `..`. An existing local folder also counts as a folder, unless the source is a
//! single tree (`-r`).

use std::path::{Component, Path};

use laneway_store::Provider;

use crate::location::pattern::Pattern;
use crate::{Error, Location};

/// The name that a source gets inside a destination folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum SourceName {
    /// The source is copied into the folder under this name.
    Named(String),
    /// The source is a folder without a name of its own: `.`, `..`, `/` or `dir/.`. As with `cp`, its content
    /// is copied directly into the destination folder.
    Contents,
    /// The source's name isn't UTF-8, so it can't be a key.
    NotUtf8,
}

pub(crate) fn name_of_path(path: &Path) -> SourceName {
    let bytes = path.as_os_str().as_encoded_bytes();
    // A trailing dot means the content of the folder, as in `cp`. Check it here, because `components` drops
    // it.
    if bytes == b"." || bytes.ends_with(b"/.") {
        return SourceName::Contents;
    }
    match path.components().next_back() {
        Some(Component::Normal(name)) => match name.to_str() {
            Some(name) => SourceName::Named(name.to_owned()),
            None => SourceName::NotUtf8,
        },
        _ => SourceName::Contents,
    }
}

/// Returns the name of a prefix or an object: the last component of the key, or the bucket's name if the key
/// is empty.
pub(crate) fn name_of_key<'a>(bucket: &'a str, key: &'a str) -> &'a str {
    let key = key.strip_suffix('/').unwrap_or(key);
    match key.rsplit('/').next() {
        Some("") | None => bucket,
        Some(name) => name,
    }
}

/// Returns the prefix that Laneway puts before each name in a tree, to make the key of the copy. `base` is
/// the destination's key, or empty for a local destination.
pub(crate) fn tree_prefix(base: &str, is_folder: bool, name: &SourceName) -> String {
    let mut prefix = base.to_owned();
    if !is_folder && !base.is_empty() {
        prefix.push('/');
    }
    if let (true, SourceName::Named(name)) = (is_folder, name) {
        prefix.push_str(name);
        prefix.push('/');
    }
    prefix
}

pub(crate) fn single_key(base: &str, is_folder: bool, name: &str) -> String {
    if is_folder { format!("{base}{name}") } else { base.to_owned() }
}

/// Checks that the sources fit the destination, before the job does anything.
///
/// # Errors
/// `ErrorKind::Usage`, naming the location that doesn't fit.
pub(crate) fn check(
    sources: &[Location],
    destination: &Location,
    destination_is_folder: bool,
) -> Result<(), Error> {
    if sources.is_empty() {
        return Err(Error::usage("", "there is nothing to copy"));
    }
    if sources.len() > 1 && !destination_is_folder {
        let message = "several sources need a folder as their destination: end it with a slash";
        return Err(Error::usage(destination.to_string(), message));
    }
    // Don't check the destination's key: it is used literally, even if it has wildcards.
    if let Location::Object { bucket, .. } = destination
        && bucket.is_empty()
    {
        return Err(Error::usage(destination.to_string(), "the destination names no bucket"));
    }
    for source in sources {
        match source {
            Location::Object { bucket, .. } if bucket.is_empty() => {
                return Err(Error::usage(source.to_string(), "the source names no bucket"));
            }
            Location::Object { key, .. } if !destination_is_folder && Pattern::parse(key).is_some() => {
                let message = "a pattern can match several objects, so the destination must be a folder: end it with a slash";
                return Err(Error::usage(destination.to_string(), message));
            }
            Location::Local(_) | Location::Standard if !destination.is_object() => {
                let message = "one end of a copy has to be in a store (gs://, s3:// or az://)";
                return Err(Error::usage(source.to_string(), message));
            }
            Location::Standard if destination_is_folder => {
                let message = "standard input has no name: give the object's whole key";
                return Err(Error::usage(destination.to_string(), message));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns whether a copy of everything under `source` to `destination_prefix` would write below `source`, in
/// the same bucket. Such a copy would find its own copies and never end, or copy objects onto themselves.
pub(crate) fn is_into_itself(
    (provider, bucket, source): (Provider, &str, &str),
    (to_provider, to_bucket, destination_prefix): (Provider, &str, &str),
) -> bool {
    provider == to_provider && bucket == to_bucket && destination_prefix.starts_with(source)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> SourceName {
        SourceName::Named(name.to_owned())
    }

    /// Returns the key that `cp -r SRC DST` gives the file `f` inside SRC, for a destination in a store.
    fn tree(source: &str, key: &str) -> String {
        let is_folder = key.is_empty() || key.ends_with('/');
        tree_prefix(key, is_folder, &name_of_path(Path::new(source))) + "f"
    }

    #[test]
    fn a_directory_goes_into_a_folder_and_becomes_anything_else() {
        assert_eq!(tree("dir", "p/"), "p/dir/f");
        assert_eq!(tree("dir", "p"), "p/f");
        assert_eq!(tree("dir", ""), "dir/f");
        assert_eq!(tree("/data/small1000", "up/"), "up/small1000/f");
        assert_eq!(tree("dir/", "p/"), "p/dir/f");
    }

    #[test]
    fn the_contents_of_a_nameless_directory_go_straight_into_the_destination() {
        for source in [".", "..", "/", "dir/.", "a/.."] {
            assert_eq!(tree(source, "p/"), "p/f", "{source}");
        }
    }

    #[test]
    fn a_prefix_brings_its_last_component_and_a_bucket_its_name() {
        assert_eq!(name_of_key("b", "p/q/"), "q");
        assert_eq!(name_of_key("b", "p/q"), "q");
        assert_eq!(name_of_key("b", ""), "b");
        let local = |is_folder| tree_prefix("", is_folder, &named(name_of_key("b", "p/q/"))) + "f";
        assert_eq!((local(true), local(false)), ("q/f".to_owned(), "f".to_owned()));
    }

    #[test]
    fn a_single_file_keeps_its_name_only_in_a_folder() {
        assert_eq!(single_key("", true, "f"), "f");
        assert_eq!(single_key("p/", true, "f"), "p/f");
        assert_eq!(single_key("p/x", false, "f"), "p/x");
    }

    fn checked(sources: &[&str], destination: &str) -> Result<(), Error> {
        let sources: Vec<Location> = sources.iter().map(|s| s.parse().unwrap()).collect();
        let destination: Location = destination.parse().unwrap();
        check(&sources, &destination, destination.is_written_as_folder())
    }

    #[test]
    fn several_sources_and_patterns_need_a_folder() {
        assert!(checked(&["a", "b"], "gs://b/p").unwrap_err().is_usage());
        assert!(checked(&["a", "b"], "gs://b/p/").is_ok() && checked(&["a", "b"], "gs://b").is_ok());
        assert!(
            checked(&["gs://b/a*.txt"], "x").unwrap_err().is_usage()
                && checked(&["gs://b/a*.txt"], "x/").is_ok()
        );
    }

    #[test]
    fn ends_that_make_no_copy_are_refused() {
        assert!(checked(&["a"], "b").unwrap_err().is_usage() && checked(&["-"], "-").unwrap_err().is_usage());
        assert!(checked(&["-"], "gs://b/").unwrap_err().is_usage() && checked(&["-"], "gs://b/k").is_ok());
        assert!(
            checked(&["gs://"], "x").unwrap_err().is_usage()
                && checked(&["a"], "s3://").unwrap_err().is_usage()
        );
        assert!(checked(&[], "s3://b/x").unwrap_err().is_usage());
    }

    #[test]
    fn a_destinations_key_is_no_pattern() {
        assert!(checked(&["a"], "s3://b/q?x=1").is_ok() && checked(&["a"], "gs://b/x*").is_ok());
    }

    #[test]
    fn a_tree_is_not_copied_into_itself() {
        let into = |source, destination| {
            is_into_itself((Provider::S3, "b", source), (Provider::S3, "b", destination))
        };
        assert!(into("a/", "a/b/") && into("", "x/") && into("a/", "a/"));
        assert!(!into("a/", "ab/"));
        assert!(!is_into_itself((Provider::S3, "b", "a/"), (Provider::Gcs, "b", "a/b/")));
    }
}
