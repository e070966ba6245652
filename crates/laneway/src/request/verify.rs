//! The request to compare the content of two folders or prefixes.

use std::path::PathBuf;

use super::setters::setters;
use crate::{Error, Filter, Location};

/// A request to compare everything below two folders or prefixes: names, sizes, and a checksum that both
/// sides have. Laneway takes the checksums of objects from listings, and reads local files to compute theirs.
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
    /// Chooses the items to compare, by their names.
    pub filter: Filter,
    /// Reads local files and compares their checksums. If a listing doesn't show the checksum of an object
    /// that is compared with a file, Laneway sends a HEAD for it. Without this setting, files are compared
    /// only by name and size.
    pub read: bool,
    /// A CSV file to which Laneway writes a row for each name. It has the columns of completion reports by S3
    /// Batch Operations: `Bucket, Key, VersionId, TaskStatus, ErrorCode, HTTPStatusCode, ResultMessage`.
    /// Until the comparison ends, the file's name ends in `.unfinished`.
    pub report: Option<PathBuf>,
    /// An inventory to read instead of listing the source: see
    /// [`CopyRequest::inventory`](crate::CopyRequest::inventory).
    pub source_inventory: Option<Location>,
    /// An inventory to read instead of listing the destination.
    pub destination_inventory: Option<Location>,
}

impl VerifyRequest {
    /// Makes a request to compare names, sizes and checksums.
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

    /// Checks the request without a request to a store. [`Client::verify`](crate::Client::verify) also calls
    /// this, and reports the error as the job's first item.
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
