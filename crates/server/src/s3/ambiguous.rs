//! Requests that could belong to S3 or to GCS's XML API. For example, the crate `object_store` sends only a method and
//! a path to an emulator of GCS. So the answers to such requests have the headers of both dialects.

use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::{HeaderMap, Response, Uri};
use s3s::S3Response;

use crate::gcs::xml;
use crate::objects::Object;

pub(super) fn is(uri: &Uri, headers: &HeaderMap) -> bool {
    let marked = headers.keys().any(|name| name.as_str().starts_with("x-amz-"));
    let signed = uri.query().is_some_and(|query| query.contains("X-Amz-"));
    !marked && !signed && !headers.contains_key(AUTHORIZATION)
}

/// Attaches the object to an answer, for [`tell`].
pub(super) fn about<T>(mut answer: S3Response<T>, object: &Arc<Object>) -> S3Response<T> {
    answer.extensions.insert(Arc::clone(object));
    answer
}

/// Adds the XML API's headers for the object that [`about`] attached to an answer.
pub(super) fn tell<B>(answer: &mut Response<B>) {
    if let Some(object) = answer.extensions_mut().remove::<Arc<Object>>() {
        xml::tell_all(answer.headers_mut(), &object);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_or_any_header_of_amazons_is_a_mark() {
        let mut headers = HeaderMap::new();
        assert!(is(&Uri::from_static("/bucket/key"), &headers));
        assert!(!is(&Uri::from_static("/bucket/key?X-Amz-Algorithm=AWS4-HMAC-SHA256"), &headers));
        headers.insert("x-amz-checksum-mode", "ENABLED".parse().unwrap());
        assert!(!is(&Uri::from_static("/bucket/key"), &headers));
    }
}
