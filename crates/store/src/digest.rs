//! Digests in hexadecimal, as both dialects write them, computed by *ring*.

use std::fmt::Write as _;

use ring::digest::{Algorithm, SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
use ring::hmac;

/// Writes bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

/// Returns the SHA-256 of `bytes` in hexadecimal digits.
pub(crate) fn hex_sha256(bytes: &[u8]) -> String {
    hex_digest(&SHA256, bytes)
}

/// Returns the SHA-1 of `bytes` in hexadecimal digits. AWS's tools use it to name their cache files.
pub(crate) fn hex_sha1(bytes: &[u8]) -> String {
    hex_digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes)
}

/// Returns the HMAC of `bytes` by SHA-256.
pub(crate) fn hmac_sha256(key: &[u8], bytes: &[u8]) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), bytes)
}

fn hex_digest(algorithm: &'static Algorithm, bytes: &[u8]) -> String {
    hex(digest(algorithm, bytes).as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 180's "abc", and RFC 4231's second case.
    #[test]
    fn digests_are_those_of_the_standards_examples() {
        assert_eq!(hex_sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(hex_sha1(b"abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_eq!(
            hex(hmac_sha256(b"Jefe", b"what do ya want for nothing?").as_ref()),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }
}
