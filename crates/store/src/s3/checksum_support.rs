//! The endpoint's support of checksums in requests. Some stores don't know Amazon's header and refuse a request that
//! has it. So each kind of request has a list of alternative forms. Laneway tries them from the best on, and
//! remembers the first form that the endpoint accepts.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crc_fast::{CrcAlgorithm, Digest};
use http::StatusCode;
use laneway_lanes::{Body, ResponseHead};
use ring::digest::{Context, SHA256};

use super::S3;
use crate::checksum::{PartsAlgorithm, each_segment, on_a_thread};
use crate::exchange::{Exchange, Outgoing, UnsendableHeader};
use crate::multipart::MultipartDialect as _;
use crate::settings::RequestChecksums;
use crate::{
    ChecksumAlgorithm, Checksums, Error, ErrorKind, Multipart, ObjectMeta, Operation, Part, PartChecksums,
    PartsDigest,
};

/// The checksum by which a store verifies the body of a single-request upload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BodyChecksum {
    /// `x-amz-checksum-crc32c`.
    Crc32c,
    /// `Content-MD5`, which S3 has supported from the beginning.
    Md5,
    /// The request has no checksum. Laneway compares the object's checksum after the upload.
    None,
}

/// The endpoint's support, as far as its answers have shown it.
#[derive(Debug)]
pub(super) struct ChecksumSupport {
    /// The forms for the bodies of single-request uploads.
    pub(super) bodies: RequestForms<BodyChecksum>,
    /// The forms for the parts of multipart uploads.
    pub(super) parts: RequestForms<PartChecksums>,
    /// The form for multipart uploads with a checksum that the caller chose. It has no alternative.
    pub(super) chosen: RequestForms<PartChecksums>,
    /// The forms for reads that request an object's checksum.
    pub(super) reads: RequestForms<bool>,
}

impl ChecksumSupport {
    pub(super) fn new(requests: RequestChecksums) -> Self {
        let reads = RequestForms::new("x-amz-checksum-mode", &[true, false]);
        let chosen = RequestForms::new("x-amz-checksum-algorithm", &[PartChecksums::None]);
        match requests {
            RequestChecksums::WhenSupported => Self {
                bodies: RequestForms::new(
                    "x-amz-checksum-crc32c",
                    &[BodyChecksum::Crc32c, BodyChecksum::Md5],
                ),
                parts: RequestForms::new(
                    "checksums of parts",
                    &[PartChecksums::FullObject, PartChecksums::Composite, PartChecksums::None],
                ),
                chosen,
                reads,
            },
            // Even with this setting, a bucket with object locks requires a checksum. It refuses an upload without one,
            // and Laneway tries the next form.
            RequestChecksums::WhenRequired => Self {
                bodies: RequestForms::new(
                    "uploads without a checksum",
                    &[BodyChecksum::None, BodyChecksum::Crc32c, BodyChecksum::Md5],
                ),
                parts: RequestForms::new("checksums of parts", &[PartChecksums::None]),
                chosen,
                reads,
            },
        }
    }
}

/// Alternative forms of a request, the best one first.
#[derive(Debug)]
pub(super) struct RequestForms<T: 'static> {
    /// The name of the first form for log messages.
    name: &'static str,
    alternatives: &'static [T],
    /// The index of the form that the endpoint accepts, or [`UNSETTLED`] if none has succeeded yet.
    settled: AtomicUsize,
}

const UNSETTLED: usize = usize::MAX;

impl<T: Copy> RequestForms<T> {
    const fn new(name: &'static str, alternatives: &'static [T]) -> Self {
        Self { name, alternatives, settled: AtomicUsize::new(UNSETTLED) }
    }

    /// Starts a request in the form that has succeeded before, or else in the first form.
    pub(super) fn attempt(&self) -> FormAttempt<'_, T> {
        FormAttempt { forms: self, at: self.settled().unwrap_or(0), is_demanded: false }
    }

    fn settled(&self) -> Option<usize> {
        Some(self.settled.load(Ordering::Acquire)).filter(|settled| *settled != UNSETTLED)
    }
}

/// The form in which a request is being tried.
#[derive(Debug)]
pub(super) struct FormAttempt<'a, T: 'static> {
    forms: &'a RequestForms<T>,
    at: usize,
    /// `true` if the request has given up a form that the endpoint accepts, because its bucket requires a checksum.
    is_demanded: bool,
}

impl<T: Copy> FormAttempt<'_, T> {
    pub(super) fn form(&self) -> T {
        self.forms.alternatives[self.at]
    }

    /// Moves to the next form of the request if the error may mean that the endpoint refuses an unknown header. If the
    /// endpoint has accepted this form before, the error has another reason. The exception is a bucket that requires a
    /// checksum, for example because of object locks. Other buckets of the same endpoint may have accepted bodies
    /// without one.
    pub(super) fn fall_back(&mut self, error: &Error) -> bool {
        let may = self.forms.settled().is_none_or(|settled| settled > self.at);
        let is_demanded = !may && demands_checksum(error);
        let falls_back =
            (may || is_demanded) && self.at + 1 < self.forms.alternatives.len() && refuses_header(error);
        self.is_demanded |= is_demanded && falls_back;
        self.at += usize::from(falls_back);
        falls_back
    }

    /// Remembers that the endpoint accepted the request in its present form.
    pub(super) fn settle(&self) {
        let settled = &self.forms.settled;
        let is_first =
            settled.compare_exchange(UNSETTLED, self.at, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if self.is_demanded {
            settled.fetch_max(self.at, Ordering::AcqRel);
            tracing::info!("a bucket requires checksums: all uploads to this endpoint send one from now on");
        } else if is_first && self.at > 0 {
            tracing::info!("the endpoint refuses {}: later requests take another form", self.forms.name);
        }
    }
}

/// Returns whether a request was refused because it has no checksum. Amazon's message is `Content-MD5 OR
/// x-amz-checksum- HTTP header is required for Put Object requests with Object Lock parameters`.
pub(super) fn demands_checksum(error: &Error) -> bool {
    let message = error.message().to_ascii_lowercase();
    let names_one = message.contains("content-md5") || message.contains("checksum");
    error.is_invalid() && names_one && message.contains("required")
}

/// Returns true if an error may mean that the store refuses an unknown header. R2 refused the checksum header with
/// `NotImplemented`. Backblaze B2 returns `InvalidArgument` with a message that names the header. The answer to a HEAD
/// has no message, so the cause may also be expired credentials. The next form then fails too.
fn refuses_header(error: &Error) -> bool {
    let about_checksums = error.message().to_ascii_lowercase().contains("checksum");
    let is_vague = error.code().is_none_or(|code| matches!(code, "InvalidArgument" | "InvalidRequest"));
    // The answer 400 to a HEAD has no body. Laneway reports it as expired credentials or, over plain HTTP, as the
    // answer of a TLS port. So both errors may mean that the store refuses a header.
    let is_of_tls = error.is_unreachable() && error.operation() == Operation::Head;
    let is_silent = (error.is_unauthenticated() || is_of_tls)
        && error.code().is_none()
        && error.status() == Some(StatusCode::BAD_REQUEST);
    error.is_unsupported() || is_silent || (error.is_invalid() && (about_checksums || is_vague))
}

/// The digest of a body above this size is computed on a new thread.
const AT_ONCE_MAX: u64 = 1 << 20;

/// The digest of a body.
///
/// The checksum that the caller chose instead of CRC32C. The store computes it from the bytes that it receives,
/// compares it with the request's checksum, and keeps it. While Laneway computes the checksum, it also computes the
/// CRC32C of the same bytes and compares it with the caller's. So if the chosen checksum is right, the caller's CRC32C
/// is right too.
pub(super) struct ChosenDigest {
    header: &'static str,
    /// In base64.
    value: String,
    is_sha256: bool,
}

impl ChosenDigest {
    /// Adds the digest to the request that sends the body.
    pub(super) fn on(&self, outgoing: Outgoing) -> Result<Outgoing, UnsendableHeader> {
        outgoing.header(self.header, &self.value)
    }

    /// Returns true if the store's answer repeats this digest, and false if it contains another one. Returns `None` if
    /// it contains none.
    pub(super) fn is_repeated(&self, answer: &ResponseHead) -> Option<bool> {
        answer.header(self.header).map(|stored| stored.trim() == self.value)
    }

    /// Adds the CRC32C of the sent bytes to `meta` if the answer repeats their SHA-256, for which `meta` has no field.
    ///
    /// # Errors
    /// Returns `Integrity` if the store's digest differs.
    pub(super) fn prove(
        &self,
        exchange: &Exchange<'_, S3>,
        answer: &ResponseHead,
        meta: &mut ObjectMeta,
        sent: &Checksums,
    ) -> Result<(), Error> {
        match self.is_repeated(answer) {
            Some(true) if self.is_sha256 => meta.checksums.crc32c = sent.crc32c,
            Some(true) | None => {}
            Some(false) => {
                let message =
                    format!("the store's {} differs from that of the bytes that were sent", self.header);
                return Err(exchange.error(ErrorKind::Integrity, message));
            }
        }
        Ok(())
    }
}

/// The SHA-256s of an upload's parts in base64, by part number, and the digest that the whole object must have.
#[derive(Default)]
pub(super) struct PartSha256s {
    pub(super) by_number: BTreeMap<u32, String>,
    whole: Option<PartsDigest>,
}

impl PartSha256s {
    /// Adds the CRC32C of all bytes to an object's metadata, if the object's digest is that of these parts.
    pub(super) fn prove(&self, mut meta: ObjectMeta, sent: &Checksums) -> ObjectMeta {
        let stored = meta.checksums.parts.map(|parts| parts.digest);
        if stored.is_some() && stored == self.whole {
            meta.checksums.crc32c = sent.crc32c;
        }
        meta
    }

    /// Returns true if the object has a SHA-256 of its parts' SHA-256s, and this digest isn't that of these parts.
    pub(super) fn contradict(&self, meta: &ObjectMeta) -> bool {
        let stored = meta.checksums.parts.map(|parts| parts.digest);
        let stored = stored.filter(|digest| digest.algorithm() == PartsAlgorithm::Sha256);
        stored.zip(self.whole).is_some_and(|(stored, ours)| stored != ours)
    }
}

impl S3 {
    /// Returns a body's digest by the algorithm that the caller chose, or `None` if that is CRC32C.
    ///
    /// # Errors
    /// Returns `Integrity` if the body can't be read, or isn't the one whose CRC32C was computed.
    pub(super) async fn chosen_digest(
        &self,
        exchange: &Exchange<'_, Self>,
        body: &Body,
        crc32c: Option<u32>,
    ) -> Result<Option<ChosenDigest>, Error> {
        let (header, is_sha256) = match self.checksum_algorithm {
            ChecksumAlgorithm::Crc32c => return Ok(None),
            ChecksumAlgorithm::Crc64nvme => ("x-amz-checksum-crc64nvme", false),
            ChecksumAlgorithm::Sha256 => ("x-amz-checksum-sha256", true),
        };
        let computed = if body.len() <= AT_ONCE_MAX {
            digest(body, is_sha256)
        } else {
            let body = body.clone();
            on_a_thread(move || digest(&body, is_sha256)).await
        };
        match computed {
            Some((value, read)) if crc32c.is_none_or(|crc32c| crc32c == read) => {
                Ok(Some(ChosenDigest { header, value: STANDARD.encode(value), is_sha256 }))
            }
            Some(_) => Err(exchange.error(ErrorKind::Integrity, "the bytes changed before they were sent")),
            None => {
                let message = "the bytes can't be read to compute their checksum";
                Err(exchange.error(ErrorKind::Integrity, message))
            }
        }
    }

    /// Returns the SHA-256s of an upload's parts, which S3 demands when the upload is completed. They come from the
    /// store's list of the parts, which includes parts that an earlier run sent. Laneway compared each digest when it
    /// sent the part.
    ///
    /// # Errors
    /// Returns the error of the request for the list of parts.
    pub(super) async fn part_sha256s(
        &self,
        upload: &Multipart,
        parts: &[Part],
    ) -> Result<PartSha256s, Error> {
        if self.checksum_algorithm != ChecksumAlgorithm::Sha256 || upload.checksums != PartChecksums::None {
            return Ok(PartSha256s::default());
        }
        let listed = self.listed_parts(upload).await.map_err(|e| e.within(Operation::Complete))?;
        let bare = |etag: &str| etag.trim_matches('"').to_owned();
        let ours: BTreeMap<u32, String> = parts.iter().map(|part| (part.number, bare(&part.etag))).collect();
        let by_number: BTreeMap<u32, String> = listed
            .into_iter()
            .filter(|part| ours.get(&part.part_number) == Some(&bare(&part.etag)))
            .filter_map(|part| Some((part.part_number, part.sha256?)))
            .collect();
        let digests: Option<Vec<Vec<u8>>> =
            ours.keys().map(|number| STANDARD.decode(by_number.get(number)?).ok()).collect();
        let whole = digests.and_then(|digests| PartsAlgorithm::Sha256.over(&digests.concat()));
        Ok(PartSha256s { by_number, whole })
    }
}

/// Returns a body's SHA-256 or CRC64/NVME, and its CRC32C. Returns `None` if the body's file can't be read.
fn digest(body: &Body, is_sha256: bool) -> Option<(Vec<u8>, u32)> {
    let mut crc32c = Digest::new(CrcAlgorithm::Crc32Iscsi);
    let digest = if is_sha256 {
        let mut sha256 = Context::new(&SHA256);
        each_segment(body, |bytes| {
            crc32c.update(bytes);
            sha256.update(bytes);
        })?;
        sha256.finish().as_ref().to_vec()
    } else {
        let mut crc64 = Digest::new(CrcAlgorithm::Crc64Nvme);
        each_segment(body, |bytes| {
            crc32c.update(bytes);
            crc64.update(bytes);
        })?;
        crc64.finalize().to_be_bytes().to_vec()
    };
    Some((digest, crc32c.finalize() as u32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn refused(kind: ErrorKind, code: Option<&str>, message: &str) -> Error {
        Error::new(kind, Operation::Put, message).answered(StatusCode::BAD_REQUEST, code.map(str::to_owned))
    }

    #[test]
    fn a_refused_header_is_left_out_from_then_on() {
        let support = ChecksumSupport::new(RequestChecksums::WhenSupported);
        let mut first = support.bodies.attempt();
        assert_eq!(first.form(), BodyChecksum::Crc32c);
        let b2 = "Unsupported header 'x-amz-checksum-crc32c' received for this API call.";
        assert!(first.fall_back(&refused(ErrorKind::Invalid, Some("InvalidArgument"), b2)));
        assert_eq!(first.form(), BodyChecksum::Md5);
        assert_eq!(support.bodies.attempt().form(), BodyChecksum::Crc32c, "it has not worked yet");
        first.settle();
        assert_eq!(support.bodies.attempt().form(), BodyChecksum::Md5);
    }

    #[test]
    fn an_endpoint_that_took_it_once_means_something_else() {
        let support = ChecksumSupport::new(RequestChecksums::WhenSupported);
        support.bodies.attempt().settle();
        let error = refused(ErrorKind::Unsupported, Some("NotImplemented"), "");
        assert!(!support.bodies.attempt().fall_back(&error));
    }

    #[test]
    fn what_was_under_way_when_the_form_was_found_goes_there_too() {
        let support = ChecksumSupport::new(RequestChecksums::WhenSupported);
        let (mut first, mut second) = (support.bodies.attempt(), support.bodies.attempt());
        let error = refused(ErrorKind::Unsupported, Some("NotImplemented"), "");
        assert!(first.fall_back(&error));
        first.settle();
        assert!(second.fall_back(&error));
        assert_eq!(second.form(), BodyChecksum::Md5);
    }

    #[test]
    fn a_head_that_is_refused_without_a_word_is_asked_without_the_header() {
        let support = ChecksumSupport::new(RequestChecksums::WhenSupported);
        let mut attempt = support.reads.attempt();
        assert!(attempt.fall_back(&refused(ErrorKind::Unauthenticated, None, "Bad Request")));
        assert!(!attempt.form());
    }

    #[test]
    fn only_what_a_header_can_cause_is_tried_without_it() {
        for (kind, code) in [
            (ErrorKind::Integrity, "BadDigest"),
            (ErrorKind::Permission, "AccessDenied"),
            (ErrorKind::Invalid, "EntityTooLarge"),
            (ErrorKind::NotFound, "NoSuchBucket"),
        ] {
            let support = ChecksumSupport::new(RequestChecksums::WhenSupported);
            assert!(!support.bodies.attempt().fall_back(&refused(kind, Some(code), "no")), "{code}");
        }
    }

    #[test]
    fn checksums_are_left_out_where_they_are_not_required() {
        let support = ChecksumSupport::new(RequestChecksums::WhenRequired);
        let mut attempt = support.bodies.attempt();
        assert_eq!(
            (attempt.form(), support.parts.attempt().form()),
            (BodyChecksum::None, PartChecksums::None)
        );
        assert!(support.reads.attempt().form(), "what the store tells is asked for still");
        let locked = "Content-MD5 OR x-amz-checksum- HTTP header is required for Put Object requests";
        assert!(attempt.fall_back(&refused(ErrorKind::Invalid, Some("InvalidRequest"), locked)));
        assert_eq!(attempt.form(), BodyChecksum::Crc32c);
    }

    #[test]
    fn a_locked_bucket_gets_checksums_where_others_took_bodies_without() {
        let support = ChecksumSupport::new(RequestChecksums::WhenRequired);
        support.bodies.attempt().settle();
        let mut attempt = support.bodies.attempt();
        assert_eq!(attempt.form(), BodyChecksum::None);
        assert!(
            !attempt.fall_back(&refused(ErrorKind::Invalid, Some("InvalidArgument"), "no")),
            "it has worked"
        );
        let locked = "Content-MD5 OR x-amz-checksum- HTTP header is required for Put Object requests";
        assert!(attempt.fall_back(&refused(ErrorKind::Invalid, Some("InvalidRequest"), locked)));
        assert_eq!(attempt.form(), BodyChecksum::Crc32c);
        assert_eq!(support.bodies.attempt().form(), BodyChecksum::None, "it has not worked yet");
        attempt.settle();
        assert_eq!(support.bodies.attempt().form(), BodyChecksum::Crc32c);
    }

    #[test]
    fn a_body_is_digested_together_with_its_crc32c() {
        let body = Body::from("123456789");
        let (crc64, crc32c) = digest(&body, false).expect("a digest");
        assert_eq!((crc64, crc32c), (0xAE8B_1486_0A79_9888_u64.to_be_bytes().to_vec(), 0xe306_9283));
        let (sha256, crc32c) = digest(&body, true).expect("a digest");
        assert_eq!((sha256.len(), crc32c), (32, 0xe306_9283));
        let (empty, _) = digest(&Body::from(""), true).expect("a digest");
        assert_eq!(STANDARD.encode(empty), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    }
}
