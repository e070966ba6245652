//! Answers of the JSON API: JSON, and errors in Google's format.

use std::borrow::Cow;

use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};
use s3s::StdError;
use serde::Serialize;
use serde_json::Value;

use super::fields::Fields;
use super::rfc3339;
use crate::body::ResponseBody;
use crate::objects::StoreError;
use crate::objects::disk::is_full;
use crate::objects::precondition::{FailedCondition, Protection};

pub(crate) type ApiResult = Result<Response<ResponseBody>, ApiError>;

/// An error of the JSON API. [`ApiError::xml`] writes it in the XML API's format.
#[derive(Debug)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) reason: Cow<'static, str>,
    pub(crate) message: String,
}

impl ApiError {
    fn new(status: StatusCode, reason: &'static str, message: impl Into<String>) -> ApiError {
        ApiError { status, reason: reason.into(), message: message.into() }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, "invalid", message)
    }

    pub(crate) fn invalid_parameter(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, "invalidParameter", message)
    }

    pub(crate) fn parse(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, "parseError", message)
    }

    /// The error for an expired signed URL.
    pub(crate) fn expired_token() -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, "expiredToken", "The provided token has expired.")
    }

    /// The error for a signed URL that can't be parsed.
    pub(crate) fn malformed_signature(message: String) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, "malformedSecurityHeader", message)
    }

    pub(crate) fn required(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::BAD_REQUEST, "required", message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::NOT_FOUND, "notFound", message)
    }

    pub(crate) fn conflict(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::CONFLICT, "conflict", message)
    }

    pub(crate) fn gone(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::GONE, "gone", message)
    }

    pub(crate) fn not_allowed() -> ApiError {
        ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "methodNotAllowed", "Method Not Allowed")
    }

    /// The error for a feature of the service that this store lacks.
    pub(crate) fn not_here(name: &str) -> ApiError {
        let message = format!("This store doesn't have {name}.");
        ApiError::new(StatusCode::NOT_IMPLEMENTED, "notImplemented", message)
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    /// The error if a retention protects an object, or if a retention policy is locked.
    pub(crate) fn retained(message: impl Into<String>) -> ApiError {
        ApiError::new(StatusCode::FORBIDDEN, "retentionPolicyNotMet", message)
    }

    /// The error for an object that a hold or a retention protects. For holds, GCS sends another `reason` than the one
    /// that it documents.
    fn protected(protection: Protection, bucket: &str, key: &str) -> ApiError {
        let held = |kind: &str| {
            ApiError::forbidden(format!(
                "Object '{bucket}/{key}' is under active {kind} hold and cannot be deleted, overwritten or archived \
                 until hold is removed."
            ))
        };
        match protection {
            Protection::TemporaryHold => held("Temporary"),
            Protection::EventBasedHold => held("Event-Based"),
            Protection::LegalHold => held("Legal"),
            Protection::Retained(until_us) => ApiError::retained(format!(
                "Object '{bucket}/{key}' is subject to bucket's retention policy or object retention and cannot be \
                 deleted or overwritten until {}",
                rfc3339(until_us)
            )),
        }
    }

    pub(crate) fn not_satisfiable() -> ApiError {
        let message = "Request range not satisfiable";
        ApiError::new(StatusCode::RANGE_NOT_SATISFIABLE, "requestedRangeNotSatisfiable", message)
    }

    /// The error if there are too many unfinished uploads.
    pub(crate) fn too_many_uploads() -> ApiError {
        let message = "Too many uploads are unfinished.";
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "backendError", message)
    }

    /// The error if the client's body broke off. Normally the client is gone and doesn't read it.
    pub(crate) fn interrupted(error: StdError) -> ApiError {
        ApiError::invalid(format!("the request body ended early: {error}"))
    }

    pub(crate) fn io(error: &std::io::Error) -> ApiError {
        if is_full(error) {
            let message = format!("The store has no room left: {error}");
            return ApiError::new(StatusCode::INSUFFICIENT_STORAGE, "insufficientStorage", message);
        }
        let message = format!("the store could not read or write: {error}");
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "backendError", message)
    }

    /// Converts an error of the store, about this bucket and key, into an error of the API.
    pub(crate) fn refused(refused: StoreError, bucket: &str, key: &str) -> ApiError {
        match refused {
            StoreError::NoBucket => ApiError::not_found("The specified bucket does not exist."),
            StoreError::NoObject | StoreError::DeleteMarker(_) => {
                ApiError::not_found(format!("No such object: {bucket}/{key}"))
            }
            StoreError::BucketExists => ApiError::new(
                StatusCode::CONFLICT,
                "conflict",
                "Your previous request to create the named bucket succeeded and you already own it.",
            ),
            StoreError::BucketNotEmpty => ApiError::new(
                StatusCode::CONFLICT,
                "conflict",
                "The bucket you tried to delete is not empty.",
            ),
            StoreError::BadBucketName => ApiError::invalid(format!("Invalid bucket name: '{bucket}'")),
            StoreError::KeyTooLong => ApiError::invalid(format!(
                "The maximum object length is 1024 characters, but got a name with {} characters.",
                key.len()
            )),
            StoreError::Precondition(_) => ApiError::new(
                StatusCode::PRECONDITION_FAILED,
                "conditionNotMet",
                "At least one of the pre-conditions you specified did not hold.",
            ),
            StoreError::Protected(protection) => ApiError::protected(protection, bucket, key),
            StoreError::NoLocks => ApiError::invalid("Object retention is not enabled on the bucket."),
            StoreError::TooManyUploads => ApiError::too_many_uploads(),
            StoreError::Io(error) => ApiError::io(&error),
        }
    }

    /// Returns the error for a read that the store refused. It is 304 if the object is still in the state that the
    /// reader has.
    pub(crate) fn refused_to_read(refused: StoreError, bucket: &str, key: &str) -> ApiError {
        match refused {
            StoreError::Precondition(FailedCondition::NotMatch) => {
                ApiError::new(StatusCode::NOT_MODIFIED, "notModified", "")
            }
            other => ApiError::refused(other, bucket, key),
        }
    }

    pub(crate) fn json(&self) -> Response<ResponseBody> {
        if self.status == StatusCode::NOT_MODIFIED {
            let mut answer = Response::new(ResponseBody::empty());
            *answer.status_mut() = self.status;
            return answer;
        }
        #[derive(Serialize)]
        struct Body<'a> {
            error: Outer<'a>,
        }
        #[derive(Serialize)]
        struct Outer<'a> {
            code: u16,
            message: &'a str,
            errors: [Inner<'a>; 1],
        }
        #[derive(Serialize)]
        struct Inner<'a> {
            message: &'a str,
            domain: &'a str,
            reason: &'a str,
        }
        let message = self.message.as_str();
        let errors = [Inner { message, domain: "global", reason: &self.reason }];
        json(self.status, &Body { error: Outer { code: self.status.as_u16(), message, errors } })
    }
}

/// Returns a JSON answer.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Response<ResponseBody> {
    // Writing JSON fails only for maps whose keys aren't strings, and no answer has one.
    let bytes = serde_json::to_vec(value).unwrap_or_default();
    whole(status, "application/json; charset=UTF-8", bytes)
}

/// Returns the same JSON with only the requested fields.
pub(super) fn selected(answer: Response<ResponseBody>, fields: &Fields) -> Response<ResponseBody> {
    rewritten(answer, |mut value| {
        fields.select(&mut value);
        serde_json::to_vec(&value)
    })
}

/// Returns the same JSON with line breaks and indentation, as the service writes it without `prettyPrint=false`.
pub(crate) fn indented(answer: Response<ResponseBody>) -> Response<ResponseBody> {
    rewritten(answer, |value| serde_json::to_vec_pretty(&value))
}

fn rewritten(
    answer: Response<ResponseBody>,
    write: impl FnOnce(Value) -> serde_json::Result<Vec<u8>>,
) -> Response<ResponseBody> {
    let is_json =
        answer.headers().get(CONTENT_TYPE).is_some_and(|of| of.as_bytes().starts_with(b"application/json"));
    if !is_json || !answer.body().is_whole() {
        return answer;
    }
    let (mut head, body) = answer.into_parts();
    let bytes = body.into_whole().unwrap_or_default();
    let bytes = serde_json::from_slice(&bytes).and_then(write).map_or(bytes, Into::into);
    head.headers.insert(CONTENT_LENGTH, bytes.len().into());
    Response::from_parts(head, ResponseBody::whole(bytes))
}

/// Returns an answer of plain text.
pub(crate) fn plain(status: StatusCode, text: &'static str) -> Response<ResponseBody> {
    whole(status, "text/plain; charset=UTF-8", text.as_bytes().to_vec())
}

/// Returns an answer of bytes in memory.
pub(crate) fn whole(
    status: StatusCode,
    content_type: &'static str,
    bytes: Vec<u8>,
) -> Response<ResponseBody> {
    let len = bytes.len();
    let mut answer = Response::new(ResponseBody::whole(bytes));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer.headers_mut().insert(CONTENT_LENGTH, len.into());
    answer
}

/// Returns an answer without a body.
pub(crate) fn empty(status: StatusCode) -> Response<ResponseBody> {
    let mut answer = Response::new(ResponseBody::empty());
    *answer.status_mut() = status;
    if status != StatusCode::NO_CONTENT && status != StatusCode::NOT_MODIFIED {
        answer.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
    answer
}

/// Returns an answer with the status that a fault or the configuration sets.
pub(crate) fn refused(status: u16, reason: Option<&str>) -> Response<ResponseBody> {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let usual = match status.as_u16() {
        401 => "authError",
        403 => "forbidden",
        404 => "notFound",
        408 => "requestTimeout",
        411 => "lengthRequired",
        412 => "conditionNotMet",
        429 => "rateLimitExceeded",
        500..=599 => "backendError",
        _ => "invalid",
    };
    let reason: Cow<'static, str> = reason.map_or(usual.into(), |reason| reason.to_owned().into());
    let message = status.canonical_reason().unwrap_or("refused").to_owned();
    ApiError { status, reason, message }.json()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_googles_form() {
        let body = ApiError::not_found("No such object: b/k").json().into_body().into_whole().unwrap();
        let value: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(value["error"]["code"], 404);
        assert_eq!(value["error"]["errors"][0]["reason"], "notFound");
        assert_eq!(value["error"]["message"], "No such object: b/k");
    }

    #[test]
    fn a_full_disk_is_507_and_named() {
        let full = StoreError::Io(std::io::ErrorKind::StorageFull.into());
        let problem = ApiError::refused(full, "b", "k");
        assert_eq!(problem.status, StatusCode::INSUFFICIENT_STORAGE);
        assert!(problem.message.contains("no room left"), "{}", problem.message);
    }
}
