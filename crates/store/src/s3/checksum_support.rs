//! The endpoint's support of checksums in requests. Some stores don't know Amazon's header and refuse a request that
//! has it. So each kind of request has a list of alternative forms. Laneway tries them from the best on, and
//! remembers the first form that the endpoint accepts.

use std::sync::atomic::{AtomicUsize, Ordering};

use http::StatusCode;

use crate::settings::RequestChecksums;
use crate::{Error, Operation, PartChecksums};

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
}
