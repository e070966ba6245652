//! Stores a file's modification time, mode and owner in an object's metadata, and reads them back. On GCS,
//! Laneway uses the format of `gcloud storage rsync`, and on S3 the format of rclone.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use laneway_store::{FileAttributes, Retention};

/// The names of metadata entries that `gcloud storage` uses.
const GCS_MTIME: &str = "goog-reserved-file-mtime";
const GCS_MODE: &str = "goog-reserved-posix-mode";
const GCS_UID: &str = "goog-reserved-posix-uid";
const GCS_GID: &str = "goog-reserved-posix-gid";
/// The names of metadata entries that rclone uses. gsutil and s3fs also use `mtime`.
const MTIME: &str = "mtime";
const MODE: &str = "mode";
const UID: &str = "uid";
const GID: &str = "gid";

/// The bits of a mode that Laneway stores and sets: only the permissions. With a bit such as set-user-id, an
/// object that someone else wrote could become a privileged program.
const PERMISSIONS: u32 = 0o777;

/// The file attributes that Laneway stores with objects and sets on downloaded files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Preserve {
    Nothing,
    /// Stores no attributes with objects. Sets the modification times of downloaded files from their objects'
    /// metadata.
    Times,
    /// Stores modification times, modes and owners with objects, and sets them on downloaded files.
    All,
}

/// Seconds since 1970, and the nanoseconds after that second.
pub(crate) type FileTime = (i64, u32);

/// A file's modification time, mode, owner and group, as far as they are known.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct PosixAttributes {
    pub(crate) mtime: Option<FileTime>,
    pub(crate) mode: Option<u32>,
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
}

impl PosixAttributes {
    pub(crate) fn of_file(metadata: &Metadata) -> Self {
        Self {
            mtime: Some((metadata.mtime(), u32::try_from(metadata.mtime_nsec()).unwrap_or_default())),
            mode: Some(metadata.mode() & PERMISSIONS),
            uid: Some(metadata.uid()),
            gid: Some(metadata.gid()),
        }
    }

    /// Returns the attributes in an object's metadata. Ignores an attribute that can't be parsed.
    pub(crate) fn of_object(metadata: &BTreeMap<String, String>) -> Self {
        let find = |names: [&str; 2]| names.into_iter().find_map(|name| metadata.get(name));
        let mode = find([GCS_MODE, MODE]).and_then(|mode| u32::from_str_radix(mode, 8).ok());
        Self {
            mtime: find([GCS_MTIME, MTIME]).and_then(|text| time(text)),
            mode: mode.map(|mode| mode & PERMISSIONS),
            uid: find([GCS_UID, UID]).and_then(|uid| uid.parse().ok()),
            gid: find([GCS_GID, GID]).and_then(|gid| gid.parse().ok()),
        }
    }

    pub(crate) fn metadata(&self, names: FileAttributes) -> Vec<(String, String)> {
        let mtime = self.mtime.map(|(s, ns)| match (names, ns) {
            (FileAttributes::Gcloud, _) | (_, 0) => s.to_string(),
            // `ns` is always added to `s`, so 1.25 seconds before 1970 are `s` = -2 and `ns` = 750 million.
            // The text for this time is -1.25, so convert the fraction.
            (_, ns) if s < 0 => format!("-{}.{:09}", -(s + 1), 1_000_000_000 - ns),
            (_, ns) => format!("{s}.{ns:09}"),
        });
        let keys = match names {
            FileAttributes::Gcloud => [GCS_MTIME, GCS_MODE, GCS_UID, GCS_GID],
            _ => [MTIME, MODE, UID, GID],
        };
        let mode = self.mode.map(|mode| match names {
            FileAttributes::Gcloud => format!("{mode:03o}"),
            // As rclone does, write the mode with the file type, here a regular file.
            _ => format!("{:o}", 0o100_000 | mode),
        });
        let values = [mtime, mode, self.uid.map(|uid| uid.to_string()), self.gid.map(|gid| gid.to_string())];
        let pairs = keys.into_iter().zip(values);
        pairs.filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }

    pub(crate) fn to_be_set(self, preserve: Preserve) -> Self {
        match preserve {
            Preserve::Nothing => Self::default(),
            Preserve::Times => Self { mtime: self.mtime, ..Self::default() },
            Preserve::All => self,
        }
    }
}

/// Parses a number of seconds since 1970, with or without a fraction, or a date with a time.
fn time(text: &str) -> Option<FileTime> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let Ok(s) = seconds.parse::<i64>() else {
        let time = Retention::time(text)?.duration_since(std::time::UNIX_EPOCH).ok()?;
        return Some((i64::try_from(time.as_secs()).ok()?, time.subsec_nanos()));
    };
    if !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let digits: String = fraction.chars().chain(std::iter::repeat('0')).take(9).collect();
    let ns: u32 = digits.parse().ok()?;
    match seconds.starts_with('-') && ns > 0 {
        true => Some((s.checked_sub(1)?, 1_000_000_000 - ns)),
        false => Some((s, ns)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn what_a_file_is_comes_back_out_of_an_objects_metadata() {
        for (names, ns) in
            [(FileAttributes::Gcloud, 0), (FileAttributes::Rclone, 0), (FileAttributes::Rclone, 5_000_001)]
        {
            for s in [1_700_000_000, 0, -1, -1_000] {
                let all = PosixAttributes {
                    mtime: Some((s, ns)),
                    mode: Some(0o640),
                    uid: Some(1000),
                    gid: Some(0),
                };
                let written = all.metadata(names).into_iter().collect();
                assert_eq!(PosixAttributes::of_object(&written), all, "{written:?}");
            }
        }
    }

    #[test]
    fn metadata_are_what_gcloud_and_rclone_write() {
        let all =
            PosixAttributes { mtime: Some((17, 500_000_000)), mode: Some(0o44), uid: Some(1), gid: Some(2) };
        let gcs = metadata(&[(GCS_MTIME, "17"), (GCS_MODE, "044"), (GCS_UID, "1"), (GCS_GID, "2")]);
        assert_eq!(all.metadata(FileAttributes::Gcloud).into_iter().collect::<BTreeMap<_, _>>(), gcs);
        let s3 = metadata(&[("mtime", "17.500000000"), ("mode", "100044"), ("uid", "1"), ("gid", "2")]);
        assert_eq!(all.metadata(FileAttributes::Rclone).into_iter().collect::<BTreeMap<_, _>>(), s3);
    }

    #[test]
    fn times_are_read_as_seconds_and_as_dates() {
        assert_eq!(time("1354040105.123456789"), Some((1_354_040_105, 123_456_789)));
        assert_eq!(time("2012-11-27T18:15:05.25Z"), Some((1_354_040_105, 250_000_000)));
        assert_eq!((time("-1.25"), time("-1")), (Some((-2, 750_000_000)), Some((-1, 0))));
        assert_eq!(["", "x", "1.x", "1.-2"].map(time), [None; 4]);
    }

    #[test]
    fn a_mode_that_makes_programs_of_files_for_others_is_not_believed() {
        assert_eq!(PosixAttributes::of_object(&metadata(&[("mode", "104755")])).mode, Some(0o755));
    }
}
