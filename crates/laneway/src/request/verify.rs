//! What a comparison of two places is asked to do.

use std::path::PathBuf;

use super::setters::setters;
use crate::{Error, Filter, Location};

/// Compares what lies below two places: names, sizes, and the checksums that both have. Objects tell theirs in listings. Local files are
/// read and hashed.
///
/// ```
/// use laneway::VerifyRequest;
///
/// let request = VerifyRequest::new("gs://lake/2026".parse()?, "s3://copy/2026".parse()?);
/// assert!(request.report("report.csv").check().is_ok());
/// # Ok::<(), laneway::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct VerifyRequest {
    /// A folder or prefix.
    pub source: Location,
    /// The one that is to hold the same.
    pub destination: Location,
    /// Which names are meant.
    pub filter: Filter,
    /// Whether local files are read, and objects asked for that are compared with one and whose listing tells no checksum. Without it files
    /// are compared by their names and sizes.
    pub read: bool,
    /// A file that gets a row for each name, in the columns of S3 Batch Operations' completion reports: `Bucket, Key, VersionId,
    /// TaskStatus, ErrorCode, HTTPStatusCode, ResultMessage`. Until all was compared it is called as this with `.unfinished` behind it.
    pub report: Option<PathBuf>,
    /// What stands for the source's listing, as [`CopyRequest::inventory`](crate::CopyRequest::inventory).
    pub source_inventory: Option<Location>,
    /// The same of the destination.
    pub destination_inventory: Option<Location>,
}

impl VerifyRequest {
    /// Compares all of two places.
    pub fn new(source: Location, destination: Location) -> Self {
        Self {
            source,
            destination,
            filter: Filter::default(),
            read: true,
            report: None,
            source_inventory: None,
            destination_inventory: None,
        }
    }

    setters! {
        filter: Filter,
        read: bool,
        report: into PathBuf,
        source_inventory: into Location,
        destination_inventory: into Location,
    }

    /// Checks what can be checked before anything is asked of a store. [`Client::verify`](crate::Client::verify) does so by itself, and
    /// reports the error as its first item.
    ///
    /// # Errors
    /// `ErrorKind::Usage`.
    pub fn check(&self) -> Result<(), Error> {
        for place in [&self.source, &self.destination] {
            match place {
                Location::Standard | Location::Version { .. } => {
                    return Err(Error::usage(place.to_string(), "is not a folder"));
                }
                Location::Object { bucket, .. } if bucket.is_empty() => {
                    return Err(Error::usage(place.to_string(), "the URL names no bucket"));
                }
                Location::Object { .. } if place.is_pattern() => {
                    return Err(Error::usage(
                        place.to_string(),
                        "patterns can't be compared; give folders or prefixes",
                    ));
                }
                Location::Local(path) if !path.exists() => {
                    return Err(Error::usage(place.to_string(), "does not exist"));
                }
                Location::Local(path) if !path.is_dir() => {
                    return Err(Error::usage(place.to_string(), "is a file; give a folder"));
                }
                _ => {}
            }
        }
        for (place, inventory) in
            [(&self.source, &self.source_inventory), (&self.destination, &self.destination_inventory)]
        {
            if inventory.is_some() && !place.is_object() {
                return Err(Error::usage(place.to_string(), "an inventory is a bucket's"));
            }
        }
        match self.source == self.destination && self.source_inventory == self.destination_inventory {
            true => Err(Error::usage(self.source.to_string(), "is compared with itself")),
            false => Ok(()),
        }
    }
}
