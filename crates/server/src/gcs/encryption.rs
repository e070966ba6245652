//! Customer-supplied encryption keys. The server stores only their hashes, and compares those
//! (<https://cloud.google.com/storage/docs/encryption/customer-supplied-keys>).

use http::{HeaderMap, HeaderName, StatusCode};

use super::answer::Problem;
use crate::customer_key::{self, BadKey, Fit, HashedBy, fits};
use crate::objects::Object;
use crate::objects::asked::{Asked, Encryption};

/// Reads the key of the request's object.
pub(super) fn sent(headers: &HeaderMap) -> Result<Option<Encryption>, Problem> {
    key(headers, ["x-goog-encryption-algorithm", "x-goog-encryption-key", "x-goog-encryption-key-sha256"])
}

/// Returns the encryption with a key of Cloud KMS.
pub(super) fn managed(kms_key: String) -> Encryption {
    Encryption::Managed { algorithm: "kms".to_owned(), kms_key: Some(kms_key), bucket_key: false }
}

/// Reads the key of a copy's source.
pub(super) fn of_source(headers: &HeaderMap) -> Result<Option<Encryption>, Problem> {
    key(
        headers,
        [
            "x-goog-copy-source-encryption-algorithm",
            "x-goog-copy-source-encryption-key",
            "x-goog-copy-source-encryption-key-sha256",
        ],
    )
}

fn key(headers: &HeaderMap, names: [&'static str; 3]) -> Result<Option<Encryption>, Problem> {
    let text = |name| headers.get(HeaderName::from_static(name)).and_then(|value| value.to_str().ok());
    let [algorithm, key, sha256] = names.map(text);
    customer_key::sent(algorithm, key, sha256, HashedBy::Sha256).map_err(|bad| match bad {
        BadKey::Algorithm => problem("customerEncryptionAlgorithmIsInvalid", "Missing or invalid algorithm."),
        BadKey::Key => problem("customerEncryptionKeyFormatIsInvalid", "Missing an encryption key, or it is not base64 encoded, or it does not meet the required length of the encryption algorithm."),
        BadKey::Hash => problem("customerEncryptionKeySha256IsInvalid", "Missing a SHA256 hash of the encryption key, or it is not base64 encoded, or it does not match the encryption key."),
    })
}

/// Checks that a request has the key of its object.
pub(super) fn admit(sent: Option<&Encryption>, object: &Object) -> Result<(), Problem> {
    match fits(sent, object.attributes.asked.encryption.as_ref()) {
        Fit::Opens => Ok(()),
        Fit::Missing => Err(problem(
            "resourceIsEncryptedWithCustomerEncryptionKey",
            "The target object is encrypted by a customer-supplied encryption key.",
        )),
        Fit::Other => {
            Err(problem("customerEncryptionKeyIsIncorrect", "The provided encryption key is incorrect."))
        }
        Fit::NotNeeded => Err(problem(
            "resourceNotEncryptedWithCustomerEncryptionKey",
            "The target object is not encrypted by a customer-supplied encryption key.",
        )),
    }
}

/// Checks that a request of an upload has the key with which the upload began.
pub(super) fn admit_to(sent: Option<&Encryption>, begun: &Asked) -> Result<(), Problem> {
    match fits(sent, begun.encryption.as_ref()) {
        Fit::Opens => Ok(()),
        _ => Err(problem(
            "customerEncryptionKeyIsIncorrect",
            "The upload was begun with another encryption key.",
        )),
    }
}

fn problem(reason: &'static str, message: &str) -> Problem {
    Problem { status: StatusCode::BAD_REQUEST, reason: reason.into(), message: message.to_owned() }
}
