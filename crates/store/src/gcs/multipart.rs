//! Parallel multipart uploads, which only the XML API has.

use std::collections::BTreeMap;
use std::time::Instant;

use http::{HeaderName, HeaderValue, Method};
use laneway_lanes::ResponseHead;

use super::put::{OCTETS, check_options};
use super::resource::{from_head, hashes};
use super::{Gcs, set_meta};
use crate::checksum::encode_crc32c;
use crate::encode::{QueryString, component, path};
use crate::encryption::KeyUse;
use crate::exchange::{Exchange, ExchangeResponse, Outgoing, UnsendableHeader};
use crate::multipart::{BEGINNINGS_MAX, MultipartDialect, complete_request, upload_id};
use crate::reconcile::{compared, landed};
use crate::{
    Checksums, Condition, Dialect, Error, ErrorKind, Multipart, ObjectId, ObjectMeta, Operation, Part,
    PartChecksums, PutOptions,
};

/// Returns true if the XML API's headers can carry the metadata unchanged. In headers, names lose their capitals,
/// values lose spaces at both ends, and only ASCII is possible.
fn fits_headers(options: &PutOptions) -> bool {
    let is_kept =
        |value: &str| value.is_ascii() && HeaderValue::from_str(value).is_ok() && value.trim() == value;
    let fields = [
        &options.content_encoding,
        &options.cache_control,
        &options.content_disposition,
        &options.content_language,
    ];
    let is_named = |name: &str| {
        let name = format!("x-goog-meta-{name}");
        HeaderName::try_from(&name).is_ok_and(|header| header.as_str() == name)
    };
    options.custom_time.is_none()
        && fields.into_iter().flatten().all(|value| is_kept(value))
        && options.metadata.iter().all(|(name, value)| is_named(name) && is_kept(value))
}

fn begin_request(
    id: &ObjectId,
    options: &PutOptions,
    kms_key: Option<&str>,
) -> Result<Outgoing, UnsendableHeader> {
    let mut outgoing = Gcs::about(Method::POST, id, &QueryString::new().and("uploads", ""))
        .header("content-type", options.content_type.as_deref().unwrap_or(OCTETS))?
        .header_some("content-encoding", options.content_encoding.as_deref())?
        .header_some("cache-control", options.cache_control.as_deref())?
        .header_some("content-disposition", options.content_disposition.as_deref())?
        .header_some("content-language", options.content_language.as_deref())?
        .header_some("x-goog-storage-class", options.storage_class.as_deref())?
        .header_some("x-goog-encryption-kms-key-name", options.kms_key.as_deref().or(kms_key))?
        .header_some("x-goog-acl", options.acl.as_deref().map(set_meta::acl_in_xml).as_deref())?;
    for (name, value) in &options.metadata {
        let unsendable = || UnsendableHeader(format!("metadata {name:?}"));
        let header = HeaderName::try_from(format!("x-goog-meta-{name}")).map_err(|_| unsendable())?;
        outgoing.headers.insert(header, HeaderValue::from_str(value).map_err(|_| unsendable())?);
    }
    Ok(outgoing)
}

fn may_not(exchange: &Exchange<'_, Gcs>) -> Error {
    exchange.error(ErrorKind::Unsupported, "the credentials don't permit multipart uploads to this bucket")
}

impl Gcs {
    pub(crate) async fn begin_upload(&self, id: &ObjectId, options: &PutOptions) -> Result<Multipart, Error> {
        let exchange = Exchange::object(self, Operation::Begin, id);
        if !options.condition.is_none() {
            let message = "GCS multipart uploads don't support preconditions; resumable uploads do";
            return Err(exchange.error(ErrorKind::Unsupported, message));
        }
        check_options(options).map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
        if options.is_protected() {
            let message = "GCS multipart uploads don't support retention; resumable uploads do";
            return Err(exchange.error(ErrorKind::Unsupported, message));
        }
        if !fits_headers(options) {
            let message = "GCS multipart uploads can't carry metadata names with capitals, or values that aren't ASCII or have \
                           spaces at their ends; resumable uploads can";
            return Err(exchange.error(ErrorKind::Unsupported, message));
        }
        if !Dialect::supports_multipart(self) {
            return Err(self.no_multipart(&exchange));
        }
        if self.multipart_refused.has(&id.bucket, Instant::now()) {
            return Err(may_not(&exchange));
        }
        let outgoing =
            begin_request(id, options, self.kms_key.as_deref()).map_err(|e| exchange.unsendable(&e))?;
        for _ in 0..BEGINNINGS_MAX {
            let sent = self.begun(&exchange, id, &outgoing).await?;
            match upload_id(&sent.response.body) {
                Ok(upload_id) => {
                    return Ok(Multipart { id: id.clone(), upload_id, checksums: PartChecksums::FullObject });
                }
                Err(why) => tracing::debug!(%id, why, "the answer to a new upload has no upload id"),
            }
        }
        Err(self.never_multipart(&exchange))
    }

    /// Sends the request that begins an upload. If the refusal would apply to later uploads too, it is remembered.
    async fn begun(
        &self,
        exchange: &Exchange<'_, Self>,
        id: &ObjectId,
        outgoing: &Outgoing,
    ) -> Result<ExchangeResponse, Error> {
        exchange.send(outgoing).await.map_err(|error| {
            // GCS's errors are in XML. An error in another format comes from a server without the XML API's uploads.
            if error.status().is_some_and(|s| matches!(s.as_u16(), 400 | 404 | 405 | 501)) {
                let speaks_xml =
                    error.code().is_some_and(|code| code.starts_with(|c: char| c.is_ascii_uppercase()));
                if speaks_xml && !error.is_unsupported() { error } else { self.never_multipart(exchange) }
            } else if error.is_permission() {
                // Roles that are older than multipart uploads permit creating objects, but not these uploads
                // (<https://cloud.google.com/storage/docs/access-control/iam-permissions#multipart_upload_permissions>).
                tracing::debug!(%error, "multipart uploads aren't permitted: large objects use resumable sessions");
                self.multipart_refused.add(&id.bucket, Instant::now());
                may_not(exchange)
            } else {
                error
            }
        })
    }

    /// Remembers that the server has no multipart uploads.
    fn never_multipart(&self, exchange: &Exchange<'_, Self>) -> Error {
        self.lacks_multipart.add(super::ENDPOINT, Instant::now());
        self.no_multipart(exchange)
    }

    fn no_multipart(&self, exchange: &Exchange<'_, Self>) -> Error {
        let server = &self.endpoint.origin;
        exchange.error(ErrorKind::Unsupported, format!("{server} doesn't support XML multipart uploads"))
    }

    pub(crate) async fn complete_upload(
        &self,
        upload: &Multipart,
        parts: &[Part],
        whole: &Checksums,
        condition: &Condition,
    ) -> Result<ObjectMeta, Error> {
        let exchange = Exchange::object(self, Operation::Complete, &upload.id);
        if !condition.is_none() {
            let message = "GCS multipart uploads don't support preconditions; resumable uploads do";
            return Err(exchange.error(ErrorKind::Unsupported, message));
        }
        let size = parts.iter().map(|part| part.size).sum();
        let outgoing = complete_request::<Self>(upload, parts, &BTreeMap::new())
            .map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
        let meta = match exchange.send(&outgoing).await {
            Ok(sent) => self.completed(&exchange, &upload.id, size, &sent).await?,
            Err(error) => landed(error, Box::pin(self.head(&upload.id, None)), size, whole).await?,
        };
        compared(&exchange, meta, size, whole)
    }

    /// Returns the new object's metadata. If the answer's headers lack the generation or the checksum, another request
    /// reads the object's resource.
    async fn completed(
        &self,
        exchange: &Exchange<'_, Self>,
        id: &ObjectId,
        size: u64,
        sent: &ExchangeResponse,
    ) -> Result<ObjectMeta, Error> {
        let mut meta = from_head(id, &sent.response.head);
        if meta.version.is_none() || meta.checksums.crc32c.is_none() {
            match self.head(id, None).await {
                // The identity may be permitted to write objects but not to read them. Then the answer's headers have
                // to be enough.
                Err(error) if error.is_permission() => {}
                Err(error) if error.is_not_found() => {
                    return Err(exchange
                        .nonsense(sent, "the store confirms the upload, but the object doesn't exist"));
                }
                described => return described,
            }
        }
        // In the answer to a completion, Content-Length, Content-Type and so on describe the XML body and not the
        // object.
        meta.size = size;
        meta.content_type = None;
        meta.etag = None;
        meta.updated = None;
        Ok(meta)
    }
}

/// Adds the header `x-goog-api-client`, by which servers with both dialects recognise a request of GCS's XML API. The
/// path alone doesn't show this, because S3's paths look the same.
fn in_xml(mut outgoing: Outgoing) -> Outgoing {
    outgoing.headers.insert(
        HeaderName::from_static("x-goog-api-client"),
        HeaderValue::from_static(concat!("laneway/", env!("CARGO_PKG_VERSION"))),
    );
    outgoing
}

impl MultipartDialect for Gcs {
    const NAMESPACE: &str = "";

    const REPEATS_CHECKSUMS: bool = false;

    /// Every request of an upload carries the customer's key.
    fn about(method: Method, id: &ObjectId, query: &QueryString) -> Outgoing {
        let target = format!("/{}/{}{query}", component(&id.bucket), path(&id.key));
        in_xml(Outgoing::new(method, target).key_use(KeyUse::Object))
    }

    fn about_all(bucket: &str, query: &QueryString) -> Outgoing {
        in_xml(Outgoing::new(Method::GET, format!("/{}{query}", component(bucket))))
    }

    const CHECKSUMS_UNTOLD: PartChecksums = PartChecksums::FullObject;

    fn checked(outgoing: Outgoing, crc32c: u32) -> Result<Outgoing, UnsendableHeader> {
        outgoing.header("x-goog-hash", &format!("crc32c={}", encode_crc32c(crc32c)))
    }

    fn crc32c_of(answer: &ResponseHead) -> Option<u32> {
        hashes(answer).crc32c
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upload_begins_with_everything_that_the_object_will_be() {
        let mut options = PutOptions::default().content_type("text/plain");
        options.metadata.insert("k".into(), "v".into());
        let request =
            begin_request(&ObjectId::new("b", "a//b c"), &options, Some("p/key")).expect("a request");
        assert_eq!(request.target, "/b/a//b%20c?uploads=");
        assert_eq!(request.headers["x-goog-meta-k"], "v");
        assert_eq!(request.headers["x-goog-encryption-kms-key-name"], "p/key");
    }

    #[test]
    fn a_description_that_headers_change_does_not_fit_them() {
        let plain = PutOptions::default;
        for fitting in [plain(), plain().metadata("a_b-1", "c d"), plain().content_disposition("inline")] {
            assert!(fits_headers(&fitting), "{fitting:?}");
        }
        for other in [
            plain().metadata("Owner", "me"),
            plain().metadata("k", "ü"),
            plain().metadata("ü", "v"),
            plain().metadata("k", " v"),
            plain().metadata("k", "v\t"),
            plain().metadata("k", "a\nb"),
            plain().metadata("k k", "v"),
            plain().content_disposition("attachment; filename=ü"),
        ] {
            assert!(!fits_headers(&other), "{other:?}");
        }
    }

    #[test]
    fn metadata_that_no_header_can_carry_is_refused() {
        let mut options = PutOptions::default();
        options.metadata.insert("k".into(), "a\nb".into());
        assert!(begin_request(&ObjectId::new("b", "a//b c"), &options, None).is_err());
        options.metadata.clear();
        options.metadata.insert("k k".into(), "v".into());
        assert!(begin_request(&ObjectId::new("b", "a//b c"), &options, None).is_err());
    }
}
