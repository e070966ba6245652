//! Objects in the classes GLACIER and DEEP_ARCHIVE, whose bytes can't be read before they are restored.

use s3s::{S3Error, S3ErrorCode, S3Result};

use crate::objects::Object;

/// Lets those through who may read the bytes.
pub(super) fn admit(object: &Object) -> S3Result<()> {
    if !matches!(object.storage_class(), "GLACIER" | "DEEP_ARCHIVE") {
        return Ok(());
    }
    let message = "The operation is not valid for the object's storage class";
    Err(S3Error::with_message(S3ErrorCode::InvalidObjectState, message))
}
