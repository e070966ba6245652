//! Checks of requests that are possible without contacting a store.

use laneway_store::capabilities_of;

use crate::listing::folder_prefix;
use crate::listing::glob;
use crate::local::folder;
use crate::location::mapping::{self, name_of_key, single_key, tree_prefix};
use crate::{CopyRequest, Error, ListRequest, Location, RemoveRequest};

/// Checks that a request with an inventory has a single prefix, whose listing the inventory replaces.
fn check_inventory(
    inventory: Option<&Location>,
    places: &[Location],
    recursive: bool,
    is_named: bool,
) -> Result<(), Error> {
    let Some(at) = inventory else { return Ok(()) };
    let refused = |why: &str| Err(Error::usage(at.to_string(), why.to_owned()));
    match places {
        _ if is_named => refused("an inventory and a list of names can't be combined"),
        [place @ Location::Object { .. }] if !place.is_pattern() && recursive => Ok(()),
        [Location::Object { .. }] if !recursive => refused("an inventory needs -r"),
        _ => refused("an inventory can only replace the listing of one bucket or prefix"),
    }
}

/// The error for `--all-versions` with an inventory or a list of names, which contain no versions.
const NO_VERSIONS: &str =
    "--all-versions needs a listing, and can't be combined with a list of names or an inventory";

/// The error for a filter with a list of names. A filter may need sizes and times, which such a list doesn't
/// contain. If Laneway ignored the filter, it would remove or copy too much.
const NAMES_OR_FILTERS: &str =
    "a list of names and filters can't be combined: remove unwanted names from the list";

impl ListRequest {
    /// Checks the request without contacting a store.
    ///
    /// # Errors
    /// `ErrorKind::Usage`.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.all_versions && self.inventory.is_some() {
            return Err(Error::usage("-a", NO_VERSIONS));
        }
        let is_limited = !self.recursive || self.all_versions || self.soft_deleted || self.at.is_pattern();
        if self.has_bounds() && is_limited {
            let why = "only a recursive listing of a bucket or prefix can start or end at a key";
            return Err(Error::usage(self.at.to_string(), why));
        }
        check_inventory(self.inventory.as_ref(), std::slice::from_ref(&self.at), self.recursive, false)
    }
}

impl CopyRequest {
    /// Checks the request without contacting a store. [`Client::copy`](crate::Client::copy) also calls
    /// this, and reports the error as the job's first item.
    ///
    /// # Errors
    /// `ErrorKind::Usage`.
    pub fn check(&self) -> Result<(), Error> {
        mapping::check(&self.sources, &self.destination, self.is_into_folder())?;
        if self.recursive && self.destination == Location::Standard {
            return Err(Error::usage("-", "standard output takes one object, not a tree"));
        }
        if matches!(self.destination, Location::Version { .. }) {
            return Err(Error::usage(
                self.destination.to_string(),
                "a version of an object can't be the destination",
            ));
        }
        self.check_files_from()?;
        check_inventory(self.inventory.as_ref(), &self.sources, self.recursive, self.files_from.is_some())?;
        self.check_gzip()?;
        self.check_decompress()?;
        self.check_expect_size()?;
        self.check_local()?;
        for source in &self.sources {
            if source.is_object() && source.is_written_as_folder() && !self.recursive {
                return Err(Error::usage(source.to_string(), "names a folder; use -r to copy it"));
            }
            self.check_not_into_itself(source)?;
        }
        Ok(())
    }

    /// Checks that a request with a list of names has a single source, below which the names lie.
    fn check_files_from(&self) -> Result<(), Error> {
        let Some(names) = &self.files_from else { return Ok(()) };
        match &self.sources[..] {
            _ if names.is_object() => Err(Error::usage(
                names.to_string(),
                "the list of names must be a local file, or - for standard input; it can't be an object",
            )),
            _ if !self.filter.is_empty() => Err(Error::usage(names.to_string(), NAMES_OR_FILTERS)),
            _ if !self.recursive => Err(Error::usage(names.to_string(), "a list of names needs -r")),
            [Location::Local(path)] if !path.is_dir() => {
                Err(Error::usage(path.display().to_string(), "is not a folder"))
            }
            [source] if source.is_pattern() => {
                Err(Error::usage(source.to_string(), "a list of names needs one prefix, not a pattern"))
            }
            [_] => Ok(()),
            _ => Err(Error::usage(names.to_string(), "a list of names needs exactly one source")),
        }
    }

    /// Returns whether the destination counts as a folder that receives the sources under their own names.
    /// For a single tree, the result depends only on the destination's text. So a repeated command has the
    /// same meaning, even though the destination exists by then. For other sources, an existing local folder
    /// also counts as a folder.
    pub(crate) fn is_into_folder(&self) -> bool {
        let is_tree = self.recursive && matches!(&self.sources[..], [source] if !source.is_pattern());
        let is_there = match &self.destination {
            Location::Local(path) => !is_tree && folder::is_directory(path.as_os_str()),
            Location::Object { .. } | Location::Version { .. } | Location::Standard => false,
        };
        is_there || self.destination.is_written_as_folder()
    }

    /// Checks local sources and the local destination. A pattern, which may match several files, needs a
    /// folder as its destination. A folder can't replace a file.
    fn check_local(&self) -> Result<(), Error> {
        for source in &self.sources {
            let Location::Local(path) = source else { continue };
            if !self.destination.is_written_as_folder() && glob::is_pattern(path) {
                let message = "a pattern can match several files, so the destination must be a folder: end it with a slash";
                return Err(Error::usage(self.destination.to_string(), message));
            }
        }
        let needs_folder = self.recursive || self.destination.is_written_as_folder();
        match &self.destination {
            Location::Local(path) if needs_folder => match folder::file_in_the_way(path) {
                Some(file) => {
                    let message = format!("{} is a file, but a folder is needed there", file.display());
                    Err(Error::refused(self.destination.to_string(), message))
                }
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Checks that a request with decompression downloads into files. Standard output isn't allowed, because
    /// it gets bytes before Laneway compares their checksum.
    fn check_decompress(&self) -> Result<(), Error> {
        let is_download =
            matches!(self.destination, Location::Local(_)) && self.sources.iter().all(Location::is_object);
        match self.decompress && !is_download {
            true => {
                let destination = self.destination.to_string();
                Err(Error::usage(destination, "only downloads into files can be decompressed"))
            }
            false => Ok(()),
        }
    }

    /// Checks that a request with compression uploads files, and sets no other content encoding.
    fn check_gzip(&self) -> Result<(), Error> {
        let is_upload =
            self.destination.is_object() && self.sources.iter().any(|s| matches!(s, Location::Local(_)));
        if !self.gzip.is_empty() && !is_upload {
            let destination = self.destination.to_string();
            return Err(Error::usage(destination, "only uploads of local files can be compressed"));
        }
        if !self.gzip.is_empty()
            && let Some(encoding) = &self.put.content_encoding
        {
            let why =
                format!("the content encoding {encoding:?} can't be set on files that Laneway compresses");
            return Err(Error::usage(self.destination.to_string(), why));
        }
        Ok(())
    }

    /// Checks that a request with an expected size is an upload, and that the store allows an object of this
    /// size.
    fn check_expect_size(&self) -> Result<(), Error> {
        let Some(expected) = self.expect_size else { return Ok(()) };
        let refused = |why: &str| Err(Error::usage(format!("{expected} bytes"), why.to_owned()));
        let is_stream = |source: &Location| matches!(source, Location::Local(_) | Location::Standard);
        match &self.destination {
            Location::Object { provider, .. }
                if capabilities_of(*provider).is_some_and(|can| expected > can.object_bytes_max) =>
            {
                refused("is more than this store's maximum size of an object")
            }
            Location::Object { .. } if self.sources.iter().any(is_stream) => Ok(()),
            _ => refused("an expected size is only for uploads from standard input or a pipe"),
        }
    }

    fn check_not_into_itself(&self, source: &Location) -> Result<(), Error> {
        let (
            Location::Object { provider, bucket, key },
            Location::Object { provider: to_provider, bucket: to_bucket, key: to_key },
        ) = (source, &self.destination)
        else {
            return Ok(());
        };
        let is_folder = self.destination.is_written_as_folder();
        let name = self.tree_name(bucket, key);
        let (from, to) = match self.recursive {
            true => (folder_prefix(key), tree_prefix(to_key, is_folder, &name)),
            false => (key.clone(), single_key(to_key, is_folder, name_of_key(bucket, key))),
        };
        let is_itself = match self.recursive {
            true => mapping::is_into_itself((*provider, bucket, &from), (*to_provider, to_bucket, &to)),
            false => (provider, bucket, &from) == (to_provider, to_bucket, &to),
        };
        match is_itself {
            true => Err(Error::usage(
                source.to_string(),
                format!("can't be copied to itself ({})", self.destination),
            )),
            false => Ok(()),
        }
    }
}

impl RemoveRequest {
    /// Checks the request without contacting a store. [`Client::remove`](crate::Client::remove) also calls
    /// this, and reports the error as the job's first item.
    ///
    /// # Errors
    /// `ErrorKind::Usage`.
    pub fn check(&self) -> Result<(), Error> {
        match (&self.files_from, self.targets.len()) {
            _ if self.all_versions && (self.files_from.is_some() || self.inventory.is_some()) => {
                return Err(Error::usage("-a", NO_VERSIONS));
            }
            (Some(names), _) if names.is_object() => {
                return Err(Error::usage(
                    names.to_string(),
                    "the list of names must be a local file, or - for standard input; it can't be an object",
                ));
            }
            (Some(names), _) if !self.filter.is_empty() => {
                return Err(Error::usage(names.to_string(), NAMES_OR_FILTERS));
            }
            (Some(names), 2..) => {
                let why = "a list of names needs exactly one prefix";
                return Err(Error::usage(names.to_string(), why));
            }
            _ => {}
        }
        check_inventory(self.inventory.as_ref(), &self.targets, self.recursive, self.files_from.is_some())?;
        if self.targets.is_empty() && self.files_from.is_none() {
            return Err(Error::usage("", "there is nothing to remove"));
        }
        for target in &self.targets {
            match target {
                Location::Object { bucket, .. } if bucket.is_empty() => {
                    return Err(Error::usage(target.to_string(), "the URL names no bucket"));
                }
                Location::Object { .. } if self.files_from.is_some() && target.is_pattern() => {
                    let why = "a list of names needs one prefix, not a pattern";
                    return Err(Error::usage(target.to_string(), why));
                }
                Location::Object { .. }
                    if target.is_written_as_folder() && !self.recursive && self.files_from.is_none() =>
                {
                    return Err(Error::usage(
                        target.to_string(),
                        "names a folder; use -r to remove what it holds",
                    ));
                }
                Location::Object { .. } | Location::Version { .. } => {}
                Location::Local(_) | Location::Standard => {
                    return Err(Error::usage(target.to_string(), "only objects in a store can be removed"));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(sources: &[&str], destination: &str, recursive: bool) -> Result<(), Error> {
        let sources = sources.iter().map(|s| s.parse().unwrap()).collect();
        CopyRequest::new(sources, destination.parse().unwrap()).recursive(recursive).check()
    }

    #[test]
    fn a_folder_in_a_store_needs_the_recursive_flag() {
        assert!(check(&["gs://b/p/"], "x", false).unwrap_err().to_string().contains("-r"));
        assert!(
            check(&["gs://b"], "x", false).unwrap_err().is_usage() && check(&["gs://b"], "x", true).is_ok()
        );
    }

    #[test]
    fn standard_output_takes_one_object() {
        assert!(
            check(&["gs://b/p"], "-", true).unwrap_err().is_usage()
                && check(&["gs://b/p", "gs://b/q"], "-", false).unwrap_err().is_usage()
        );
        assert!(check(&["gs://b/p"], "-", false).is_ok());
    }

    #[test]
    fn nothing_is_copied_onto_or_into_itself() {
        assert!(check(&["gs://b/k"], "gs://b/k", false).unwrap_err().is_usage());
        assert!(check(&["gs://b/k"], "gs://b/", false).unwrap_err().is_usage());
        assert!(check(&["gs://b/k"], "s3://b/k", false).is_ok());
        assert!(
            check(&["gs://b/k#1700000000000001"], "gs://b/k", false).is_ok(),
            "an older version takes its place"
        );
        assert!(check(&["gs://b/a"], "gs://b/a/b", true).unwrap_err().is_usage());
        assert!(check(&["gs://b/a"], "gs://b/ab", true).is_ok());
        assert!(check(&["gs://b/a/c"], "gs://b/a/", true).unwrap_err().is_usage());
    }
}
