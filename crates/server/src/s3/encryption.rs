//! Server-side encryption. The server stores and returns the headers, and encrypts nothing. It checks a customer's key
//! in the same way as S3.

use s3s::{S3Error, S3ErrorCode, S3Result, s3_error};

use super::S3Dialect;
use super::buckets::is_directory;
use crate::checksum::hex;
use crate::customer_key::{self, CustomerKeyError, HashedBy, KeyMatch};
use crate::objects::now_us;
use crate::objects::object::ObjectEncryption;

/// The headers that request encryption of a new object with keys that the store manages.
pub(super) struct ManagedEncryption<'a> {
    pub(super) algorithm: Option<&'a str>,
    pub(super) kms_key: Option<&'a str>,
    pub(super) bucket_key: Option<bool>,
    pub(super) context: Option<&'a str>,
}

/// Reads a customer's key from its three headers.
pub(super) fn customer(
    algorithm: Option<&str>,
    key: Option<&str>,
    md5: Option<&str>,
) -> S3Result<Option<ObjectEncryption>> {
    customer_key::sent(algorithm, key, md5, HashedBy::Md5).map_err(|bad| match bad {
        CustomerKeyError::Algorithm => {
            s3_error!(
                InvalidEncryptionAlgorithmError,
                "The encryption request you specified is not valid. Supported value: AES256."
            )
        }
        CustomerKeyError::Key => {
            s3_error!(InvalidArgument, "The secret key was invalid for the specified algorithm.")
        }
        CustomerKeyError::Hash => s3_error!(
            InvalidArgument,
            "The calculated MD5 hash of the key did not match the hash that was provided."
        ),
    })
}

/// Returns the encryption of a new object.
pub(super) fn of_new(
    managed: &ManagedEncryption<'_>,
    customer: Option<ObjectEncryption>,
) -> S3Result<Option<ObjectEncryption>> {
    let ManagedEncryption { algorithm, kms_key, bucket_key, context } = *managed;
    let is_kms = matches!(algorithm, Some("aws:kms" | "aws:kms:dsse"));
    if algorithm.is_some_and(|algorithm| !is_kms && algorithm != "AES256") {
        return Err(s3_error!(InvalidArgument, "The encryption method specified is not supported"));
    }
    if customer.is_some() && (algorithm.is_some() || kms_key.is_some()) {
        return Err(s3_error!(
            InvalidArgument,
            "Server Side Encryption with Customer provided key is incompatible with the encryption method specified"
        ));
    }
    if (kms_key.is_some() || context.is_some()) && !is_kms {
        return Err(s3_error!(
            InvalidArgument,
            "Server Side Encryption with AWS KMS managed key requires HTTP header x-amz-server-side-encryption : aws:kms"
        ));
    }
    let managed = algorithm.map(|algorithm| ObjectEncryption::Managed {
        algorithm: algorithm.to_owned(),
        kms_key: kms_key.map(str::to_owned),
        bucket_key: bucket_key.unwrap_or_default(),
    });
    Ok(customer.or(managed))
}

/// Checks that a request has the key of its object.
pub(super) fn admit(sent: Option<&ObjectEncryption>, written: Option<&ObjectEncryption>) -> S3Result<()> {
    match customer_key::fits(sent, written) {
        KeyMatch::Opens => Ok(()),
        KeyMatch::Missing => Err(s3_error!(
            InvalidRequest,
            "The object was stored using a form of Server Side Encryption. The correct parameters must be provided to retrieve the object."
        )),
        KeyMatch::Other => Err(s3_error!(AccessDenied, "Access Denied")),
        KeyMatch::NotNeeded => {
            Err(s3_error!(InvalidRequest, "The encryption parameters are not applicable to this object."))
        }
    }
}

/// Returns the ETag of an object that is written in one request, or `None` if it is the MD5. Other ETags look like an
/// MD5, but are opaque. Objects have such ETags if a KMS key or a customer's key encrypts them, or if they are in a
/// directory bucket. If the imitated service has no MD5s, all objects have them.
pub(super) fn etag(
    dialect: &S3Dialect,
    bucket: &str,
    encryption: Option<&ObjectEncryption>,
    crc32c: u32,
) -> Option<String> {
    let is_opaque = match encryption {
        _ if is_directory(bucket) || !dialect.habits.md5_etags => true,
        None => false,
        Some(ObjectEncryption::Managed { algorithm, .. }) => algorithm != "AES256",
        Some(ObjectEncryption::Customer { .. }) => true,
    };
    is_opaque.then(|| opaque_etag(crc32c))
}

/// Returns 32 hexadecimal digits without a meaning.
pub(super) fn opaque_etag(crc32c: u32) -> String {
    let mut state = [0; 16];
    state[..8].copy_from_slice(&now_us().to_be_bytes());
    state[8..12].copy_from_slice(&crc32c.to_be_bytes());
    state[12..].copy_from_slice(&(!crc32c).to_be_bytes());
    hex(&state)
}

/// Returns S3's error for a request whose encryption headers don't match those of its upload.
pub(super) fn other_upload() -> S3Error {
    S3Error::with_message(
        S3ErrorCode::InvalidRequest,
        "The multipart upload initiate requested encryption. Subsequent part requests must include the appropriate encryption parameters.",
    )
}
