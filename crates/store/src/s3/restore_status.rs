//! The restore status of archived objects, which S3 includes in listings on request. Without it, Laneway would have to
//! request each archived object of a tree to learn that S3 refuses to read it
//! (<https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html>).

use std::sync::atomic::{AtomicBool, Ordering};

use serde::Deserialize;

use super::headers::is_archive;
use crate::{Error, ObjectMeta};

/// Header that requests the status, with the value [`ATTRIBUTE`].
pub(super) const HEADER: &str = "x-amz-optional-object-attributes";
pub(super) const ATTRIBUTE: &str = "RestoreStatus";

/// The restore status of one object. Its fields are empty if the object was never restored.
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
