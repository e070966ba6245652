//! The endpoint's treatment of conditional writes. Amazon keeps all conditions. Other stores refuse them or ignore them
//! silently, and only another writer's lost object would reveal that. The host and the answers' headers therefore
//! determine the expected treatment, until an answer proves another one. If the treatment is uncertain, the object is
//! checked before and after the write. A store that ignores conditions may call itself `AmazonS3`, so that name counts
//! only at Amazon's own hosts.

use std::sync::atomic::{AtomicU8, Ordering};

use http::StatusCode;
use laneway_lanes::{Head, Origin};

use crate::Error;
use crate::partition::Partition;

/// A write that can have a condition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Write {
    Put,
    Complete,
    Copy,
    Delete,
}

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
    /// Its handlers of copies and deletes read no such header (<https://github.com/minio/minio>).
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
            | (Self::R2, Write::Put | Write::Complete | Write::Copy)
            | (Self::Minio, Write::Put | Write::Complete) => Treatment::Kept,
            (Self::Google | Self::R2 | Self::Minio | Self::Unseen, _) => Treatment::Ignored,
            // Most services have kept the condition of a PutObject since 2024. The newer conditions are uncertain.
            (Self::Unknown, Write::Put) => Treatment::Kept,
            (Self::Unknown, Write::Complete | Write::Copy | Write::Delete) => Treatment::Ignored,
        }
    }
}

/// The known facts about an endpoint.
#[derive(Debug)]
pub(super) struct WriteConditions {
    service: AtomicU8,
    /// The treatment that answers have shown, by write. 0 means none.
    shown: [AtomicU8; 4],
}

impl WriteConditions {
    /// Creates it for an endpoint, or with `None` for Amazon's own.
    pub(super) fn new(endpoint: Option<&Origin>) -> Self {
        let service = endpoint.map_or(Service::Amazon, |origin| Service::at(&origin.host));
        Self { service: AtomicU8::new(service as u8), shown: Default::default() }
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
        let before = self.treatment(write);
        if let Some(shown) = self.shown.get(write as usize).filter(|_| before != treatment) {
            shown.store(treatment as u8, Ordering::Release);
            tracing::info!(?write, ?treatment, "the endpoint has shown what it makes of conditions");
        }
        treatment == Treatment::Refused
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
        let all = [Write::Put, Write::Complete, Write::Copy, Write::Delete];
        for (conditions, expected) in [
            (WriteConditions::new(None), [Kept; 4]),
            (at("https://s3.cn-north-1.amazonaws.com.cn"), [Kept; 4]),
            (at("https://amazonaws.com.example.org"), [Ignored; 4]),
            (at("https://bucket.vpce-1.s3.us-east-1.vpce.amazonaws.com"), [Kept; 4]),
            (at("https://storage.googleapis.com"), [Ignored; 4]),
            (at("https://account.r2.cloudflarestorage.com"), [Kept, Kept, Kept, Ignored]),
            (at("http://127.0.0.1:9000"), [Ignored; 4]),
        ] {
            assert_eq!(all.map(|write| conditions.treatment(write)), expected, "{conditions:?}");
        }
    }

    #[test]
    fn who_answers_is_told_by_its_headers() {
        for (name, value, delete, complete) in [
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
            let is_google = name == "x-guploader-uploadid";
            assert_eq!(conditions.treatment(Write::Put) == Treatment::Ignored, is_google, "{value}");
            let seen = (conditions.treatment(Write::Delete), conditions.treatment(Write::Complete));
            assert_eq!(seen, (delete, complete), "{value}");
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
}
