//! Customer-supplied encryption keys. The server stores only their hashes, and compares those
//! (<https://cloud.google.com/storage/docs/encryption/customer-supplied-keys>).

use http::{HeaderMap, HeaderName, StatusCode};

use super::answer::ApiError;
use crate::customer_key::{self, CustomerKeyError, HashedBy, KeyMatch, fits};
use crate::objects::Object;
use crate::objects::object::{ObjectEncryption, ObjectOptions};

/// Reads the key of the request's object.
pub(super) fn sent(headers: &HeaderMap) -> Result<Option<ObjectEncryption>, ApiError> {
    key(headers, ["x-goog-encryption-algorithm", "x-goog-encryption-key", "x-goog-encryption-key-sha256"])
}

/// Returns the encryption with a key of Cloud KMS.
pub(super) fn managed(kms_key: String) -> ObjectEncryption {
    ObjectEncryption::Managed { algorithm: "kms".to_owned(), kms_key: Some(kms_key), bucket_key: false }
}

/// Reads the key of a copy's source.
pub(super) fn of_source(headers: &HeaderMap) -> Result<Option<ObjectEncryption>, ApiError> {
    key(
        headers,
        [
            "x-goog-copy-source-encryption-algorithm",
            "x-goog-copy-source-encryption-key",
            "x-goog-copy-source-encryption-key-sha256",
        ],
    )
}

fn key(headers: &HeaderMap, names: [&'static str; 3]) -> Result<Option<ObjectEncryption>, ApiError> {
    let text = |name| headers.get(HeaderName::from_static(name)).and_then(|value| value.to_str().ok());
    let [algorithm, key, sha256] = names.map(text);
    customer_key::sent(algorithm, key, sha256, HashedBy::Sha256).map_err(|bad| match bad {
        CustomerKeyError::Algorithm => problem("customerEncryptionAlgorithmIsInvalid", "Missing or invalid algorithm."),
        CustomerKeyError::Key => problem("customerEncryptionKeyFormatIsInvalid", "Missing an encryption key, or it is not base64 encoded, or it does not meet the required length of the encryption algorithm."),
        CustomerKeyError::Hash => problem("customerEncryptionKeySha256IsInvalid", "Missing a SHA256 hash of the encryption key, or it is not base64 encoded, or it does not match the encryption key."),
    })
}

/// Checks that a request has the key of its object.
pub(super) fn admit(sent: Option<&ObjectEncryption>, object: &Object) -> Result<(), ApiError> {
    match fits(sent, object.attributes.options.encryption.as_ref()) {
        KeyMatch::Opens => Ok(()),
        KeyMatch::Missing => Err(problem(
            "resourceIsEncryptedWithCustomerEncryptionKey",
            "The target object is encrypted by a customer-supplied encryption key.",
        )),
        KeyMatch::Other => {
            Err(problem("customerEncryptionKeyIsIncorrect", "The provided encryption key is incorrect."))
        }
        KeyMatch::NotNeeded => Err(problem(
            "resourceNotEncryptedWithCustomerEncryptionKey",
            "The target object is not encrypted by a customer-supplied encryption key.",
        )),
    }
}

/// Checks that a request of an upload has the key with which the upload began.
pub(super) fn admit_to(sent: Option<&ObjectEncryption>, begun: &ObjectOptions) -> Result<(), ApiError> {
    match fits(sent, begun.encryption.as_ref()) {
        KeyMatch::Opens => Ok(()),
        _ => Err(problem(
            "customerEncryptionKeyIsIncorrect",
            "The upload was begun with another encryption key.",
        )),
    }
}

fn problem(reason: &'static str, message: &str) -> ApiError {
    ApiError { status: StatusCode::BAD_REQUEST, reason: reason.into(), message: message.to_owned() }
}
