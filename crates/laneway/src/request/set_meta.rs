//! The request to change the metadata of objects.

use laneway_store::MetaChange;

use super::setters::setters;
use crate::{Error, Filter, Location};

/// A request to change the metadata and the storage class of objects in place.
///
/// ```
/// use laneway::{MetaChange, SetMetaRequest};
///
/// let change = MetaChange::default().cache_control("no-store");
/// let request = SetMetaRequest::new(vec!["gs://lake/site/".parse()?], change).recursive(true);
/// assert!(request.check().is_ok());
/// # Ok::<(), laneway::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SetMetaRequest {
    /// The objects and patterns to change. With [`recursive`](Self::recursive), also prefixes.
    pub targets: Vec<Location>,
    /// The change to make to each object.
    pub change: MetaChange,
    /// Changes all objects below the prefixes in `targets`.
    pub recursive: bool,
    /// Only reports the objects that a real job would change.
    pub dry_run: bool,
    /// Chooses the objects below prefixes to change, by their names relative to the prefix. Objects that are
    /// targets themselves are always changed.
    pub filter: Filter,
}

impl SetMetaRequest {
    /// Makes a request to change these objects, and the objects that match these patterns.
    pub fn new(targets: Vec<Location>, change: MetaChange) -> Self {
        Self { targets, change, recursive: false, dry_run: false, filter: Filter::default() }
    }

    setters! {
        recursive: bool,
        dry_run: bool,
        filter: Filter,
    }

    /// Checks the request without a request to a store. [`Client::set_meta`](crate::Client::set_meta) also
    /// calls this, and reports the error as the job's first item.
    ///
    /// # Errors
    /// `ErrorKind::Usage`.
    pub fn check(&self) -> Result<(), Error> {
        if self.targets.is_empty() || self.change.is_empty() {
            return Err(Error::usage("", "there is nothing to change"));
        }
        for target in &self.targets {
            let why = match target {
                Location::Object { bucket, .. } if bucket.is_empty() => "the URL names no bucket",
                Location::Object { .. } if target.is_written_as_folder() && !self.recursive => {
                    "names a folder; use -r to change what it holds"
                }
                Location::Object { .. } | Location::Version { .. } => continue,
                Location::Local(_) | Location::Standard => "only objects in a store can be changed",
            };
            return Err(Error::usage(target.to_string(), why));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_needs_the_recursive_flag_and_a_change_something_that_changes() {
        let request = |target: &str| {
            SetMetaRequest::new(vec![target.parse().unwrap()], MetaChange::default().content_type("a/b"))
        };
        assert!(request("gs://b/p/").check().unwrap_err().is_usage());
        assert!(request("gs://b/p/").recursive(true).check().is_ok());
        assert!(request("/etc/passwd").check().unwrap_err().is_usage());
        let nothing = SetMetaRequest { change: MetaChange::default(), ..request("gs://b/k") };
        assert!(nothing.check().unwrap_err().is_usage());
    }
}
