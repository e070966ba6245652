//! Archived objects: objects of the classes GLACIER and DEEP_ARCHIVE, and INTELLIGENT_TIERING objects in an archive
//! tier. They can't be read until they are restored.

use std::time::{Duration, UNIX_EPOCH};

use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use s3s::dto::*;
use s3s::{S3Error, S3ErrorCode, S3Response, S3Result, s3_error};

use super::{S3Dialect, error_document_with, refusal, timestamp, versions};
use crate::body::ResponseBody;
use crate::objects::object::{Availability, Restore};
use crate::objects::{Object, now_us};

/// Internal headers with the details of an error, from which [`finished`] writes the error document. The errors of the
/// crate `s3s` can't contain additional elements.
const CLASS: HeaderName = HeaderName::from_static("archived-in");
const TIER: HeaderName = HeaderName::from_static("archived-in-tier");
const WHY: HeaderName = HeaderName::from_static("archived-why");
/// An internal header that makes [`finished`] change the status to 202. The crate `s3s` always answers a restoration
/// with 200.
const ACCEPTED: HeaderName = HeaderName::from_static("restore-accepted");

/// Returns an error if an object is archived, so that its bytes can't be read.
pub(super) fn admit(object: &Object) -> S3Result<()> {
    match object.place(now_us()) {
        Availability::AtHand | Availability::Copied { .. } => Ok(()),
        Availability::Archive { .. } => {
            Err(invalid_state(object, "The operation is not valid for the object's storage class"))
        }
    }
}

fn invalid_state(object: &Object, message: &'static str) -> S3Error {
    let mut error = S3Error::with_message(S3ErrorCode::InvalidObjectState, message);
    let tier = object.archive_tier(now_us());
    let lines = [(CLASS, Some(object.storage_class())), (TIER, tier), (WHY, Some(message))];
    let lines = lines.into_iter().filter_map(|(name, text)| Some((name, HeaderValue::from_str(text?).ok()?)));
    error.set_headers(HeaderMap::from_iter(lines));
    error
}

/// Completes an answer as S3 would write it. The error for an archived object contains its class and tier.
/// [S3](https://docs.aws.amazon.com/AmazonS3/latest/API/API_InvalidObjectState.html)
pub(super) fn finished(mut answer: Response<ResponseBody>) -> Response<ResponseBody> {
    if answer.headers_mut().remove(ACCEPTED).is_some() {
        *answer.status_mut() = StatusCode::ACCEPTED;
    }
    let mut text = |name| {
        let value = answer.headers_mut().remove(name)?;
        Some(value.to_str().ok()?.to_owned())
    };
    let (class, tier, why) = (text(CLASS), text(TIER), text(WHY));
    let Some((class, why)) = class.zip(why) else { return answer };
    let mut elements = vec![("StorageClass", class.as_str())];
    elements.extend(tier.as_deref().map(|tier| ("AccessTier", tier)));
    error_document_with(StatusCode::FORBIDDEN, "InvalidObjectState", &why, &elements)
}

/// RestoreObject.
/// [S3](https://docs.aws.amazon.com/AmazonS3/latest/API/API_RestoreObject.html)
pub(super) fn restore(
    dialect: &S3Dialect,
    input: RestoreObjectInput,
) -> S3Result<S3Response<RestoreObjectOutput>> {
    let request = input.restore_request.unwrap_or_default();
    if request.output_location.is_some() || request.select_parameters.is_some() || request.type_.is_some() {
        return Err(s3_error!(NotImplemented, "Restores into other objects are not implemented."));
    }
    let (now, takes) = (now_us(), dialect.config.restores_take);
    versions::find(dialect, &input.bucket, &input.key, input.version_id.as_deref())?;
    let which = versions::asked(input.version_id.as_deref())?;
    let status = dialect
        .objects
        .restore_if(&input.bucket, &input.key, which, |object| decide(object, &request, now, takes))
        .map_err(refusal)??;
    let mut answer = S3Response::new(RestoreObjectOutput::default());
    if status == StatusCode::ACCEPTED {
        answer.headers.insert(ACCEPTED, HeaderValue::from_static("1"));
    }
    Ok(answer)
}

/// Decides if a request to restore an object is valid. Returns the restoration, and the status of the answer.
fn decide(
    object: &Object,
    request: &RestoreRequest,
    now_us: u64,
    takes: Duration,
) -> S3Result<(Restore, StatusCode)> {
    let ready_us = now_us.saturating_add(takes.as_micros() as u64);
    let days = || {
        let days = request.days.and_then(|days| u32::try_from(days).ok()).filter(|days| *days > 0);
        days.ok_or_else(|| {
            let message =
                "The XML you provided was not well-formed or did not validate against our published schema";
            S3Error::with_message(S3ErrorCode::MalformedXML, message)
        })
    };
    match object.place(now_us) {
        Availability::AtHand => {
            let message = "Restore is not allowed for the object's current storage class";
            Err(invalid_state(object, message))
        }
        Availability::Archive { restoring: true } => {
            Err(s3_error!(RestoreAlreadyInProgress, "Object restore is already in progress"))
        }
        Availability::Archive { restoring: false } if object.attributes.archive_status.is_some() => {
            match request.days {
                None => Ok((Restore::for_good(ready_us), StatusCode::ACCEPTED)),
                // This is S3's own message (<https://github.com/s3tools/s3cmd/issues/1377>), although its documentation
                // doesn't mention it.
                Some(_) => Err(s3_error!(
                    InvalidArgument,
                    "INTELLIGENT_TIERING objects are not subject to restore expiry. Do not specify Days when restoring \
                     this object"
                )),
            }
        }
        Availability::Archive { restoring: false } => {
            Ok((Restore::copy(ready_us, days()?), StatusCode::ACCEPTED))
        }
        // A readable copy exists already. The request only changes its end, to this many days from now.
        Availability::Copied { .. } => Ok((Restore::copy(now_us, days()?), StatusCode::OK)),
    }
}

/// Returns the `x-amz-restore` header of an object that is being restored or has been restored.
pub(super) fn header(object: &Object) -> Option<String> {
    match object.place(now_us()) {
        Availability::AtHand | Availability::Archive { restoring: false } => None,
        Availability::Archive { restoring: true } => Some("ongoing-request=\"true\"".to_owned()),
        Availability::Copied { until_us } => {
            let until = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_micros(until_us));
            Some(format!("ongoing-request=\"false\", expiry-date=\"{until}\""))
        }
    }
}

/// Returns the `x-amz-archive-status` header of an INTELLIGENT_TIERING object.
pub(super) fn tier(object: &Object) -> Option<ArchiveStatus> {
    object.archive_tier(now_us()).map(|tier| ArchiveStatus::from(tier.to_owned()))
}

/// Returns the restore status for listings that request it. It is absent for objects that no client has restored.
pub(super) fn status(object: &Object, now_us: u64) -> Option<RestoreStatus> {
    let (is_restore_in_progress, until_us) = match object.place(now_us) {
        Availability::AtHand | Availability::Archive { restoring: false } => return None,
        Availability::Archive { restoring: true } => (true, None),
        Availability::Copied { until_us } => (false, Some(until_us)),
    };
    let restore_expiry_date = until_us.map(timestamp);
    Some(RestoreStatus { is_restore_in_progress: Some(is_restore_in_progress), restore_expiry_date })
}

/// Returns true if a listing requests the [`status`].
///
/// # Errors
/// Returns 400 for any other attribute.
pub(super) fn is_asked_for(attributes: Option<&OptionalObjectAttributesList>) -> S3Result<bool> {
    let attributes = attributes.map_or(&[][..], |attributes| attributes);
    match attributes.iter().all(|attribute| attribute.as_str() == OptionalObjectAttributes::RESTORE_STATUS) {
        true => Ok(!attributes.is_empty()),
        false => Err(s3_error!(InvalidArgument, "Invalid attribute name specified")),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::config::Storage;
    use crate::objects::{Attributes, Objects};

    const DAY_US: u64 = 24 * 60 * 60 * 1_000_000;

    fn object(class: &str, tier: Option<&str>) -> Object {
        let attributes = Attributes {
            storage_class: Some(class.to_owned()),
            archive_status: tier.map(str::to_owned),
            ..Attributes::default()
        };
        let store = Objects::open(&Storage::Memory, true, false).unwrap();
        Arc::unwrap_or_clone(store.put_with("b", "k", b"x", attributes).unwrap())
    }

    fn asked(object: &mut Object, days: Option<i32>, now_us: u64) -> Result<u16, String> {
        let request = RestoreRequest { days, ..Default::default() };
        let decided = decide(object, &request, now_us, Duration::from_secs(3600));
        let (restore, status) = decided.map_err(|error| error.code().as_str().to_owned())?;
        object.restore = Some(restore);
        Ok(status.as_u16())
    }

    #[test]
    fn a_restore_is_accepted_goes_on_and_is_prolonged() {
        let mut cold = object("DEEP_ARCHIVE", None);
        assert_eq!(asked(&mut cold, None, 0), Err("MalformedXML".into()));
        assert_eq!(asked(&mut cold, Some(0), 0), Err("MalformedXML".into()));
        assert_eq!(asked(&mut cold, Some(1), 0), Ok(202));
        assert_eq!(asked(&mut cold, Some(1), 1), Err("RestoreAlreadyInProgress".into()));
        assert_eq!(asked(&mut cold, Some(5), DAY_US), Ok(200));
        assert_eq!(cold.place(DAY_US), Availability::Copied { until_us: 7 * DAY_US });
        assert_eq!(asked(&mut cold, Some(1), 7 * DAY_US), Ok(202), "the copy has gone");
    }

    #[test]
    fn what_is_tiered_takes_no_days_and_what_is_at_hand_no_restore() {
        let mut tiered = object("INTELLIGENT_TIERING", Some("DEEP_ARCHIVE_ACCESS"));
        assert_eq!(asked(&mut tiered, Some(1), 0), Err("InvalidArgument".into()));
        assert_eq!(asked(&mut tiered, None, 0), Ok(202));
        assert_eq!(asked(&mut tiered, None, DAY_US), Err("InvalidObjectState".into()));
        for class in ["STANDARD", "GLACIER_IR"] {
            assert_eq!(asked(&mut object(class, None), Some(1), 0), Err("InvalidObjectState".into()));
        }
    }
}
