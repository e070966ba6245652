//! The request to compare two places.

use std::path::PathBuf;

use super::setters::setters;
use crate::{Error, Filter, Location};

/// Compares everything below two places: names, sizes, and the checksums that both have. Listings show the
/// checksums of objects. Local files are read and hashed.
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
    /// The source, a folder or prefix.
    pub source: Location,
    /// The destination, which should have the same content.
    pub destination: Location,
    /// Chooses the names that take part.
    pub filter: Filter,
    /// Reads local files. Also requests an object that is compared with a file if its listing shows no
    /// checksum. Without this setting, files are compared by name and size.
    pub read: bool,
    /// A file that receives a row for each name, in the columns of S3 Batch Operations' completion reports:
    /// `Bucket, Key, VersionId, TaskStatus, ErrorCode, HTTPStatusCode, ResultMessage`. Until the comparison
    /// ends, the file's name ends in `.unfinished`.
    pub report: Option<PathBuf>,
    /// An inventory that replaces the source's listing, as
    /// [`CopyRequest::inventory`](crate::CopyRequest::inventory).
    pub source_inventory: Option<Location>,
    /// An inventory that replaces the destination's listing.
    pub destination_inventory: Option<Location>,
}

impl VerifyRequest {
    /// Compares two places completely.
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

    /// Checks the request before any request to a store. [`Client::verify`](crate::Client::verify) does so by
    /// itself, and reports the error as its first item.
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
                return Err(Error::usage(
                    place.to_string(),
                    "an inventory can only replace the listing of a bucket or prefix",
                ));
            }
        }
        match self.source == self.destination && self.source_inventory == self.destination_inventory {
            true => Err(Error::usage(self.source.to_string(), "is compared with itself")),
            false => Ok(()),
        }
    }
}
