//! The subresources of S3's buckets and objects, and their methods.
//!
//! Without this list, a request for an unknown subresource would be handled as a request for the bucket or object
//! itself. A `PUT ?renameObject` would write an object, and a `DELETE ?acl` would delete one.

use http::Method;

use crate::query::Query;

/// A subresource: its name in the query, and the methods that S3 has for it.
type Subresource = (&'static str, &'static [Method]);

const GET: &[Method] = &[Method::GET];
const PUT: &[Method] = &[Method::PUT];
const POST: &[Method] = &[Method::POST];
const GET_PUT: &[Method] = &[Method::GET, Method::PUT];
const GET_PUT_DELETE: &[Method] = &[Method::GET, Method::PUT, Method::DELETE];
const GET_POST_DELETE: &[Method] = &[Method::GET, Method::POST, Method::DELETE];

/// The subresources of an object.
const OF_OBJECTS: [Subresource; 12] = [
    ("acl", GET_PUT),
    ("annotation", GET_PUT_DELETE),
    ("attributes", GET),
    ("encryption", PUT),
    ("legal-hold", GET_PUT),
    ("renameObject", PUT),
    ("restore", POST),
    ("retention", GET_PUT),
    ("select", POST),
    ("tagging", GET_PUT_DELETE),
    ("torrent", GET),
    ("uploads", POST),
];

/// The subresources of a bucket.
const OF_BUCKETS: [Subresource; 33] = [
    ("abac", GET_PUT),
    ("accelerate", GET_PUT),
    ("acl", GET_PUT),
    ("analytics", GET_PUT_DELETE),
    ("cors", GET_PUT_DELETE),
    ("delete", POST),
    ("encryption", GET_PUT_DELETE),
    ("intelligent-tiering", GET_PUT_DELETE),
    ("inventory", GET_PUT_DELETE),
    ("lifecycle", GET_PUT_DELETE),
    ("location", GET),
    ("logging", GET_PUT),
    ("metadataAnnotationTable", PUT),
    ("metadataConfiguration", GET_POST_DELETE),
    ("metadataInventoryTable", PUT),
    ("metadataJournalTable", PUT),
    ("metadataTable", GET_POST_DELETE),
    ("metrics", GET_PUT_DELETE),
    ("notification", GET_PUT),
    ("object-lock", GET_PUT),
    ("ownershipControls", GET_PUT_DELETE),
    ("policy", GET_PUT_DELETE),
    ("policyStatus", GET),
    ("publicAccessBlock", GET_PUT_DELETE),
    ("replication", GET_PUT_DELETE),
    ("requestPayment", GET_PUT),
    ("session", GET),
    ("tagging", GET_PUT_DELETE),
    ("uploads", GET),
    ("versioning", GET_PUT),
    ("versions", GET),
    ("website", GET_PUT_DELETE),
    ("x-notification", GET),
];

/// The subresources that this store supports, of buckets and of objects.
const HERE: [&str; 14] = [
    "acl",
    "attributes",
    "cors",
    "delete",
    "legal-hold",
    "location",
    "object-lock",
    "restore",
    "retention",
    "session",
    "tagging",
    "uploads",
    "versioning",
    "versions",
];

/// The reason why a request for a subresource is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SubresourceError {
    /// S3 has the subresource, but this store doesn't support it.
    NotImplemented,
    /// S3 doesn't support this method for the subresource.
    Method,
}

/// Returns the reason to refuse a request for the subresource in its query, if there is one.
pub(super) fn refused(method: &Method, query: &Query, is_object: bool) -> Option<SubresourceError> {
    let known: &[Subresource] = if is_object { &OF_OBJECTS } else { &OF_BUCKETS };
    let (name, methods) = known.iter().find(|(name, _)| query.has(name))?;
    // A HEAD always concerns the bucket or object itself, with any query.
    if *method == Method::HEAD {
        None
    } else if !methods.contains(method) {
        Some(SubresourceError::Method)
    } else if !HERE.contains(name) {
        Some(SubresourceError::NotImplemented)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(method: Method, query: &str, is_object: bool) -> Option<SubresourceError> {
        refused(&method, &Query::parse(Some(query)), is_object)
    }

    #[test]
    fn what_is_no_request_for_the_object_itself_is_not_taken_for_one() {
        assert_eq!(of(Method::PUT, "renameObject", true), Some(SubresourceError::NotImplemented));
        assert_eq!(of(Method::PUT, "encryption", true), Some(SubresourceError::NotImplemented));
        assert_eq!(
            of(Method::DELETE, "annotation&annotationName=n", true),
            Some(SubresourceError::NotImplemented)
        );
        assert_eq!(of(Method::DELETE, "acl", true), Some(SubresourceError::Method));
        assert_eq!(of(Method::PUT, "uploads", true), Some(SubresourceError::Method));
        assert_eq!(of(Method::DELETE, "versioning", false), Some(SubresourceError::Method));
        assert_eq!(of(Method::GET, "metadataConfiguration", false), Some(SubresourceError::NotImplemented));
    }

    #[test]
    fn what_s3_has_and_what_means_nothing_goes_on() {
        for (method, query, is_object) in [
            (Method::PUT, "tagging", true),
            (Method::POST, "uploads", true),
            (Method::PUT, "partNumber=1&uploadId=u", true),
            (Method::PUT, "x-id=PutObject", true),
            (Method::GET, "versions&prefix=a", false),
            (Method::POST, "delete", false),
            (Method::DELETE, "", false),
        ] {
            assert_eq!(of(method.clone(), query, is_object), None, "{method} {query}");
        }
    }
}
