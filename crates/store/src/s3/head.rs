//! `head`: reads an object's metadata.

use http::Method;
use laneway_lanes::ResponseHead;

use super::S3;
use super::conditions::on_read;
use super::headers::meta;
use crate::delivery::is_no_object;
use crate::encode::{QueryString, path};
use crate::encryption::KeyUse;
use crate::exchange::{Exchange, Outgoing};
use crate::{Error, ErrorKind, ObjectId, ObjectMeta, Operation, Unless, Version};

/// Returns the target of an object or its version, relative to its bucket.
pub(super) fn object_target(id: &ObjectId, query: &QueryString) -> String {
    let query = query.clone().and_some("versionId", id.version.as_deref());
    format!("/{}{query}", path(&id.key))
}

fn request(
    id: &ObjectId,
    version: Option<&Version>,
    unless: Option<&Unless>,
    sums: bool,
) -> Result<Outgoing, String> {
    let outgoing = Outgoing::new(Method::HEAD, object_target(id, &QueryString::new()));
    let mode = sums.then_some("ENABLED");
    let outgoing = outgoing.header_some("x-amz-checksum-mode", mode).map_err(|e| e.to_string())?;
    on_read(outgoing, version, unless)
}

impl S3 {
    /// Reads the metadata of the object that was just written. If the credentials permit writing but not reading, it
    /// returns `written`.
    pub(super) async fn described_or(&self, written: ObjectMeta) -> Result<ObjectMeta, Error> {
        match self.head(&written.id, None).await {
            Err(error) if error.is_permission() => Ok(written),
            // If one of the answers has no ETag, the versions can't be compared, so assume that they are the same.
            Ok(described)
                if described.version.is_some()
                    && written.version.is_some()
                    && described.version != written.version =>
            {
                let exchange = Exchange::object(self, Operation::Head, &written.id);
                Err(exchange.error(ErrorKind::Precondition, "another writer has replaced the object"))
            }
            Ok(described) => Ok(ObjectMeta { version: described.version.or(written.version), ..described }),
            Err(error) => Err(error),
        }
    }

    /// Returns an object's metadata. The request carries the customer's key of this store's own objects, if there is
    /// one.
    pub(crate) async fn head(&self, id: &ObjectId, version: Option<&Version>) -> Result<ObjectMeta, Error> {
        self.head_as(id, version, None, KeyUse::Object).await
    }

    pub(crate) async fn head_as(
        &self,
        id: &ObjectId,
        version: Option<&Version>,
        unless: Option<&Unless>,
        key_use: KeyUse,
    ) -> Result<ObjectMeta, Error> {
        self.head_answer(id, version, unless, key_use).await.map(|(meta, _)| meta)
    }

    /// Returns an object's metadata and the answer's head. The head contains headers that [`ObjectMeta`] has no field
    /// for.
    pub(super) async fn head_answer(
        &self,
        id: &ObjectId,
        version: Option<&Version>,
        unless: Option<&Unless>,
        key_use: KeyUse,
    ) -> Result<(ObjectMeta, ResponseHead), Error> {
        let exchange = Exchange::object(self, Operation::Head, id);
        let mut attempt = self.checksums.reads.attempt();
        let sent = loop {
            let outgoing = request(id, version, unless, attempt.form())
                .map_err(|e| exchange.error(ErrorKind::Invalid, e))?
                .key_use(key_use);
            match exchange.send(&outgoing).await {
                Err(error) if attempt.fall_back(&error) => {}
                // If KMS encrypts the object, its checksum can only be read with permission to use the key. So try
                // again without the checksum.
                Err(error) if error.is_permission() && attempt.form() => {
                    let plain = request(id, version, unless, false)
                        .map_err(|e| exchange.error(ErrorKind::Invalid, e))?
                        .key_use(key_use);
                    let sent = exchange.send(&plain).await;
                    break sent.map_err(|second| if second.is_permission() { error } else { second })?;
                }
                sent => {
                    let sent = sent?;
                    attempt.settle();
                    break sent;
                }
            }
        };
        if sent.response.head.content_length().is_none() {
            return Err(exchange.nonsense(&sent, "the answer has no Content-Length"));
        }
        let meta = self.etags.read(meta(id, &sent.response.head));
        if is_no_object(&meta) {
            return Err(
                exchange.nonsense(&sent, "the answer has none of the headers that describe an object")
            );
        }
        match version {
            Some(wanted) if meta.version.as_ref() != Some(wanted) => {
                Err(exchange.error(ErrorKind::Precondition, format!("{wanted} is gone")))
            }
            _ => Ok((meta, sent.response.head)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_asks_for_checksums() {
        let id = ObjectId::new("b", "a//b c");
        let version = request(&id.clone().at_version("v+1"), None, None, false).expect("a request");
        assert_eq!(version.target, "/a//b%20c?versionId=v%2B1");
        let asking = request(&id, None, None, true).expect("a request");
        assert_eq!(asking.target, "/a//b%20c");
        assert_eq!(asking.headers["x-amz-checksum-mode"], "ENABLED");
        assert!(request(&id, None, None, false).expect("a request").headers.is_empty());
    }
}
