//! The differences between directory buckets (S3 Express One Zone) and other buckets:
//! <https://docs.aws.amazon.com/AmazonS3/latest/userguide/s3-express-differences.html>.

use http::request::Parts;
use http::{Response, StatusCode};

use super::error_document;
use crate::body::ResponseBody;
use crate::query::Query;

/// The storage class of all objects in directory buckets.
pub(super) const STORAGE_CLASS: &str = "EXPRESS_ONEZONE";

/// The prefixes of headers for features that directory buckets lack.
const UNKNOWN: [&str; 5] = [
    "content-md5",
    "x-amz-acl",
    "x-amz-tagging",
    "x-amz-object-lock",
    "x-amz-server-side-encryption-customer",
];

/// Returns true for the name of a directory bucket.
pub(super) fn is_directory(bucket: &str) -> bool {
    bucket.ends_with("--x-s3")
}

/// Returns the error for a request that directory buckets don't support.
pub(super) fn refusal(head: &Parts, bucket: &str) -> Option<Response<ResponseBody>> {
    if !is_directory(bucket) {
        return None;
    }
    let names = head.headers.keys().map(http::HeaderName::as_str);
    let unknown = names.into_iter().find(|name| UNKNOWN.iter().any(|unknown| name.starts_with(unknown)));
    if let Some(name) = unknown {
        let message = format!("A header you provided implies functionality that is not implemented: {name}");
        return Some(error_document(StatusCode::NOT_IMPLEMENTED, "NotImplemented", &message));
    }
    let copies = head.headers.contains_key("x-amz-copy-source");
    if head.headers.contains_key("x-amz-server-side-encryption") && !copies {
        let message = "The session's encryption settings can't be overridden.";
        return Some(error_document(StatusCode::BAD_REQUEST, "InvalidRequest", message));
    }
    let query = Query::parse(head.uri.query());
    if query.value("list-type") != Some("2") {
        return None;
    }
    let why = match (query.value("prefix"), query.value("delimiter")) {
        _ if query.has("start-after") => "StartAfter is not supported for directory buckets.",
        (Some(prefix), _) if !prefix.is_empty() && !prefix.ends_with('/') => {
            "Prefixes of directory buckets must end in a delimiter."
        }
        (_, Some(delimiter)) if !delimiter.is_empty() && delimiter != "/" => {
            "Only / is a delimiter of directory buckets."
        }
        _ => return None,
    };
    Some(error_document(StatusCode::NOT_IMPLEMENTED, "NotImplemented", why))
}
