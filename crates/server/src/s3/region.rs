//! Buckets in other regions. A client learns the region from S3's redirect, or from HeadBucket if the error doesn't
//! name the region.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri};

use super::error_document;
use crate::body::ResponseBody;
use crate::query::Query;
use crate::s3::S3State;

/// The number of temporary redirects of each bucket so far.
#[derive(Debug, Default)]
pub(crate) struct RedirectCounts(Mutex<BTreeMap<String, u32>>);

impl RedirectCounts {
    /// Counts a request. Returns true if it is among the first `first` requests for its bucket.
    fn another(&self, bucket: &str, first: u32) -> bool {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(bucket.to_owned()).or_default();
        *count += 1;
        *count <= first
    }
}

/// Returns 307 or 301 for a bucket in another region than the one in the signature, or 400 for an opt-in region. An
/// unsigned request doesn't name a region, so it is redirected too.
pub(super) fn redirect(
    state: &S3State,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    bucket: &str,
    key: &str,
) -> Option<Response<ResponseBody>> {
    let home = state.config.bucket_regions.get(bucket)?;
    if signed_for(uri, headers).as_ref() == Some(home) {
        return None;
    }
    let is_head_bucket = *method == Method::HEAD && key.is_empty();
    if state.config.opt_in_regions.contains(home) && !is_head_bucket {
        let message = format!(
            "The {home} location constraint is incompatible for the region specific endpoint this request was sent to."
        );
        return Some(error_document(StatusCode::BAD_REQUEST, "IllegalLocationConstraintException", &message));
    }
    let mut answer = if state.redirected.another(bucket, state.habits.temporary_redirects) {
        let message = "Please re-send this request to the specified temporary endpoint. Continue to use the original \
                       request endpoint for future requests.";
        error_document(StatusCode::TEMPORARY_REDIRECT, "TemporaryRedirect", message)
    } else {
        let message =
            "The bucket you are attempting to access must be addressed using the specified endpoint.";
        error_document(StatusCode::MOVED_PERMANENTLY, "PermanentRedirect", message)
    };
    if let Ok(home) = HeaderValue::from_str(home) {
        answer.headers_mut().insert("x-amz-bucket-region", home);
    }
    Some(answer)
}

/// Returns the region in the credential scope, `KEY/DATE/REGION/s3/aws4_request`.
fn signed_for(uri: &Uri, headers: &HeaderMap) -> Option<String> {
    let header = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let query = Query::parse(uri.query());
    let scope = match header {
        Some(header) => header.split("Credential=").nth(1)?.split(',').next()?,
        None => query.value("X-Amz-Credential")?,
    };
    // The access key may contain slashes, so the scope is read from its end.
    scope.trim().rsplit('/').nth(2).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_bucket_is_sent_elsewhere_so_many_times() {
        let redirected = RedirectCounts::default();
        assert!(!redirected.another("a", 0));
        assert!(redirected.another("b", 1) && !redirected.another("b", 1));
    }

    #[test]
    fn the_region_is_read_from_header_or_query() {
        let mut headers = HeaderMap::new();
        let query: Uri = "/b?X-Amz-Credential=k%2F20260101%2Fap-south-1%2Fs3%2Faws4_request".parse().unwrap();
        assert_eq!(signed_for(&query, &headers).as_deref(), Some("ap-south-1"));
        let header = "AWS4-HMAC-SHA256 Credential=k/20260101/eu-west-1/s3/aws4_request, SignedHeaders=host";
        headers.insert(AUTHORIZATION, header.parse().unwrap());
        assert_eq!(signed_for(&Uri::from_static("/b"), &headers).as_deref(), Some("eu-west-1"));
        assert_eq!(signed_for(&Uri::from_static("/b"), &HeaderMap::new()), None);
    }
}
