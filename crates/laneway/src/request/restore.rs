//! The request to restore objects.

use laneway_store::RestoreOptions;

use super::setters::setters;
use crate::{Error, Filter, Location};

/// A request to restore objects. On S3, it makes archived objects readable again. On GCS, it restores deleted
/// objects.
///
/// ```
/// use laneway::{RestoreOptions, RestoreRequest};
///
/// let options = RestoreOptions::default().days(7).tier("Bulk");
/// let request = RestoreRequest::new(vec!["s3://lake/2019/".parse()?], options).recursive(true);
/// assert!(request.check().is_ok());
/// # Ok::<(), laneway::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RestoreRequest {
    /// The objects, versions and patterns to restore. With [`recursive`](Self::recursive), also prefixes.
    pub targets: Vec<Location>,
    /// The options of each restoration, such as the number of days and the tier.
    pub options: RestoreOptions,
    /// Restores all archived (S3) or deleted (GCS) objects below the prefixes in `targets`.
    pub recursive: bool,
    /// Only reports the objects that a real job would restore.
    pub dry_run: bool,
    /// Chooses which objects below a prefix are restored. The filter sees each object's name relative to the
    /// prefix. Objects that are targets themselves are always restored.
    pub filter: Filter,
}

impl RestoreRequest {
    /// Returns a request that restores these targets. A target is an object, a version, or a pattern for
    /// objects.
    pub fn new(targets: Vec<Location>, options: RestoreOptions) -> Self {
        Self { targets, options, recursive: false, dry_run: false, filter: Filter::default() }
    }

    setters! {
        recursive: bool,
        dry_run: bool,
        filter: Filter,
    }

    /// Checks the request without contacting a store. [`Client::restore`](crate::Client::restore) also calls
    /// this, and reports the error as the job's first item.
    ///
    /// # Errors
    /// `ErrorKind::Usage`.
    pub fn check(&self) -> Result<(), Error> {
        if self.targets.is_empty() {
            return Err(Error::usage("", "there is nothing to restore"));
        }
        if self.options.days == Some(0) {
            return Err(Error::usage("", "a restored copy must stay for at least one day"));
        }
        for target in &self.targets {
            let why = match target {
                Location::Object { bucket, .. } if bucket.is_empty() => "the URL names no bucket",
                Location::Object { .. } if target.is_written_as_folder() && !self.recursive => {
                    "names a folder; use -r to restore what it holds"
                }
                Location::Object { .. } | Location::Version { .. } => continue,
                Location::Local(_) | Location::Standard => "only objects in a store can be restored",
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
    fn a_folder_needs_the_recursive_flag_and_a_copy_at_least_a_day() {
        let request = |target: &str| {
            RestoreRequest::new(vec![target.parse().unwrap()], RestoreOptions::default().days(1))
        };
        assert!(request("s3://b/p/").check().unwrap_err().is_usage());
        assert!(request("s3://b/p/").recursive(true).check().is_ok());
        assert!(request("/etc/passwd").check().unwrap_err().is_usage());
        let never = RestoreRequest { options: RestoreOptions::default().days(0), ..request("s3://b/k") };
        assert!(never.check().unwrap_err().is_usage());
    }
}
