//! The settings of a bucket in both dialects, and the rules for its name.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::blob::ContainerSettings;
use super::object::{ObjectOptions, RetentionLock};
use super::versions::Versioning;
use crate::Error;

/// A CORS rule of a bucket, in either dialect.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CorsRule {
    pub(crate) id: Option<String>,
    pub(crate) origins: Vec<String>,
    pub(crate) methods: Vec<String>,
    /// The headers that a cross-origin request may have.
    pub(crate) headers: Vec<String>,
    /// The headers of an answer that a web page may read.
    pub(crate) exposed: Vec<String>,
    pub(crate) max_age_s: Option<u32>,
}

const DAY_US: u64 = 24 * 60 * 60 * 1_000_000;

/// Everything that can be set on a bucket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct BucketSettings {
    /// The versioning setting, if it was ever set.
    pub(crate) versioning: Option<Versioning>,
    /// The metageneration. It starts at 1, and each change increments it.
    pub(crate) metageneration: u64,
    /// The time of the last change, in microseconds since 1970.
    pub(crate) updated_us: u64,
    /// True if objects may have a retention and a legal hold: S3's Object Lock, GCS's object retention.
    pub(crate) locks: bool,
    /// S3's default retention, for new objects whose request names none.
    pub(crate) default_lock: Option<DefaultLock>,
    /// GCS's retention policy, for all objects of the bucket.
    pub(crate) policy: Option<RetentionPolicy>,
    /// GCS's soft deletion: the seconds for which deleted objects are kept. 0 turns it off.
    pub(crate) soft_delete_s: u64,
    /// True if the bucket has GCS's hierarchical namespace, so that its folders exist beside its objects.
    pub(crate) is_hierarchical: bool,
    /// GCS's `defaultEventBasedHold`.
    pub(crate) event_hold: Option<bool>,
    /// The predefined access control list of the bucket.
    pub(crate) acl: Option<String>,
    /// The predefined access control list of new objects whose request names none.
    pub(crate) object_acl: Option<String>,
    /// S3's tags.
    pub(crate) tags: BTreeMap<String, String>,
    /// The CORS rules, for requests by web pages of other origins.
    pub(crate) cors: Vec<CorsRule>,
    /// Documents that the server stores and returns without enforcing them, by the names of their subresources.
    pub(crate) documents: BTreeMap<String, String>,
    /// The settings that only Azure's containers have.
    pub(crate) container: ContainerSettings,
    /// Fields of the JSON API that the server stores and returns unchanged.
    pub(crate) fields: Map<String, Value>,
}

/// The retention that S3 gives to new objects of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DefaultLock {
    /// True for `COMPLIANCE`, false for `GOVERNANCE`.
    pub(crate) strict: bool,
    pub(crate) period: LockPeriod,
}

/// The length of a default retention, in the unit that the client chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum LockPeriod {
    Days(u32),
    /// Years of 365 days.
    Years(u32),
}

/// A bucket's retention policy of GCS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RetentionPolicy {
    pub(crate) period_s: u64,
    /// The time when the policy was set, in microseconds since 1970.
    pub(crate) effective_us: u64,
    /// True if the policy is locked, so that its period can only be increased.
    pub(crate) is_locked: bool,
}

impl Default for BucketSettings {
    fn default() -> Self {
        Self {
            versioning: None,
            metageneration: 1,
            updated_us: 0,
            locks: false,
            default_lock: None,
            policy: None,
            soft_delete_s: 0,
            is_hierarchical: false,
            event_hold: None,
            acl: None,
            object_acl: None,
            tags: BTreeMap::new(),
            cors: Vec::new(),
            documents: BTreeMap::new(),
            container: ContainerSettings::default(),
            fields: Map::new(),
        }
    }
}

impl BucketSettings {
    /// Returns whether versions are kept.
    pub(crate) fn versioning(&self) -> Versioning {
        self.versioning.unwrap_or_default()
    }

    /// Fills in the bucket's defaults for properties that the request for a new object doesn't name.
    pub(crate) fn complete(&self, options: &mut ObjectOptions, now_us: u64) {
        if options.retention.is_none() {
            options.retention = self.default_lock.map(|lock| lock.retention(now_us));
        }
        if options.event_hold.is_none() && self.event_hold == Some(true) {
            options.event_hold = Some(true);
        }
        if options.acl.is_none() {
            options.acl.clone_from(&self.object_acl);
        }
    }

    /// Returns true for GCS's uniform bucket-level access, with which buckets and objects have no access control lists.
    pub(crate) fn has_uniform_access(&self) -> bool {
        let access = self.fields.get("iamConfiguration");
        access.is_some_and(|access| access["uniformBucketLevelAccess"]["enabled"] == true)
    }
}

impl DefaultLock {
    fn retention(self, now_us: u64) -> RetentionLock {
        let days = match self.period {
            LockPeriod::Days(days) => u64::from(days),
            LockPeriod::Years(years) => u64::from(years) * 365,
        };
        RetentionLock { strict: self.strict, until_us: now_us.saturating_add(days.saturating_mul(DAY_US)) }
    }
}

/// Prefixes and suffixes that names of general purpose buckets must not have. `--x-s3` isn't among them, because names
/// of directory buckets end in it.
const RESERVED_PREFIXES: [&str; 3] = ["xn--", "sthree-", "amzn-s3-demo-"];

const RESERVED_SUFFIXES: [&str; 4] = ["-s3alias", "--ol-s3", ".mrap", "--table-s3"];

/// Checks a bucket's name.
///
/// # Errors
/// Returns the mistake in a name that neither S3 nor GCS permits.
///
/// The rules are those of S3, <https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html>, and of
/// GCS, <https://cloud.google.com/storage/docs/buckets#naming>.
pub fn parse_bucket_name(text: &str) -> Result<String, Error> {
    match name_objection(text).filter(|_| !is_allowed_by_gcs(text)) {
        None => Ok(text.to_owned()),
        Some(why) => Err(Error::unreadable("the name of a bucket", text, why)),
    }
}

/// Returns the rule of S3 that a name breaks, or `None` if the name is valid.
pub(crate) fn name_objection(name: &str) -> Option<&'static str> {
    let is_inner =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    let is_outer = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let bytes = name.as_bytes();
    if !(3..=63).contains(&bytes.len()) {
        Some("3 to 63 characters")
    } else if !bytes.iter().copied().all(is_inner) {
        Some("lower-case letters, digits, hyphens and dots, and underscores in GCS")
    } else if !is_outer(bytes.first()) || !is_outer(bytes.last()) {
        Some("a letter or a digit at both ends")
    } else if name.contains("..") {
        Some("no two dots side by side")
    } else if name.contains(".-") || name.contains("-.") {
        Some("no hyphen beside a dot")
    } else if name.parse::<Ipv4Addr>().is_ok() {
        Some("a name that isn't an IP address")
    } else if RESERVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || RESERVED_SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
    {
        Some("a beginning and an end that S3 doesn't keep for itself")
    } else {
        None
    }
}

/// Returns true if GCS allows a bucket to have this name.
pub(crate) fn is_allowed_by_gcs(name: &str) -> bool {
    let is_outer = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let length_max = if name.contains('.') { 222 } else { 63 };
    (3..=length_max).contains(&name.len())
        && name.split('.').all(|part| (1..=63).contains(&part.len()))
        && name.parse::<Ipv4Addr>().is_err()
        && !name.starts_with("goog")
        && !["google", "g00gle"].iter().any(|reserved| name.contains(reserved))
        && name.bytes().all(|byte| is_outer(byte) || matches!(byte, b'-' | b'_' | b'.'))
        && name.bytes().next().is_some_and(is_outer)
        && name.bytes().next_back().is_some_and(is_outer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_lock_runs_from_the_objects_creation() {
        let lock = DefaultLock { strict: true, period: LockPeriod::Days(2) };
        let settings = BucketSettings { default_lock: Some(lock), ..BucketSettings::default() };
        let mut options = ObjectOptions::default();
        settings.complete(&mut options, 5);
        assert_eq!(options.retention, Some(RetentionLock { strict: true, until_us: 2 * DAY_US + 5 }));
        let own = RetentionLock { strict: false, until_us: 7 };
        let mut options = ObjectOptions { retention: Some(own), ..ObjectOptions::default() };
        settings.complete(&mut options, 5);
        assert_eq!(options.retention, Some(own), "an object's own retention comes first");
        let years = DefaultLock { strict: false, period: LockPeriod::Years(1) };
        assert_eq!(years.retention(0).until_us, 365 * DAY_US);
    }

    #[test]
    fn an_older_bucket_file_is_read() {
        let settings: BucketSettings = serde_json::from_str(r#"{"versioning":"Enabled"}"#).unwrap();
        assert_eq!(settings.versioning(), Versioning::Enabled);
        assert_eq!((settings.metageneration, settings.locks), (1, false));
    }

    #[test]
    fn gcs_allows_underscores_and_longer_names_with_dots() {
        for name in ["demo", "a_b", "123", &format!("{0}.{0}.{0}.b", "a".repeat(63))] {
            assert!(is_allowed_by_gcs(name), "{name}");
        }
        for name in [
            "UPPER",
            "ab",
            "-demo",
            "demo_",
            "a b",
            "a..b",
            "192.168.1.1",
            "goog-x",
            "my-google",
            &"a".repeat(64),
            &format!("{}.b", "a".repeat(64)),
        ] {
            assert!(!is_allowed_by_gcs(name), "{name}");
        }
    }

    #[test]
    fn names_are_those_that_s3_allows() {
        for name in ["demo", "my.bucket-1", "123", "a".repeat(63).as_str(), "base--usw2-az1--x-s3"] {
            assert_eq!(name_objection(name), None, "{name}");
        }
        let long = "a".repeat(64);
        for name in [
            "b",
            "ab",
            &long,
            "Demo",
            "a_b",
            "-ab",
            "ab-",
            ".ab",
            "a..b",
            "a.-b",
            "a-.b",
            "192.168.5.4",
            "xn--a",
            "a-s3alias",
            "ä12",
        ] {
            assert!(name_objection(name).is_some(), "{name}");
        }
    }

    #[test]
    fn parses_the_names_that_either_service_allows() {
        for name in ["demo", "a_b", "base--usw2-az1--x-s3", "my-google"] {
            assert_eq!(parse_bucket_name(name).unwrap(), name);
        }
        assert!(parse_bucket_name("b").unwrap_err().to_string().contains("3 to 63"));
        assert!(parse_bucket_name("A_b").unwrap_err().to_string().contains("lower-case letters"));
    }
}
