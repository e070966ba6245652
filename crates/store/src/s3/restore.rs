//! `restore`: RestoreObject, for the classes GLACIER and DEEP_ARCHIVE and the archive tiers of INTELLIGENT_TIERING
//! (<https://docs.aws.amazon.com/AmazonS3/latest/API/API_RestoreObject.html>).

use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::{Method, StatusCode};
use laneway_lanes::Body;
use serde::Deserialize;

use super::S3;
use super::get::object_target;
use super::headers::is_archive;
use crate::checksum::{encode_md5, md5_of};
use crate::encode::{QueryString, xml_text};
use crate::exchange::{Exchange, Outgoing};
use crate::{Error, ErrorKind, ObjectId, ObjectMeta, Operation, Restoration, RestoreOptions};

const UNDER_WAY: &str = "RestoreAlreadyInProgress";

fn request(id: &ObjectId, options: &RestoreOptions) -> Result<Outgoing, String> {
    let days = options.days.map(|days| format!("<Days>{days}</Days>")).unwrap_or_default();
    let tier = match options.tier.as_deref() {
        Some(tier) => {
            let tier = xml_text(tier).ok_or("the tier holds control characters")?;
            format!("<GlacierJobParameters><Tier>{tier}</Tier></GlacierJobParameters>")
        }
        None => String::new(),
    };
    let document = format!(
        "<RestoreRequest xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">{days}{tier}</RestoreRequest>"
    );
    let mut outgoing = Outgoing::new(Method::POST, object_target(id, &QueryString::new().and("restore", "")));
    outgoing.body = Body::from(Bytes::from(document));
    let md5 = md5_of(&outgoing.body).map(encode_md5);
    outgoing
        .header("content-type", "application/xml")
        .and_then(|outgoing| outgoing.header_some("content-md5", md5.as_deref()))
        .map_err(|e| e.to_string())
}

/// Reads the outcome of a request for a restoration.
fn outcome(answered: Result<StatusCode, Error>) -> Result<Restoration, Error> {
    match answered {
        Ok(StatusCode::ACCEPTED) => Ok(Restoration::Begun),
        Ok(_) => Ok(Restoration::Readable),
        // The answer to the first attempt was lost.
        Err(error) if error.code() == Some(UNDER_WAY) && error.is_uncertain() => Ok(Restoration::Begun),
        Err(error) if error.code() == Some(UNDER_WAY) => Ok(Restoration::UnderWay),
        // For a restoration, this error code means that the object isn't in an archive. For a read, the same code means
        // that it is in one.
        Err(error) if error.kind() == ErrorKind::Archived => Ok(Restoration::NotNeeded),
        Err(error) => Err(error),
    }
}

impl S3 {
    pub(crate) async fn restore_object(
        &self,
        id: &ObjectId,
        options: &RestoreOptions,
    ) -> Result<Restoration, Error> {
        let exchange = Exchange::object(self, Operation::Restore, id);
        let outgoing = request(id, options).map_err(|e| exchange.error(ErrorKind::Invalid, e))?;
        outcome(exchange.send(&outgoing).await.map(|sent| sent.response.head.status))
    }
}

/// Header that requests the status, with the value [`ATTRIBUTE`].
pub(super) const HEADER: &str = "x-amz-optional-object-attributes";

pub(super) const ATTRIBUTE: &str = "RestoreStatus";

/// The restore status of one object. Its fields are empty if the object was never restored.
///
/// S3 includes it in listings on request. Without it, Laneway would have to request each archived object of a tree to
/// learn that S3 refuses to read it (<https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html>).
#[derive(PartialEq, Eq, Default, Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct RestoreStatus {
    is_restore_in_progress: Option<String>,
    restore_expiry_date: Option<String>,
}

impl RestoreStatus {
    /// Returns the field with this name.
    pub(super) fn field(&mut self, name: &str) -> Option<&mut Option<String>> {
        match name {
            "IsRestoreInProgress" => Some(&mut self.is_restore_in_progress),
            "RestoreExpiryDate" => Some(&mut self.restore_expiry_date),
            _ => None,
        }
    }

    fn is_readable(&self) -> bool {
        self.is_restore_in_progress.as_deref().is_some_and(|text| text.eq_ignore_ascii_case("false"))
    }

    fn into_text(self) -> String {
        let quoted = |name: &str, text: Option<String>| Some(format!("{name}=\"{}\"", text?));
        let fields = [
            quoted("IsRestoreInProgress", self.is_restore_in_progress),
            quoted("RestoreExpiryDate", self.restore_expiry_date),
        ];
        fields.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// Applies the restore status to an object whose storage class is known. `asked` is true if the listing requested the
/// status. If the status was requested but is missing, the object isn't restored. A store that doesn't know the option
/// also sends no status, so `asked` must be false for it.
pub(super) fn apply(meta: &mut ObjectMeta, status: Option<RestoreStatus>, asked: bool) {
    let in_archive = meta.storage_class.as_deref().is_some_and(is_archive);
    let is_readable = status.as_ref().is_some_and(RestoreStatus::is_readable);
    meta.archived = in_archive && !is_readable && (asked || status.is_some());
    meta.restore = status.map(RestoreStatus::into_text);
}

/// Remembers if listings may request the restore status from this endpoint.
#[derive(Debug, Default)]
pub(super) struct RestoreStatusSupport {
    refused: AtomicBool,
}

impl RestoreStatusSupport {
    pub(super) fn is_allowed(&self) -> bool {
        !self.refused.load(Ordering::Relaxed)
    }

    /// Returns true if this error may mean that the endpoint refuses requests for the status.
    pub(super) fn may_be_why(error: &Error) -> bool {
        error.is_unsupported() || error.is_invalid()
    }

    /// Records that the endpoint refuses the request for the status: a listing failed with it and succeeded without it.
    pub(super) fn refused(&self) {
        if !self.refused.swap(true, Ordering::Relaxed) {
            tracing::info!("the endpoint refuses listings that request the restore status");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ObjectId, xml};

    #[test]
    fn a_restoration_names_days_and_tier_only_if_they_are_given() {
        let id = ObjectId::new("b", "k").at_version("7");
        let text = |options: RestoreOptions| {
            let outgoing = request(&id, &options).expect("a request");
            assert_eq!((outgoing.method, &*outgoing.target), (Method::POST, "/k?restore=&versionId=7"));
            assert!(outgoing.headers.contains_key("content-md5"));
            let Some(laneway_lanes::Segment::Memory(body)) = outgoing.body.segments().first().cloned() else {
                panic!("a document")
            };
            String::from_utf8(body.to_vec()).expect("a text")
        };
        let whole = text(RestoreOptions::default().days(2).tier("Bulk"));
        assert!(whole.ends_with(
            "\"><Days>2</Days><GlacierJobParameters><Tier>Bulk</Tier></GlacierJobParameters></RestoreRequest>"
        ));
        assert!(text(RestoreOptions::default()).ends_with("\"></RestoreRequest>"));
    }

    #[test]
    fn a_restoration_is_told_by_status_and_code() {
        let error = |kind, code: &str, is_uncertain| {
            let error = Error::new(kind, Operation::Restore, "").uncertain(is_uncertain);
            Err(error.answered(StatusCode::CONFLICT, Some(code.to_owned())))
        };
        for (answered, expected) in [
            (Ok(StatusCode::ACCEPTED), Restoration::Begun),
            (Ok(StatusCode::OK), Restoration::Readable),
            (error(ErrorKind::Invalid, UNDER_WAY, false), Restoration::UnderWay),
            (error(ErrorKind::Invalid, UNDER_WAY, true), Restoration::Begun),
            (error(ErrorKind::Archived, "InvalidObjectState", false), Restoration::NotNeeded),
        ] {
            assert_eq!(outcome(answered).expect("an outcome"), expected);
        }
        assert!(outcome(error(ErrorKind::Permission, "AccessDenied", false)).is_err());
    }

    fn listed(class: &str, status: &str, asked: bool) -> ObjectMeta {
        let status = (!status.is_empty()).then(|| xml::read(status.as_bytes()).expect("a status"));
        let mut meta = ObjectMeta::new(ObjectId::new("b", "k"), 1);
        meta.storage_class = Some(class.to_owned());
        apply(&mut meta, status, asked);
        meta
    }

    const COMING: &str = "<RestoreStatus><IsRestoreInProgress>true</IsRestoreInProgress></RestoreStatus>";

    const THERE: &str = "<RestoreStatus><IsRestoreInProgress>false</IsRestoreInProgress>\
                         <RestoreExpiryDate>2026-12-21T00:00:00.000Z</RestoreExpiryDate></RestoreStatus>";

    #[test]
    fn what_is_archived_is_known_where_the_listing_was_asked() {
        for class in ["GLACIER", "DEEP_ARCHIVE"] {
            assert!(listed(class, "", true).archived);
            assert!(!listed(class, "", false).archived, "silence says nothing");
            assert!(listed(class, COMING, true).archived && listed(class, COMING, false).archived);
            let restored = listed(class, THERE, true);
            assert!(!restored.archived);
            let text = "IsRestoreInProgress=\"false\", RestoreExpiryDate=\"2026-12-21T00:00:00.000Z\"";
            assert_eq!(restored.restore.as_deref(), Some(text));
        }
        for class in ["STANDARD", "GLACIER_IR", "INTELLIGENT_TIERING"] {
            assert!(!listed(class, "", true).archived, "{class}");
        }
    }
}
