//! Objects in the classes GLACIER and DEEP_ARCHIVE, whose bytes can't be read before they are restored.

use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use s3s::{S3Error, S3ErrorCode, S3Result};

use super::error_document_with;
use crate::body::ResponseBody;
use crate::objects::Object;

const MESSAGE: &str = "The operation is not valid for the object's storage class";

/// Carries the class from the refusal to where its document is written: the framework's errors have no elements of their own.
const CLASS: HeaderName = HeaderName::from_static("archived-in");

/// Lets those through who may read the bytes.
pub(super) fn admit(object: &Object) -> S3Result<()> {
    let class = match object.storage_class() {
        "GLACIER" => HeaderValue::from_static("GLACIER"),
        "DEEP_ARCHIVE" => HeaderValue::from_static("DEEP_ARCHIVE"),
        _ => return Ok(()),
    };
    let mut error = S3Error::with_message(S3ErrorCode::InvalidObjectState, MESSAGE);
    error.set_headers(HeaderMap::from_iter([(CLASS, class)]));
    Err(error)
}

/// An answer; a refusal to read what is archived tells the class, as S3 does.
/// [S3](https://docs.aws.amazon.com/AmazonS3/latest/API/API_InvalidObjectState.html)
pub(super) fn telling_class(mut answer: Response<ResponseBody>) -> Response<ResponseBody> {
    let class = answer.headers_mut().remove(CLASS);
    match class.as_ref().and_then(|class| class.to_str().ok()) {
        Some(class) => {
            let class = ("StorageClass", class);
            error_document_with(StatusCode::FORBIDDEN, "InvalidObjectState", MESSAGE, &[class])
        }
        None => answer,
    }
}
