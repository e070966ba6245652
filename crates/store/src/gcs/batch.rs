//! GCS's batches: many deletes in one `multipart/mixed` request.

use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use laneway_lanes::{Body, ResponseHead};

use super::Gcs;
use super::failure;
use super::head::object_path;
use crate::delete_many::{BatchDeleteDialect, BatchFailure, DeleteOutcome, fate};
use crate::encode::QueryString;
use crate::exchange::{Exchange, ExchangeResponse, Outgoing};
use crate::{Deletion, ObjectId};

/// The text that separates the calls of a batch. Keys are percent-encoded in the body, so none of them can contain it.
const BOUNDARY: &str = "===laneway-batch===";

fn request(bucket: &str, objects: &[Deletion], authority: &str) -> Outgoing {
    let mut body = String::new();
    for (index, object) in objects.iter().enumerate() {
        let query = QueryString::new().and_some("generation", object.id.as_deref());
        let path = format!("{}{query}", object_path(&ObjectId::new(bucket, &object.key)));
        body.push_str(&format!(
            "--{BOUNDARY}\r\nContent-Type: application/http\r\nContent-ID: <laneway+{index}>\r\n\r\n\
             DELETE {path} HTTP/1.1\r\nHost: {authority}\r\n\r\n\r\n"
        ));
    }
    body.push_str(&format!("--{BOUNDARY}--\r\n"));
    let mut outgoing = Outgoing::new(Method::POST, "/batch/storage/v1");
    outgoing.headers.insert(
        "content-type",
        http::HeaderValue::from_static("multipart/mixed; boundary=\"===laneway-batch===\""),
    );
    outgoing.body = Body::from(Bytes::from(body));
    outgoing
}

/// The answer to one call of a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct BatchedResponse {
    index: usize,
    status: StatusCode,
    body: String,
}

/// Parses the answers of a batch. An answer that can't be parsed is left out, so its call is treated as unanswered.
pub(super) fn answers(content_type: &str, body: &[u8]) -> Vec<BatchedResponse> {
    let Some(boundary) = boundary(content_type) else { return Vec::new() };
    let text = String::from_utf8_lossy(body);
    text.split(&format!("--{boundary}")).skip(1).filter_map(answer).collect()
}

fn boundary(content_type: &str) -> Option<&str> {
    let (_, rest) = content_type.split_once("boundary=")?;
    let value = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next()?,
        None => rest.split(';').next()?.trim(),
    };
    Some(value).filter(|value| !value.is_empty())
}

fn answer(part: &str) -> Option<BatchedResponse> {
    let part = part.replace("\r\n", "\n");
    let (headers, inner) = part.split_once("\n\n")?;
    let id = headers.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.trim().eq_ignore_ascii_case("content-id").then(|| value.trim().trim_matches(['<', '>']))
    })?;
    let index = id.rsplit('+').next()?.parse().ok()?;
    let inner = inner.trim_start();
    let status = inner.lines().next()?.split_whitespace().nth(1)?.parse::<u16>().ok()?;
    let body = inner.split_once("\n\n").map(|(_, body)| body.trim().to_owned()).unwrap_or_default();
    Some(BatchedResponse { index, status: StatusCode::from_u16(status).ok()?, body })
}

/// Decides the outcome for one object. An unanswered call is repeated as a separate request.
fn settled(answer: Option<&BatchedResponse>, repeated: bool) -> DeleteOutcome {
    let Some(answer) = answer else { return DeleteOutcome::RetrySeparately { may_be_gone: true } };
    if answer.status.is_success() {
        return DeleteOutcome::Deleted;
    }
    // An earlier attempt of the whole batch may have deleted the object.
    if answer.status == StatusCode::NOT_FOUND && repeated {
        return DeleteOutcome::Deleted;
    }
    // The token of this call was refused. A separate request is signed with a new token, if there is one.
    if answer.status == StatusCode::UNAUTHORIZED {
        return DeleteOutcome::RetrySeparately { may_be_gone: false };
    }
    let failure = failure::read(
        &ResponseHead { status: answer.status, headers: HeaderMap::new() },
        answer.body.as_bytes(),
    );
    fate(failure::kind(&failure), failure)
}

impl BatchDeleteDialect for Gcs {
    /// The maximum number of calls in a batch (<https://cloud.google.com/storage/docs/batch>).
    const OBJECTS_MAX: usize = 100;

    /// The number of concurrent streams that GCS allows on one HTTP/2 connection.
    const SINGLE_DELETES_MAX: usize = 100;

    fn can_delete_together(&self, objects: &[Deletion]) -> bool {
        objects.iter().all(|object| object.version.is_none())
    }

    async fn delete_together(
        &self,
        exchange: &Exchange<'_, Self>,
        objects: &[Deletion],
    ) -> Result<(Vec<DeleteOutcome>, ExchangeResponse), BatchFailure> {
        if self.lacks_batch.has(super::ENDPOINT, Instant::now()) {
            return Err(BatchFailure { may_be_gone: false });
        }
        let outgoing = request(exchange.bucket, objects, &self.endpoint.origin.authority());
        let sent = exchange.send(&outgoing).await.inspect_err(|error| {
            if error.is_unsupported() || error.is_invalid() || error.is_not_found() {
                self.lacks_batch.add(super::ENDPOINT, Instant::now());
            }
        });
        let sent = sent?;
        let content_type = sent.response.head.header("content-type").unwrap_or_default();
        let answers = answers(content_type, &sent.response.body);
        let of = |index| answers.iter().find(|answer| answer.index == index);
        let fates = (0..objects.len()).map(|index| settled(of(index), sent.attempts > 1)).collect();
        Ok((fates, sent))
    }
}

#[cfg(test)]
mod tests {
    use laneway_lanes::Segment;

    use super::*;

    const ANSWER: &str = "--batch_x\r\nContent-Type: application/http\r\nContent-ID: <response-laneway+0>\r\n\r\n\
        HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n\r\n\
        --batch_x\r\nContent-Type: application/http\r\nContent-ID: <response-laneway+1>\r\n\r\n\
        HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\n\r\n\
        {\"error\":{\"code\":404,\"message\":\"No such object: b/k\",\"errors\":[{\"reason\":\"notFound\"}]}}\r\n\
        --batch_x\r\nContent-Type: application/http\r\nContent-ID: <response-laneway+2>\r\n\r\n\
        HTTP/1.1 503 Service Unavailable\r\n\r\n\r\n--batch_x--\r\n";

    #[test]
    fn every_call_of_a_batch_carries_its_number() {
        let request = request("b", &["a/b", "c"].map(Deletion::any), "h");
        let Some(Segment::Memory(body)) = request.body.segments().first() else { panic!("a body in memory") };
        assert_eq!(
            std::str::from_utf8(body).expect("text"),
            "--===laneway-batch===\r\nContent-Type: application/http\r\nContent-ID: <laneway+0>\r\n\r\n\
             DELETE /storage/v1/b/b/o/a%2Fb HTTP/1.1\r\nHost: h\r\n\r\n\r\n\
             --===laneway-batch===\r\nContent-Type: application/http\r\nContent-ID: <laneway+1>\r\n\r\n\
             DELETE /storage/v1/b/b/o/c HTTP/1.1\r\nHost: h\r\n\r\n\r\n--===laneway-batch===--\r\n"
        );
    }

    #[test]
    fn a_version_is_deleted_by_its_generation() {
        let version = Deletion { id: Some("5".into()), ..Deletion::any("k") };
        let request = request("b", &[version], "h");
        let Some(Segment::Memory(body)) = request.body.segments().first() else { panic!("a body in memory") };
        let text = std::str::from_utf8(body).expect("text");
        assert!(text.contains("DELETE /storage/v1/b/b/o/k?generation=5 HTTP/1.1"), "{text}");
    }

    #[test]
    fn the_answers_are_told_apart_by_their_numbers() {
        let answers = answers("multipart/mixed; boundary=batch_x", ANSWER.as_bytes());
        let seen: Vec<_> = answers.iter().map(|a| (a.index, a.status.as_u16())).collect();
        assert_eq!(seen, [(0, 204), (1, 404), (2, 503)]);
        assert!(matches!(settled(answers.first(), false), DeleteOutcome::Deleted));
        assert!(
            matches!(settled(answers.get(1), false), DeleteOutcome::Failed(f) if f.code.as_deref() == Some("notFound"))
        );
        assert!(matches!(settled(answers.get(1), true), DeleteOutcome::Deleted));
        assert!(matches!(
            settled(answers.get(2), false),
            DeleteOutcome::RetrySeparately { may_be_gone: true }
        ));
        assert!(matches!(settled(None, false), DeleteOutcome::RetrySeparately { may_be_gone: true }));
    }

    #[test]
    fn a_boundary_may_be_quoted() {
        assert_eq!(boundary("multipart/mixed; boundary=\"a b\"; x=y"), Some("a b"));
        assert_eq!(boundary("multipart/mixed; boundary=ab; x=y"), Some("ab"));
        assert_eq!(boundary("text/plain"), None);
    }
}
