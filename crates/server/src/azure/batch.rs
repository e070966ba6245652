//! Blob Batch: up to 256 deletes, or up to 256 changes of the access tier, in one `multipart/mixed` request.
//! <https://learn.microsoft.com/rest/api/storageservices/blob-batch>
//!
//! The parser is as strict as the service's: no line precedes the first boundary, and `: ` separates a header's name from
//! its value. If the service can't parse a batch, it carries out nothing. Its answer is then a single part without a
//! Content-ID.

use std::fmt::Write as _;

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};

use super::error::{BlobError, BlobResult};
use super::operation::BlobOperation;
use super::{AzureState, BlobCall, BlobTarget, respond_part};
use crate::body::{RequestBody, ResponseBody};
use crate::query::Query;

/// The limits of the service.
const REQUESTS_MAX: usize = 256;
const BATCH_BYTES_MAX: usize = 4 << 20;

/// One request inside a batch.
#[derive(Debug)]
struct BatchPart {
    content_id: Option<String>,
    head: Parts,
    body: Bytes,
}

pub(super) async fn batch(call: &mut BlobCall<'_>, id: &str) -> BlobResult {
    let is_of_container = !call.target.container.is_empty();
    if is_of_container && call.query.has("srt") && !call.state.habits.container_batches_by_account_sas {
        return Err(BlobError::new("InternalError"));
    }
    let content_type = call.required_header("content-type")?.to_owned();
    let bytes = call.body.collect(BATCH_BYTES_MAX).await.map_err(BlobError::interrupted)?;
    let bytes = bytes.ok_or_else(|| BlobError::new("RequestBodyTooLarge"))?;
    let answer_boundary = format!("batchresponse_{}", call.state.guid());
    let mut answer = String::new();
    let parts = boundary(&content_type).and_then(|boundary| parse(&bytes, &boundary));
    // A SAS token names the version of its own signature. The parts of a batch need the header.
    let parts = match call.header("x-ms-version") {
        Some(_) => parts,
        None => Err(BlobError::new("InvalidInput")),
    };
    match parts {
        Err(refused) => write_part(&mut answer, &answer_boundary, None, call, id, refused.answer(id)),
        Ok(parts) => {
            for part in parts {
                let content_id = part.content_id.clone();
                let part_id = call.state.request_id();
                let answered = one(call, part).await;
                let answered = answered.unwrap_or_else(|refused| refused.answer(&part_id));
                write_part(&mut answer, &answer_boundary, content_id.as_deref(), call, &part_id, answered);
            }
        }
    }
    let _ = write!(answer, "--{answer_boundary}--\r\n");
    let len = answer.len();
    let mut response = Response::new(ResponseBody::whole(answer));
    *response.status_mut() = StatusCode::ACCEPTED;
    let headers = response.headers_mut();
    super::answer::insert(headers, "content-type", &format!("multipart/mixed; boundary={answer_boundary}"));
    headers.insert(CONTENT_LENGTH, len.into());
    Ok(response)
}

/// Carries out one request of a batch.
async fn one(call: &BlobCall<'_>, mut part: BatchPart) -> BlobResult {
    let state: &AzureState = call.state;
    if let Some(host) = call.head.headers.get(http::header::HOST) {
        part.head.headers.insert(http::header::HOST, host.clone());
    }
    let query = Query::parse(part.head.uri.query());
    let target =
        BlobTarget::of(&part.head, &query, state.account()).ok_or_else(|| BlobError::new("InvalidUri"))?;
    let operation =
        BlobOperation::of(&part.head.method, &query, &part.head.headers, &target.container, &target.blob);
    if !matches!(operation, BlobOperation::DeleteBlob | BlobOperation::DeleteVersion | BlobOperation::SetTier)
    {
        return Err(BlobError::new("InvalidInput"));
    }
    if !call.target.container.is_empty() && target.container != call.target.container {
        return Err(BlobError::new("ContainerNotFound"));
    }
    // The answer to a request in a batch can express only faults that change the status.
    let effects = state.draws.effects(operation.verb(), &target.blob);
    match effects.status {
        Some(refusal) => Err(BlobError::of_status(refusal.status, refusal.reason.as_deref())),
        None if effects.throttled => Err(BlobError::new("ServerBusy")),
        None if state.denied_buckets.contains(&target.container) => Err(BlobError::of_status(403, None)),
        None => respond_part(state, part.head, RequestBody::whole(part.body), query).await,
    }
}

fn write_part(
    out: &mut String,
    boundary: &str,
    content_id: Option<&str>,
    call: &BlobCall<'_>,
    id: &str,
    answer: Response<ResponseBody>,
) {
    let (head, body) = answer.into_parts();
    let _ = write!(out, "--{boundary}\r\nContent-Type: application/http\r\n");
    if let Some(content_id) = content_id {
        let _ = write!(out, "Content-ID: {content_id}\r\n");
    }
    let body = body.into_whole().unwrap_or_default();
    let text = String::from_utf8_lossy(&body);
    // The reason in the status line is the message of the error.
    let message = text.split_once("<Message>").and_then(|(_, rest)| rest.lines().next());
    let reason = message.or(head.status.canonical_reason()).unwrap_or_default();
    let _ = write!(out, "\r\nHTTP/1.1 {} {reason}\r\n", head.status.as_u16());
    for (name, value) in &head.headers {
        let is_shown = body.is_empty() && name != CONTENT_LENGTH || !body.is_empty();
        if let (true, Ok(value)) = (is_shown, value.to_str()) {
            let _ = write!(out, "{name}: {value}\r\n");
        }
    }
    let _ = write!(
        out,
        "x-ms-request-id: {id}\r\nx-ms-version: {}\r\nServer: Windows-Azure-Blob/1.0\r\n\r\n",
        call.version()
    );
    if !body.is_empty() {
        out.push_str(&text);
        out.push_str("\r\n");
    }
}

/// Returns the boundary in a `Content-Type`.
fn boundary(content_type: &str) -> Result<String, BlobError> {
    let refused = || BlobError::of_header("InvalidHeaderValue", "Content-Type", content_type);
    let (kind, parameters) = content_type.split_once(';').ok_or_else(refused)?;
    if !kind.trim().eq_ignore_ascii_case("multipart/mixed") {
        return Err(refused());
    }
    let value = parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("boundary").then(|| value.trim().trim_matches('"').to_owned())
    });
    match value {
        Some(value) if value.len() > 70 => Err(BlobError::new("InvalidInput")),
        value => value.filter(|value| !value.is_empty()).ok_or_else(refused),
    }
}

/// Parses the requests of a batch.
fn parse(bytes: &[u8], boundary: &str) -> Result<Vec<BatchPart>, BlobError> {
    let invalid = || BlobError::new("InvalidInput");
    let text = std::str::from_utf8(bytes).map_err(|_| invalid())?;
    let rest = text.strip_prefix("--").and_then(|text| text.strip_prefix(boundary)).ok_or_else(invalid)?;
    let delimiter = format!("\r\n--{boundary}");
    let mut parts = Vec::new();
    let mut sections = rest.split(&delimiter).peekable();
    while let Some(section) = sections.next() {
        if sections.peek().is_none() {
            // The last section follows the last boundary, which ends in two hyphens.
            return match section.starts_with("--") && !parts.is_empty() {
                true if parts.len() > REQUESTS_MAX => Err(BlobError::new("ExceedsMaxBatchRequestCount")),
                true => Ok(parts),
                false => Err(invalid()),
            };
        }
        parts.push(parse_part(section.strip_prefix("\r\n").ok_or_else(invalid)?)?);
    }
    Err(invalid())
}

fn parse_part(section: &str) -> Result<BatchPart, BlobError> {
    let invalid = || BlobError::new("InvalidInput");
    let (mime, request) = section.split_once("\r\n\r\n").ok_or_else(invalid)?;
    let mut content_id = None;
    let mut is_http = false;
    for line in mime.split("\r\n") {
        let (name, value) = line.split_once(": ").ok_or_else(invalid)?;
        match name.to_ascii_lowercase().as_str() {
            "content-id" => content_id = Some(value.to_owned()),
            "content-type" => is_http = value.trim() == "application/http",
            _ => {}
        }
    }
    if !is_http {
        return Err(invalid());
    }
    // A request without a body may leave out the empty line after its headers.
    let (head, body) = request.split_once("\r\n\r\n").unwrap_or((request, ""));
    let mut lines = head.split("\r\n").filter(|line| !line.is_empty());
    let mut words = lines.next().ok_or_else(invalid)?.split(' ');
    let (method, uri) = words.next().zip(words.next()).ok_or_else(invalid)?;
    let method = Method::from_bytes(method.as_bytes()).map_err(|_| invalid())?;
    let request = Request::builder().method(method).uri(uri).body(());
    let (mut head, ()) = request.map_err(|_| invalid())?.into_parts();
    for line in lines {
        let (name, value) = line
            .split_once(": ")
            .or_else(|| line.strip_suffix(':').map(|name| (name, "")))
            .ok_or_else(invalid)?;
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid())?;
        let value = HeaderValue::from_str(value.trim()).map_err(|_| invalid())?;
        head.headers.append(name, value);
    }
    Ok(BatchPart { content_id, head, body: Bytes::copy_from_slice(body.as_bytes()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PART: &str = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: 0\r\n\r\n\
                        DELETE /devstoreaccount1/c/k HTTP/1.1\r\nContent-Length: 0\r\n\r\n";

    #[test]
    fn parses_only_what_the_service_parses() {
        let good = format!("--b\r\n{PART}\r\n--b\r\n{PART}\r\n--b--\r\n");
        let parts = parse(good.as_bytes(), "b").unwrap();
        assert_eq!((parts.len(), parts[0].content_id.as_deref()), (2, Some("0")));
        assert_eq!(parts[1].head.uri.path(), "/devstoreaccount1/c/k");
        for bad in [
            format!("\r\n{good}"),
            good.replace("Content-Length: 0", "Content-Length:0"),
            good.replace("--b--", "--b"),
            good.replace("application/http", "text/plain"),
            "--b--\r\n".to_owned(),
            String::new(),
        ] {
            assert_eq!(parse(bad.as_bytes(), "b").unwrap_err().code(), "InvalidInput", "{bad}");
        }
        let many = format!("--b\r\n{PART}\r\n").repeat(257) + "--b--";
        assert_eq!(parse(many.as_bytes(), "b").unwrap_err().code(), "ExceedsMaxBatchRequestCount");
    }

    #[test]
    fn a_boundary_is_found_in_the_content_type() {
        assert_eq!(boundary("multipart/mixed; boundary=batch_1=2").unwrap(), "batch_1=2");
        assert_eq!(boundary("multipart/mixed;BOUNDARY= b").unwrap(), "b");
        for text in ["multipart/mixed", "multipart/mixed; boundary=", "text/plain; boundary=b"] {
            assert_eq!(boundary(text).unwrap_err().code(), "InvalidHeaderValue", "{text}");
        }
    }
}
