//! The endpoint's treatment of conditional writes. Amazon keeps all conditions. Other stores refuse them or ignore them
//! silently, and only another writer's lost object would reveal that. The host and the answers' headers therefore
//! determine the expected treatment, until an answer proves another one. If the treatment is uncertain, the object is
//! checked before and after the write. A store that ignores conditions may call itself `AmazonS3`, so that name counts
//! only at Amazon's own hosts. A service that nothing identifies is probed by its first conditional put.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use http::StatusCode;
use laneway_lanes::{Head, Origin};

use crate::partition::Partition;
use crate::{Condition, Error};

/// A write that can have a condition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Write {
    /// A put of an object that must not exist.
    Put,
    /// A put onto a version. S3 has had `If-None-Match` three months longer than `If-Match`, and a service may have one
    /// of them.
    PutOnto,
    Complete,
    Copy,
    Delete,
}

impl Write {
    pub(super) fn put(condition: &Condition) -> Self {
        match condition {
            Condition::Matches(_) => Self::PutOnto,
            Condition::None | Condition::Absent => Self::Put,
        }
    }
}

/// The most puts by which one condition of a service is probed. A probe may fail without telling the treatment.
const PROBES_MAX: u8 = 3;

/// The largest body in bytes that is sent again as a probe. It takes 8 ms at 1 Gbit/s.
pub(super) const PROBE_BYTES_MAX: u64 = 1 << 20;

/// The treatment of a condition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Treatment {
    /// The store keeps it.
    Kept = 1,
    /// The store ignores it, or may do so.
    Ignored = 2,
    /// The store refuses it, so it isn't sent.
    Refused = 3,
}

/// The service that answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
enum Service {
    /// A service that its answers don't identify.
    Unknown = 0,
    Amazon = 1,
    /// The S3 API of Google Cloud Storage, where ETags are conditions of reads only
    /// (<https://cloud.google.com/storage/docs/xml-api/reference-headers>).
    Google = 2,
    /// Copies have a separate header (<https://developers.cloudflare.com/r2/api/s3/extensions/>). Deletes have none.
    R2 = 3,
    /// Its handlers of copies and deletes read no condition's header (<https://github.com/minio/minio>).
    Minio = 4,
    /// No answer has arrived yet.
    Unseen = 5,
    /// The store that `laneway serve` embeds, which is as strict as Amazon.
    Embedded = 6,
}

impl Service {
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
    fn in_answer(head: &Head) -> Self {
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

    fn treatment(self, write: Write) -> Treatment {
        match (self, write) {
            (Self::Amazon | Self::Embedded, _)
            | (Self::R2, Write::Put | Write::PutOnto | Write::Complete | Write::Copy)
            | (Self::Minio, Write::Put | Write::PutOnto | Write::Complete) => Treatment::Kept,
            // Most services have kept the condition of a PutObject since 2024, but s3gw and Sia ignore it. A probe tells.
            (Self::Google | Self::R2 | Self::Minio | Self::Unseen | Self::Unknown, _) => Treatment::Ignored,
        }
    }
}

/// The known facts about an endpoint.
#[derive(Debug)]
pub(super) struct WriteConditions {
    service: AtomicU8,
    /// The treatment that answers have shown, by write. 0 means none.
    shown: [AtomicU8; 5],
    /// The probes so far, by write.
    probes: [AtomicU8; 5],
    is_probing: AtomicBool,
}

/// The right to probe the service. No other probe begins until it is dropped.
pub(super) struct Probing<'a>(&'a AtomicBool);

impl Drop for Probing<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl WriteConditions {
    /// Creates it for an endpoint, or with `None` for Amazon's own.
    pub(super) fn new(endpoint: Option<&Origin>) -> Self {
        let service = endpoint.map_or(Service::Amazon, |origin| Service::at(&origin.host));
        Self {
            service: AtomicU8::new(service as u8),
            shown: Default::default(),
            probes: Default::default(),
            is_probing: AtomicBool::new(false),
        }
    }

    /// Records the service that answers.
    pub(super) fn observe(&self, head: &Head) {
        if matches!(self.service(), Service::Unseen | Service::Unknown) {
            self.service.store(Service::in_answer(head) as u8, Ordering::Release);
        }
    }

    pub(super) fn treatment(&self, write: Write) -> Treatment {
        match self.shown.get(write as usize).map(|shown| shown.load(Ordering::Acquire)) {
            Some(1) => Treatment::Kept,
            Some(2) => Treatment::Ignored,
            Some(3) => Treatment::Refused,
            _ => self.service().treatment(write),
        }
    }

    /// Learns from the error of a conditional write. It returns whether the write was refused because of its condition
    /// and must be repeated without it.
    pub(super) fn learn(&self, write: Write, error: &Error) -> bool {
        let treatment = match error {
            _ if refuses_conditions(error) => Treatment::Refused,
            // The kind is checked too, because a 412 can also be about a checksum.
            _ if error.is_precondition() && error.status() == Some(StatusCode::PRECONDITION_FAILED) => {
                Treatment::Kept
            }
            _ => return false,
        };
        if self.treatment(write) != treatment {
            self.show(write, treatment);
        }
        treatment == Treatment::Refused
    }

    /// Learns that the service carried out a write against its condition.
    pub(super) fn learn_ignored(&self, write: Write) {
        self.show(write, Treatment::Ignored);
    }

    fn show(&self, write: Write, treatment: Treatment) {
        if let Some(shown) = self.shown.get(write as usize) {
            shown.store(treatment as u8, Ordering::Release);
            tracing::info!(?write, ?treatment, "the endpoint has shown its treatment of conditions");
        }
    }

    /// Returns the right to probe a write, if the service is unknown, no answer has shown the treatment, no other probe is
    /// under way, and fewer than [`PROBES_MAX`] have failed.
    pub(super) fn probing(&self, write: Write) -> Option<Probing<'_>> {
        if !self.is_unproven(write) || self.is_probing.swap(true, Ordering::AcqRel) {
            return None;
        }
        let probing = Probing(&self.is_probing);
        let count = self.probes.get(write as usize)?.fetch_add(1, Ordering::Relaxed);
        (count < PROBES_MAX).then_some(probing)
    }

    /// Returns whether the service is unknown and no answer has shown the treatment.
    pub(super) fn is_unproven(&self, write: Write) -> bool {
        let is_shown = self.shown.get(write as usize).is_none_or(|shown| shown.load(Ordering::Acquire) != 0);
        !is_shown && self.service() == Service::Unknown
    }

    /// Returns whether its listings are known to contain the restore status on request.
    pub(super) fn lists_what_is_restored(&self) -> bool {
        matches!(self.service(), Service::Amazon | Service::Embedded)
    }

    /// Returns whether copies accept Cloudflare's header for a condition on their destination.
    pub(super) fn has_headers_for_copies(&self) -> bool {
        self.service() == Service::R2
    }

    fn service(&self) -> Service {
        Service::of_number(self.service.load(Ordering::Acquire))
    }
}

/// Returns whether an error refuses conditions: a 501 `NotImplemented`, or a 400 that names the header.
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
        use Treatment::{Ignored, Kept};
        let all = [Write::Put, Write::PutOnto, Write::Complete, Write::Copy, Write::Delete];
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
            ("server", "MinIO", Treatment::Ignored, Treatment::Kept),
            ("server", "laneway", Treatment::Kept, Treatment::Kept),
            ("server", "AmazonS3", Treatment::Ignored, Treatment::Ignored),
            ("x-guploader-uploadid", "x", Treatment::Ignored, Treatment::Ignored),
            ("server", "nginx", Treatment::Ignored, Treatment::Ignored),
        ] {
            let conditions = at("http://127.0.0.1:9000");
            let mut headers = HeaderMap::new();
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
            conditions.observe(&Head { status: StatusCode::OK, headers });
            let seen = [Write::Delete, Write::Put, Write::PutOnto, Write::Complete];
            let seen = seen.map(|write| conditions.treatment(write));
            assert_eq!(seen, [delete, put, put, put], "{value}");
            let is_known = ["MinIO", "laneway", "x"].contains(&value);
            assert_eq!(conditions.probing(Write::Put).is_none(), is_known, "{value}");
        }
    }

    #[test]
    fn answers_show_what_becomes_of_a_condition() {
        let conditions = at("http://127.0.0.1:9000");
        assert!(!conditions.learn(Write::Complete, &refused(412, ErrorKind::Precondition, "")));
        assert_eq!(conditions.treatment(Write::Complete), Treatment::Kept);
        assert!(!conditions.learn(Write::Delete, &refused(412, ErrorKind::Integrity, "crc32c differs")));
        assert_eq!(conditions.treatment(Write::Delete), Treatment::Ignored, "that was about the bytes");
        assert!(conditions.learn(Write::Put, &refused(501, ErrorKind::Unsupported, "")));
        assert!(conditions.learn(Write::Delete, &refused(400, ErrorKind::Invalid, "If-Match is unknown")));
        conditions.observe(&Head { status: StatusCode::OK, headers: HeaderMap::new() });
        assert!(!conditions.learn(Write::Copy, &refused(400, ErrorKind::Invalid, "Bad Request")));
        assert_eq!(conditions.treatment(Write::Put), Treatment::Refused);
        assert_eq!(conditions.treatment(Write::Copy), Treatment::Ignored);
    }

    #[test]
    fn a_service_is_probed_until_it_has_shown_its_treatment() {
        let probed = |conditions: &WriteConditions, write| conditions.probing(write).is_some();
        let conditions = at("http://127.0.0.1:9000");
        assert!(!probed(&conditions, Write::Put), "no answer has arrived yet");
        conditions.observe(&Head { status: StatusCode::OK, headers: HeaderMap::new() });
        let probing = conditions.probing(Write::Put).expect("the first");
        assert!(!probed(&conditions, Write::PutOnto), "one is under way");
        drop(probing);
        assert_eq!([(); 3].map(|()| probed(&conditions, Write::Put)), [true, true, false], "it told nothing");
        conditions.learn_ignored(Write::PutOnto);
        assert!(!probed(&conditions, Write::PutOnto));
        assert_eq!(conditions.treatment(Write::PutOnto), Treatment::Ignored);
    }
}
