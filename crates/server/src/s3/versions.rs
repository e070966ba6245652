//! Versions of objects: their ids, their listing, and the versioning setting of a bucket.
//! <https://docs.aws.amazon.com/AmazonS3/latest/userguide/Versioning.html>

use std::fmt::Write as _;
use std::sync::Arc;

use http::header::{ALLOW, LAST_MODIFIED};
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use quick_xml::escape::escape;
use s3s::dto::*;
use s3s::{S3Error, S3Response, S3Result, s3_error};

use super::list::EntryFormat;
use super::{ACCOUNT, S3Dialect, checksums, list, refusal};
use crate::body::ResponseBody;
use crate::gcs::rfc3339;
use crate::objects::listing::{Cursor, ListingPage, Order};
use crate::objects::settings::BucketSettings;
use crate::objects::versions::VersionSelector;
use crate::objects::{Object, StoreError, Versioning};

/// The id of a version that was written without versioning.
const NULL: &str = "null";
const MARKER: HeaderName = HeaderName::from_static("x-amz-delete-marker");
const ID: HeaderName = HeaderName::from_static("x-amz-version-id");

/// Returns the id of a version. It is the generation with its bits reversed. So, as on S3, sorting versions by id
/// doesn't sort them by age.
pub(super) fn id(object: &Object) -> String {
    match object.standing.has_id {
        true => format!("{:016x}", object.generation.reverse_bits()),
        false => NULL.to_owned(),
    }
}

/// Parses a version id. Returns `None` if it isn't valid.
pub(super) fn parse(id: &str) -> Option<VersionSelector> {
    if id == NULL {
        return Some(VersionSelector::Null);
    }
    let digits = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
    let is_id = id.len() == 16 && id.bytes().all(digits);
    let number = is_id.then(|| u64::from_str_radix(id, 16).ok()).flatten()?;
    Some(VersionSelector::Generation(number.reverse_bits()))
}

/// Returns the version that a request selects.
pub(super) fn asked(id: Option<&str>) -> S3Result<VersionSelector> {
    match id {
        None => Ok(VersionSelector::Live),
        Some(id) => parse(id).ok_or_else(|| s3_error!(InvalidArgument, "Invalid version id specified")),
    }
}

/// Finds the object that a request names, or the version of it.
pub(super) fn find(dialect: &S3Dialect, bucket: &str, key: &str, id: Option<&str>) -> S3Result<Arc<Object>> {
    let which = asked(id)?;
    dialect.objects.find_version(bucket, key, which).map_err(|refused| of_version(refused, id.is_some()))
}

/// Returns the error if a version can't be read. A missing version has another error than a missing key. A request for
/// a delete marker by its id gets 405, because a marker can only be deleted. Without an id, a marker means that the
/// object doesn't exist.
fn of_version(refused: StoreError, is_named: bool) -> S3Error {
    let marker = match refused {
        StoreError::DeleteMarker(marker) => marker,
        StoreError::NoObject if is_named => {
            return s3_error!(NoSuchVersion, "The specified version does not exist.");
        }
        other => return refusal(other),
    };
    let mut error = match is_named {
        true => s3_error!(MethodNotAllowed, "The specified method is not allowed against this resource."),
        false => refusal(StoreError::NoObject),
    };
    let mut headers = HeaderMap::new();
    headers.insert(MARKER, HeaderValue::from_static("true"));
    if let Ok(id) = HeaderValue::try_from(id(&marker)) {
        headers.insert(ID, id);
    }
    if is_named {
        headers.insert(ALLOW, HeaderValue::from_static("DELETE"));
        let modified = std::time::UNIX_EPOCH + std::time::Duration::from_micros(marker.created_us);
        if let Ok(date) = HeaderValue::try_from(httpdate::fmt_http_date(modified)) {
            headers.insert(LAST_MODIFIED, date);
        }
    }
    error.set_headers(headers);
    error
}

/// Returns the version in an answer, if the bucket keeps versions or has kept them.
pub(super) fn reported(dialect: &S3Dialect, bucket: &str, object: &Object) -> Option<String> {
    let bucket = dialect.objects.bucket(bucket).ok()?;
    (bucket.versioning() != Versioning::Off).then(|| id(object))
}

/// ListObjectVersions. The document is written here, because the crate `s3s` lists all versions before all delete
/// markers. S3 mixes both, in the order of keys and ages.
pub(super) fn list(
    dialect: &S3Dialect,
    input: ListObjectVersionsInput,
) -> S3Result<S3Response<ListObjectVersionsOutput>> {
    let key_marker = input.key_marker.as_deref().unwrap_or_default();
    let version_marker = input.version_id_marker.as_deref().unwrap_or_default();
    let start = match (key_marker, version_marker) {
        ("", "") => Cursor::Start,
        ("", _) => {
            return Err(s3_error!(
                InvalidArgument,
                "A version-id marker cannot be specified without a key marker."
            ));
        }
        (key, "") => list::behind(key, input.delimiter.as_deref()),
        (key, id) => match list::behind(key, input.delimiter.as_deref()) {
            prefix @ Cursor::AfterPrefix(_) => prefix,
            _ => after(dialect, &input.bucket, key, id)?,
        },
    };
    let query = list::query(input.prefix.as_deref(), input.delimiter.as_deref(), start, input.max_keys)?;
    let page = dialect.objects.list_versions(&input.bucket, &query, Order::NewestFirst).map_err(refusal)?;
    let document = document(dialect, &input, &page, query.max);
    let mut answer = S3Response::new(ListObjectVersionsOutput::default());
    answer.extensions.insert(ReplacementBody(document));
    Ok(answer)
}

/// Returns the position at which a listing continues after a version of a key.
fn after(dialect: &S3Dialect, bucket: &str, key: &str, id: &str) -> S3Result<Cursor> {
    let generation = match asked(Some(id))? {
        VersionSelector::Generation(generation) => Some(generation),
        VersionSelector::Live | VersionSelector::Null => {
            match dialect.objects.find_version(bucket, key, VersionSelector::Null) {
                Ok(object) | Err(StoreError::DeleteMarker(object)) => Some(object.generation),
                Err(StoreError::NoObject) => None,
                Err(refused) => return Err(refusal(refused)),
            }
        }
    };
    Ok(match generation {
        Some(generation) => Cursor::AfterVersion(key.to_owned(), generation),
        None => Cursor::After(key.to_owned()),
    })
}

/// A response body that replaces the one that `s3s` wrote.
#[derive(Clone)]
struct ReplacementBody(String);

/// Returns the answer. If a [`ReplacementBody`] is attached to it, that becomes the body.
pub(super) fn finished(mut answer: Response<ResponseBody>) -> Response<ResponseBody> {
    let Some(ReplacementBody(text)) = answer.extensions_mut().remove::<ReplacementBody>() else {
        return answer;
    };
    answer.headers_mut().insert(http::header::CONTENT_LENGTH, text.len().into());
    answer.map(|_| ResponseBody::whole(text))
}

fn document(
    dialect: &S3Dialect,
    input: &ListObjectVersionsInput,
    page: &ListingPage,
    max_keys: usize,
) -> String {
    let write = EntryFormat::of(input.encoding_type.as_ref());
    let text = |key: &str| escape(write.text(key)).into_owned();
    let mut out = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListVersionsResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">",
    );
    let element = |out: &mut String, name: &str, value: &str| {
        let _ = write!(out, "<{name}>{value}</{name}>");
    };
    element(&mut out, "Name", &input.bucket);
    element(&mut out, "Prefix", &text(input.prefix.as_deref().unwrap_or_default()));
    element(&mut out, "KeyMarker", &text(input.key_marker.as_deref().unwrap_or_default()));
    element(&mut out, "VersionIdMarker", &escape(input.version_id_marker.as_deref().unwrap_or_default()));
    if let Some(next) = &page.next {
        let (key, id) = match next {
            Cursor::AfterVersion(key, generation) => {
                let of = |object: &&Arc<Object>| object.key == *key && object.generation == *generation;
                (key.as_str(), page.objects.iter().rev().find(of).map(|object| id(object)))
            }
            Cursor::After(key) | Cursor::AfterPrefix(key) | Cursor::At(key) => (key.as_str(), None),
            Cursor::Start => ("", None),
        };
        element(&mut out, "NextKeyMarker", &text(key));
        if let Some(id) = id {
            element(&mut out, "NextVersionIdMarker", &id);
        }
    }
    element(&mut out, "MaxKeys", &max_keys.to_string());
    if let Some(delimiter) = input.delimiter.as_ref().filter(|delimiter| !delimiter.is_empty()) {
        element(&mut out, "Delimiter", &text(delimiter));
    }
    if let Some(encoding) = &input.encoding_type {
        element(&mut out, "EncodingType", &escape(encoding.as_str()));
    }
    element(&mut out, "IsTruncated", if page.next.is_some() { "true" } else { "false" });
    for object in &page.objects {
        let is_marker = object.standing.is_delete_marker;
        let name = if is_marker { "DeleteMarker" } else { "Version" };
        let _ = write!(out, "<{name}>");
        element(&mut out, "Key", &text(&object.key));
        element(&mut out, "VersionId", &id(object));
        element(
            &mut out,
            "IsLatest",
            if is_latest(dialect, &input.bucket, object) { "true" } else { "false" },
        );
        element(&mut out, "LastModified", &rfc3339(object.created_us));
        if !is_marker {
            let checksum = checksums::of(object);
            element(&mut out, "ETag", &escape(format!("\"{}\"", object.etag)));
            element(&mut out, "ChecksumAlgorithm", checksums::name(checksum.algorithm));
            element(&mut out, "ChecksumType", checksums::kind(checksum.composite).as_str());
            element(&mut out, "Size", &object.size.to_string());
            element(&mut out, "StorageClass", &escape(object.storage_class()));
        }
        let _ = write!(out, "<Owner><ID>{ACCOUNT}</ID></Owner></{name}>");
    }
    for prefix in &page.prefixes {
        let _ = write!(out, "<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>", text(prefix));
    }
    out.push_str("</ListVersionsResult>");
    out
}

/// Returns true if this version, or this delete marker, is the one that a request without a version id finds.
fn is_latest(dialect: &S3Dialect, bucket: &str, object: &Object) -> bool {
    match object.standing.noncurrent_us {
        None => true,
        Some(_) if !object.standing.is_delete_marker => false,
        Some(_) => matches!(
            dialect.objects.find(bucket, &object.key),
            Err(StoreError::DeleteMarker(newest)) if newest.generation == object.generation
        ),
    }
}

/// GetBucketVersioning. The answer is empty if the bucket's versioning was never set.
pub(super) fn get(
    dialect: &S3Dialect,
    input: GetBucketVersioningInput,
) -> S3Result<GetBucketVersioningOutput> {
    let bucket = dialect.objects.bucket(&input.bucket).map_err(refusal)?;
    let status = bucket.settings().versioning.map(|versioning| {
        BucketVersioningStatus::from_static(match versioning {
            Versioning::Enabled => BucketVersioningStatus::ENABLED,
            Versioning::Suspended | Versioning::Off => BucketVersioningStatus::SUSPENDED,
        })
    });
    Ok(GetBucketVersioningOutput { status, ..Default::default() })
}

/// PutBucketVersioning. Requests about MFA are refused, because the server can't check the codes of MFA devices.
pub(super) fn put(
    dialect: &S3Dialect,
    input: PutBucketVersioningInput,
) -> S3Result<PutBucketVersioningOutput> {
    let wanted = input.versioning_configuration;
    let versioning = match wanted.status.as_ref().map(BucketVersioningStatus::as_str) {
        Some(BucketVersioningStatus::ENABLED) => Versioning::Enabled,
        Some(BucketVersioningStatus::SUSPENDED) => Versioning::Suspended,
        _ => {
            return Err(s3_error!(
                IllegalVersioningConfigurationException,
                "The Versioning element must be specified"
            ));
        }
    };
    if wanted.mfa_delete.is_some_and(|mfa| mfa.as_str() == MFADelete::ENABLED) {
        return Err(s3_error!(NotImplemented, "This store doesn't support MFA devices."));
    }
    let set = |settings: &mut BucketSettings| {
        if settings.locks && versioning != Versioning::Enabled {
            return Err(s3_error!(
                InvalidBucketState,
                "An Object Lock configuration is present on this bucket, so the versioning state cannot be changed."
            ));
        }
        settings.versioning = Some(versioning);
        Ok(())
    };
    dialect.objects.change_bucket(&input.bucket, set).map_err(refusal)??;
    Ok(PutBucketVersioningOutput::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_means_its_generation_and_nothing_else_is_one() {
        let mut object = Object::empty("k", 1_700_000_000_123_456);
        assert_eq!((id(&object).as_str(), parse("null")), ("null", Some(VersionSelector::Null)));
        object.standing.has_id = true;
        assert_eq!(parse(&id(&object)), Some(VersionSelector::Generation(object.generation)));
        for wrong in ["", "v1", "3HL4kqtJlcpXroDTDmJ", "+00000000000000f", "000000000000000F"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
