//! The properties of an object that its writer requested, other than content and metadata. The store keeps and returns
//! them, and implements them only as far as a demo store needs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The id of the account that owns everything.
pub(crate) const ACCOUNT: &str = "000000000000";

/// Encryption, access control, tags and locks. The store encrypts nothing, but it compares a customer's key and
/// enforces locks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ObjectOptions {
    /// The object's encryption, if the writer requested one.
    pub encryption: Option<ObjectEncryption>,
    /// The predefined access control list.
    pub acl: Option<String>,
    /// S3's tags.
    pub tags: BTreeMap<String, String>,
    /// The retention of the object.
    pub retention: Option<RetentionLock>,
    /// S3's legal hold; `None` if it was never set.
    #[serde(default)]
    pub legal_hold: Option<bool>,
    /// GCS's temporary hold; `None` if it was never set.
    #[serde(default)]
    pub temporary_hold: Option<bool>,
    /// GCS's event-based hold; `None` if it was never set.
    #[serde(default)]
    pub event_hold: Option<bool>,
    /// The time when the event-based hold was released, in microseconds since 1970.
    #[serde(default)]
    pub event_released_us: Option<u64>,
}

/// The encryption of an object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ObjectEncryption {
    /// Encryption with a key that the store manages.
    Managed {
        /// The algorithm: `AES256`, `aws:kms` or `aws:kms:dsse`.
        algorithm: String,
        /// The key of the key management service.
        kms_key: Option<String>,
        /// True if S3 uses a bucket key.
        bucket_key: bool,
    },
    /// Encryption with the customer's own key. The store keeps only hashes of the key, in base64.
    Customer {
        /// The MD5 of the key, which S3's answers contain.
        md5: String,
        /// The SHA-256 of the key, which GCS's answers contain.
        sha256: String,
    },
}

/// The retention of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetentionLock {
    /// True for `COMPLIANCE` or `Locked`, false for `GOVERNANCE` or `Unlocked`.
    pub strict: bool,
    /// The end of the retention, in microseconds since 1970.
    pub until_us: u64,
}

/// A group of users besides the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    AllUsers,
    AuthenticatedUsers,
}

/// Returns the group to which a predefined access control list grants access, and true if it may write. `None` means that the list
/// grants access only to the owner. The JSON API spells the names in another way (`publicRead`) than S3 and the XML API
/// (`public-read`).
pub(crate) fn granted(acl: Option<&str>) -> Option<(Group, bool)> {
    match acl?.replace('-', "").to_ascii_lowercase().as_str() {
        "publicread" => Some((Group::AllUsers, false)),
        "publicreadwrite" => Some((Group::AllUsers, true)),
        "authenticatedread" => Some((Group::AuthenticatedUsers, false)),
        _ => None,
    }
}
