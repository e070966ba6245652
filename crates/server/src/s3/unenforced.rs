//! Bucket documents that this server doesn't enforce: policies and lifecycles. If
//! [`accept_unenforced`](crate::Config::accept_unenforced) is set, it stores and returns them.

use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};

use super::{S3State, error_document};
use crate::body::{RequestBody, ResponseBody};
use crate::gcs::answer::empty;
use crate::query::Query;

/// The documents: the subresource, the content type, and the error code if a bucket has no such document.
const DOCUMENTS: [(&str, &str, &str); 2] = [
    ("policy", "application/json", "NoSuchBucketPolicy"),
    ("lifecycle", "application/xml", "NoSuchLifecycleConfiguration"),
];

/// The maximum size of a document. A policy has at most 20 KB, and a lifecycle has at most 1000 rules.
const BYTES_MAX: usize = 1 << 20;

/// Returns the kind of document that a request concerns.
fn document(query: &Query) -> Option<(&'static str, &'static str, &'static str)> {
    DOCUMENTS.into_iter().find(|(name, _, _)| query.has(name))
}

/// Returns true if a request concerns such a document of a bucket.
pub(super) fn is_about(method: &Method, query: &Query, key: &str) -> bool {
    key.is_empty()
        && matches!(*method, Method::GET | Method::PUT | Method::DELETE)
        && document(query).is_some()
}

/// Stores, returns or removes the document that a request concerns.
pub(super) async fn answer(
    state: &S3State,
    request: Request<RequestBody>,
    query: &Query,
    bucket: &str,
) -> Response<ResponseBody> {
    let Some((name, kind, absent)) = document(query) else { return empty(StatusCode::NOT_FOUND) };
    let (head, mut body) = request.into_parts();
    let Ok(found) = state.objects.bucket(bucket) else {
        return error_document(StatusCode::NOT_FOUND, "NoSuchBucket", "The specified bucket does not exist");
    };
    let change = |text: Option<String>| {
        let changed = state.objects.change_bucket(bucket, |settings| {
            match text {
                Some(text) => drop(settings.documents.insert(name.to_owned(), text)),
                None => drop(settings.documents.remove(name)),
            }
            Ok::<_, std::convert::Infallible>(())
        });
        changed.is_ok()
    };
    let kept = match head.method {
        Method::GET => {
            return match found.settings().documents.get(name) {
                Some(text) => {
                    let mut answer = Response::new(ResponseBody::whole(text.clone()));
                    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
                    answer
                }
                None => {
                    let message = format!("The bucket {name} does not exist");
                    error_document(StatusCode::NOT_FOUND, absent, &message)
                }
            };
        }
        Method::PUT => match body.collect(BYTES_MAX).await {
            Ok(Some(bytes)) => change(Some(String::from_utf8_lossy(&bytes).into_owned())),
            _ => return error_document(StatusCode::BAD_REQUEST, "MalformedXML", "The document is too large"),
        },
        _ => change(None),
    };
    match (kept, &head.method) {
        (false, _) => error_document(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", "The disk failed"),
        (true, method) if *method == Method::PUT && name == "lifecycle" => empty(StatusCode::OK),
        (true, _) => empty(StatusCode::NO_CONTENT),
    }
}
