//! Errors of the service, as XML with the code in `x-ms-error-code`.
//! <https://learn.microsoft.com/rest/api/storageservices/blob-service-error-codes>

use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use quick_xml::escape::escape;

use super::timestamp;
use crate::body::ResponseBody;
use crate::objects::disk::is_full;
use crate::objects::precondition::FailedCondition;
use crate::objects::{StoreError, now_us};

pub(super) type BlobResult = Result<Response<ResponseBody>, BlobError>;

/// The error codes with their status and message.
const CODES: &[(&str, u16, &str)] = &[
    ("AccountIsDisabled", 403, "The specified account is disabled."),
    ("AppendPositionConditionNotMet", 412, "The append position condition specified was not met."),
    ("MaxBlobSizeConditionNotMet", 412, "The max blob size condition specified was not met."),
    (
        "AuthenticationFailed",
        403,
        "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature.",
    ),
    ("AuthorizationFailure", 403, "This request is not authorized to perform this operation."),
    (
        "AuthorizationPermissionMismatch",
        403,
        "This request is not authorized to perform this operation using this permission.",
    ),
    (
        "AuthorizationProtocolMismatch",
        403,
        "This request is not authorized to perform this operation using this protocol.",
    ),
    (
        "AuthorizationResourceTypeMismatch",
        403,
        "This request is not authorized to perform this operation using this resource type.",
    ),
    (
        "AuthorizationServiceMismatch",
        403,
        "This request is not authorized to perform this operation using this service.",
    ),
    ("BlobAlreadyExists", 409, "The specified blob already exists."),
    ("BlobArchived", 409, "This operation is not permitted on an archived blob."),
    ("BlobBeingRehydrated", 409, "This operation is not permitted because the blob is being rehydrated."),
    ("BlobNotFound", 404, "The specified blob does not exist."),
    (
        "BlockCountExceedsLimit",
        409,
        "The uncommitted block count cannot exceed the maximum limit of 100,000 blocks.",
    ),
    ("BlockListTooLong", 400, "The block list may not contain more than 50,000 blocks."),
    (
        "BothUserTagsAndSourceTagsCopyPresent",
        400,
        "x-ms-tags header must not be present with x-ms-copy-source-tag-option as COPY.",
    ),
    (
        "BothCrc64AndMd5HeaderPresent",
        400,
        "Both x-ms-content-crc64 header and Content-MD5 header are present.",
    ),
    ("CannotVerifyCopySource", 404, "The specified resource does not exist."),
    ("ConditionNotMet", 412, "The condition specified using HTTP conditional header(s) is not met."),
    ("ContainerAlreadyExists", 409, "The specified container already exists."),
    ("ContainerNotFound", 404, "The specified container does not exist."),
    (
        "CopyIdMismatch",
        409,
        "The specified copy ID did not match the copy ID for the pending copy operation.",
    ),
    (
        "Crc64Mismatch",
        400,
        "The CRC64 value specified in the request did not match with the CRC64 value calculated by the server.",
    ),
    ("EmptyMetadataKey", 400, "The key for one of the metadata key-value pairs is empty."),
    ("ExceedsMaxBatchRequestCount", 400, "The number of requests in the batch exceeds the maximum of 256."),
    ("FeatureNotSupported", 500, "This feature is not supported."),
    ("FeatureVersionMismatch", 409, "The operation for this feature isn't allowed in this version."),
    (
        "InsufficientAccountPermissions",
        403,
        "The account being accessed does not have sufficient permissions to execute this operation.",
    ),
    ("InternalError", 500, "Server encountered an internal error. Please try again after some time."),
    (
        "InvalidAuthenticationInfo",
        401,
        "Server failed to authenticate the request. Please refer to the information in the www-authenticate header.",
    ),
    ("InvalidBlobOrBlock", 400, "The specified blob or block content is invalid."),
    ("InvalidBlobTier", 400, "The specified blob tier is invalid."),
    ("InvalidBlobType", 409, "The blob type is invalid for this operation."),
    ("InvalidBlockId", 400, "The specified block ID is invalid. The block ID must be Base64-encoded."),
    ("InvalidBlockList", 400, "The specified block list is invalid."),
    ("InvalidHeaderValue", 400, "The value for one of the HTTP headers is not in the correct format."),
    ("InvalidInput", 400, "One of the request inputs is not valid."),
    (
        "InvalidMd5",
        400,
        "The MD5 value specified in the request is invalid. MD5 value must be 128 bits and base64-encoded.",
    ),
    (
        "InvalidMetadata",
        400,
        "The specified metadata is invalid. It includes characters that are not permitted.",
    ),
    ("InvalidOperation", 400, "Invalid operation against a blob snapshot."),
    (
        "InvalidQueryParameterValue",
        400,
        "Value for one of the query parameters specified in the request URI is invalid.",
    ),
    ("InvalidRange", 416, "The range specified is invalid for the current size of the resource."),
    ("InvalidResourceName", 400, "The specified resource name contains invalid characters."),
    ("InvalidSourceBlobType", 409, "The copy source blob type is invalid for this operation."),
    ("InvalidTags", 400, "The tags specified are invalid. They contain characters that are not permitted."),
    ("InvalidUri", 400, "The request URI is invalid."),
    ("InvalidXmlDocument", 400, "XML specified is not syntactically valid."),
    ("InvalidXmlNodeValue", 400, "The value for one of the XML nodes is not in the correct format."),
    ("LeaseAlreadyBroken", 409, "The lease has already been broken and cannot be broken again."),
    ("LeaseAlreadyPresent", 409, "There is already a lease present."),
    (
        "LeaseIdMismatchWithBlobOperation",
        412,
        "The lease ID specified did not match the lease ID for the blob.",
    ),
    (
        "LeaseIdMismatchWithContainerOperation",
        412,
        "The lease ID specified did not match the lease ID for the container.",
    ),
    (
        "LeaseIdMismatchWithLeaseOperation",
        409,
        "The lease ID specified did not match the lease ID for the resource with the specified lease operation.",
    ),
    (
        "LeaseIdMissing",
        412,
        "There is currently a lease on the resource and no lease ID was specified in the request.",
    ),
    (
        "LeaseIsBreakingAndCannotBeAcquired",
        409,
        "The lease ID matched, but the lease is currently in breaking state and cannot be acquired until it is broken.",
    ),
    (
        "LeaseIsBreakingAndCannotBeChanged",
        409,
        "The lease ID matched, but the lease is currently in breaking state and cannot be changed.",
    ),
    (
        "LeaseIsBrokenAndCannotBeRenewed",
        409,
        "The lease ID matched, but the lease has been broken explicitly and cannot be renewed.",
    ),
    ("LeaseLost", 412, "A lease ID was specified, but the lease for the resource has expired."),
    ("LeaseNotPresentWithBlobOperation", 412, "There is currently no lease on the blob."),
    ("LeaseNotPresentWithContainerOperation", 412, "There is currently no lease on the container."),
    ("LeaseNotPresentWithLeaseOperation", 409, "There is currently no lease on the resource."),
    (
        "Md5Mismatch",
        400,
        "The MD5 value specified in the request did not match with the MD5 value calculated by the server.",
    ),
    ("MetadataTooLarge", 400, "The metadata specified exceeds the maximum permissible limit (8KB)."),
    ("MissingContentLengthHeader", 411, "The Content-Length header was not specified."),
    ("MissingRequiredHeader", 400, "An HTTP header that's mandatory for this request is not specified."),
    (
        "MissingRequiredQueryParameter",
        400,
        "A query parameter that's mandatory for this request is not specified.",
    ),
    (
        "NoAuthenticationInformation",
        401,
        "Server failed to authenticate the request. Please refer to the information in the www-authenticate header.",
    ),
    ("NoPendingCopyOperation", 409, "There is currently no pending copy operation."),
    ("NotImplemented", 501, "This store does not have the requested operation."),
    ("OperationNotAllowedOnRootBlob", 403, "This operation is not allowed on the root blob."),
    ("OperationTimedOut", 500, "BlobOperation could not be completed within the specified time."),
    ("OutOfRangeInput", 400, "One of the request inputs is out of range."),
    (
        "OutOfRangeQueryParameterValue",
        400,
        "One of the query parameters specified in the request URI is outside the permissible range.",
    ),
    ("PendingCopyOperation", 409, "There is currently a pending copy operation."),
    ("PublicAccessNotPermitted", 409, "Public access is not permitted on this storage account."),
    ("RequestBodyTooLarge", 413, "The request body is too large and exceeds the maximum permissible limit."),
    ("ResourceNotFound", 404, "The specified resource does not exist."),
    ("ServerBusy", 503, "The server is currently unable to receive requests. Please retry your request."),
    ("SnapshotsPresent", 409, "This operation is not permitted because the blob has snapshots."),
    (
        "SourceConditionNotMet",
        412,
        "The source condition specified using HTTP conditional header(s) is not met.",
    ),
    ("UnauthorizedBlobOverwrite", 403, "This request is not authorized to perform blob overwrites."),
    ("UnsatisfiableCondition", 400, "The request includes an unsatisfiable condition for this operation."),
    ("UnsupportedHeader", 400, "One of the HTTP headers specified in the request is not supported."),
    ("UnsupportedHttpVerb", 405, "The resource doesn't support the specified HTTP verb."),
    (
        "UnsupportedQueryParameter",
        400,
        "One of the query parameters specified in the request URI is not supported.",
    ),
];

/// An error of the service.
#[derive(Debug, Clone)]
pub(super) struct BlobError {
    status: StatusCode,
    code: String,
    message: String,
    /// More elements of the document, such as `AuthenticationErrorDetail`.
    elements: Vec<(&'static str, String)>,
    headers: Vec<(HeaderName, String)>,
}

impl BlobError {
    /// Returns the error with the status and the message of its code.
    pub(super) fn new(code: &str) -> BlobError {
        let known = CODES.iter().find(|(known, ..)| *known == code);
        let (status, message) =
            known.map_or((400, "The request is not valid."), |(_, status, message)| (*status, *message));
        BlobError {
            status: StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST),
            code: code.to_owned(),
            message: message.to_owned(),
            elements: Vec::new(),
            headers: Vec::new(),
        }
    }

    /// Returns the error that a fault or the configuration sets.
    pub(super) fn of_status(status: u16, code: Option<&str>) -> BlobError {
        let usual = match status {
            401 => "NoAuthenticationInformation",
            403 => "AuthorizationFailure",
            404 => "ResourceNotFound",
            409 => "ContainerBeingDeleted",
            411 => "MissingContentLengthHeader",
            412 => "ConditionNotMet",
            416 => "InvalidRange",
            429 | 503 => "ServerBusy",
            500 => "InternalError",
            504 => "OperationTimedOut",
            _ => "InvalidInput",
        };
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        BlobError { status, ..BlobError::new(code.unwrap_or(usual)) }
    }

    /// Names the header that is wrong.
    pub(super) fn of_header(code: &str, name: &str, value: &str) -> BlobError {
        BlobError::new(code).with("HeaderName", name).with("HeaderValue", value)
    }

    pub(super) fn missing_header(name: &str) -> BlobError {
        BlobError::new("MissingRequiredHeader").with("HeaderName", name)
    }

    pub(super) fn of_parameter(code: &str, name: &str, value: &str) -> BlobError {
        BlobError::new(code).with("QueryParameterName", name).with("QueryParameterValue", value)
    }

    /// Returns the error for a signature that isn't valid, with the reason.
    pub(super) fn unauthenticated(detail: impl Into<String>) -> BlobError {
        BlobError::new("AuthenticationFailed").with("AuthenticationErrorDetail", detail)
    }

    /// Adds an element to the document.
    pub(super) fn with(mut self, element: &'static str, value: impl Into<String>) -> BlobError {
        self.elements.push((element, value.into()));
        self
    }

    /// Replaces the message.
    pub(super) fn saying(self, message: impl Into<String>) -> BlobError {
        BlobError { message: message.into(), ..self }
    }

    pub(super) fn message(&self) -> &str {
        &self.message
    }

    pub(super) fn with_header(mut self, name: HeaderName, value: String) -> BlobError {
        self.headers.push((name, value));
        self
    }

    /// Returns the same error with 304, for a read whose condition says that the client has the blob already.
    pub(super) fn not_modified(self) -> BlobError {
        BlobError { status: StatusCode::NOT_MODIFIED, ..self }
    }

    pub(super) fn interrupted(_: s3s::StdError) -> BlobError {
        BlobError::new("InvalidInput").with("Reason", "The request body broke off.")
    }

    pub(super) fn io(error: &std::io::Error) -> BlobError {
        let refused = BlobError::new("InternalError").with("Reason", error.to_string());
        let status = if is_full(error) { StatusCode::INSUFFICIENT_STORAGE } else { refused.status };
        BlobError { status, ..refused }
    }

    pub(super) fn code(&self) -> &str {
        &self.code
    }

    pub(super) fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the XML document.
    fn document(&self, request_id: &str) -> String {
        let own: String =
            self.elements.iter().map(|(name, value)| format!("<{name}>{}</{name}>", escape(value))).collect();
        format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<Error><Code>{}</Code><Message>{}\nRequestId:{request_id}\nTime:{}</Message>{own}</Error>",
            escape(&self.code),
            escape(&self.message),
            timestamp::precise(now_us()),
        )
    }

    pub(super) fn answer(&self, request_id: &str) -> Response<ResponseBody> {
        let has_body = self.status != StatusCode::NOT_MODIFIED;
        let text = if has_body { self.document(request_id) } else { String::new() };
        let len = text.len();
        let mut answer = Response::new(ResponseBody::whole(text));
        *answer.status_mut() = self.status;
        let headers = answer.headers_mut();
        if has_body {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
            headers.insert(CONTENT_LENGTH, len.into());
        }
        let code = HeaderValue::from_str(&self.code);
        for (name, value) in &self.headers {
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(name.clone(), value);
            }
        }
        if let Ok(code) = code {
            headers.insert("x-ms-error-code", code);
        }
        answer
    }
}

impl From<StoreError> for BlobError {
    fn from(refused: StoreError) -> BlobError {
        match refused {
            StoreError::NoBucket => BlobError::new("ContainerNotFound"),
            StoreError::NoObject | StoreError::DeleteMarker(_) => BlobError::new("BlobNotFound"),
            StoreError::BucketExists => BlobError::new("ContainerAlreadyExists"),
            StoreError::BucketNotEmpty | StoreError::Protected(_) => BlobError::of_status(409, None),
            StoreError::BadBucketName | StoreError::KeyTooLong => BlobError::new("InvalidResourceName"),
            StoreError::Precondition(FailedCondition::Match | FailedCondition::NotMatch) => {
                BlobError::new("ConditionNotMet")
            }
            StoreError::NoLocks => BlobError::new("InvalidInput"),
            StoreError::TooManyUploads => BlobError::new("ServerBusy"),
            StoreError::Io(error) => BlobError::io(&error),
        }
    }
}
