//! Decides if a request is refused because it doesn't announce its length.
//!
//! GCS returns 411 to a POST, PUT or PATCH without `Content-Length`, unless its body is streamed. S3 returns
//! `MissingContentLength` even if the body is streamed, unless the request announces its size.
//!
//! - GCS: <https://cloud.google.com/storage/docs/json_api/v1/status-codes#411-length-required>
//! - S3: <https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html>

use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::request::Parts;
use http::{HeaderMap, Method};

use crate::route::Api;

/// Returns true if a request must be refused for its missing length. `has_ended` is true if the request has no body. On
/// HTTP/2, a body needs no header with its length.
pub(crate) fn is_missing(head: &Parts, call: &Api, has_ended: bool) -> bool {
    let has_body = matches!(head.method, Method::POST | Method::PUT | Method::PATCH);
    has_body && !is_given(&head.headers, call, has_ended)
}

fn is_given(headers: &HeaderMap, call: &Api, has_ended: bool) -> bool {
    if headers.contains_key(CONTENT_LENGTH) {
        return true;
    }
    match call {
        Api::Json(_) | Api::Xml => !has_ended || headers.contains_key(TRANSFER_ENCODING),
        // Copies have no body, and S3 accepts them without a length. The crate `object_store` sends copies without a
        // length.
        Api::Azure => false,
        Api::S3 => {
            headers.contains_key("x-amz-decoded-content-length") || headers.contains_key("x-amz-copy-source")
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;
    use crate::route::JsonResource;

    fn missing(method: &str, call: &Api, headers: &[(&str, &str)], has_ended: bool) -> bool {
        let mut request = Request::builder().method(method);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        is_missing(&request.body(()).unwrap().into_parts().0, call, has_ended)
    }

    #[test]
    fn methods_with_a_body_have_to_tell_its_length() {
        for call in [Api::S3, Api::Xml, Api::Json(JsonResource::Upload)] {
            for method in ["POST", "PUT", "PATCH"] {
                assert!(missing(method, &call, &[], true), "{method}");
                assert!(!missing(method, &call, &[("content-length", "0")], true), "{method}");
            }
            assert!(["GET", "HEAD", "DELETE"].iter().all(|method| !missing(method, &call, &[], true)));
        }
    }

    #[test]
    fn a_streamed_body_is_taken_by_gcs_and_by_s3_only_with_its_decoded_length() {
        let chunked = ("transfer-encoding", "chunked");
        let json = Api::Json(JsonResource::Upload);
        assert!(!missing("PUT", &json, &[chunked], false) && !missing("PUT", &json, &[], false));
        assert!(missing("PUT", &Api::S3, &[chunked], false) && missing("PUT", &Api::S3, &[], false));
        let decoded = ("x-amz-decoded-content-length", "9");
        assert!(!missing("PUT", &Api::S3, &[chunked, decoded], false));
        assert!(!missing("PUT", &Api::S3, &[("x-amz-copy-source", "/bucket/key")], true));
    }
}
