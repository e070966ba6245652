//! What the writer of an object asks for beyond bytes and description: kept and given back, as far as a demo store can.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Encryption, access, tags and locks. Nothing is encrypted and nothing locked; but a customer's key is compared.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// How the object is encrypted, where that was said.
    pub encryption: Option<Encryption>,
    /// The predefined access control list.
    pub acl: Option<String>,
    /// S3's tags.
    pub tags: BTreeMap<String, String>,
    /// Until when the object is kept.
    pub retention: Option<Retention>,
    /// Whether it is held: S3's legal hold, GCS's temporary hold.
    pub legal_hold: bool,
}

/// With whose key an object is encrypted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Encryption {
    /// With one that the store manages.
    Managed {
        /// `AES256`, `aws:kms`, `aws:kms:dsse`.
        algorithm: String,
        /// The key of the key management service.
        kms_key: Option<String>,
        /// Whether a key of the bucket stands between.
        bucket_key: bool,
    },
    /// With the customer's own, of which hashes in base64 are kept.
    Customer {
        /// What S3's answers name the key by.
        md5: String,
        /// What GCS's answers name it by.
        sha256: String,
    },
}

/// Until when, and how strictly, an object is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retention {
    /// `COMPLIANCE` or `Locked`, instead of `GOVERNANCE` or `Unlocked`.
    pub strict: bool,
    /// Microseconds since 1970.
    pub until_us: u64,
}
