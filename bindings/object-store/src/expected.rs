//! How large an answer will be, by which its lane is chosen.

use http::header::RANGE;
use http::{HeaderMap, Method};

/// How many bytes the answer has at most, where the request tells it.
pub(crate) fn expected(method: &Method, headers: &HeaderMap) -> Option<u64> {
    if *method != Method::GET {
        // What was done, in a document.
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
