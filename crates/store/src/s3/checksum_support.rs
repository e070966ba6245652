//! The endpoint's support of checksums in requests. Some stores don't know Amazon's header and refuse a request that
//! has it. So each kind of request has a list of alternative forms (a ladder). Laneway tries them from the best on, and
//! remembers the first form (rung) that the endpoint accepts.

use std::sync::atomic::{AtomicUsize, Ordering};

use http::StatusCode;

use crate::settings::RequestChecksums;
use crate::{Error, Operation, PartChecksums};

/// The checksum by which a store verifies the body of a single-request upload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Guard {
    /// `x-amz-checksum-crc32c`.
    Crc32c,
    /// `Content-MD5`, which is as old as S3.
    Md5,
    /// The request has no checksum. Laneway compares the object's checksum after the upload.
    None,
}

/// The endpoint's support, as far as its answers have shown it.
#[derive(Debug)]
pub(super) struct ChecksumSupport {
    /// The forms for the bodies of single-request uploads.
    pub(super) bodies: Ladder<Guard>,
    /// The forms for the parts of multipart uploads.
    pub(super) parts: Ladder<PartChecksums>,
    /// The form for multipart uploads with a checksum that the caller chose. It has no alternative.
    pub(super) chosen: Ladder<PartChecksums>,
    /// The forms for reads that request an object's checksum.
    pub(super) reads: Ladder<bool>,
}

impl ChecksumSupport {
    pub(super) fn new(requests: RequestChecksums) -> Self {
        let reads = Ladder::new("x-amz-checksum-mode", &[true, false]);
        let chosen = Ladder::new("x-amz-checksum-algorithm", &[PartChecksums::None]);
        match requests {
            RequestChecksums::WhenSupported => Self {
                bodies: Ladder::new("x-amz-checksum-crc32c", &[Guard::Crc32c, Guard::Md5]),
                parts: Ladder::new(
                    "checksums of parts",
                    &[PartChecksums::FullObject, PartChecksums::Composite, PartChecksums::None],
                ),
                chosen,
                reads,
            },
            // A bucket with object locks requires a checksum even then. It refuses an upload without one, and the next
            // form is tried.
            RequestChecksums::WhenRequired => Self {
                bodies: Ladder::new("uploads without a checksum", &[Guard::None, Guard::Crc32c, Guard::Md5]),
                parts: Ladder::new("checksums of parts", &[PartChecksums::None]),
                chosen,
                reads,
            },
        }
    }
}

/// Alternative forms of a request (rungs), the best one first.
#[derive(Debug)]
pub(super) struct Ladder<T: 'static> {
    /// The name of the first form for log messages.
    name: &'static str,
    rungs: &'static [T],
    /// The index of the form that the endpoint accepts, or [`UNSETTLED`] if none has succeeded yet.
    settled: AtomicUsize,
}

const UNSETTLED: usize = usize::MAX;

impl<T: Copy> Ladder<T> {
    const fn new(name: &'static str, rungs: &'static [T]) -> Self {
        Self { name, rungs, settled: AtomicUsize::new(UNSETTLED) }
    }

    /// Starts a request in the form that has succeeded before, or else in the first form.
    pub(super) fn climb(&self) -> Climb<'_, T> {
        Climb { ladder: self, at: self.settled().unwrap_or(0), is_demanded: false }
    }

    fn settled(&self) -> Option<usize> {
        Some(self.settled.load(Ordering::Acquire)).filter(|settled| *settled != UNSETTLED)
    }
}

/// The form in which a request is being tried.
#[derive(Debug)]
pub(super) struct Climb<'a, T: 'static> {
    ladder: &'a Ladder<T>,
    at: usize,
    /// `true` if the request has given up a form that the endpoint accepts, because its bucket requires a checksum.
    is_demanded: bool,
}

impl<T: Copy> Climb<'_, T> {
    pub(super) fn rung(&self) -> T {
        self.ladder.rungs[self.at]
    }

    /// Moves to the next form of the request if the error may refuse an unknown header. If the endpoint has accepted
    /// this form before, the error has another reason. The exception is a bucket that requires a checksum, for example
    /// because of object locks. Other buckets of the same endpoint may have accepted bodies without one.
    pub(super) fn descend(&mut self, error: &Error) -> bool {
        let may = self.ladder.settled().is_none_or(|settled| settled > self.at);
        let is_demanded = !may && demands_checksum(error);
        let descends = (may || is_demanded) && self.at + 1 < self.ladder.rungs.len() && refuses_header(error);
        self.is_demanded |= is_demanded && descends;
        self.at += usize::from(descends);
        descends
    }

    /// Remembers that the endpoint accepted the request in its present form.
    pub(super) fn settle(&self) {
        let settled = &self.ladder.settled;
        let is_first =
            settled.compare_exchange(UNSETTLED, self.at, Ordering::AcqRel, Ordering::Acquire).is_ok();
        if self.is_demanded {
            settled.fetch_max(self.at, Ordering::AcqRel);
            tracing::info!("a bucket requires checksums: all uploads to this endpoint send one from now on");
        } else if is_first && self.at > 0 {
            tracing::info!("the endpoint refuses {}: later requests take another form", self.ladder.name);
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

/// Returns true if an error may be the refusal of an unknown header. R2 refused the checksum header with
/// `NotImplemented`. Backblaze B2 returns `InvalidArgument` with a message that names the header. The answer to a HEAD
/// has no message, so the cause may also be expired credentials. The next form then fails too.
fn refuses_header(error: &Error) -> bool {
    let about_checksums = error.message().to_ascii_lowercase().contains("checksum");
    let is_vague = error.code().is_none_or(|code| matches!(code, "InvalidArgument" | "InvalidRequest"));
    // The answer 400 to a HEAD has no body. Laneway reports it as expired credentials or, over plain HTTP, as the
    // answer of a TLS port. So both errors may be the refusal of a header.
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
        let mut first = support.bodies.climb();
        assert_eq!(first.rung(), Guard::Crc32c);
        let b2 = "Unsupported header 'x-amz-checksum-crc32c' received for this API call.";
        assert!(first.descend(&refused(ErrorKind::Invalid, Some("InvalidArgument"), b2)));
        assert_eq!(first.rung(), Guard::Md5);
        assert_eq!(support.bodies.climb().rung(), Guard::Crc32c, "it has not worked yet");
        first.settle();
        assert_eq!(support.bodies.climb().rung(), Guard::Md5);
    }

    #[test]
    fn an_endpoint_that_took_it_once_means_something_else() {
        let support = ChecksumSupport::new(RequestChecksums::WhenSupported);
        support.bodies.climb().settle();
        let error = refused(ErrorKind::Unsupported, Some("NotImplemented"), "");
        assert!(!support.bodies.climb().descend(&error));
    }

    #[test]
    fn what_was_under_way_when_the_rung_was_found_goes_there_too() {
        let support = ChecksumSupport::new(RequestChecksums::WhenSupported);
        let (mut first, mut second) = (support.bodies.climb(), support.bodies.climb());
        let error = refused(ErrorKind::Unsupported, Some("NotImplemented"), "");
        assert!(first.descend(&error));
        first.settle();
        assert!(second.descend(&error));
        assert_eq!(second.rung(), Guard::Md5);
    }

    #[test]
    fn a_head_that_is_refused_without_a_word_is_asked_without_the_header() {
        let support = ChecksumSupport::new(RequestChecksums::WhenSupported);
        let mut climb = support.reads.climb();
        assert!(climb.descend(&refused(ErrorKind::Unauthenticated, None, "Bad Request")));
        assert!(!climb.rung());
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
            assert!(!support.bodies.climb().descend(&refused(kind, Some(code), "no")), "{code}");
        }
    }

    #[test]
    fn checksums_are_left_out_where_they_are_not_required() {
        let support = ChecksumSupport::new(RequestChecksums::WhenRequired);
        let mut climb = support.bodies.climb();
        assert_eq!((climb.rung(), support.parts.climb().rung()), (Guard::None, PartChecksums::None));
        assert!(support.reads.climb().rung(), "what the store tells is asked for still");
        let locked = "Content-MD5 OR x-amz-checksum- HTTP header is required for Put Object requests";
        assert!(climb.descend(&refused(ErrorKind::Invalid, Some("InvalidRequest"), locked)));
        assert_eq!(climb.rung(), Guard::Crc32c);
    }

    #[test]
    fn a_locked_bucket_gets_checksums_where_others_took_bodies_without() {
        let support = ChecksumSupport::new(RequestChecksums::WhenRequired);
        support.bodies.climb().settle();
        let mut climb = support.bodies.climb();
        assert_eq!(climb.rung(), Guard::None);
        assert!(!climb.descend(&refused(ErrorKind::Invalid, Some("InvalidArgument"), "no")), "it has worked");
        let locked = "Content-MD5 OR x-amz-checksum- HTTP header is required for Put Object requests";
        assert!(climb.descend(&refused(ErrorKind::Invalid, Some("InvalidRequest"), locked)));
        assert_eq!(climb.rung(), Guard::Crc32c);
        assert_eq!(support.bodies.climb().rung(), Guard::None, "it has not worked yet");
        climb.settle();
        assert_eq!(support.bodies.climb().rung(), Guard::Crc32c);
    }
}
