//! Deletes objects one by one, and up to 256 with one request
//! (<https://learn.microsoft.com/rest/api/storageservices/blob-batch>).

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use laneway_lanes::{Body, ResponseHead};
use memchr::memmem::find;

use super::Azure;
use super::copy::still;
use super::failure;
use super::headers::{blob_target, check_target, container_of, on_write};
use crate::credentials::{RequestToSign, new_number, stamp};
use crate::delete_many::{BatchDeleteDialect, BatchFailure, DeleteDialect, DeleteOutcome, fate};
use crate::encode::QueryString;
use crate::exchange::{Exchange, ExchangeResponse, Outgoing};
use crate::judge::ErrorResponse;
use crate::reconcile::{gone, removed};
use crate::{Condition, Deletion, Error, ErrorKind, ObjectId, Operation};

fn request(id: &ObjectId, condition: &Condition) -> Result<Outgoing, String> {
    on_write(Outgoing::new(Method::DELETE, blob_target(id, QueryString::new())), condition)
}

/// The code with which the service refuses to delete the live version by its id.
const IS_LIVE: &str = "OperationNotAllowedOnRootBlob";

impl DeleteDialect for Azure {
    async fn delete(&self, id: &ObjectId, condition: &Condition) -> Result<(), Error> {
        let exchange = Exchange::object(self, Operation::Delete, id);
        if *condition == Condition::Absent {
            let message = "a delete can't require that the object is absent";
            return Err(exchange.error(ErrorKind::Invalid, message));
        }
        let outgoing = request(id, condition).map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
        match exchange.send(&outgoing).await {
            Ok(sent) if sent.response.body.is_empty() => Ok(()),
            Ok(sent) => {
                let error = exchange
                    .nonsense(&sent, "the answer to DELETE has a body, so it doesn't come from a store");
                gone(error, Box::pin(self.head_of(id, None))).await
            }
            Err(error) if error.code() == Some(IS_LIVE) => {
                Box::pin(self.delete_live(&exchange, id, condition, &outgoing)).await
            }
            Err(error) => removed(error, Box::pin(self.head_of(id, None))).await,
        }
    }
}

impl BatchDeleteDialect for Azure {
    const OBJECTS_MAX: usize = 256;

    const SINGLE_DELETES_MAX: usize = 32;

    fn can_delete_together(&self, _objects: &[Deletion]) -> bool {
        true
    }

    async fn delete_together(
        &self,
        exchange: &Exchange<'_, Self>,
        objects: &[Deletion],
    ) -> Result<(Vec<DeleteOutcome>, ExchangeResponse), BatchFailure> {
        const UNSENT: BatchFailure = BatchFailure { may_be_gone: false };
        let mut deletes = Vec::with_capacity(objects.len());
        for object in objects {
            deletes.push(self.subrequest(exchange.bucket, object).await.map_err(|_| UNSENT)?);
        }
        let boundary = format!("batch_laneway_{:016x}", new_number());
        let target = batch_target(exchange.bucket, self.credentials.has_account_sas());
        let outgoing = Outgoing::new(Method::POST, target)
            .header("content-type", &format!("multipart/mixed; boundary={boundary}"))
            .map_err(|_| UNSENT)?;
        let outgoing = Outgoing { body: Body::from(Bytes::from(document(&boundary, &deletes))), ..outgoing };
        let sent = exchange.send(&outgoing).await?;
        let content_type = sent.response.head.header("content-type").unwrap_or_default();
        let answers = answers(content_type, &sent.response.body, objects.len());
        let is_repeated = sent.attempts > 1;
        let fates =
            answers.into_iter().map(|answer| outcome(answer.map(|answer| self.cleared(answer)), is_repeated));
        Ok((fates.collect(), sent))
    }
}

/// The status of one delete, and the failure that it describes if it isn't a success.
type Answer = (StatusCode, ErrorResponse);

/// Decides what happened to one object of a batch. If the batch was sent more than once, an earlier attempt may have
/// deleted an object that is missing now.
fn outcome(answer: Option<Answer>, is_repeated: bool) -> DeleteOutcome {
    match answer {
        Some((status, _)) if status.is_success() => DeleteOutcome::Deleted,
        Some((_, failure)) if is_repeated && failure.code.as_deref() == Some("BlobNotFound") => {
            DeleteOutcome::Deleted
        }
        // The live version takes several requests.
        Some((_, failure)) if failure.code.as_deref() == Some(IS_LIVE) => {
            DeleteOutcome::RetrySeparately { may_be_gone: false }
        }
        Some((_, failure)) => fate(failure::kind(&failure), failure),
        None => DeleteOutcome::RetrySeparately { may_be_gone: true },
    }
}

/// Returns the target of a batch. A SAS token of a container permits only batches of the container. With a SAS token of
/// the account, Azurite 3.37 answers 500 to them, so such a batch is one of the account.
fn batch_target(bucket: &str, has_account_sas: bool) -> String {
    match has_account_sas {
        true => "/?comp=batch".to_owned(),
        false => format!("/{}?restype=container&comp=batch", container_of(bucket)),
    }
}

/// One delete of a batch: its target and headers.
struct Subrequest {
    target: String,
    headers: HeaderMap,
}

impl Azure {
    /// Removes a repeated SAS token from the answer to one delete.
    fn cleared(&self, (status, failure): Answer) -> Answer {
        let message = self.credentials.cleared(failure.message);
        (status, ErrorResponse { message, ..failure })
    }

    /// Deletes the live version of a blob. The service first wants a delete of the blob, which makes the version a
    /// previous one. `outgoing` is the request that deletes the version by its id.
    async fn delete_live(
        &self,
        exchange: &Exchange<'_, Self>,
        id: &ObjectId,
        condition: &Condition,
        outgoing: &Outgoing,
    ) -> Result<(), Error> {
        let blob = ObjectId::new(&id.bucket, &id.key);
        match self.head_of(&blob, None).await {
            // Another writer has replaced the version meanwhile, so it is a previous one already.
            Ok(live) if live.version_id.as_deref() != id.version.as_deref() => {}
            Ok(live) => {
                let bound =
                    if condition.is_none() { still(live.version.as_ref()) } else { condition.clone() };
                let delete = request(&blob, &bound).map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
                match exchange.send(&delete).await {
                    Ok(_) => {}
                    Err(error) if error.is_not_found() => {}
                    Err(error) if error.is_precondition() && condition.is_none() => {}
                    Err(error) if error.is_precondition() && error.is_uncertain() => {}
                    Err(error) => return Err(error),
                }
            }
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error.within(Operation::Delete)),
        }
        match exchange.send(outgoing).await {
            Ok(_) => Ok(()),
            // Without versioning, the delete of the blob has removed its live version for good.
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Builds and signs one delete of a batch.
    async fn subrequest(&self, bucket: &str, object: &Deletion) -> Result<Subrequest, Error> {
        let condition = object.version.clone().map_or(Condition::None, Condition::Matches);
        let invalid = |why| Error::new(ErrorKind::Invalid, Operation::Delete, why);
        let outgoing = request(&object.object_id(bucket), &condition).map_err(invalid)?;
        check_target(&outgoing.target).map_err(invalid)?;
        let place = self.address.place(bucket)?;
        let mut headers = outgoing.headers;
        stamp(&mut headers);
        let target = format!("{}{}", place.endpoint.base, outgoing.target);
        let signed = headers.clone();
        let request = RequestToSign { method: &Method::DELETE, target: &target, headers: &signed, len: 0 };
        let origin = &place.endpoint.origin;
        let (target, _) = self.credentials.authorize(&place.account, origin, &request, &mut headers).await?;
        Ok(Subrequest { target, headers })
    }
}

/// Returns a batch's body. The service's parser accepts no line break before the first boundary, and compares the names
/// of the parts' headers with their case.
fn document(boundary: &str, deletes: &[Subrequest]) -> Vec<u8> {
    let mut body = Vec::new();
    for (number, Subrequest { target, headers }) in deletes.iter().enumerate() {
        let part = format!(
            "--{boundary}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: {number}\r\n\r\n\
             DELETE {target} HTTP/1.1\r\n"
        );
        body.extend_from_slice(part.as_bytes());
        for (name, value) in headers {
            body.extend_from_slice(written(name).as_bytes());
            body.extend_from_slice(b": ");
            body.extend_from_slice(value.as_bytes());
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(b"Content-Length: 0\r\n\r\n\r\n");
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    body
}

/// Returns a header's name in the usual case.
fn written(name: &HeaderName) -> &str {
    match name {
        name if *name == AUTHORIZATION => "Authorization",
        name if *name == http::header::IF_MATCH => "If-Match",
        name => name.as_str(),
    }
}

/// Returns the status and the failure of each delete, in the order of the requests. A delete without an answer is `None`.
///
/// The service leaves `Content-ID` out of some errors, and the line break after the last boundary. An answer without an
/// id is used only if all answers are there, in the order of the requests.
fn answers(content_type: &str, body: &[u8], count: usize) -> Vec<Option<Answer>> {
    let mut found: Vec<_> = (0..count).map(|_| None).collect();
    let parts = parts(content_type, body);
    let is_complete = parts.len() == count;
    for (place, part) in parts.into_iter().enumerate() {
        let Some((id, answer)) = read_part(part) else { continue };
        let Some(at) = id.or_else(|| is_complete.then_some(place)) else { continue };
        if let Some(slot) = found.get_mut(at).filter(|slot| slot.is_none()) {
            *slot = Some(answer);
        }
    }
    found
}

/// Returns the parts of a multipart body.
fn parts<'a>(content_type: &str, body: &'a [u8]) -> Vec<&'a [u8]> {
    let boundary = content_type.split(';').find_map(|field| field.trim().strip_prefix("boundary="));
    let Some(boundary) = boundary.map(|boundary| boundary.trim_matches('"')).filter(|text| !text.is_empty())
    else {
        return Vec::new();
    };
    let mark = format!("--{boundary}");
    let (mut parts, mut rest) = (Vec::new(), body);
    let Some(start) = find(rest, mark.as_bytes()) else { return parts };
    rest = &rest[start + mark.len()..];
    while !rest.starts_with(b"--") {
        let end = find(rest, mark.as_bytes());
        parts.push(&rest[..end.unwrap_or(rest.len())]);
        match end {
            Some(end) => rest = &rest[end + mark.len()..],
            None => break,
        }
    }
    parts
}

/// Reads the answer to one delete, and its id if it has one.
fn read_part(part: &[u8]) -> Option<(Option<usize>, Answer)> {
    let at = find(part, b"HTTP/1.1 ").or_else(|| find(part, b"HTTP/1.0 "))?;
    let (envelope, answer) = part.split_at(at);
    let id = lines(envelope).find_map(|(name, value)| {
        name.eq_ignore_ascii_case("content-id").then(|| value.parse::<usize>().ok())?
    });
    let end = find(answer, b"\r\n\r\n").or_else(|| find(answer, b"\n\n"));
    let (head, body) = answer.split_at(end.unwrap_or(answer.len()));
    let status = head.get(9..12).and_then(|digits| StatusCode::from_bytes(digits).ok())?;
    let mut headers = HeaderMap::new();
    for (name, value) in lines(head) {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.insert(name, value);
        }
    }
    let failure = failure::read(&ResponseHead { status, headers }, body.trim_ascii());
    Some((id, (status, failure)))
}

/// Returns the headers in a text.
fn lines(text: &[u8]) -> impl Iterator<Item = (&str, &str)> {
    text.split(|byte| *byte == b'\n').filter_map(|line| {
        let (name, value) = std::str::from_utf8(line).ok()?.split_once(':')?;
        Some((name.trim(), value.trim()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPE: &str = "multipart/mixed; boundary=batchresponse_1";

    fn statuses(body: &str, count: usize) -> Vec<Option<u16>> {
        let found = answers(TYPE, body.as_bytes(), count);
        found.into_iter().map(|answer| Some(answer?.0.as_u16())).collect()
    }

    fn part(id: &str, status: &str, rest: &str) -> String {
        format!(
            "--batchresponse_1\r\nContent-Type: application/http\r\n{id}\r\nHTTP/1.1 {status}\r\nx-ms-version: 1\r\n{rest}"
        )
    }

    #[test]
    fn a_batch_begins_with_its_boundary_and_numbers_its_parts() {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_static("SharedKey a:b"));
        let deletes = [Subrequest { target: "/abc/k%20".to_owned(), headers }];
        let body = String::from_utf8(document("b1", &deletes)).expect("text");
        assert_eq!(
            body,
            "--b1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: 0\r\n\r\n\
             DELETE /abc/k%20 HTTP/1.1\r\nAuthorization: SharedKey a:b\r\nContent-Length: 0\r\n\r\n\r\n--b1--\r\n"
        );
    }

    #[test]
    fn a_batch_is_one_of_the_container_unless_the_sas_is_the_accounts() {
        assert_eq!(
            batch_target("abc@mine.blob.core.windows.net", false),
            "/abc?restype=container&comp=batch"
        );
        assert_eq!(batch_target("abc", true), "/?comp=batch");
    }

    #[test]
    fn answers_are_matched_by_their_ids() {
        let body = [
            part(
                "Content-ID: 1\r\n",
                "404 The specified blob does not exist.",
                "x-ms-error-code: BlobNotFound\r\n\r\n<Error/>\r\n",
            ),
            part("Content-ID: 0\r\n", "202 Accepted", "\r\n"),
            "--batchresponse_1--".to_owned(),
        ];
        assert_eq!(statuses(&body.concat(), 2), [Some(202), Some(404)]);
        let found = answers(TYPE, body.concat().as_bytes(), 2);
        let (_, failure) = found.into_iter().nth(1).flatten().expect("an answer");
        assert_eq!(failure.code.as_deref(), Some("BlobNotFound"));
    }

    #[test]
    fn answers_without_ids_count_only_if_all_are_there() {
        let body = [
            part("", "202 Accepted", "\r\n"),
            part("", "404 Not Found", "\r\n"),
            "--batchresponse_1--\r\n".to_owned(),
        ];
        assert_eq!(statuses(&body.concat(), 2), [Some(202), Some(404)]);
        assert_eq!(statuses(&body.concat(), 3), [None, None, None]);
    }

    #[test]
    fn a_repeated_batch_takes_missing_objects_for_deleted() {
        let missing = "x-ms-error-code: BlobNotFound\r\n\r\n";
        let body = part("Content-ID: 0\r\n", "404 Not Found", missing);
        let answer = || answers(TYPE, body.as_bytes(), 1).pop().flatten();
        assert!(matches!(outcome(answer(), true), DeleteOutcome::Deleted));
        assert!(matches!(outcome(answer(), false), DeleteOutcome::Failed(_)));
    }

    #[test]
    fn the_live_version_is_deleted_by_requests_of_its_own() {
        let refused = "x-ms-error-code: OperationNotAllowedOnRootBlob\r\n\r\n";
        let body = part("Content-ID: 0\r\n", "403 Forbidden", refused);
        let answer = answers(TYPE, body.as_bytes(), 1).pop().flatten();
        let fate = outcome(answer, false);
        assert!(matches!(fate, DeleteOutcome::RetrySeparately { may_be_gone: false }));
    }

    #[test]
    fn an_answer_that_breaks_off_or_is_no_batch_deletes_nothing() {
        assert_eq!(statuses("", 1), [None]);
        assert_eq!(statuses("<html></html>", 1), [None]);
        assert_eq!(answers("text/html", b"HTTP/1.1 202", 1).len(), 1);
        let cut = part("Content-ID: 0\r\n", "202 Accepted", "\r\n");
        assert_eq!(statuses(&cut, 2), [Some(202), None]);
    }
}
