//! The expected size of an answer, by which its lane is chosen.

use http::header::RANGE;
use http::{HeaderMap, Method};

/// Returns the largest size of the answer in bytes, if the request tells it.
pub(crate) fn expected(method: &Method, headers: &HeaderMap) -> Option<u64> {
    if *method != Method::GET {
        // The answer is a document that reports the result.
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
