//! `put`: metadata and bytes in one `multipart/related` request.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

use bytes::Bytes;
use http::Method;
use laneway_lanes::Body;

use super::get::read_resource;
use super::resource::{FIELDS, NewObjectResource};
use super::{Gcs, set_meta};
use crate::encode::{QueryString, component};
use crate::encryption::KeyUse;
use crate::exchange::{Exchange, Outgoing, UnsendableHeader};
use crate::reconcile::{compared, landed, unread};
use crate::{Checksums, Condition, Error, ErrorKind, ObjectId, ObjectMeta, Operation, PutOptions, Version};

/// The default content type.
pub(super) const OCTETS: &str = "application/octet-stream";

/// Returns a random boundary. The probability that the content contains it is 2^-128. `RandomState` takes its keys from
/// the system's random numbers, so nobody can prepare a file that contains the boundary.
fn boundary() -> String {
    let random = || RandomState::new().build_hasher().finish();
    format!("laneway-{:016x}{:016x}", random(), random())
}

/// The error for tags.
pub(super) const NO_TAGS: &str = "objects on GCS have no tags, only metadata";

/// Checks that GCS supports all properties that a new object should get.
///
/// # Errors
/// Names a property that GCS lacks.
pub(super) fn check_options(options: &PutOptions) -> Result<(), String> {
    match options {
        _ if !options.tags.is_empty() => Err(NO_TAGS.to_owned()),
        _ if options.expires.is_some() => Err("GCS has no Expires: set Cache-Control".to_owned()),
        _ => Ok(()),
    }
}

/// Adds the query parameters of a write's precondition.
pub(super) fn precondition(query: QueryString, condition: &Condition) -> Result<QueryString, String> {
    match condition {
        Condition::None => Ok(query),
        Condition::Absent => Ok(query.and("ifGenerationMatch", "0")),
        Condition::Matches(Version::Generation(generation)) => {
            Ok(query.and("ifGenerationMatch", &generation.to_string()))
        }
        Condition::Matches(Version::ETag(_)) => Err("GCS compares generations, not ETags".to_owned()),
    }
}

/// Returns the query of an upload.
pub(super) fn upload_query(
    kind: &str,
    id: &ObjectId,
    options: &PutOptions,
    kms_key: Option<&str>,
) -> Result<QueryString, String> {
    let query = QueryString::new()
        .and("uploadType", kind)
        .and("name", &id.key)
        .and_some("kmsKeyName", options.kms_key.as_deref().or(kms_key))
        .and_some("predefinedAcl", options.acl.as_deref().map(set_meta::acl_in_json).as_deref());
    check_options(options)?;
    Ok(precondition(query, &options.condition)?.and("fields", FIELDS))
}

fn request(
    id: &ObjectId,
    content: &Body,
    sums: &Checksums,
    options: &PutOptions,
    kms_key: Option<&str>,
    boundary: &str,
) -> Result<Outgoing, String> {
    let query = upload_query("multipart", id, options, kms_key)?;
    let content_type = options.content_type.as_deref().unwrap_or(OCTETS);
    if content_type.contains(['\r', '\n']) {
        return Err(UnsendableHeader("content-type".to_owned()).to_string());
    }
    let mut resource = NewObjectResource::new(options, Some(sums));
    // The content type is sent in the resource and in the header of the media part, because some servers read only the
    // header.
    resource.content_type = Some(content_type);
    let prefix = format!(
        "--{boundary}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n{}\r\n--{boundary}\r\nContent-Type: {content_type}\r\n\r\n",
        resource.to_json(),
    );
    let mut body = Body::from(Bytes::from(prefix));
    for segment in content.segments() {
        body = body.and(segment.clone());
    }
    let mut outgoing =
        Outgoing::new(Method::POST, format!("/upload/storage/v1/b/{}/o{query}", component(&id.bucket)))
            .key_use(KeyUse::New);
    outgoing.body = body.and(Bytes::from(format!("\r\n--{boundary}--\r\n")));
    outgoing
        .header("content-type", &format!("multipart/related; boundary={boundary}"))
        .map_err(|e| e.to_string())
}

impl Gcs {
    pub(crate) async fn upload(
        &self,
        id: &ObjectId,
        body: Body,
        sums: &Checksums,
        options: &PutOptions,
    ) -> Result<ObjectMeta, Error> {
        let exchange = Exchange::object(self, Operation::Put, id);
        let outgoing = request(id, &body, sums, options, self.kms_key.as_deref(), &boundary())
            .map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
        let meta = match exchange.send(&outgoing).await {
            Ok(sent) => match read_resource(&exchange, &sent, id, body.len()) {
                Ok(meta) => meta,
                Err(error) => return unread(error, Box::pin(self.head(id, None)), body.len(), sums).await,
            },
            Err(error) => return landed(error, Box::pin(self.head(id, None)), body.len(), sums).await,
        };
        compared(&exchange, meta, body.len(), sums)
    }
}

#[cfg(test)]
mod tests {
    use laneway_lanes::Segment;

    use super::*;

    fn bytes(body: &Body) -> String {
        body.segments()
            .iter()
            .map(|segment| match segment {
                Segment::Memory(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                Segment::File { .. } => "<file>".to_owned(),
            })
            .collect()
    }

    #[test]
    fn an_upload_is_one_request_with_its_checksum_inside() {
        let options = PutOptions::default().content_type("text/plain");
        let id = ObjectId::new("b", "a/b c");
        let sums = Checksums::crc32c(0xe306_9283);
        let request =
            request(&id, &Body::from("123456789"), &sums, &options, None, "BOUNDARY").expect("a request");
        assert!(
            request
                .target
                .starts_with("/upload/storage/v1/b/b/o?uploadType=multipart&name=a%2Fb%20c&fields=")
        );
        assert_eq!(
            bytes(&request.body),
            "--BOUNDARY\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n\
             {\"crc32c\":\"4waSgw==\",\"contentType\":\"text/plain\"}\r\n\
             --BOUNDARY\r\nContent-Type: text/plain\r\n\r\n123456789\r\n--BOUNDARY--\r\n"
        );
        assert_eq!(request.headers["content-type"], "multipart/related; boundary=BOUNDARY");
        assert_eq!(request.body.len(), bytes(&request.body).len() as u64);
    }

    #[test]
    fn conditions_and_keys_go_into_the_query() {
        let id = ObjectId::new("b", "k");
        let target = |condition| {
            let options = PutOptions::default().condition(condition);
            upload_query("multipart", &id, &options, Some("p/k")).map(|query| query.to_string())
        };
        assert!(
            target(Condition::Absent).expect("a query").contains("&kmsKeyName=p%2Fk&ifGenerationMatch=0&")
        );
        assert!(
            target(Condition::Matches(Version::Generation(7)))
                .expect("a query")
                .contains("ifGenerationMatch=7")
        );
        assert!(target(Condition::Matches(Version::ETag("x".into()))).is_err());
    }

    #[test]
    fn a_content_type_cannot_smuggle_in_a_part() {
        let options = PutOptions::default().content_type("a/b\r\nX: y");
        let sums = Checksums::default();
        assert!(request(&ObjectId::new("b", "k"), &Body::empty(), &sums, &options, None, "B").is_err());
    }

    #[test]
    fn no_two_boundaries_are_alike() {
        assert_ne!(boundary(), boundary());
    }
}
