//! `delete`, and DeleteObjects, which deletes many objects with one request.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use http::Method;
use laneway_lanes::Body;
use md5::{Digest as _, Md5};
use serde::Deserialize;

use super::checksum_support::BodyChecksum;
use super::conditions::{NO_GENERATIONS, on_write, quoted};
use super::get::object_target;
use super::headers::checked;
use super::write_conditions::{ConditionSupport, ConditionalWrite};
use super::{S3, failure};
use crate::checksum::{crc32c_of, encode_md5};
use crate::delete_many::{BatchDeleteDialect, BatchFailure, DeleteDialect, DeleteOutcome, fate};
use crate::encode::{QueryString, xml_text};
use crate::exchange::{Exchange, ExchangeResponse, Outgoing};
use crate::judge::ErrorResponse;
use crate::reconcile::{gone, removed};
use crate::{Condition, Deletion, Error, ErrorKind, ObjectId, Operation, Version, xml};

fn request(id: &ObjectId, condition: &Condition) -> Result<Outgoing, String> {
    on_write(Outgoing::new(Method::DELETE, object_target(id, &QueryString::new())), condition)
}

/// Returns true if a version is a weak entity tag. It can't be sent as a condition, because `If-Match` uses strong
/// comparison.
fn is_weak(version: Option<&Version>) -> bool {
    matches!(version, Some(Version::ETag(etag)) if etag.starts_with("W/"))
}

impl DeleteDialect for S3 {
    /// Deletes an object. If the endpoint may ignore a condition on deletes, or refuses this one, Laneway first reads
    /// the object's metadata and compares it. S3 answers 403 to `If-Match` if the caller isn't allowed `GetObject`. In
    /// this case too, Laneway first compares the object, and then deletes it without the condition.
    async fn delete(&self, id: &ObjectId, condition: &Condition) -> Result<(), Error> {
        let exchange = Exchange::object(self, Operation::Delete, id);
        if *condition == Condition::Absent {
            return Err(
                exchange.error(ErrorKind::Invalid, "a delete can't require that the object is absent")
            );
        }
        let version = match condition {
            Condition::Matches(version) => Some(version),
            Condition::None | Condition::Absent => None,
        };
        let mut sent = if is_weak(version) {
            &Condition::None
        } else {
            self.sendable(ConditionalWrite::Delete, condition)
        };
        if sent.is_none() && !condition.is_none() {
            self.compare(&exchange, id, condition).await?;
        } else {
            self.look_before(&exchange, ConditionalWrite::Delete, id, condition).await?;
        }
        loop {
            let outgoing = request(id, sent).map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
            let error = match exchange.send(&outgoing).await {
                Ok(sent) if sent.response.body.is_empty() => return Ok(()),
                Ok(sent) => {
                    let error = exchange
                        .nonsense(&sent, "the answer to DELETE has a body, so it doesn't come from a store");
                    return gone(error, Box::pin(self.head(id, None))).await;
                }
                Err(error) => error,
            };
            let error = match removed(error, Box::pin(self.head(id, None))).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            let may_be_about_it = !sent.is_none()
                && (self.conditions.learn(ConditionalWrite::Delete, &error) || error.is_permission());
            if !may_be_about_it {
                return Err(error);
            }
            self.compare(&exchange, id, condition).await?;
            sent = &Condition::None;
        }
    }
}

impl S3 {
    /// Compares the present object with the version that the caller wants to delete.
    ///
    /// # Errors
    /// `Precondition` if they differ.
    async fn compare(
        &self,
        exchange: &Exchange<'_, Self>,
        id: &ObjectId,
        condition: &Condition,
    ) -> Result<(), Error> {
        let Condition::Matches(version) = condition else { return Ok(()) };
        let meta = self.head(id, None).await.map_err(|e| e.within(Operation::Delete))?;
        match meta.version.as_ref() == Some(version) {
            true => Ok(()),
            false => Err(exchange.error(ErrorKind::Precondition, format!("{version} is gone"))),
        }
    }
}

/// Builds the request for the keys that XML can contain.
fn batch_request(objects: &[Deletion], guard: BodyChecksum) -> Result<Outgoing, String> {
    let mut document = String::from("<Delete><Quiet>true</Quiet>");
    for object in objects {
        let Some(key) = xml_text(&object.key) else { continue };
        document.push_str(&format!("<Object><Key>{key}</Key>"));
        if let Some(id) = &object.id {
            let id = xml_text(id).ok_or("a version id contains control characters")?;
            document.push_str(&format!("<VersionId>{id}</VersionId>"));
        }
        match &object.version {
            None => {}
            Some(Version::ETag(etag)) => {
                let etag = xml_text(&quoted(etag)).ok_or("an ETag contains control characters")?;
                document.push_str(&format!("<ETag>{etag}</ETag>"));
            }
            Some(Version::Generation(_)) => return Err(NO_GENERATIONS.to_owned()),
        }
        document.push_str("</Object>");
    }
    document.push_str("</Delete>");
    let mut outgoing = Outgoing::new(Method::POST, QueryString::new().and("delete", "").to_string());
    // S3 requires one of the two checksum headers, even if the settings turn checksums off. Older servers know only
    // `Content-MD5`.
    let md5: [u8; 16] = Md5::digest(document.as_bytes()).into();
    outgoing = outgoing
        .header("content-md5", &encode_md5(md5))
        .and_then(|outgoing| outgoing.header("content-type", "application/xml"))
        .and_then(|outgoing| match guard {
            BodyChecksum::Crc32c => checked(outgoing, crc32c_of(document.as_bytes())),
            BodyChecksum::Md5 | BodyChecksum::None => Ok(outgoing),
        })
        .map_err(|e| e.to_string())?;
    outgoing.body = Body::from(Bytes::from(document));
    outgoing.doubtful = true;
    Ok(outgoing)
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct DeleteResult {
    #[serde(rename = "Error")]
    errors: Vec<KeyError>,
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct KeyError {
    #[serde(default)]
    key: String,
    version_id: Option<String>,
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
}

impl KeyError {
    fn failure(&self) -> ErrorResponse {
        let status = match self.code.as_str() {
            "AccessDenied" => http::StatusCode::FORBIDDEN,
            "NoSuchKey" | "NoSuchVersion" => http::StatusCode::NOT_FOUND,
            "PreconditionFailed" => http::StatusCode::PRECONDITION_FAILED,
            "NotImplemented" => http::StatusCode::NOT_IMPLEMENTED,
            "SlowDown" | "ServiceUnavailable" => http::StatusCode::SERVICE_UNAVAILABLE,
            "InternalError" => http::StatusCode::INTERNAL_SERVER_ERROR,
            _ => http::StatusCode::BAD_REQUEST,
        };
        ErrorResponse {
            status,
            code: Some(self.code.clone()),
            message: self.message.clone(),
            ..ErrorResponse::default()
        }
    }
}

/// The errors in the answer, by key and version. In quiet mode, S3 reports only errors, so every other object was
/// deleted.
pub(super) type KeyErrors = HashMap<(String, Option<String>), KeyError>;

pub(super) fn batch_errors(body: &[u8]) -> Result<KeyErrors, String> {
    let answer: DeleteResult = xml::answer(body, &["DeleteResult"])?;
    let named = |error: KeyError| {
        let version = error.version_id.clone().filter(|version| !version.is_empty());
        ((error.key.clone(), version), error)
    };
    Ok(answer.errors.into_iter().map(named).collect())
}

/// Returns the key and version id that identify a deletion in the answer.
fn name(object: &Deletion) -> (String, Option<String>) {
    (object.key.clone(), object.id.as_deref().map(str::to_owned))
}

/// Returns true if each error names one of these objects. If one names another object, it is unknown which of these
/// objects wasn't deleted.
fn are_of(errors: &KeyErrors, objects: &[Deletion]) -> bool {
    let names: HashSet<_> = objects.iter().map(name).collect();
    errors.keys().all(|named| names.contains(named))
}

/// Returns the outcome for one object.
fn settled(object: &Deletion, errors: &KeyErrors) -> DeleteOutcome {
    if xml_text(&object.key).is_none() {
        return DeleteOutcome::RetrySeparately { may_be_gone: false };
    }
    let Some(failure) = errors.get(&name(object)).map(KeyError::failure) else {
        return DeleteOutcome::Deleted;
    };
    match failure::kind(&failure) {
        // Perhaps the store refused only the condition, not the delete itself. So Laneway deletes this object with a
        // separate request. If the store refuses the condition again, Laneway compares the object's state itself and sends no
        // condition.
        ErrorKind::Permission | ErrorKind::Unsupported if object.version.is_some() => {
            DeleteOutcome::RetrySeparately { may_be_gone: false }
        }
        kind => fate(kind, failure),
    }
}

impl BatchDeleteDialect for S3 {
    /// <https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjects.html>
    const OBJECTS_MAX: usize = 1000;

    /// Single deletes are used for keys that XML can't contain, and for keys whose error was temporary.
    const SINGLE_DELETES_MAX: usize = 32;

    /// Returns whether one request can delete the objects. If the endpoint may ignore conditions, each object with a
    /// version must be compared before it is deleted, so it needs a separate request.
    fn can_delete_together(&self, objects: &[Deletion]) -> bool {
        let is_bound = objects.iter().any(|object| object.version.is_some());
        let can_be_bound = objects.iter().all(|object| !is_weak(object.version.as_ref()));
        !is_bound
            || (can_be_bound && self.conditions.treatment(ConditionalWrite::Delete) == ConditionSupport::Kept)
    }

    async fn delete_together(
        &self,
        exchange: &Exchange<'_, Self>,
        objects: &[Deletion],
    ) -> Result<(Vec<DeleteOutcome>, ExchangeResponse), BatchFailure> {
        let mut attempt = self.checksums.bodies.attempt();
        let sent = loop {
            let sent = match batch_request(objects, attempt.form()) {
                Ok(outgoing) => exchange.send(&outgoing).await,
                Err(message) => Err(exchange.error(ErrorKind::Invalid, message)),
            };
            match sent {
                Err(error) if attempt.fall_back(&error) => {}
                sent => break sent?,
            }
        };
        let errors = batch_errors(&sent.response.body).ok().filter(|errors| are_of(errors, objects));
        let errors = errors.ok_or(BatchFailure { may_be_gone: true })?;
        Ok((objects.iter().map(|object| settled(object, &errors)).collect(), sent))
    }
}

#[cfg(test)]
mod tests {
    use laneway_lanes::Segment;

    use super::*;

    #[test]
    fn a_delete_may_be_bound_to_a_tag() {
        let condition = Condition::Matches(Version::ETag("e".into()));
        let request = request(&ObjectId::new("b", "k"), &condition).expect("a request");
        assert_eq!(request.headers["if-match"], "\"e\"");
        assert_eq!(request.target, "/k");
    }

    #[test]
    fn keys_are_escaped_and_the_document_is_checked() {
        let any = Deletion::any;
        let bound = Deletion { version: Some(Version::ETag("e".into())), ..any("bound") };
        let version = Deletion { id: Some("v1".into()), ..any("v") };
        let objects = [any("a<b>&\"'"), any("c\r\n"), any("no\u{1}"), bound, version];
        let request = batch_request(&objects, BodyChecksum::Crc32c).expect("a request");
        let Some(Segment::Memory(body)) = request.body.segments().first() else { panic!("a body in memory") };
        assert_eq!(
            std::str::from_utf8(body).expect("text"),
            "<Delete><Quiet>true</Quiet><Object><Key>a&lt;b&gt;&amp;&quot;&apos;</Key></Object>\
             <Object><Key>c&#13;&#10;</Key></Object>\
             <Object><Key>bound</Key><ETag>&quot;e&quot;</ETag></Object>\
             <Object><Key>v</Key><VersionId>v1</VersionId></Object></Delete>"
        );
        assert_eq!(request.target, "?delete=");
        assert!(request.headers.contains_key("content-md5"));
        assert!(request.headers.contains_key("x-amz-checksum-crc32c"));
        let generation = Deletion { version: Some(Version::Generation(1)), ..any("k") };
        assert!(
            super::batch_request(&[generation], BodyChecksum::Crc32c).is_err(),
            "no state that S3 could compare"
        );
    }

    #[test]
    fn only_failures_are_answered() {
        let body = b"<?xml version=\"1.0\"?><DeleteResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
            <Error><Key>k</Key><Code>AccessDenied</Code><Message>Access Denied</Message></Error>\
            <Deleted><Key>x</Key></Deleted><Error><Key>l</Key><Code>InternalError</Code></Error></DeleteResult>";
        let errors = batch_errors(body).expect("an answer");
        assert_eq!(failure::kind(&errors[&("k".to_owned(), None)].failure()), ErrorKind::Permission);
        assert!(crate::judge::is_passing(&errors[&("l".to_owned(), None)].failure()));
        assert_eq!(errors.len(), 2);
        let none = super::batch_errors(b"<DeleteResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"/>");
        assert!(none.expect("an answer").is_empty());
    }
}
