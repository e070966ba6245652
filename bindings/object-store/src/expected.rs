//! The expected size of a response. The dispatcher uses it to choose a connection for the request.

use http::header::RANGE;
use http::{HeaderMap, Method};

/// Returns the maximum size of the response's body in bytes, if it follows from the request.
pub(crate) fn expected(method: &Method, headers: &HeaderMap) -> Option<u64> {
    if *method != Method::GET {
        // The response is at most a short document that reports the result.
        return Some(0);
    }
    let range = headers.get(RANGE)?.to_str().ok()?.strip_prefix("bytes=")?;
    match range.split_once('-')? {
        ("", last) => last.parse().ok(),
        (first, last) => {
            let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
            last.checked_sub(first)?.checked_add(1)
        }
    }
}
