//! The batch endpoint: up to 100 calls without media in one `multipart/mixed` request.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};

use super::GcsState;
use super::answer::{ApiError, refused, whole};
use super::related::{boundary, find};
use crate::body::{RequestBody, ResponseBody};
use crate::query::Query;
use crate::route::{Api, JsonResource, RequestRoute};

const CALLS_MAX: usize = 100;
/// The calls of a batch can't upload objects, so this is enough.
const BATCH_BYTES_MAX: usize = 10 << 20;
const ANSWER_BOUNDARY: &str = "batch_laneway";

/// One call inside a batch.
#[derive(Debug)]
pub(super) struct BatchCall {
    content_id: Option<String>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
}

pub(super) async fn batch(state: &GcsState, request: Request<RequestBody>) -> Response<ResponseBody> {
    let (head, mut body) = request.into_parts();
    let calls = async {
        let content_type =
            head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let boundary =
            boundary(content_type).ok_or_else(|| ApiError::invalid("The batch names no boundary."))?;
        let bytes = body.collect(BATCH_BYTES_MAX).await.map_err(ApiError::interrupted)?;
        let bytes = bytes.ok_or_else(|| ApiError::invalid("The batch is larger than 10 MiB."))?;
        parse(&bytes, &boundary)
    };
    let calls = match calls.await {
        Ok(calls) => calls,
        Err(problem) => return problem.json(),
    };
    let mut answer = Vec::new();
    for call in calls {
        let content_id = call.content_id.clone();
        let part = one(state, call, &head.headers, head.uri.authority()).await;
        write_part(&mut answer, content_id.as_deref(), part);
    }
    answer.extend_from_slice(format!("--{ANSWER_BOUNDARY}--\r\n").as_bytes());
    whole(StatusCode::OK, "multipart/mixed; boundary=batch_laneway", answer)
}

async fn one(
    state: &GcsState,
    call: BatchCall,
    outer: &HeaderMap,
    authority: Option<&http::uri::Authority>,
) -> Response<ResponseBody> {
    let mut request = Request::new(RequestBody::whole(call.body));
    *request.method_mut() = call.method;
    *request.uri_mut() = call.uri;
    *request.headers_mut() = call.headers;
    let host = authority.and_then(|authority| HeaderValue::from_str(authority.as_str()).ok());
    if let Some(host) = host.or_else(|| outer.get(http::header::HOST).cloned()) {
        request.headers_mut().insert(http::header::HOST, host);
    }
    let (head, body) = request.into_parts();
    let query = Query::parse(head.uri.query());
    let route = RequestRoute::of(&head, &query, "");
    let fault_key = route.fault_key(&query).to_owned();
    match route.call {
        Api::Json(JsonResource::Batch | JsonResource::Upload) | Api::Xml | Api::S3 | Api::Azure => {
            ApiError::invalid("This call can't be part of a batch.").json()
        }
        Api::Json(resource) => {
            // The answer to a call in a batch can express only faults that change the status.
            let effects = state.draws.effects(route.verb, &fault_key);
            match effects.status {
                Some(refusal) => refused(refusal.status, refusal.reason.as_deref()),
                None if effects.throttled => refused(429, None),
                None if state.denied_buckets.contains(&route.bucket) => refused(403, None),
                None => {
                    let request = Request::from_parts(head, body);
                    super::json(state, request, query, resource, route.verb, &route.bucket, &route.key).await
                }
            }
        }
    }
}

fn write_part(out: &mut Vec<u8>, content_id: Option<&str>, answer: Response<ResponseBody>) {
    let (head, body) = answer.into_parts();
    out.extend_from_slice(format!("--{ANSWER_BOUNDARY}\r\nContent-Type: application/http\r\n").as_bytes());
    if let Some(id) = content_id {
        // The id of an answer is the id of its call with the prefix `response-`. Clients use it to match answers to
        // calls.
        let id = id.trim_start_matches('<').trim_end_matches('>');
        out.extend_from_slice(format!("Content-ID: <response-{id}>\r\n").as_bytes());
    }
    let reason = head.status.canonical_reason().unwrap_or("Unknown");
    out.extend_from_slice(format!("\r\nHTTP/1.1 {} {reason}\r\n", head.status.as_u16()).as_bytes());
    let body = body.into_whole().unwrap_or_default();
    for (name, value) in head.headers.iter().filter(|(name, _)| *name != CONTENT_LENGTH) {
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
    out.extend_from_slice(&body);
    out.extend_from_slice(b"\r\n");
}

pub(super) fn parse(bytes: &Bytes, boundary: &str) -> Result<Vec<BatchCall>, ApiError> {
    let delimiter = format!("--{boundary}");
    let refuse = || ApiError::invalid("Failed to parse batch request.");
    let mut rest = &bytes[..];
    let mut calls = Vec::new();
    rest = &rest[find(rest, delimiter.as_bytes()).ok_or_else(refuse)? + delimiter.len()..];
    while !rest.starts_with(b"--") {
        let end = find(rest, delimiter.as_bytes()).ok_or_else(refuse)?;
        calls.push(parse_call(&rest[..end]).ok_or_else(refuse)?);
        if calls.len() > CALLS_MAX {
            return Err(ApiError::invalid(format!("The batch has more than {CALLS_MAX} calls.")));
        }
        rest = &rest[end + delimiter.len()..];
    }
    Ok(calls)
}

/// Parses a part: its own headers, an empty line, then a request with headers and body. Lines end with CRLF or LF.
fn parse_call(part: &[u8]) -> Option<BatchCall> {
    let text = std::str::from_utf8(part).ok()?.trim_start_matches(['\r', '\n']);
    let (outer, rest) = split_head(text)?;
    let content_id = header_lines(outer).find(|(name, _)| name.eq_ignore_ascii_case("content-id"));
    let rest = rest.trim_start_matches(['\r', '\n']);
    let (head, body) = split_head(rest).unwrap_or((rest.trim_end(), ""));
    let (request_line, lines) = head.split_once('\n').unwrap_or((head, ""));
    let mut words = request_line.split_whitespace();
    let method = words.next()?.parse().ok()?;
    let uri = words.next()?.parse().ok()?;
    let mut headers = HeaderMap::new();
    for (name, value) in header_lines(lines) {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.append(name, value);
        }
    }
    let body = Bytes::copy_from_slice(body.trim_matches(['\r', '\n']).as_bytes());
    Some(BatchCall { content_id: content_id.map(|(_, id)| id.to_owned()), method, uri, headers, body })
}

fn split_head(text: &str) -> Option<(&str, &str)> {
    let crlf = text.find("\r\n\r\n").map(|at| (at, 4));
    let lf = text.find("\n\n").map(|at| (at, 2));
    let (at, len) = match (crlf, lf) {
        (Some(crlf), Some(lf)) => crlf.min(lf),
        (one, other) => one.or(other)?,
    };
    Some((&text[..at], &text[at + len..]))
}

fn header_lines(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| line.split_once(':')).map(|(name, value)| (name.trim(), value.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_found_whatever_ends_their_lines() {
        let crlf = "--b\r\nContent-Type: application/http\r\nContent-ID: <x+1>\r\n\r\n\
                    DELETE /storage/v1/b/x/o/a%2Fb HTTP/1.1\r\nAccept: */*\r\n\r\n\r\n--b--";
        let lf = crlf.replace("\r\n", "\n");
        for text in [crlf.to_owned(), lf] {
            let calls = parse(&Bytes::from(text), "b").map_err(|problem| problem.message).unwrap();
            assert_eq!(calls.len(), 1);
            assert_eq!(calls[0].method, Method::DELETE);
            assert_eq!(calls[0].uri.path(), "/storage/v1/b/x/o/a%2Fb");
            assert_eq!(calls[0].content_id.as_deref(), Some("<x+1>"));
            assert!(calls[0].body.is_empty());
        }
    }

    #[test]
    fn a_call_keeps_its_body() {
        let text = "--b\r\nContent-Type: application/http\r\n\r\nPATCH /storage/v1/b/x/o/a HTTP/1.1\r\n\
                    Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}\r\n--b--";
        let calls = parse(&Bytes::from(text), "b").map_err(|problem| problem.message).unwrap();
        assert_eq!(calls[0].body, "{}");
    }

    #[test]
    fn a_batch_without_end_is_refused() {
        assert!(
            parse(&Bytes::from_static(b"--b\r\nContent-Type: application/http\r\n\r\nGET / HTTP/1.1"), "b")
                .is_err()
        );
    }
}
