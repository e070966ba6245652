//! Server-side encryption, and the keys that customers supply.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderValue};
use md5::{Digest as _, Md5};
use ring::digest::{SHA256, digest};

/// The encryption of new objects, and the keys to read encrypted ones. For an empty field, the bucket's default
/// applies.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Encryption {
    /// The algorithm by which S3 encrypts new objects.
    pub algorithm: Option<SseAlgorithm>,
    /// S3's bucket key setting. With a bucket key, S3 sends fewer requests to the key management service.
    pub bucket_key: Option<bool>,
    /// The encryption context that S3 passes to its key management service.
    pub context: BTreeMap<String, String>,
    /// A customer's own key, which the store doesn't keep (SSE-C). The store encrypts new objects with it, and decrypts
    /// existing ones.
    pub customer_key: Option<CustomerKey>,
    /// The customer's key of the objects to copy, if it differs from the key for the copies.
    pub source_customer_key: Option<CustomerKey>,
}

/// S3's encryption with keys that AWS manages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SseAlgorithm {
    /// SSE-S3: S3 owns the keys.
    Aes256,
    /// SSE-KMS: the key management service holds the keys.
    Kms,
    /// DSSE-KMS: the same keys, with two layers of encryption.
    KmsDsse,
}

impl SseAlgorithm {
    /// Returns the algorithm's name in S3's headers: `AES256`, `aws:kms` or `aws:kms:dsse`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Aes256 => "AES256",
            Self::Kms => "aws:kms",
            Self::KmsDsse => "aws:kms:dsse",
        }
    }

    /// Returns the algorithm with this [`name`](Self::name).
    pub fn named(name: &str) -> Option<Self> {
        [Self::Aes256, Self::Kms, Self::KmsDsse].into_iter().find(|algorithm| algorithm.name() == name)
    }
}

impl Encryption {
    /// Returns true if every field is empty.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Returns an error message if these settings contradict each other or `kms_key`.
    pub(crate) fn contradiction(&self, kms_key: Option<&str>) -> Option<&'static str> {
        let managed = self.algorithm.is_some() || kms_key.is_some();
        if self.customer_key.is_some() && managed {
            return Some(
                "an object can't be encrypted both with a customer's key and with a key that the store manages",
            );
        }
        if self.algorithm == Some(SseAlgorithm::Aes256) && kms_key.is_some() {
            return Some("AES256 uses keys that S3 manages, so it can't be combined with a KMS key");
        }
        if self.algorithm == Some(SseAlgorithm::KmsDsse) && self.bucket_key == Some(true) {
            return Some("aws:kms:dsse doesn't support bucket keys");
        }
        let is_kms =
            kms_key.is_some() || matches!(self.algorithm, Some(SseAlgorithm::Kms | SseAlgorithm::KmsDsse));
        if (self.bucket_key.is_some() || !self.context.is_empty()) && !is_kms {
            return Some("bucket keys and encryption contexts need encryption with a KMS key");
        }
        None
    }

    /// Returns the encryption context in the format of its header: JSON in base64.
    pub(crate) fn context_header(&self) -> Option<String> {
        if self.context.is_empty() {
            return None;
        }
        // A map of strings can always be written as JSON.
        serde_json::to_string(&self.context).ok().map(|json| STANDARD.encode(json))
    }

    /// Returns a text that is different for settings that would produce different objects. Callers hash it. It contains
    /// only the SHA-256 of the customer's key.
    pub(crate) fn trace(&self) -> String {
        let Self { algorithm, bucket_key, context, customer_key, source_customer_key: _ } = self;
        let key = customer_key.as_ref().map(CustomerKey::sha256);
        format!("{algorithm:?} {bucket_key:?} {context:?} {key:?}")
    }
}

/// A customer's own 256-bit AES key. Laneway sends it with each request that needs it and stores it nowhere. `Debug`
/// leaves it out.
#[derive(Clone, PartialEq, Eq)]
pub struct CustomerKey([u8; Self::LEN]);

/// The error for bytes that can't be a customer's key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a customer's key must be 32 bytes, raw or in base64")]
pub struct NotAKey;

impl CustomerKey {
    /// The length of a key in bytes.
    pub const LEN: usize = 32;

    /// Reads a key from a file or a variable: the 32 bytes themselves, or their base64 with white space around it.
    ///
    /// # Errors
    /// Fails for any other content. The error doesn't show the content.
    pub fn parse(bytes: &[u8]) -> Result<Self, NotAKey> {
        if let Ok(key) = bytes.try_into() {
            return Ok(Self(key));
        }
        let decoded = STANDARD.decode(bytes.trim_ascii()).map_err(|_| NotAKey)?;
        decoded.try_into().map(Self).map_err(|_| NotAKey)
    }

    /// Returns the key in base64.
    pub(crate) fn base64(&self) -> String {
        STANDARD.encode(self.0)
    }

    /// Returns the key's MD5 in base64, by which S3 checks that the key arrived intact.
    pub(crate) fn md5(&self) -> String {
        STANDARD.encode(Md5::digest(self.0))
    }

    /// Returns the key's SHA-256 in base64, by which GCS checks that the key arrived intact.
    pub(crate) fn sha256(&self) -> String {
        STANDARD.encode(digest(&SHA256, &self.0))
    }
}

impl fmt::Debug for CustomerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CustomerKey")
    }
}

/// The names of the three headers that carry a customer's key: algorithm, key and digest.
pub(crate) type KeyHeaders = [&'static str; 3];

impl Encryption {
    /// Adds the headers of a customer's key, with the digest by which the store checks it.
    pub(crate) fn insert_key(
        headers: &mut HeaderMap,
        [algorithm, name, digest]: KeyHeaders,
        key: Option<&CustomerKey>,
        digest_of: fn(&CustomerKey) -> String,
    ) {
        let Some(key) = key else { return };
        headers.insert(algorithm, HeaderValue::from_static("AES256"));
        if let Ok(mut value) = HeaderValue::try_from(key.base64()) {
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        if let Ok(value) = HeaderValue::try_from(digest_of(key)) {
            headers.insert(digest, value);
        }
    }
}

/// The kind of encryption headers that a request needs. They are added only when the request is signed, so that a
/// waiting request doesn't keep the key in memory.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum KeyUse {
    /// No encryption headers.
    #[default]
    Nothing,
    /// The request reads an existing object, or adds parts to an upload.
    Object,
    /// The request reads the source of a copy.
    Source,
    /// The request creates a new object.
    New,
    /// The request copies an object to a new one.
    Copy,
    /// The request copies part of another object into an upload.
    PartCopy,
}

/// Selects the customer's key that a read sends.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ReadAs {
    /// The key of this store's own objects.
    #[default]
    Object,
    /// [`Encryption::source_customer_key`](crate::Encryption::source_customer_key): the object is the source of a copy.
    CopySource,
}

impl From<ReadAs> for KeyUse {
    fn from(read: ReadAs) -> Self {
        match read {
            ReadAs::Object => Self::Object,
            ReadAs::CopySource => Self::Source,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE64: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

    #[test]
    fn a_key_is_read_as_bytes_or_as_base64_and_as_nothing_else() {
        let bytes: Vec<u8> = (0..32).collect();
        let key = CustomerKey::parse(&bytes).expect("a key");
        assert_eq!(CustomerKey::parse(format!(" {BASE64}\n").as_bytes()), Ok(key.clone()));
        assert_eq!(key.base64(), BASE64);
        assert_eq!(key.md5(), "tP/LI3N87DFaSk0aoqYgzg==");
        assert_eq!(key.sha256(), "Yw3NKWbEM2aRElRIu7JbT/QSpJxzLbLIq8G4WBvXEN0=");
        for bad in [&bytes[..31], b"", b"secret", &BASE64.as_bytes()[..40]] {
            assert_eq!(CustomerKey::parse(bad), Err(NotAKey));
        }
    }

    #[test]
    fn a_key_is_in_no_output() {
        let key = CustomerKey::parse(BASE64.as_bytes()).expect("a key");
        let encryption = Encryption { customer_key: Some(key), ..Encryption::default() };
        let shown = format!("{encryption:?}");
        assert!(!shown.contains("AAEC") && !shown.contains("[0, 1"), "{shown}");
        assert!(!encryption.trace().contains(BASE64));
    }

    #[test]
    fn a_trace_tells_apart_another_key_and_another_algorithm() {
        let key_use = |bytes: [u8; 32]| Encryption {
            customer_key: CustomerKey::parse(&bytes).ok(),
            ..Encryption::default()
        };
        let dsse = Encryption { algorithm: Some(SseAlgorithm::KmsDsse), ..Encryption::default() };
        let traces =
            [key_use([1; 32]).trace(), key_use([2; 32]).trace(), dsse.trace(), Encryption::default().trace()];
        for (n, trace) in traces.iter().enumerate() {
            assert!(!traces[..n].contains(trace), "{n}");
        }
    }

    #[test]
    fn what_contradicts_itself_is_said() {
        let aes = Encryption { algorithm: Some(SseAlgorithm::Aes256), ..Encryption::default() };
        assert!(aes.contradiction(None).is_none() && aes.contradiction(Some("k")).is_some());
        let bucket_key = Encryption { bucket_key: Some(true), ..Encryption::default() };
        assert!(bucket_key.contradiction(None).is_some() && bucket_key.contradiction(Some("k")).is_none());
        let own = Encryption { customer_key: CustomerKey::parse(&[0; 32]).ok(), ..Encryption::default() };
        assert!(own.contradiction(Some("k")).is_some() && own.contradiction(None).is_none());
    }
}
