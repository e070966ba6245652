//! `delete`, also of many objects in one `multipart/mixed` request, and `restore`, which brings soft-deleted objects
//! back (<https://cloud.google.com/storage/docs/json_api/v1/objects/restore>).

use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use laneway_lanes::{Body, ResponseHead};

use super::get::object_path;
use super::put::precondition;
use super::{Gcs, failure};
use crate::delete_many::{BatchDeleteDialect, BatchFailure, DeleteDialect, DeleteOutcome, fate};
use crate::encode::QueryString;
use crate::exchange::{Exchange, ExchangeResponse, Outgoing};
use crate::reconcile::{gone, landed, removed};
use crate::{
    Condition, Deletion, Error, ErrorKind, List, ObjectId, ObjectMeta, Operation, Restoration, RestoreOptions,
};

fn request(id: &ObjectId, condition: &Condition) -> Result<Outgoing, String> {
    let query = precondition(QueryString::new().and_some("generation", id.version.as_deref()), condition)?;
    Ok(Outgoing::new(Method::DELETE, format!("{}{query}", object_path(id))))
}

/// Returns true if the answer to a delete has no content. fake-gcs-server always sends a JSON document, which is `null`
/// if there is no content.
fn says_nothing(body: &[u8]) -> bool {
    matches!(body.trim_ascii(), b"" | b"null")
}

impl DeleteDialect for Gcs {
    async fn delete(&self, id: &ObjectId, condition: &Condition) -> Result<(), Error> {
        let exchange = Exchange::object(self, Operation::Delete, id);
        if *condition == Condition::Absent {
            return Err(
                exchange.error(ErrorKind::Invalid, "a delete can't require that the object is absent")
            );
        }
        let outgoing = request(id, condition).map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
        match exchange.send(&outgoing).await {
            Ok(sent) if says_nothing(&sent.response.body) => Ok(()),
            Ok(sent) => {
                let error = exchange
                    .nonsense(&sent, "the answer to DELETE has a body, so it doesn't come from a store");
                gone(error, Box::pin(self.head(id, None))).await
            }
            Err(error) => removed(error, Box::pin(self.head(id, None))).await,
        }
    }
}

/// The text that separates the calls of a batch. Keys are percent-encoded in the body, so none of them can contain it.
const BOUNDARY: &str = "===laneway-batch===";

fn batch_request(bucket: &str, objects: &[Deletion], authority: &str) -> Outgoing {
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
pub(super) fn batch_answers(content_type: &str, body: &[u8]) -> Vec<BatchedResponse> {
    let Some(boundary) = batch_boundary(content_type) else { return Vec::new() };
    let text = String::from_utf8_lossy(body);
    text.split(&format!("--{boundary}")).skip(1).filter_map(batch_answer).collect()
}

fn batch_boundary(content_type: &str) -> Option<&str> {
    let (_, rest) = content_type.split_once("boundary=")?;
    let value = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next()?,
        None => rest.split(';').next()?.trim(),
    };
    Some(value).filter(|value| !value.is_empty())
}

fn batch_answer(part: &str) -> Option<BatchedResponse> {
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
        let outgoing = batch_request(exchange.bucket, objects, &self.endpoint.origin.authority());
        let sent = exchange.send(&outgoing).await.inspect_err(|error| {
            if error.is_unsupported() || error.is_invalid() || error.is_not_found() {
                self.lacks_batch.add(super::ENDPOINT, Instant::now());
            }
        });
        let sent = sent?;
        let content_type = sent.response.head.header("content-type").unwrap_or_default();
        let answers = batch_answers(content_type, &sent.response.body);
        let of = |index| answers.iter().find(|answer| answer.index == index);
        let fates = (0..objects.len()).map(|index| settled(of(index), sent.attempts > 1)).collect();
        Ok((fates, sent))
    }
}

const NO_DELETED_OBJECT: &str = "no soft-deleted object has this name";

fn restore_request(id: &ObjectId, generation: &str, options: &RestoreOptions) -> Outgoing {
    let query = QueryString::new()
        .and("generation", generation)
        .and_some("ifGenerationMatch", (!options.overwrite).then_some("0"))
        .and("fields", "name,generation");
    Outgoing::new(Method::POST, format!("{}/restore{query}", object_path(id)))
}

impl Gcs {
    pub(crate) async fn restore_deleted(
        &self,
        id: &ObjectId,
        options: &RestoreOptions,
    ) -> Result<Restoration, Error> {
        let exchange = Exchange::object(self, Operation::Restore, id);
        if options.days.is_some() || options.tier.is_some() {
            let message = "GCS restores deleted objects permanently, so it accepts neither days nor a tier";
            return Err(exchange.error(ErrorKind::Invalid, message));
        }
        // The deleted object's checksum must be known before the request. When the store restores the object, it
        // forgets the deleted one. If the answer is lost, only the checksum distinguishes the restored object from
        // another live one.
        let deleted = self.deleted_object(id).await?;
        let generation = deleted.id.version.as_deref().unwrap_or_default();
        let name = ObjectId::new(&id.bucket, &id.key);
        let error = match exchange.send(&restore_request(&name, generation, options)).await {
            Ok(_) => return Ok(Restoration::Readable),
            Err(error) => error,
        };
        let restored =
            landed(error, Box::pin(self.head(&name, None)), deleted.size, &deleted.checksums).await;
        match restored {
            Ok(_) => Ok(Restoration::Readable),
            Err(error) if error.is_precondition() && !options.overwrite => Ok(Restoration::NotNeeded),
            Err(error) => Err(error),
        }
    }

    /// Returns the deleted object in the generation that the version names, or else in its newest one.
    pub(crate) async fn deleted_object(&self, id: &ObjectId) -> Result<ObjectMeta, Error> {
        let mut list = List { versions: true, soft_deleted: true, ..List::new(&id.bucket, &id.key) };
        // No other name sorts between the key and this bound.
        list.end_before = Some(format!("{}\0", id.key));
        let is_asked = |meta: &ObjectMeta| {
            meta.id.key == id.key && (id.version.is_none() || id.version == meta.id.version)
        };
        let generation = |meta: &ObjectMeta| meta.id.version.as_deref()?.parse::<u64>().ok();
        let mut newest: Option<ObjectMeta> = None;
        loop {
            let mut found = Vec::new();
            let page = self.list_page(&list, |objects| found.extend(objects)).await;
            let page = page.map_err(|e| e.within(Operation::Restore))?;
            let found = found.into_iter().chain(page.objects).filter(is_asked);
            newest = newest.into_iter().chain(found).max_by_key(generation);
            list.token = page.next;
            if list.token.is_none() {
                let exchange = Exchange::object(self, Operation::Restore, id);
                return newest.ok_or_else(|| exchange.error(ErrorKind::NotFound, NO_DELETED_OBJECT));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use laneway_lanes::Segment;

    use super::*;
    use crate::Version;

    #[test]
    fn a_delete_may_be_bound_to_a_generation() {
        let id = ObjectId::new("b", "a/b");
        let plain = request(&id, &Condition::None).expect("a request");
        assert_eq!(plain.target, "/storage/v1/b/b/o/a%2Fb");
        let bound = request(&id, &Condition::Matches(Version::Generation(9))).expect("a request");
        assert_eq!(bound.target, "/storage/v1/b/b/o/a%2Fb?ifGenerationMatch=9");
        assert_eq!(bound.method, Method::DELETE);
        let version = request(&id.at_version("7"), &Condition::None).expect("a request");
        assert_eq!(version.target, "/storage/v1/b/b/o/a%2Fb?generation=7");
    }

    const ANSWER: &str = "--batch_x\r\nContent-Type: application/http\r\nContent-ID: <response-laneway+0>\r\n\r\n\
        HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n\r\n\
        --batch_x\r\nContent-Type: application/http\r\nContent-ID: <response-laneway+1>\r\n\r\n\
        HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\n\r\n\
        {\"error\":{\"code\":404,\"message\":\"No such object: b/k\",\"errors\":[{\"reason\":\"notFound\"}]}}\r\n\
        --batch_x\r\nContent-Type: application/http\r\nContent-ID: <response-laneway+2>\r\n\r\n\
        HTTP/1.1 503 Service Unavailable\r\n\r\n\r\n--batch_x--\r\n";

    #[test]
    fn every_call_of_a_batch_carries_its_number() {
        let request = batch_request("b", &["a/b", "c"].map(Deletion::any), "h");
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
        let request = batch_request("b", &[version], "h");
        let Some(Segment::Memory(body)) = request.body.segments().first() else { panic!("a body in memory") };
        let text = std::str::from_utf8(body).expect("text");
        assert!(text.contains("DELETE /storage/v1/b/b/o/k?generation=5 HTTP/1.1"), "{text}");
    }

    #[test]
    fn the_answers_are_told_apart_by_their_numbers() {
        let answers = batch_answers("multipart/mixed; boundary=batch_x", ANSWER.as_bytes());
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
        assert_eq!(batch_boundary("multipart/mixed; boundary=\"a b\"; x=y"), Some("a b"));
        assert_eq!(batch_boundary("multipart/mixed; boundary=ab; x=y"), Some("ab"));
        assert_eq!(batch_boundary("text/plain"), None);
    }

    #[test]
    fn a_restoration_replaces_nothing_unless_it_may() {
        let id = ObjectId::new("b", "a/b");
        let kept = restore_request(&id, "7", &RestoreOptions::default()).target;
        assert_eq!(
            kept,
            "/storage/v1/b/b/o/a%2Fb/restore?generation=7&ifGenerationMatch=0&fields=name%2Cgeneration"
        );
        let replaced = restore_request(&id, "7", &RestoreOptions::default().overwrite(true)).target;
        assert!(!replaced.contains("ifGenerationMatch"), "{replaced}");
    }
}
