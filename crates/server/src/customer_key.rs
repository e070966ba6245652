//! Customer-supplied keys. A request carries the whole key. The server compares its hash with the hash of the key with
//! which the object was written.

use md5::{Digest, Md5};
use ring::digest::{SHA256, digest};

use crate::checksum::{base64, from_base64};
use crate::objects::asked::Encryption;

/// The mistake in the headers of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadKey {
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
) -> Result<Option<Encryption>, BadKey> {
    if algorithm.is_none() && key.is_none() && hash.is_none() {
        return Ok(None);
    }
    if algorithm != Some("AES256") {
        return Err(BadKey::Algorithm);
    }
    let key = key.and_then(from_base64).filter(|key| key.len() == 32).ok_or(BadKey::Key)?;
    let (md5, sha256) = (base64(&Md5::digest(&key)), base64(digest(&SHA256, &key).as_ref()));
    let own = if by == HashedBy::Md5 { &md5 } else { &sha256 };
    if hash != Some(own) {
        return Err(BadKey::Hash);
    }
    Ok(Some(Encryption::Customer { md5, sha256 }))
}

/// The result of comparing a request's key with an object's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
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
pub(crate) fn fits(sent: Option<&Encryption>, written: Option<&Encryption>) -> Fit {
    let customer = |encryption: &&Encryption| matches!(encryption, Encryption::Customer { .. });
    match (sent, written.filter(customer)) {
        (None, None) => Fit::Opens,
        (None, Some(_)) => Fit::Missing,
        (Some(_), None) => Fit::NotNeeded,
        (Some(sent), Some(written)) if sent == written => Fit::Opens,
        (Some(_), Some(_)) => Fit::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    const MD5: &str = "tP/LI3N87DFaSk0aoqYgzg==";

    fn of(key: &str, hash: &str) -> Result<Option<Encryption>, BadKey> {
        sent(Some("AES256"), Some(key), Some(hash), HashedBy::Md5)
    }

    #[test]
    fn a_key_comes_whole_or_not_at_all() {
        assert_eq!(sent(None, None, None, HashedBy::Md5), Ok(None));
        assert!(matches!(of(KEY, MD5), Ok(Some(Encryption::Customer { .. }))));
        assert_eq!(of(KEY, "AAAA"), Err(BadKey::Hash));
        assert_eq!(of("AAAA", MD5), Err(BadKey::Key));
        assert_eq!(sent(Some("AES128"), Some(KEY), Some(MD5), HashedBy::Md5), Err(BadKey::Algorithm));
        assert_eq!(sent(None, Some(KEY), Some(MD5), HashedBy::Md5), Err(BadKey::Algorithm));
    }

    #[test]
    fn only_the_same_key_opens() {
        let key = of(KEY, MD5).expect("a key");
        let other = Encryption::Customer { md5: "m".to_owned(), sha256: "s".to_owned() };
        let managed =
            Encryption::Managed { algorithm: "AES256".to_owned(), kms_key: None, bucket_key: false };
        assert_eq!(fits(key.as_ref(), key.as_ref()), Fit::Opens);
        assert_eq!(fits(Some(&other), key.as_ref()), Fit::Other);
        assert_eq!(fits(None, key.as_ref()), Fit::Missing);
        assert_eq!(fits(key.as_ref(), Some(&managed)), Fit::NotNeeded);
        assert_eq!(fits(None, Some(&managed)), Fit::Opens);
    }
}
