//! Applies faults to an answer, except faults that change the bytes of its body.

use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, Response};
use http_body::Body as _;

use crate::body::ResponseBody;
use crate::fault::answer::{AnswerFault, is_checksum, of_other_bytes};
use crate::fault::select::BodyFault;

/// A web page like that of a captive portal or of a proxy's login.
const WEB_PAGE: &str = "<!doctype html><html><head><title>Welcome</title></head><body>Sign in</body></html>";

/// Applies a fault to an answer. The second result is a fault for the body, if the body must end early. `is_content` is
/// true if the body is an object's content.
pub(crate) async fn befall(
    fault: AnswerFault,
    answer: Response<ResponseBody>,
    is_content: bool,
) -> (Response<ResponseBody>, Option<BodyFault>) {
    match fault {
        AnswerFault::Length(by) => mislength(answer, by),
        AnswerFault::WrongChecksum => {
            let (mut head, body) = answer.into_parts();
            for (name, value) in head.headers.iter_mut() {
                if is_checksum(name.as_str())
                    && let Some(wrong) =
                        value.to_str().ok().and_then(|value| of_other_bytes(value).parse().ok())
                {
                    *value = wrong;
                }
            }
            (Response::from_parts(head, body), None)
        }
        AnswerFault::Garbled | AnswerFault::Malformed if is_content => (answer, None),
        AnswerFault::Garbled => {
            let (head, body) = answer.into_parts();
            let page = if is_empty(&body) { "" } else { WEB_PAGE };
            let mut answer = with_document(head, page.into());
            answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html"));
            (answer, None)
        }
        AnswerFault::Malformed => {
            let (head, body) = answer.into_parts();
            let mut document = body.collect().await.unwrap_or_default();
            document.truncate(document.len() / 2);
            (with_document(head, document), None)
        }
    }
}

fn is_empty(body: &ResponseBody) -> bool {
    body.size_hint().exact() == Some(0)
}

/// Returns the answer with its document replaced.
fn with_document(mut head: http::response::Parts, document: Vec<u8>) -> Response<ResponseBody> {
    head.headers.remove(CONTENT_LENGTH);
    if !document.is_empty() {
        head.headers.insert(CONTENT_LENGTH, document.len().into());
    }
    Response::from_parts(head, ResponseBody::whole(document))
}

/// Returns the answer with a Content-Length that is wrong by this many bytes, or missing.
fn mislength(answer: Response<ResponseBody>, by: Option<i64>) -> (Response<ResponseBody>, Option<BodyFault>) {
    let (mut head, body) = answer.into_parts();
    let said = head.headers.remove(CONTENT_LENGTH).and_then(|said| said.to_str().ok()?.parse().ok());
    let len = body.size_hint().exact();
    let mut broken = None;
    if let (Some(by), Some(true_len)) = (by, said.or(len)) {
        head.headers.insert(CONTENT_LENGTH, true_len.saturating_add_signed(by).into());
        // If the body is shorter than its announced length, this fault makes sure that all of it is sent before the
        // connection ends.
        broken = len.filter(|len| by > 0 && *len > 0).map(|len| BodyFault::Truncate(Some(len)));
    }
    (Response::from_parts(head, body.untold()), broken)
}
