//! Knows how an endpoint treats conditional writes. Amazon enforces all conditions. Some other stores refuse requests
//! with conditions, or silently ignore the conditions. An ignored condition would only be noticed when another writer's
//! object is lost. Laneway therefore expects the treatment that the host and the headers of answers suggest, until an
//! answer shows a different one. If the treatment is uncertain, it checks the object before and after the write.
//! Laneway recognises Amazon only by its hosts, not by the name `AmazonS3` in an answer, because stores that ignore
//! conditions use this name too. If nothing identifies a service, Laneway probes it with the first conditional put.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use http::StatusCode;
use laneway_lanes::{Origin, ResponseHead};

use crate::endpoint::Partition;
use crate::{Condition, Error};

/// A kind of write that can have a condition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ConditionalWrite {
    /// A put with the condition that the object doesn't exist.
    Put,
    /// A put with the condition that the object is in a given state. S3 introduced `If-None-Match` three months before
    /// `If-Match`, so a service may support only one of them.
    PutOnto,
    Complete,
    Copy,
    Delete,
}

impl ConditionalWrite {
    pub(super) fn put(condition: &Condition) -> Self {
        match condition {
            Condition::Matches(_) => Self::PutOnto,
            Condition::None | Condition::Absent => Self::Put,
        }
    }
}

/// The maximum number of puts that probe one condition of a service. Several may be needed, because a probe may fail
/// without showing the treatment.
const PROBES_MAX: u8 = 3;

/// The largest body, in bytes, that is sent again as a probe. Sending it takes 8 ms at 1 Gbit/s.
pub(super) const PROBE_BYTES_MAX: u64 = 1 << 20;

/// The way in which a store treats the condition of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum ConditionSupport {
    /// The store enforces the condition.
    Kept = 1,
    /// The store ignores the condition, or may ignore it.
    Ignored = 2,
    /// The store refuses requests with the condition, so Laneway doesn't send it.
    Refused = 3,
}

/// The service behind an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
enum ServiceKind {
    /// A service whose answers don't identify it.
    Unknown = 0,
    Amazon = 1,
    /// The S3 API of Google Cloud Storage, which supports conditions on ETags only for reads
    /// (<https://cloud.google.com/storage/docs/xml-api/reference-headers>).
    Google = 2,
    /// Cloudflare R2. Copies use a separate header for the condition on their destination
    /// (<https://developers.cloudflare.com/r2/api/s3/extensions/>). Deletes have no condition.
    R2 = 3,
    /// MinIO, whose code for copies and deletes reads none of the headers with conditions
    /// (<https://github.com/minio/minio>).
    Minio = 4,
    /// No answer has arrived yet.
    Unseen = 5,
    /// The store that `laneway serve` embeds, which is as strict as Amazon.
    Embedded = 6,
}

impl ServiceKind {
    /// Determines the service by its host.
    fn at(host: &str) -> Self {
        let host = host.to_ascii_lowercase();
        match host.as_str() {
            "storage.googleapis.com" => Self::Google,
            host if host.ends_with(".storage.googleapis.com") => Self::Google,
            host if host.ends_with(".r2.cloudflarestorage.com") => Self::R2,
            host if Partition::claims_host(host) => Self::Amazon,
            _ => Self::Unseen,
        }
    }

    /// Determines the service by an answer, which works through proxies and with custom host names.
    fn in_answer(head: &ResponseHead) -> Self {
        let server = head.header("server").unwrap_or_default();
        if server == "laneway" {
            Self::Embedded
        } else if server.starts_with("MinIO") {
            Self::Minio
        } else if server == "UploadServer" || head.headers.contains_key("x-guploader-uploadid") {
            Self::Google
        } else {
            Self::Unknown
        }
    }

    fn of_number(number: u8) -> Self {
        [Self::Amazon, Self::Google, Self::R2, Self::Minio, Self::Unseen, Self::Embedded]
            .into_iter()
            .find(|service| *service as u8 == number)
            .unwrap_or(Self::Unknown)
    }

    fn treatment(self, write: ConditionalWrite) -> ConditionSupport {
        match (self, write) {
            (Self::Amazon | Self::Embedded, _)
            | (
                Self::R2,
                ConditionalWrite::Put
                | ConditionalWrite::PutOnto
                | ConditionalWrite::Complete
                | ConditionalWrite::Copy,
            )
            | (Self::Minio, ConditionalWrite::Put | ConditionalWrite::PutOnto | ConditionalWrite::Complete) => {
                ConditionSupport::Kept
            }
            // Most services have enforced the condition of a PutObject since 2024, but s3gw and Sia ignore it. A probe
            // finds out.
            (Self::Google | Self::R2 | Self::Minio | Self::Unseen | Self::Unknown, _) => {
                ConditionSupport::Ignored
            }
        }
    }
}

/// The known facts about an endpoint.
#[derive(Debug)]
pub(super) struct WriteConditions {
    service: AtomicU8,
    /// The treatment that answers have shown, for each kind of write. 0 means that none has been shown yet.
    shown: [AtomicU8; 5],
    /// The number of probes so far, for each kind of write.
    probes: [AtomicU8; 5],
    is_probing: AtomicBool,
}

/// The right to probe the service. No other probe can begin until this value is dropped.
pub(super) struct ProbePermit<'a>(&'a AtomicBool);

impl Drop for ProbePermit<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl WriteConditions {
    /// Returns the expectations for an endpoint. `None` means Amazon's own endpoints.
    pub(super) fn new(endpoint: Option<&Origin>) -> Self {
        let service = endpoint.map_or(ServiceKind::Amazon, |origin| ServiceKind::at(&origin.host));
        Self {
            service: AtomicU8::new(service as u8),
            shown: Default::default(),
            probes: Default::default(),
            is_probing: AtomicBool::new(false),
        }
    }

    /// Records the service that an answer identifies.
    pub(super) fn observe(&self, head: &ResponseHead) {
        if matches!(self.service(), ServiceKind::Unseen | ServiceKind::Unknown) {
            self.service.store(ServiceKind::in_answer(head) as u8, Ordering::Release);
        }
    }

    pub(super) fn treatment(&self, write: ConditionalWrite) -> ConditionSupport {
        match self.shown.get(write as usize).map(|shown| shown.load(Ordering::Acquire)) {
            Some(1) => ConditionSupport::Kept,
            Some(2) => ConditionSupport::Ignored,
            Some(3) => ConditionSupport::Refused,
            _ => self.service().treatment(write),
        }
    }

    /// Learns from the error of a conditional write. Returns true if the endpoint refused the condition itself, so that
    /// the write must be repeated without it.
    pub(super) fn learn(&self, write: ConditionalWrite, error: &Error) -> bool {
        let treatment = match error {
            _ if refuses_conditions(error) => ConditionSupport::Refused,
            // The status isn't enough, because some stores also answer 412 to a wrong checksum.
            _ if error.is_precondition() && error.status() == Some(StatusCode::PRECONDITION_FAILED) => {
                ConditionSupport::Kept
            }
            _ => return false,
        };
        if self.treatment(write) != treatment {
            self.show(write, treatment);
        }
        treatment == ConditionSupport::Refused
    }

    /// Records that the service carried out a write although its condition didn't hold.
    pub(super) fn learn_ignored(&self, write: ConditionalWrite) {
        self.show(write, ConditionSupport::Ignored);
    }

    fn show(&self, write: ConditionalWrite, treatment: ConditionSupport) {
        if let Some(shown) = self.shown.get(write as usize) {
            shown.store(treatment as u8, Ordering::Release);
            tracing::info!(
                ?write,
                ?treatment,
                "an answer has shown how the endpoint treats conditional writes"
            );
        }
    }

    /// Returns the right to probe this kind of write, or `None` if a probe isn't needed or allowed now. The treatment
    /// must be unproven, no other probe may be running, and fewer than [`PROBES_MAX`] may have been made.
    pub(super) fn probing(&self, write: ConditionalWrite) -> Option<ProbePermit<'_>> {
        if !self.is_unproven(write) || self.is_probing.swap(true, Ordering::AcqRel) {
            return None;
        }
        let probing = ProbePermit(&self.is_probing);
        let count = self.probes.get(write as usize)?.fetch_add(1, Ordering::Relaxed);
        (count < PROBES_MAX).then_some(probing)
    }

    /// Returns true if the service is unknown and no answer has shown how it treats this kind of write.
    pub(super) fn is_unproven(&self, write: ConditionalWrite) -> bool {
        let is_shown = self.shown.get(write as usize).is_none_or(|shown| shown.load(Ordering::Acquire) != 0);
        !is_shown && self.service() == ServiceKind::Unknown
    }

    /// Returns true if the service is known to include the restore status in listings that request it.
    pub(super) fn lists_what_is_restored(&self) -> bool {
        matches!(self.service(), ServiceKind::Amazon | ServiceKind::Embedded)
    }

    /// Returns true if the service accepts Cloudflare's header for a condition on a copy's destination.
    pub(super) fn has_headers_for_copies(&self) -> bool {
        self.service() == ServiceKind::R2
    }

    fn service(&self) -> ServiceKind {
        ServiceKind::of_number(self.service.load(Ordering::Acquire))
    }
}

/// Returns true if an error means that the store doesn't support the condition: a 501 `NotImplemented`, or a 400 whose
/// message names the header.
fn refuses_conditions(error: &Error) -> bool {
    let message = error.message().to_ascii_lowercase();
    let names_it = ["if-none-match", "if-match", "precondition", "conditional"];
    (error.is_unsupported() && !message.contains("checksum"))
        || (error.is_invalid() && names_it.iter().any(|name| message.contains(name)))
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, HeaderValue};

    use super::*;
    use crate::{ErrorKind, Operation};

    fn at(url: &str) -> WriteConditions {
        WriteConditions::new(Some(&Origin::parse(url).expect("an origin")))
    }

    fn refused(status: u16, kind: ErrorKind, message: &str) -> Error {
        Error::new(kind, Operation::Put, message)
            .answered(StatusCode::from_u16(status).expect("a status"), None)
    }

    #[test]
    fn the_table_of_services() {
        use ConditionSupport::{Ignored, Kept};
        let all = [
            ConditionalWrite::Put,
            ConditionalWrite::PutOnto,
            ConditionalWrite::Complete,
            ConditionalWrite::Copy,
            ConditionalWrite::Delete,
        ];
        for (conditions, expected) in [
            (WriteConditions::new(None), [Kept; 5]),
            (at("https://s3.cn-north-1.amazonaws.com.cn"), [Kept; 5]),
            (at("https://amazonaws.com.example.org"), [Ignored; 5]),
            (at("https://bucket.vpce-1.s3.us-east-1.vpce.amazonaws.com"), [Kept; 5]),
            (at("https://storage.googleapis.com"), [Ignored; 5]),
            (at("https://account.r2.cloudflarestorage.com"), [Kept, Kept, Kept, Kept, Ignored]),
            (at("http://127.0.0.1:9000"), [Ignored; 5]),
        ] {
            assert_eq!(all.map(|write| conditions.treatment(write)), expected, "{conditions:?}");
        }
    }

    #[test]
    fn who_answers_is_told_by_its_headers() {
        for (name, value, delete, put) in [
            ("server", "MinIO", ConditionSupport::Ignored, ConditionSupport::Kept),
            ("server", "laneway", ConditionSupport::Kept, ConditionSupport::Kept),
            ("server", "AmazonS3", ConditionSupport::Ignored, ConditionSupport::Ignored),
            ("x-guploader-uploadid", "x", ConditionSupport::Ignored, ConditionSupport::Ignored),
            ("server", "nginx", ConditionSupport::Ignored, ConditionSupport::Ignored),
        ] {
            let conditions = at("http://127.0.0.1:9000");
            let mut headers = HeaderMap::new();
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
            conditions.observe(&ResponseHead { status: StatusCode::OK, headers });
            let seen = [
                ConditionalWrite::Delete,
                ConditionalWrite::Put,
                ConditionalWrite::PutOnto,
                ConditionalWrite::Complete,
            ];
            let seen = seen.map(|write| conditions.treatment(write));
            assert_eq!(seen, [delete, put, put, put], "{value}");
            let is_known = ["MinIO", "laneway", "x"].contains(&value);
            assert_eq!(conditions.probing(ConditionalWrite::Put).is_none(), is_known, "{value}");
        }
    }

    #[test]
    fn answers_show_what_becomes_of_a_condition() {
        let conditions = at("http://127.0.0.1:9000");
        assert!(!conditions.learn(ConditionalWrite::Complete, &refused(412, ErrorKind::Precondition, "")));
        assert_eq!(conditions.treatment(ConditionalWrite::Complete), ConditionSupport::Kept);
        assert!(
            !conditions
                .learn(ConditionalWrite::Delete, &refused(412, ErrorKind::Integrity, "crc32c differs"))
        );
        assert_eq!(
            conditions.treatment(ConditionalWrite::Delete),
            ConditionSupport::Ignored,
            "that was about the bytes"
        );
        assert!(conditions.learn(ConditionalWrite::Put, &refused(501, ErrorKind::Unsupported, "")));
        assert!(
            conditions
                .learn(ConditionalWrite::Delete, &refused(400, ErrorKind::Invalid, "If-Match is unknown"))
        );
        conditions.observe(&ResponseHead { status: StatusCode::OK, headers: HeaderMap::new() });
        assert!(!conditions.learn(ConditionalWrite::Copy, &refused(400, ErrorKind::Invalid, "Bad Request")));
        assert_eq!(conditions.treatment(ConditionalWrite::Put), ConditionSupport::Refused);
        assert_eq!(conditions.treatment(ConditionalWrite::Copy), ConditionSupport::Ignored);
    }

    #[test]
    fn a_service_is_probed_until_it_has_shown_its_treatment() {
        let probed = |conditions: &WriteConditions, write| conditions.probing(write).is_some();
        let conditions = at("http://127.0.0.1:9000");
        assert!(!probed(&conditions, ConditionalWrite::Put), "no answer has arrived yet");
        conditions.observe(&ResponseHead { status: StatusCode::OK, headers: HeaderMap::new() });
        let probing = conditions.probing(ConditionalWrite::Put).expect("the first");
        assert!(!probed(&conditions, ConditionalWrite::PutOnto), "one is under way");
        drop(probing);
        assert_eq!(
            [(); 3].map(|()| probed(&conditions, ConditionalWrite::Put)),
            [true, true, false],
            "it told nothing"
        );
        conditions.learn_ignored(ConditionalWrite::PutOnto);
        assert!(!probed(&conditions, ConditionalWrite::PutOnto));
        assert_eq!(conditions.treatment(ConditionalWrite::PutOnto), ConditionSupport::Ignored);
    }
}
