//! Requests that bear no mark of S3's. They may as well be meant for the XML API of GCS: `object_store` writes nothing but
//! method and path to an emulator of it. So their answers hold what either dialect's do.

use http::header::{AUTHORIZATION, ETAG};
use http::{HeaderMap, Uri};

use crate::gcs::xml;
use crate::objects::Objects;

pub(super) fn is(uri: &Uri, headers: &HeaderMap) -> bool {
    let marked = headers.keys().any(|name| name.as_str().starts_with("x-amz-"));
    let signed = uri.query().is_some_and(|query| query.contains("X-Amz-"));
    !marked && !signed && !headers.contains_key(AUTHORIZATION)
}

/// Adds what the XML API says of an object, if it is still the one that the answer is about.
pub(super) fn tell(objects: &Objects, bucket: &str, key: &str, headers: &mut HeaderMap) {
    let Some(object) = objects.object(bucket, key) else { return };
    let etag = headers.get(ETAG).and_then(|etag| etag.to_str().ok());
    if etag.map(|etag| etag.trim_matches('"')) == Some(object.etag.as_str()) {
        xml::tell_all(headers, &object);
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
