//! The sources and destinations of transfers, and their notation: `gs://bucket/key`, `s3://bucket/key`,
//! `az://container/key`, a local path, or `-` for standard input and output.

pub(crate) mod lines;
pub(crate) mod mapping;
pub(crate) mod pattern;
pub(crate) mod relative;

use std::ffi::OsStr;
use std::fmt;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use laneway_store::{ObjectId, Provider, azure_bucket};
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::location::pattern::Pattern;

/// The source or destination of a transfer.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Location {
    /// A file or directory on this machine.
    Local(PathBuf),
    /// A bucket, prefix, object or pattern in a store, or all buckets of the store.
    Object {
        /// The store's provider.
        provider: Provider,
        /// The bucket; empty if only the scheme was given.
        bucket: String,
        /// The key, prefix or pattern, exactly as written; empty for the whole bucket.
        key: String,
    },
    /// One version of an object: `gs://bucket/key#1700000000000000`, `s3://bucket/key#id`.
    Version {
        /// The store's provider.
        provider: Provider,
        /// The bucket.
        bucket: String,
        /// The object's key, without wildcards.
        key: String,
        /// The name that the store gives to the version: a GCS generation in digits, or an S3 version id.
        version: String,
    },
    /// Standard input or output, written `-`.
    Standard,
}

impl Location {
    /// Parses a path or URL that a user wrote.
    ///
    /// # Errors
    /// `ErrorKind::Usage` for an unknown scheme, a URL without a bucket but with a key, or an empty text.
    pub fn parse(text: &OsStr) -> Result<Self, Error> {
        match text.to_str() {
            Some(text) => text.parse(),
            // Only local paths may contain bytes that aren't UTF-8. So refuse a URL with such bytes.
            None => match text.to_string_lossy().split_once("://") {
                Some((scheme, rest)) => {
                    Err(Error::usage(without_secrets(scheme, rest), "the URL of an object must be UTF-8"))
                }
                None => Ok(Self::Local(PathBuf::from(text))),
            },
        }
    }

    /// Returns the location of an object in a store.
    pub fn object(provider: Provider, bucket: impl Into<String>, key: impl Into<String>) -> Self {
        Self::Object { provider, bucket: bucket.into(), key: key.into() }
    }

    /// Returns the location of this object or version in a store.
    pub(crate) fn named(provider: Provider, id: &ObjectId) -> Self {
        let ObjectId { bucket, key, version, .. } = id.clone();
        match version {
            None => Self::Object { provider, bucket, key },
            Some(version) => Self::Version { provider, bucket, key, version: version.into() },
        }
    }

    /// Returns whether the location is in a store.
    pub fn is_object(&self) -> bool {
        matches!(self, Self::Object { .. } | Self::Version { .. })
    }

    /// Returns the same location, but treats a `#` and the text after it as a part of the key, not as a
    /// version. Use this for destinations, because a version can't be written.
    #[must_use]
    pub fn as_written(self) -> Self {
        match self {
            Self::Version { provider, bucket, key, version } => {
                Self::Object { provider, bucket, key: format!("{key}#{version}") }
            }
            other => other,
        }
    }

    /// Returns the provider, and the bucket, key and version. Returns `None` if the location isn't in a
    /// store.
    pub(crate) fn as_object(&self) -> Option<(Provider, ObjectId)> {
        match self {
            Self::Object { provider, bucket, key } => Some((*provider, ObjectId::new(bucket, key))),
            Self::Version { provider, bucket, key, version } => {
                Some((*provider, ObjectId::new(bucket, key).at_version(version.as_str())))
            }
            Self::Local(_) | Self::Standard => None,
        }
    }

    /// Returns whether the location is in a store and its key has wildcards.
    pub fn is_pattern(&self) -> bool {
        matches!(self, Self::Object { key, .. } if Pattern::parse(key).is_some())
    }

    /// Returns whether the location's text alone marks it as a folder. This holds for a whole bucket, for a
    /// text that ends in a slash, and for a local path whose last component is `.` or `..`.
    pub fn is_written_as_folder(&self) -> bool {
        match self {
            Self::Local(path) => {
                let last = path.as_os_str().as_encoded_bytes().rsplit(|byte| *byte == b'/').next();
                matches!(last, Some(b"" | b"." | b".."))
            }
            Self::Object { key, .. } => key.is_empty() || key.ends_with('/'),
            Self::Version { .. } | Self::Standard => false,
        }
    }
}

impl FromStr for Location {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if text == "-" {
            return Ok(Self::Standard);
        }
        if text.is_empty() {
            return Err(Error::usage("", "the name is empty; give a path or a URL"));
        }
        let Some((scheme, rest)) = text.split_once("://").filter(|(scheme, _)| is_scheme(scheme)) else {
            return Ok(Self::Local(PathBuf::from(text)));
        };
        let lower = scheme.to_ascii_lowercase();
        let provider = match (lower.as_str(), Provider::of_scheme(&lower)) {
            (_, Some(provider)) => provider,
            ("file", None) => return Ok(Self::Local(PathBuf::from(rest))),
            ("abfs" | "abfss", None) => Provider::Azure,
            ("https", None) if let Some(read) = azure_web_url(rest) => {
                return read.map_err(|why| Error::usage(without_secrets(scheme, rest), why));
            }
            _ => {
                let message =
                    format!("unknown scheme {scheme}://; use gs://, s3://, az://, file:// or a plain path");
                return Err(Error::usage(without_secrets(scheme, rest), message));
            }
        };
        let (bucket, key) = match provider {
            Provider::S3 => bucket_and_key(rest),
            _ => rest.split_once('/').unwrap_or((rest, "")),
        };
        if provider == Provider::Azure && has_signature(key) {
            return Err(Error::usage(without_secrets(scheme, rest), SAS_IN_URL));
        }
        if provider == Provider::Azure
            && let Some((container, host)) = bucket.split_once('@')
            && let Some(bucket) = azure_bucket(container, host)
            && !container.is_empty()
        {
            return Ok(at(provider, &bucket, key));
        }
        if names_user(provider, bucket, key) {
            return Err(Error::usage(without_secrets(scheme, rest), "a URL can't hold a user or a password"));
        }
        if bucket.is_empty() && !key.is_empty() {
            return Err(Error::usage(text, "the URL names no bucket"));
        }
        if Pattern::parse(bucket).is_some() {
            // Leave out the text from `?` on, because it may be the query of a signed URL.
            let named = without_secrets(scheme, rest);
            return Err(Error::usage(named, "wildcards match keys, not names of buckets"));
        }
        Ok(at(provider, bucket, key))
    }
}

/// Returns the location of an object, or of a version if the key ends in the name of one.
fn at(provider: Provider, bucket: &str, key: &str) -> Location {
    match versioned(provider, key) {
        Some((key, version)) => {
            let (bucket, key, version) = (bucket.to_owned(), key.to_owned(), version.to_owned());
            Location::Version { provider, bucket, key, version }
        }
        None => Location::object(provider, bucket, key),
    }
}

const SAS_IN_URL: &str = "the URL has a query; set the variable AZURE_STORAGE_SAS_TOKEN for a SAS token";

/// Returns whether a key ends in a query with the signature of a SAS token.
fn has_signature(key: &str) -> bool {
    key.split_once('?').is_some_and(|(_, query)| query.split('&').any(|pair| pair.starts_with("sig=")))
}

/// Reads the text after `https://` as the URL of a blob, in which the key is percent-encoded. Returns `None`
/// for a host that isn't Azure's.
///
/// # Errors
/// Returns the reason why the URL can't be used.
fn azure_web_url(rest: &str) -> Option<Result<Location, &'static str>> {
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    azure_bucket("", host)?;
    // A SAS token in the URL would end up in logs and in the shell's history.
    if path.contains('?') {
        return Some(Err(SAS_IN_URL));
    }
    let (container, key) = path.split_once('/').unwrap_or((path, ""));
    let Ok(key) = percent_decode_str(key).decode_utf8() else { return Some(Err("the key isn't UTF-8")) };
    match azure_bucket(container, host).filter(|_| !container.is_empty()) {
        Some(bucket) => Some(Ok(Location::object(Provider::Azure, bucket, key))),
        None => Some(Err("the URL names no container")),
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(path) => path.display().fmt(f),
            Self::Object { provider, bucket, key } if key.is_empty() => {
                write!(f, "{}://{bucket}", provider.scheme())
            }
            Self::Object { provider, bucket, key } => write!(f, "{}://{bucket}/{key}", provider.scheme()),
            Self::Version { provider, bucket, key, version } => {
                write!(f, "{}://{bucket}/{key}#{version}", provider.scheme())
            }
            Self::Standard => f.write_str("-"),
        }
    }
}

impl From<PathBuf> for Location {
    fn from(path: PathBuf) -> Self {
        Self::Local(path)
    }
}

impl From<&Path> for Location {
    fn from(path: &Path) -> Self {
        Self::Local(path.to_owned())
    }
}

/// Returns a URL for error messages, without the parts that may be a password or a signature. Drops the query
/// and the fragment. If the URL may contain a user name, keeps only the scheme: an unescaped password may
/// contain `/`, `?`, `#` and `@`, so its end isn't certain.
fn without_secrets(scheme: &str, rest: &str) -> String {
    let authority = rest.split('/').next().unwrap_or_default();
    match authority.contains(['@', ':']) {
        true => format!("{scheme}://..."),
        false => format!("{scheme}://{}", rest.split(['?', '#']).next().unwrap_or_default()),
    }
}

/// Returns whether the URL probably has a user and a password (`user:password@bucket`) where the bucket
/// should be. If the password contains a slash, the rest of it and the `@` are in the key. On GCS, a `:` in
/// the bucket shows this, because bucket names contain none. On S3, a `:` alone doesn't, because ARNs and
/// Ceph's bucket names with a tenant contain one.
fn names_user(provider: Provider, bucket: &str, key: &str) -> bool {
    let may_have_password = bucket.contains(':') && !bucket.starts_with("arn:");
    bucket.contains('@') || may_have_password && (provider == Provider::Gcs || key.contains('@'))
}

pub(crate) fn url(provider: Provider, id: &ObjectId) -> String {
    let mut url = String::with_capacity(6 + id.bucket.len() + id.key.len());
    url.push_str(provider.scheme());
    url.push_str("://");
    url.push_str(&id.bucket);
    url.push('/');
    url.push_str(&id.key);
    if let Some(version) = &id.version {
        url.push('#');
        url.push_str(version);
    }
    url
}

/// The number of digits in a GCS generation. A generation counts microseconds since 1970, so it has had 16
/// digits since 2001.
const GENERATION_DIGITS: std::ops::RangeInclusive<usize> = 16..=19;
/// The minimum length of a version id. S3's ids have 32 characters or more, and MinIO's are UUIDs.
const VERSION_ID_LEN_MIN: usize = 16;

/// Splits a text at its last `#` into key and version. Returns `None` if the text has no version. A key may
/// also contain a `#`, so only text that looks like the store's version ids counts as a version. If a key
/// really ends like this, the user writes `[#]` instead of the `#`. This makes a pattern that matches the
/// key.
fn versioned(provider: Provider, text: &str) -> Option<(&str, &str)> {
    let (key, version) = text.rsplit_once('#').filter(|(key, _)| !key.is_empty() && !key.ends_with('['))?;
    let is_version = match provider {
        Provider::Gcs => {
            GENERATION_DIGITS.contains(&version.len()) && version.bytes().all(|b| b.is_ascii_digit())
        }
        Provider::S3 => {
            let is_usual = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
            let is_id = version.len() >= VERSION_ID_LEN_MIN
                && version.bytes().all(is_usual)
                && version.bytes().any(|b| b.is_ascii_digit());
            is_id || version == "null"
        }
        // Azure names a version by its time: `2026-11-29T09:00:00.1234567Z`.
        Provider::Azure => {
            version.len() == "2026-11-29T09:00:00.1234567Z".len()
                && version.ends_with('Z')
                && version.as_bytes()[10] == b'T'
                && version.bytes().all(|b| b.is_ascii_digit() || b"-:.TZ".contains(&b))
        }
        _ => false,
    };
    (is_version && Pattern::parse(key).is_none()).then_some((key, version))
}

/// Splits the text after `s3://` into bucket and key. The bucket may be the ARN of an access point, which may
/// contain slashes.
fn bucket_and_key(rest: &str) -> (&str, &str) {
    let name_at = |resource: &str| {
        let at = rest.find(resource)? + resource.len();
        Some(at).filter(|_| rest.starts_with("arn:"))
    };
    // In an ARN on Outposts, the access point comes after the outpost: `outpost/ID/accesspoint/NAME`.
    let at = [":accesspoint/", "/accesspoint/", ":accesspoint:"].into_iter().find_map(name_at).unwrap_or(0);
    match rest[at..].find('/') {
        Some(slash) => (&rest[..at + slash], &rest[at + slash + 1..]),
        None => (rest, ""),
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

/// The attributes that identify a file and show if its content has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct FileIdentity {
    pub(crate) inode: u64,
    pub(crate) size: u64,
    /// The modification time, in seconds and nanoseconds.
    pub(crate) modified: (i64, i64),
    pub(crate) changed: (i64, i64),
}

impl FileIdentity {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            size: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// Returns whether both identities describe the same file with the same content. Ignores the status
    /// change time (`changed`), because a rename or a change of permissions also changes it.
    pub(crate) fn has_content_of(&self, other: &Self) -> bool {
        (self.inode, self.size, self.modified) == (other.inode, other.size, other.modified)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Location {
        text.parse().unwrap()
    }

    #[test]
    fn a_key_is_kept_exactly_as_written() {
        assert_eq!(parsed("gs://b/a//b/%20 ü/"), Location::object(Provider::Gcs, "b", "a//b/%20 ü/"));
        assert_eq!(parsed("s3://b//"), Location::object(Provider::S3, "b", "/"));
    }

    #[test]
    fn a_version_is_what_looks_like_one_behind_a_key() {
        let version = |text: &str| match parsed(text) {
            Location::Version { key, version, .. } => Some((key, version)),
            _ => None,
        };
        let some = |key: &str, version: &str| Some((key.to_owned(), version.to_owned()));
        assert_eq!(version("gs://b/a#b#1700000000000001"), some("a#b", "1700000000000001"));
        assert_eq!(version("s3://b/k#null"), some("k", "null"));
        assert_eq!(
            version("s3://b/k#3HL4kqtJlcpXroDTDmJ_rmSpXd3d"),
            some("k", "3HL4kqtJlcpXroDTDmJ_rmSpXd3d")
        );
        for key in [
            "gs://b/k#1",
            "gs://b/k#null",
            "s3://b/c#",
            "s3://b/index.html#chapter-one-and-two",
            "s3://b/#1700000000000001",
            "gs://b/a*#1700000000000001",
            "gs://b/a[#]1700000000000001",
            "gs://b",
        ] {
            assert_eq!(version(key), None, "{key}");
        }
        let read = parsed("gs://b/k#1700000000000001");
        assert_eq!(read.to_string(), "gs://b/k#1700000000000001");
        assert_eq!(read.as_written(), Location::object(Provider::Gcs, "b", "k#1700000000000001"));
    }

    #[test]
    fn a_bucket_alone_and_a_scheme_alone_have_no_key() {
        assert_eq!(parsed("gs://b"), Location::object(Provider::Gcs, "b", ""));
        assert_eq!(parsed("gs://b/"), parsed("gs://b"));
        assert_eq!(parsed("s3://"), Location::object(Provider::S3, "", ""));
    }

    #[test]
    fn the_arn_of_an_access_point_stands_where_a_bucket_does() {
        for arn in [
            "arn:aws:s3:us-west-2:123456789012:accesspoint/data",
            "arn:aws:s3:us-west-2:123456789012:accesspoint:data",
            "arn:aws:s3-outposts:us-west-2:123456789012:outpost/op-1/accesspoint/data",
        ] {
            assert_eq!(parsed(&format!("s3://{arn}/a//b")), Location::object(Provider::S3, arn, "a//b"));
            assert_eq!(parsed(&format!("s3://{arn}")), Location::object(Provider::S3, arn, ""));
            assert_eq!(parsed(&format!("s3://{arn}/a")).to_string(), format!("s3://{arn}/a"));
        }
        assert_eq!(
            parsed("s3://b/arn:x:accesspoint/k"),
            Location::object(Provider::S3, "b", "arn:x:accesspoint/k")
        );
    }

    #[test]
    fn an_unknown_scheme_is_named_and_a_missing_bucket_refused() {
        let error = Location::from_str("ftp://h/x").unwrap_err();
        assert!(error.to_string().contains("ftp://") && error.is_usage());
        assert!(Location::from_str("gs:///key").unwrap_err().is_usage());
        assert!(Location::from_str("s3://logs-*/k").unwrap_err().to_string().contains("wildcards"));
        assert!(Location::from_str("").unwrap_err().is_usage());
    }

    #[test]
    fn a_user_and_a_password_are_refused_and_not_repeated() {
        for (url, shown) in [
            ("https://user:hu?sh@host/x", "https://..."),
            ("https://user:hu/sh@host/x", "https://..."),
            ("https://user:pass@host/x?to=a@b&hush", "https://..."),
            ("https://host:443/x?to=a@b&hush", "https://..."),
            ("https://host/x?to=a@b&hush", "https://host/x"),
            ("az://c/k?sig=hush", "az://c/k"),
            ("gs://user:hu#sh@b/k", "gs://..."),
            ("gs://user:hu/sh@b/k", "gs://..."),
            ("gs://user:hush", "gs://..."),
            ("s3://user:hu@sh@b/k#null", "s3://..."),
            ("s3://user:hu/sh/hush@b/k", "s3://..."),
            ("s3://b?X-Amz-Signature=hush", "s3://b"),
        ] {
            let error = Location::from_str(url).unwrap_err();
            let text = error.to_string();
            assert!(error.is_usage() && text.contains(shown), "{url}: {text}");
            assert!(!text.contains("sh@") && !text.contains("hu"), "{url}: {text}");
        }
        let no_text: &OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"gs://user:hush\xff@b/k");
        let error = Location::parse(no_text).unwrap_err().to_string();
        assert!(error.contains("gs://...") && !error.contains("hush"), "{error}");
    }

    #[test]
    fn what_looks_like_a_user_in_a_key_is_a_part_of_it() {
        for key in ["a@b", "user:pass@b", "a?b@c", "a#b@c:d"] {
            assert_eq!(parsed(&format!("gs://b/{key}")), Location::object(Provider::Gcs, "b", key));
            assert_eq!(parsed(&format!("s3://b/{key}")), Location::object(Provider::S3, "b", key));
        }
        let arn = "arn:aws:s3:us-west-2:123456789012:accesspoint/data";
        assert_eq!(parsed(&format!("s3://{arn}/a@b")), Location::object(Provider::S3, arn, "a@b"));
        assert_eq!(parsed("s3://tenant:b/k"), Location::object(Provider::S3, "tenant:b", "k"));
    }

    #[test]
    fn azure_urls_can_name_their_account() {
        let there = Location::object(Provider::Azure, "abc@mine.blob.core.windows.net", "k/a b");
        for text in [
            "abfss://abc@mine.dfs.core.windows.net/k/a b",
            "abfs://abc@mine.dfs.core.windows.net/k/a b",
            "az://abc@mine.blob.core.windows.net/k/a b",
            "https://mine.blob.core.windows.net/abc/k/a%20b",
        ] {
            assert_eq!(parsed(text), there, "{text}");
        }
        assert_eq!(parsed("az://abc/k@l"), Location::object(Provider::Azure, "abc", "k@l"));
        assert_eq!(parsed("abfs://abc/k"), Location::object(Provider::Azure, "abc", "k"));
        let version = "2026-11-29T09:00:00.1234567Z";
        assert!(
            matches!(parsed(&format!("az://abc/k#{version}")), Location::Version { key, .. } if key == "k")
        );
    }

    #[test]
    fn a_sas_token_in_a_url_is_refused_and_not_repeated() {
        let error = "https://mine.blob.core.windows.net/abc/k?sv=1&sig=hunter2".parse::<Location>();
        let error = error.unwrap_err().to_string();
        assert!(error.contains("AZURE_STORAGE_SAS_TOKEN") && !error.contains("hunter2"), "{error}");
        assert!("https://mine.blob.core.windows.net/".parse::<Location>().is_err());
        assert!("https://example.com/a/b".parse::<Location>().is_err());
        assert!("az://abc@example.com/k".parse::<Location>().is_err());
    }

    #[test]
    fn paths_stay_paths() {
        assert_eq!(parsed("./a:b"), Location::Local("./a:b".into()));
        assert_eq!(parsed("file:///etc/x"), Location::Local("/etc/x".into()));
        assert_eq!(parsed("-"), Location::Standard);
        assert_eq!(parsed("./-"), Location::Local("./-".into()));
    }

    #[test]
    fn what_is_printed_reads_back() {
        for text in ["gs://b/k", "s3://b", "a/b", "-"] {
            assert_eq!(parsed(text).to_string(), text);
        }
    }
}
