//! Multipart uploads. The server keeps one CRC32C of the whole object if it can (`FULL_OBJECT`). Otherwise it keeps the
//! CRC32C of the parts' CRC32Cs (`COMPOSITE`), or none. The first upload shows which of these the server supports, and
//! the result is remembered.

use std::time::Duration;

use http::Method;
use laneway_lanes::{Body, ResponseHead};
use serde::Deserialize;

use super::S3;
use super::address::is_directory;
use super::checksum_support::{PartSha256s, RequestForms, demands_checksum};
use super::conditions::{on_write, unquoted};
use super::get::object_target;
use super::headers::{check_options, checked, checksums, describe, md5, reported};
use super::write_conditions::ConditionalWrite;
use crate::checksum::{PartsAlgorithm, decode_crc64, encode_crc32c, encode_md5, md5_of_part};
use crate::encode::QueryString;
use crate::encryption::KeyUse;
use crate::exchange::{Exchange, Outgoing, UnsendableHeader};
use crate::multipart::{
    BEGINNINGS_MAX, MultipartDialect, damaged, in_order, part_of, part_request, upload_id,
};
use crate::reconcile::{compared, landed, unread};
use crate::{
    ChecksumAlgorithm, Checksums, Condition, Error, ErrorKind, Multipart, ObjectId, ObjectMeta, Operation,
    Part, PartChecksums, PutOptions, Version, checksum, multipart, xml,
};

pub(super) fn begin_request(
    id: &ObjectId,
    options: &PutOptions,
    kms_key: Option<&str>,
    wish: PartChecksums,
) -> Result<Outgoing, UnsendableHeader> {
    let outgoing =
        describe(S3::about(Method::POST, id, &QueryString::new().and("uploads", "")), options, kms_key)?
            .key_use(KeyUse::New);
    match wish {
        PartChecksums::FullObject => outgoing
            .header("x-amz-checksum-algorithm", "CRC32C")?
            .header("x-amz-checksum-type", "FULL_OBJECT"),
        PartChecksums::Composite => outgoing.header("x-amz-checksum-algorithm", "CRC32C"),
        PartChecksums::None => Ok(outgoing),
    }
}

/// Returns the kind of checksum that the server will keep. The server's answer repeats those request headers that the
/// server supports.
fn granted(head: &ResponseHead) -> PartChecksums {
    let is =
        |name: &str, value: &str| head.header(name).is_some_and(|found| found.eq_ignore_ascii_case(value));
    if !is("x-amz-checksum-algorithm", "CRC32C") {
        PartChecksums::None
    } else if is("x-amz-checksum-type", "FULL_OBJECT") {
        PartChecksums::FullObject
    } else {
        PartChecksums::Composite
    }
}

fn complete_request(
    upload: &Multipart,
    parts: &[Part],
    whole: &Checksums,
    sha256s: &PartSha256s,
    condition: &Condition,
) -> Result<Outgoing, String> {
    let mut outgoing = multipart::complete_request::<S3>(upload, parts, &sha256s.by_number)?;
    outgoing.conflict_is_final = true;
    if upload.checksums == PartChecksums::FullObject
        && let Some(crc32c) = whole.crc32c
    {
        outgoing = outgoing
            .header("x-amz-checksum-type", "FULL_OBJECT")
            .and_then(|o| o.header("x-amz-checksum-crc32c", &encode_crc32c(crc32c)))
            .map_err(|e| e.to_string())?;
    }
    on_write(outgoing, condition)
}

/// Returns the checksums that the completed object must have, as far as they can be computed.
fn expected(upload: &Multipart, parts: &[Part], whole: &Checksums) -> Checksums {
    let mut sums = whole.clone();
    if upload.checksums == PartChecksums::Composite {
        let crcs: Option<Vec<u32>> = in_order(parts).iter().map(|part| part.crc32c).collect();
        sums.parts = crcs.map(|crcs| checksum::composite(crcs.into_iter()));
    }
    sums
}

#[derive(Deserialize)]
struct CompleteMultipartUploadResult {
    #[serde(rename = "ETag")]
    etag: Option<String>,
    #[serde(rename = "ChecksumCRC32C")]
    crc32c: Option<String>,
    #[serde(rename = "ChecksumCRC64NVME")]
    crc64nvme: Option<String>,
    #[serde(rename = "ChecksumSHA256")]
    sha256: Option<String>,
    #[serde(rename = "ChecksumType")]
    kind: Option<String>,
}

impl CompleteMultipartUploadResult {
    fn checksums(&self) -> Checksums {
        let is_composite = self.kind.as_deref().is_some_and(|kind| kind.eq_ignore_ascii_case("COMPOSITE"));
        let value = |algorithm| match algorithm {
            PartsAlgorithm::Crc32c => self.crc32c.as_deref(),
            PartsAlgorithm::Sha256 => self.sha256.as_deref(),
            _ => None,
        };
        let mut sums = reported(is_composite, value);
        sums.crc64nvme = self.crc64nvme.as_deref().and_then(decode_crc64);
        sums
    }
}

impl S3 {
    pub(crate) async fn begin_upload(&self, id: &ObjectId, options: &PutOptions) -> Result<Multipart, Error> {
        let exchange = Exchange::object(self, Operation::Begin, id);
        check_options(options).map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
        let kms_key = self.kms_key.as_deref();
        let build = |wish| begin_request(id, options, kms_key, wish).map_err(|e| exchange.unsendable(&e));
        let algorithm = self.checksum_algorithm;
        if algorithm == ChecksumAlgorithm::Crc32c {
            return self.begin_as(id, &self.checksums.parts, build).await;
        }
        let kind = if algorithm == ChecksumAlgorithm::Sha256 { "COMPOSITE" } else { "FULL_OBJECT" };
        let build = |wish| {
            build(wish)?
                .header("x-amz-checksum-algorithm", algorithm.name())
                .and_then(|outgoing| outgoing.header("x-amz-checksum-type", kind))
                .map_err(|e| exchange.unsendable(&e))
        };
        self.begin_as(id, &self.checksums.chosen, build).await
    }

    pub(crate) async fn begin_unchecked_upload(
        &self,
        id: &ObjectId,
        options: &PutOptions,
    ) -> Result<Multipart, Error> {
        let exchange = Exchange::object(self, Operation::Begin, id);
        check_options(options).map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
        let build = |_: PartChecksums| {
            let request = begin_request(id, options, self.kms_key.as_deref(), PartChecksums::None);
            request.map_err(|e| exchange.unsendable(&e))
        };
        // This request doesn't ask for checksums of parts. So its success doesn't show which checksums the endpoint
        // accepts, and must not be recorded in `checksums.parts`.
        self.begin_as(id, &self.checksums.chosen, build).await
    }

    /// Begins an upload. `forms` holds the kinds of checksums to try, and `build` makes the request for one of them.
    pub(super) async fn begin_as(
        &self,
        id: &ObjectId,
        forms: &RequestForms<PartChecksums>,
        build: impl Fn(PartChecksums) -> Result<Outgoing, Error>,
    ) -> Result<Multipart, Error> {
        let exchange = Exchange::object(self, Operation::Begin, id);
        let mut attempt = forms.attempt();
        let (mut unreadable, mut attempts, mut elapsed) = (0, 0, Duration::ZERO);
        loop {
            let outgoing = build(attempt.form())?;
            let sent = match exchange.send(&outgoing).await {
                Ok(sent) => sent,
                Err(error) if attempt.fall_back(&error) => continue,
                Err(error) => return Err(error),
            };
            let why = match upload_id(&sent.response.body) {
                Ok(upload_id) => {
                    attempt.settle();
                    let checksums = granted(&sent.response.head);
                    return Ok(Multipart { id: id.clone(), upload_id, checksums });
                }
                Err(why) => format!("the answer doesn't contain an upload id: {why}"),
            };
            unreadable += 1;
            attempts += sent.attempts;
            elapsed += sent.elapsed;
            if unreadable == BEGINNINGS_MAX {
                return Err(exchange.nonsense(&sent, why).after(attempts, elapsed));
            }
            tracing::debug!(%id, why, "the answer has no upload id, so the request is sent again");
        }
    }

    /// Returns the MD5 in a part's ETag, if the store returns no cheaper checksum of the part. In that case only the
    /// MD5 can prove that the part arrived unchanged. The ETag isn't an MD5 in a directory bucket, or if the part is
    /// encrypted with a KMS key or a customer's key.
    fn md5_named(&self, upload: &Multipart, head: &ResponseHead) -> Option<[u8; 16]> {
        let is_opaque = self.kms_key.is_some()
            || self.encryption.customer_key.is_some()
            || is_directory(&upload.id.bucket)
            || self.etags.are_opaque()
            || upload.checksums != PartChecksums::None
            || head.header("x-amz-checksum-sha256").is_some();
        md5(head).filter(|_| !is_opaque && checksums(head).is_empty())
    }

    pub(crate) async fn complete_upload(
        &self,
        upload: &Multipart,
        parts: &[Part],
        whole: &Checksums,
        condition: &Condition,
    ) -> Result<ObjectMeta, Error> {
        let exchange = Exchange::object(self, Operation::Complete, &upload.id);
        let sha256s = Box::pin(self.part_sha256s(upload, parts)).await?;
        let sent = loop {
            self.look_before(&exchange, ConditionalWrite::Complete, &upload.id, condition).await?;
            let sendable = self.sendable(ConditionalWrite::Complete, condition);
            let outgoing = complete_request(upload, parts, whole, &sha256s, sendable)
                .map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
            match exchange.send(&outgoing).await {
                Err(error)
                    if !sendable.is_none() && self.conditions.learn(ConditionalWrite::Complete, &error) => {}
                sent => break sent,
            }
        };
        let size = parts.iter().map(|part| part.size).sum();
        let sums = expected(upload, parts, whole);
        let head = || async { self.head(&upload.id, None).await.map(|meta| sha256s.prove(meta, whole)) };
        let meta = match sent {
            Ok(sent) => {
                match xml::answer::<CompleteMultipartUploadResult>(
                    &sent.response.body,
                    &["CompleteMultipartUploadResult"],
                ) {
                    Ok(answer) => {
                        let mut meta = ObjectMeta::new(upload.id.clone(), size);
                        meta.etag = answer.etag.as_deref().map(unquoted);
                        meta.version = meta.etag.clone().map(Version::ETag);
                        meta.checksums = answer.checksums();
                        if meta.checksums.is_empty() {
                            meta =
                                self.described_or(meta).await.map_err(|e| e.within(Operation::Complete))?;
                        }
                        meta
                    }
                    Err(e) => {
                        let error = exchange.nonsense(
                            &sent,
                            format!("the answer doesn't confirm that the upload is complete: {e}"),
                        );
                        unread(error, Box::pin(head()), size, &sums).await?
                    }
                }
            }
            Err(error) => landed(error, Box::pin(head()), size, &sums).await?,
        };
        if sha256s.contradict(&meta) {
            let message = "the store's sha256 differs from that of the parts that were sent";
            return Err(exchange.error(ErrorKind::Integrity, message));
        }
        let meta = sha256s.prove(meta, whole);
        let written = compared(&exchange, meta, size, &sums)?;
        self.look_after(&exchange, ConditionalWrite::Complete, condition, written).await
    }
}

impl MultipartDialect for S3 {
    const NAMESPACE: &str = " xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"";

    const REPEATS_CHECKSUMS: bool = true;

    fn about(method: Method, id: &ObjectId, query: &QueryString) -> Outgoing {
        Outgoing::new(method, object_target(id, query))
    }

    fn about_all(_bucket: &str, query: &QueryString) -> Outgoing {
        Outgoing::new(Method::GET, query.to_string())
    }

    const CHECKSUMS_UNTOLD: PartChecksums = PartChecksums::None;

    fn checked(outgoing: Outgoing, crc32c: u32) -> Result<Outgoing, UnsendableHeader> {
        checked(outgoing, crc32c)
    }

    fn crc32c_of(answer: &ResponseHead) -> Option<u32> {
        checksums(answer).crc32c
    }

    async fn part(&self, upload: &Multipart, number: u32, body: Body, crc32c: u32) -> Result<Part, Error> {
        let exchange = Exchange::object(self, Operation::Part, &upload.id);
        let size = body.len();
        let mut outgoing = part_request::<Self>(upload, number, body.clone(), crc32c)
            .map_err(|e| exchange.unsendable(&e))?;
        let digest = match upload.checksums {
            PartChecksums::None => self.chosen_digest(&exchange, &body, Some(crc32c)).await?,
            _ => None,
        };
        if let Some(digest) = &digest {
            outgoing = digest.on(outgoing).map_err(|e| exchange.unsendable(&e))?;
        }
        let sent = match exchange.send(&outgoing).await {
            // If the object will be locked, S3 refuses a part without a checksum. So send the part again with its MD5.
            Err(error) if upload.checksums == PartChecksums::None && demands_checksum(&error) => {
                let Some(md5) = md5_of_part(body.clone()).await else { return Err(error) };
                let outgoing = outgoing.header("content-md5", &encode_md5(md5));
                exchange.send(&outgoing.map_err(|e| exchange.unsendable(&e))?).await?
            }
            sent => sent?,
        };
        let part = part_of(&exchange, &sent, number, size, crc32c)?;
        if digest.is_some_and(|digest| digest.is_repeated(&sent.response.head) == Some(false)) {
            return Err(damaged(&exchange, &sent, number, "checksum"));
        }
        let Some(named) = self.md5_named(upload, &sent.response.head) else { return Ok(part) };
        let md5 = md5_of_part(body).await;
        if md5.is_some_and(|md5| md5 != named) {
            return Err(damaged(&exchange, &sent, number, "md5"));
        }
        Ok(Part { md5, ..part })
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, StatusCode};

    use super::*;
    use crate::{Composite, PartsDigest};

    fn upload(checksums: PartChecksums) -> Multipart {
        Multipart { id: ObjectId::new("b", "k"), upload_id: "u".into(), checksums }
    }

    fn part(number: u32, crc32c: u32) -> Part {
        Part { number, etag: format!("\"e{number}\""), size: 5, crc32c: Some(crc32c), md5: None }
    }

    #[test]
    fn an_upload_wishes_for_one_checksum_of_the_whole() {
        let id = ObjectId::new("b", "k");
        let begin = |wish| begin_request(&id, &PutOptions::default(), None, wish).expect("a request").headers;
        assert_eq!(begin(PartChecksums::FullObject)["x-amz-checksum-type"], "FULL_OBJECT");
        assert_eq!(begin(PartChecksums::Composite)["x-amz-checksum-algorithm"], "CRC32C");
        assert!(begin(PartChecksums::None).is_empty());
    }

    #[test]
    fn the_server_says_what_it_understood() {
        let answer = |headers: &[(&'static str, &'static str)]| {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.insert(*name, HeaderValue::from_static(value));
            }
            granted(&ResponseHead { status: StatusCode::OK, headers: map })
        };
        let algorithm = ("x-amz-checksum-algorithm", "CRC32C");
        assert_eq!(answer(&[algorithm, ("x-amz-checksum-type", "FULL_OBJECT")]), PartChecksums::FullObject);
        assert_eq!(answer(&[algorithm]), PartChecksums::Composite);
        assert_eq!(answer(&[]), PartChecksums::None);
    }

    #[test]
    fn completing_says_the_checksum_of_the_whole_and_the_condition() {
        let whole = Checksums::crc32c(0xe306_9283);
        let parts = [part(2, 1), part(1, 0xe306_9283)];
        let request = complete_request(
            &upload(PartChecksums::FullObject),
            &parts,
            &whole,
            &PartSha256s::default(),
            &Condition::Absent,
        );
        let request = request.expect("a request");
        assert_eq!(request.headers["x-amz-checksum-crc32c"], "4waSgw==");
        assert_eq!(request.headers["if-none-match"], "*");
    }

    #[test]
    fn a_composite_is_expected_of_who_keeps_composites() {
        let parts = [part(2, 2), part(1, 1)];
        let whole = Checksums::crc32c(9);
        let sums = expected(&upload(PartChecksums::Composite), &parts, &whole);
        assert_eq!(sums.parts.map(|p| p.parts), Some(2));
        assert_eq!(sums.parts, Some(crate::checksum::composite([1, 2].into_iter())));
        assert_eq!(expected(&upload(PartChecksums::FullObject), &parts, &whole), whole);
        let unknown = [Part { crc32c: None, ..part(1, 0) }];
        assert_eq!(expected(&upload(PartChecksums::Composite), &unknown, &whole).parts, None);
    }

    #[test]
    fn a_completed_uploads_checksum_is_of_the_kind_it_says() {
        let read =
            |body: &[u8]| xml::read::<CompleteMultipartUploadResult>(body).expect("an answer").checksums();
        let body = b"<CompleteMultipartUploadResult><Location>l</Location><ETag>\"e-2\"</ETag><ChecksumCRC32C>4waSgw==</ChecksumCRC32C><ChecksumType>FULL_OBJECT</ChecksumType></CompleteMultipartUploadResult>";
        assert_eq!(read(body).crc32c, Some(0xe306_9283));
        let body = b"<CompleteMultipartUploadResult><ETag>\"e-2\"</ETag><ChecksumCRC32C>4waSgw==-2</ChecksumCRC32C></CompleteMultipartUploadResult>";
        assert_eq!(read(body).parts, Some(Composite { digest: PartsDigest::Crc32c(0xe306_9283), parts: 2 }));
    }
}
