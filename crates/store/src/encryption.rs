//! How a store encrypts what it is given, and the keys that only its owner has.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderValue};
use md5::{Digest as _, Md5};
use ring::digest::{SHA256, digest};

/// How new objects are encrypted, and with which key encrypted ones are read. Empty fields are left to the bucket.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Encryption {
    /// How S3 encrypts new objects.
    pub algorithm: Option<SseAlgorithm>,
    /// Whether S3 spares requests to the key management service by a key of the bucket.
    pub bucket_key: Option<bool>,
    /// What S3 binds the encryption with its key management service to.
    pub context: BTreeMap<String, String>,
    /// A key that the store doesn't keep: new objects are encrypted with it, and others read.
    pub customer_key: Option<CustomerKey>,
    /// The key of the objects that are copied from, where it is another than that of the copies.
    pub source_customer_key: Option<CustomerKey>,
}

/// S3's ways to encrypt with keys that it manages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SseAlgorithm {
    /// With keys of S3's own: SSE-S3.
    Aes256,
    /// With keys of the key management service: SSE-KMS.
    Kms,
    /// The same in two layers: DSSE-KMS.
    KmsDsse,
}

impl SseAlgorithm {
    /// Its name in the header: `AES256`, `aws:kms`, `aws:kms:dsse`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Aes256 => "AES256",
            Self::Kms => "aws:kms",
            Self::KmsDsse => "aws:kms:dsse",
        }
    }

    /// The reverse of [`name`](Self::name).
    pub fn named(name: &str) -> Option<Self> {
        [Self::Aes256, Self::Kms, Self::KmsDsse].into_iter().find(|algorithm| algorithm.name() == name)
    }
}

impl Encryption {
    /// Whether nothing is asked for.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// What is wrong with it, together with a key of a key management service.
    pub(crate) fn contradiction(&self, kms_key: Option<&str>) -> Option<&'static str> {
        let managed = self.algorithm.is_some() || kms_key.is_some();
        if self.customer_key.is_some() && managed {
            return Some(
                "an object is encrypted with a customer's key or with one that the store manages, not with both",
            );
        }
        if self.algorithm == Some(SseAlgorithm::Aes256) && kms_key.is_some() {
            return Some("AES256 encrypts with keys of S3's own, so a KMS key can't be named");
        }
        if self.algorithm == Some(SseAlgorithm::KmsDsse) && self.bucket_key == Some(true) {
            return Some("aws:kms:dsse knows no bucket keys");
        }
        let is_kms =
            kms_key.is_some() || matches!(self.algorithm, Some(SseAlgorithm::Kms | SseAlgorithm::KmsDsse));
        if (self.bucket_key.is_some() || !self.context.is_empty()) && !is_kms {
            return Some("bucket keys and encryption contexts belong to a KMS key");
        }
        None
    }

    /// The context as its header says it: JSON in base64.
    pub(crate) fn context_header(&self) -> Option<String> {
        if self.context.is_empty() {
            return None;
        }
        // A map of strings always has a JSON form.
        serde_json::to_string(&self.context).ok().map(|json| STANDARD.encode(json))
    }

    /// A text that differs where other objects come out, from which no key can be had back once it is hashed.
    pub(crate) fn trace(&self) -> String {
        let Self { algorithm, bucket_key, context, customer_key, source_customer_key: _ } = self;
        let key = customer_key.as_ref().map(CustomerKey::sha256);
        format!("{algorithm:?} {bucket_key:?} {context:?} {key:?}")
    }
}

/// A 256-bit AES key of the customer's own. It is sent with each request that needs it and kept nowhere; `Debug` leaves
/// it out.
#[derive(Clone, PartialEq, Eq)]
pub struct CustomerKey([u8; Self::LEN]);

/// Bytes that are no key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a customer's key is 32 bytes, as they are or in base64")]
pub struct NotAKey;

impl CustomerKey {
    /// How many bytes a key has.
    pub const LEN: usize = 32;

    /// Reads what a file or a variable holds: the 32 bytes themselves, or their base64 with white space around it.
    ///
    /// # Errors
    /// When it is neither; what it is instead isn't said.
    pub fn parse(bytes: &[u8]) -> Result<Self, NotAKey> {
        if let Ok(key) = bytes.try_into() {
            return Ok(Self(key));
        }
        let decoded = STANDARD.decode(bytes.trim_ascii()).map_err(|_| NotAKey)?;
        decoded.try_into().map(Self).map_err(|_| NotAKey)
    }

    /// The key in base64.
    pub(crate) fn base64(&self) -> String {
        STANDARD.encode(self.0)
    }

    /// Its MD5 in base64, by which S3 sees that it came whole.
    pub(crate) fn md5(&self) -> String {
        STANDARD.encode(Md5::digest(self.0))
    }

    /// Its SHA-256 in base64, by which GCS does.
    pub(crate) fn sha256(&self) -> String {
        STANDARD.encode(digest(&SHA256, &self.0))
    }
}

impl fmt::Debug for CustomerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CustomerKey")
    }
}

/// The headers of a customer's key: algorithm, key, a digest of the key.
pub(crate) type KeyHeaders = [&'static str; 3];

impl Encryption {
    /// Adds a customer's key, with the digest by which the store sees that it came whole.
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

/// Which part an encryption plays in a request; the headers are made where it is signed, so that no request under way
/// holds a key longer than it must.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Keyed {
    /// None.
    #[default]
    Nothing,
    /// An object that exists is read, or parts are added to an upload.
    Object,
    /// The source of a copy is read.
    Source,
    /// A new object is begun.
    New,
    /// A new object is copied from another.
    Copy,
    /// A part is copied from another object.
    PartCopy,
}

/// The customer's key that a read sends.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum ReadAs {
    /// The key of the store's own objects.
    #[default]
    Object,
    /// [`Encryption::source_customer_key`](crate::Encryption::source_customer_key): the object is the source of a copy.
    CopySource,
}

impl From<ReadAs> for Keyed {
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
        let keyed = |bytes: [u8; 32]| Encryption {
            customer_key: CustomerKey::parse(&bytes).ok(),
            ..Encryption::default()
        };
        let dsse = Encryption { algorithm: Some(SseAlgorithm::KmsDsse), ..Encryption::default() };
        let traces =
            [keyed([1; 32]).trace(), keyed([2; 32]).trace(), dsse.trace(), Encryption::default().trace()];
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
