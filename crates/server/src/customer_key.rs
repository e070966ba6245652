//! Customer-supplied keys. A request carries the whole key. The server compares its hash with the hash of the key with
//! which the object was written.

use md5::{Digest, Md5};
use ring::digest::{SHA256, digest};

use crate::checksum::{base64, from_base64};
use crate::objects::object::ObjectEncryption;

/// The mistake in the headers of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CustomerKeyError {
    /// The algorithm isn't AES256.
    Algorithm,
    /// The key is missing, or isn't 32 bytes in base64.
    Key,
    /// The hash differs, or is missing.
    Hash,
}

/// The kind of hash that a dialect sends with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HashedBy {
    Md5,
    Sha256,
}

/// Reads a key from its three headers, or returns `None` if none of them was sent.
pub(crate) fn sent(
    algorithm: Option<&str>,
    key: Option<&str>,
    hash: Option<&str>,
    by: HashedBy,
) -> Result<Option<ObjectEncryption>, CustomerKeyError> {
    if algorithm.is_none() && key.is_none() && hash.is_none() {
        return Ok(None);
    }
    if algorithm != Some("AES256") {
        return Err(CustomerKeyError::Algorithm);
    }
    let key = key.and_then(from_base64).filter(|key| key.len() == 32).ok_or(CustomerKeyError::Key)?;
    let (md5, sha256) = (base64(&Md5::digest(&key)), base64(digest(&SHA256, &key).as_ref()));
    let own = if by == HashedBy::Md5 { &md5 } else { &sha256 };
    if hash != Some(own) {
        return Err(CustomerKeyError::Hash);
    }
    Ok(Some(ObjectEncryption::Customer { md5, sha256 }))
}

/// The result of comparing a request's key with an object's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyMatch {
    /// The request has the object's key, or no key is needed and none was sent.
    Opens,
    /// A key is needed, but none was sent.
    Missing,
    /// A different key was sent.
    Other,
    /// A key was sent, but none is needed.
    NotNeeded,
}

/// Compares the key that was sent with the key with which an object was written.
pub(crate) fn fits(sent: Option<&ObjectEncryption>, written: Option<&ObjectEncryption>) -> KeyMatch {
    let customer = |encryption: &&ObjectEncryption| matches!(encryption, ObjectEncryption::Customer { .. });
    match (sent, written.filter(customer)) {
        (None, None) => KeyMatch::Opens,
        (None, Some(_)) => KeyMatch::Missing,
        (Some(_), None) => KeyMatch::NotNeeded,
        (Some(sent), Some(written)) if sent == written => KeyMatch::Opens,
        (Some(_), Some(_)) => KeyMatch::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    const MD5: &str = "tP/LI3N87DFaSk0aoqYgzg==";

    fn of(key: &str, hash: &str) -> Result<Option<ObjectEncryption>, CustomerKeyError> {
        sent(Some("AES256"), Some(key), Some(hash), HashedBy::Md5)
    }

    #[test]
    fn a_key_comes_whole_or_not_at_all() {
        assert_eq!(sent(None, None, None, HashedBy::Md5), Ok(None));
        assert!(matches!(of(KEY, MD5), Ok(Some(ObjectEncryption::Customer { .. }))));
        assert_eq!(of(KEY, "AAAA"), Err(CustomerKeyError::Hash));
        assert_eq!(of("AAAA", MD5), Err(CustomerKeyError::Key));
        assert_eq!(
            sent(Some("AES128"), Some(KEY), Some(MD5), HashedBy::Md5),
            Err(CustomerKeyError::Algorithm)
        );
        assert_eq!(sent(None, Some(KEY), Some(MD5), HashedBy::Md5), Err(CustomerKeyError::Algorithm));
    }

    #[test]
    fn only_the_same_key_opens() {
        let key = of(KEY, MD5).expect("a key");
        let other = ObjectEncryption::Customer { md5: "m".to_owned(), sha256: "s".to_owned() };
        let managed =
            ObjectEncryption::Managed { algorithm: "AES256".to_owned(), kms_key: None, bucket_key: false };
        assert_eq!(fits(key.as_ref(), key.as_ref()), KeyMatch::Opens);
        assert_eq!(fits(Some(&other), key.as_ref()), KeyMatch::Other);
        assert_eq!(fits(None, key.as_ref()), KeyMatch::Missing);
        assert_eq!(fits(key.as_ref(), Some(&managed)), KeyMatch::NotNeeded);
        assert_eq!(fits(None, Some(&managed)), KeyMatch::Opens);
    }
}
