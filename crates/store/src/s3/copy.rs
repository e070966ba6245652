//! `copy` and `part_copy`: copies that the store makes itself, so that no bytes go through this machine.

use std::ops::Range;
use std::time::Duration;

use http::Method;
use serde::Deserialize;

use super::S3;
use super::conditions::{NO_GENERATIONS, on_write, quoted, unquoted};
use super::get::object_target;
use super::headers::{check_options, describe, hex_md5};
use super::write_conditions::ConditionalWrite;
use crate::checksum::decode_crc32c;
use crate::encode::{QueryString, component, path};
use crate::encryption::KeyUse;
use crate::exchange::{Exchange, ExchangeResponse, Outgoing};
use crate::multipart::{MultipartDialect as _, part_query};
use crate::reconcile::landed;
use crate::{
    Checksums, Condition, Error, ErrorKind, Multipart, ObjectId, ObjectMeta, Operation, Part, PutOptions,
    Version, xml,
};

/// The time limit without progress. S3 takes minutes for a copy of 5 GiB, and until then it sends nothing but white
/// space.
const NO_PROGRESS_MAX: Duration = Duration::from_secs(600);

/// Headers for conditions on a copy's destination: S3's names, and those of Cloudflare's R2
/// (<https://developers.cloudflare.com/r2/api/s3/extensions/>).
const HEADERS_FOR_COPIES: [(&str, &str); 2] =
    [("if-none-match", "cf-copy-destination-if-none-match"), ("if-match", "cf-copy-destination-if-match")];

/// Root elements of the answers to copies of objects and of parts. Some servers use one name for both.
pub(super) const COPY_RESULTS: [&str; 2] = ["CopyObjectResult", "CopyPartResult"];

/// Returns the header value for a copy's source. For an object of an access point, the value is the object's ARN,
/// encoded as a whole.
fn copy_source(from: &ObjectId) -> String {
    let ObjectId { bucket, key, version } = from;
    let source = match bucket.starts_with("arn:") {
        true => component(&format!("{bucket}/object/{key}")),
        false => format!("/{bucket}/{}", path(key)),
    };
    format!("{source}{}", QueryString::new().and_some("versionId", version.as_deref()))
}

fn source(outgoing: Outgoing, from: &ObjectId, version: Option<&Version>) -> Result<Outgoing, String> {
    let named = outgoing.header("x-amz-copy-source", &copy_source(from));
    let named = match version {
        None => named,
        Some(Version::ETag(etag)) => {
            named.and_then(|o| o.header("x-amz-copy-source-if-match", &quoted(etag)))
        }
        Some(Version::Generation(_)) => return Err(NO_GENERATIONS.to_owned()),
    };
    named.map_err(|e| e.to_string())
}

pub(super) fn request(
    from: &ObjectId,
    to: &ObjectId,
    options: &PutOptions,
    onto: &Condition,
    condition: &Condition,
    kms_key: Option<&str>,
) -> Result<Outgoing, String> {
    check_options(options)?;
    let version = match condition {
        Condition::None => None,
        Condition::Matches(version) => Some(version),
        Condition::Absent => return Err("a copy can't require that its source is absent".to_owned()),
    };
    let mut outgoing =
        source(Outgoing::new(Method::PUT, object_target(to, &QueryString::new())), from, version)?;
    outgoing = describe(outgoing, options, kms_key).map_err(|e| e.to_string())?.key_use(KeyUse::Copy);
    if !options.tags.is_empty() {
        outgoing = outgoing.header("x-amz-tagging-directive", "REPLACE").map_err(|e| e.to_string())?;
    }
    if options.describes() {
        outgoing = outgoing.header("x-amz-metadata-directive", "REPLACE").map_err(|e| e.to_string())?;
    }
    outgoing.no_progress = Some(NO_PROGRESS_MAX);
    outgoing.doubtful = true;
    on_write(outgoing, onto)
}

fn part_request(
    upload: &Multipart,
    number: u32,
    from: &ObjectId,
    version: Option<&Version>,
    range: &Range<u64>,
) -> Result<Outgoing, String> {
    let mut outgoing =
        source(S3::about(Method::PUT, &upload.id, &part_query(upload, number)), from, version)?
            .header(
                "x-amz-copy-source-range",
                &format!("bytes={}-{}", range.start, range.end.saturating_sub(1)),
            )
            .map_err(|e| e.to_string())?
            .key_use(KeyUse::PartCopy);
    outgoing.no_progress = Some(NO_PROGRESS_MAX);
    outgoing.doubtful = true;
    Ok(outgoing)
}

#[derive(Deserialize)]
pub(super) struct CopyResult {
    #[serde(rename = "ETag")]
    pub(super) etag: Option<String>,
    #[serde(rename = "ChecksumCRC32C")]
    crc32c: Option<String>,
}

impl CopyResult {
    /// Returns the metadata of a copy whose source is known, or `None` if the answer doesn't contain enough. An ETag of
    /// 32 hexadecimal digits is the MD5 of an object with one part. If source and copy have the same ETag, they have
    /// the same bytes. If the source has a CRC32C, the answer must contain the copy's, so that both can be compared.
    fn as_copy_of(&self, source: &ObjectMeta, to: &ObjectId) -> Option<ObjectMeta> {
        let etag = self.etag.as_deref().map(unquoted).filter(|etag| hex_md5(etag).is_some())?;
        let crc32c = self.crc32c.as_deref().and_then(decode_crc32c);
        let version = Some(Version::ETag(etag.clone()));
        if source.version != version || crc32c.is_none() && source.checksums.crc32c.is_some() {
            return None;
        }
        let checksums = Checksums { crc32c, ..source.checksums.clone() };
        Some(ObjectMeta { version, etag: Some(etag), checksums, ..ObjectMeta::new(to.clone(), source.size) })
    }
}

impl S3 {
    /// Copies an object. If the answer doesn't contain enough, a `head` of the copy follows. The answer has no size
    /// and, on many servers, no checksum.
    pub(crate) async fn copy_object(
        &self,
        from: &ObjectId,
        known: Option<&ObjectMeta>,
        to: &ObjectId,
        options: &PutOptions,
        condition: &Condition,
    ) -> Result<ObjectMeta, Error> {
        let exchange = Exchange::object(self, Operation::Copy, to);
        // If the request sets any metadata, the copy loses all metadata that the request doesn't set. So read the
        // source's metadata first and send it all.
        let merged = match options.describes() {
            true => {
                let source = self
                    .head_as(from, None, None, KeyUse::Source)
                    .await
                    .map_err(|e| e.within(Operation::Copy))?;
                options.described_like(&source)
            }
            false => options.clone(),
        };
        let build = |onto: &Condition| request(from, to, &merged, onto, condition, self.kms_key.as_deref());
        let sent = self.send_copy(&exchange, to, &options.condition, condition, build).await;
        let written = match sent {
            Ok(sent) => {
                let copied: CopyResult = xml::answer(&sent.response.body, &COPY_RESULTS)
                    .map_err(|e| exchange.nonsense(&sent, format!("the answer isn't a copy result: {e}")))?;
                let version = copied.etag.as_deref().map(|etag| Version::ETag(unquoted(etag)));
                match known.and_then(|known| copied.as_copy_of(known, to)) {
                    Some(copy) => copy,
                    None => self.described_copy(from, to, version).await?,
                }
            }
            Err(error) if error.is_precondition() && error.is_uncertain() => {
                match self.head_as(from, None, None, KeyUse::Source).await {
                    Ok(source) => {
                        landed(error, Box::pin(self.head(to, None)), source.size, &source.checksums).await?
                    }
                    Err(_) => return Err(error),
                }
            }
            Err(error) => return Err(error),
        };
        self.look_after(&exchange, ConditionalWrite::Copy, &options.condition, written).await
    }

    /// Reads the metadata of a finished copy from the store.
    async fn described_copy(
        &self,
        from: &ObjectId,
        to: &ObjectId,
        version: Option<Version>,
    ) -> Result<ObjectMeta, Error> {
        match self.head(to, version.as_ref()).await {
            // The credentials may permit writing but not reading. Then assume that the copy has the size of its source.
            Err(error) if error.is_permission() => {
                let source = self
                    .head_as(from, None, None, KeyUse::Source)
                    .await
                    .map_err(|e| e.within(Operation::Copy))?;
                Ok(ObjectMeta { version, ..ObjectMeta::new(to.clone(), source.size) })
            }
            outcome => outcome.map_err(|e| e.within(Operation::Copy)),
        }
    }

    /// Sends the request for a copy. `onto` is the condition on the destination, and `condition` the condition on the
    /// source. `build` makes the request. It gets the condition on the destination, or [`Condition::None`] if the
    /// endpoint refuses such conditions.
    pub(super) async fn send_copy(
        &self,
        exchange: &Exchange<'_, Self>,
        to: &ObjectId,
        onto: &Condition,
        condition: &Condition,
        build: impl Fn(&Condition) -> Result<Outgoing, String>,
    ) -> Result<ExchangeResponse, Error> {
        loop {
            self.look_before(exchange, ConditionalWrite::Copy, to, onto).await?;
            let onto = self.sendable(ConditionalWrite::Copy, onto);
            let mut outgoing = build(onto).map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
            if self.conditions.has_headers_for_copies() {
                for (usual, own) in HEADERS_FOR_COPIES {
                    if let Some(value) = outgoing.headers.get(usual).cloned() {
                        outgoing.headers.insert(own, value);
                    }
                }
            }
            // The failed condition may be the one on the source. Then the error doesn't show whether the endpoint
            // supports conditions on the destination.
            let is_clear = |error: &Error| condition.is_none() || !error.is_precondition();
            match exchange.send(&outgoing).await {
                Err(error)
                    if !onto.is_none()
                        && is_clear(&error)
                        && self.conditions.learn(ConditionalWrite::Copy, &error) => {}
                sent => return sent,
            }
        }
    }

    pub(crate) async fn copy_part(
        &self,
        upload: &Multipart,
        number: u32,
        from: &ObjectId,
        version: Option<&Version>,
        range: Range<u64>,
    ) -> Result<Part, Error> {
        let exchange = Exchange::object(self, Operation::Part, &upload.id);
        if range.is_empty() {
            return Err(exchange.error(ErrorKind::Invalid, "a part can't be copied from an empty range"));
        }
        let outgoing = part_request(upload, number, from, version, &range)
            .map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
        let sent = exchange.send(&outgoing).await?;
        let copied: CopyResult = xml::answer(&sent.response.body, &COPY_RESULTS)
            .map_err(|e| exchange.nonsense(&sent, format!("the answer isn't a copy result: {e}")))?;
        let crc32c = copied.crc32c.as_deref().and_then(decode_crc32c);
        let etag =
            copied.etag.ok_or_else(|| exchange.nonsense(&sent, "the answer to a copied part has no ETag"))?;
        Ok(Part { number, etag, size: range.end - range.start, crc32c, md5: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PartChecksums;

    #[test]
    fn a_copy_keeps_what_it_is_not_told() {
        let (from, to) = (ObjectId::new("b", "a//b +"), ObjectId::new("c", "d"));
        let kept = request(&from, &to, &PutOptions::default(), &Condition::None, &Condition::None, None)
            .expect("a request");
        assert_eq!(kept.headers["x-amz-copy-source"], "/b/a//b%20%2B");
        assert!(!kept.headers.contains_key("x-amz-metadata-directive"));
        let options = PutOptions::default().content_type("a/b");
        let replaced = request(
            &from,
            &to,
            &options,
            &Condition::None,
            &Condition::Matches(Version::ETag("e".into())),
            None,
        );
        let replaced = replaced.expect("a request");
        assert_eq!(replaced.headers["x-amz-metadata-directive"], "REPLACE");
        assert_eq!(replaced.headers["x-amz-copy-source-if-match"], "\"e\"");
    }

    #[test]
    fn a_source_behind_an_access_point_is_named_by_an_arn() {
        let from = ObjectId::new("arn:aws:s3:us-west-2:123456789012:accesspoint/data", "a/b");
        assert_eq!(
            copy_source(&from),
            "arn%3Aaws%3As3%3Aus-west-2%3A123456789012%3Aaccesspoint%2Fdata%2Fobject%2Fa%2Fb"
        );
    }

    #[test]
    fn a_copied_part_names_its_range() {
        let upload =
            Multipart { id: ObjectId::new("b", "k"), upload_id: "u".into(), checksums: PartChecksums::None };
        let request = part_request(&upload, 2, &ObjectId::new("s", "x"), None, &(10..20)).expect("a request");
        assert_eq!(request.target, "/k?partNumber=2&uploadId=u");
        assert_eq!(request.headers["x-amz-copy-source-range"], "bytes=10-19");
    }

    #[test]
    fn the_answer_tells_of_a_copy_whose_etag_is_the_md5_of_its_source() {
        const MD5: &str = "25f9e794323b453885f5181f1b624d0b";
        let to = ObjectId::new("b", "k");
        let source = |etag: &str, crc32c| {
            let mut source = ObjectMeta::new(ObjectId::new("b", "from"), 9);
            (source.version, source.checksums.crc32c) = (Some(Version::ETag(etag.to_owned())), crc32c);
            source
        };
        let copied = |etag: &str, crc32c: Option<&str>| CopyResult {
            etag: Some(format!("\"{etag}\"")),
            crc32c: crc32c.map(str::to_owned),
        };
        let copy =
            copied(MD5, Some("4waSgw==")).as_copy_of(&source(MD5, Some(0xe306_9283)), &to).expect("enough");
        assert_eq!((copy.size, copy.checksums.crc32c), (9, Some(0xe306_9283)));
        assert!(copied(MD5, None).as_copy_of(&source(MD5, None), &to).is_some());
        assert!(
            copied(MD5, None).as_copy_of(&source(MD5, Some(1)), &to).is_none(),
            "nothing to compare with"
        );
        let other = MD5.replace('2', "3");
        assert!(copied(MD5, None).as_copy_of(&source(&other, None), &to).is_none(), "replaced, or encrypted");
        let parts = format!("{MD5}-2");
        assert!(copied(&parts, None).as_copy_of(&source(&parts, None), &to).is_none(), "no MD5 of the bytes");
    }

    #[test]
    fn a_copy_result_is_read() {
        let body = b"<CopyObjectResult><LastModified>x</LastModified><ETag>&quot;e&quot;</ETag><ChecksumCRC32C>4waSgw==</ChecksumCRC32C></CopyObjectResult>";
        let copied: CopyResult = xml::read(body).expect("an answer");
        assert_eq!(copied.etag.as_deref().map(unquoted).as_deref(), Some("e"));
        assert_eq!(copied.crc32c.as_deref(), Some("4waSgw=="));
    }
}
