//! Listings.

use std::io::Write as _;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, USER_AGENT};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde::{Serialize, Serializer};

use super::answer::{ApiError, ApiResult, json};
use super::media::accepts_gzip;
use super::resource::{ObjectResource, Wanted};
use super::{JsonCall, conditions};
use crate::body::ResponseBody;
use crate::habits::Habits;
use crate::objects::Object;
use crate::objects::listing::{Cursor, ListingQuery, MatchGlob, Order};
use crate::objects::settings::RetentionPolicy;

/// The maximum number of entries on a page, as in GCS.
const ENTRIES_MAX: u64 = 1000;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ObjectsResource<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_page_token: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    prefixes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<ObjectItems<'a>>,
}

/// The objects of a page. Each object is converted to a resource only when it is written. Converting all objects at
/// once would need more memory than the answer.
struct ObjectItems<'a> {
    wanted: Wanted,
    habits: &'a Habits,
    base: &'a str,
    bucket: &'a str,
    policy: Option<RetentionPolicy>,
    objects: &'a [Arc<Object>],
}

impl Serialize for ObjectItems<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { wanted, habits, base, bucket, policy, objects } = self;
        let item = |object| ObjectResource::with(wanted, habits, base, bucket, *policy, object);
        serializer.collect_seq(objects.iter().map(|object| item(object)))
    }
}

/// Reads the parameters of a listing.
pub(super) fn query(call: &JsonCall<'_>) -> Result<ListingQuery, ApiError> {
    let value = |name| call.query.value(name).filter(|value| !value.is_empty());
    let from = match (value("pageToken"), value("startOffset")) {
        (Some(token), _) => Cursor::from_token(token)
            .ok_or_else(|| ApiError::invalid(format!("Invalid page token: '{token}'")))?,
        (None, Some(offset)) => Cursor::At(offset.to_owned()),
        (None, None) => Cursor::Start,
    };
    let delimiter = value("delimiter").unwrap_or_default();
    let glob = match value("matchGlob") {
        Some(_) if !matches!(delimiter, "" | "/") => {
            return Err(ApiError::invalid("With matchGlob the delimiter can only be '/'."));
        }
        Some(pattern) => {
            let glob = MatchGlob::new(pattern);
            Some(glob.ok_or_else(|| ApiError::invalid(format!("Invalid value for matchGlob: '{pattern}'")))?)
        }
        None => None,
    };
    Ok(ListingQuery {
        prefix: value("prefix").unwrap_or_default().to_owned(),
        delimiter: delimiter.to_owned(),
        from,
        end: value("endOffset").map(str::to_owned),
        max: conditions::number("maxResults", value("maxResults"))?.unwrap_or(ENTRIES_MAX).min(ENTRIES_MAX)
            as usize,
        glob,
        include_trailing_delimiter: call.query.is_true("includeTrailingDelimiter"),
    })
}

pub(super) fn list(call: &JsonCall<'_>) -> ApiResult {
    let query = query(call)?;
    let objects = &call.state.objects;
    let page = match call.query.is_true("versions") {
        true => objects.list_versions(call.bucket, &query, Order::OldestFirst),
        false => objects.list(call.bucket, &query),
    };
    let page = page.map_err(|refused| ApiError::refused(refused, call.bucket, ""))?;
    let base = call.base_url();
    let fields = &call.fields;
    let items = fields.of("items").filter(|_| !page.objects.is_empty()).map(|wanted| {
        let (wanted, habits, objects) =
            (Wanted::by(call, call.bucket, wanted), &call.state.habits, &page.objects[..]);
        let policy = call.state.objects.bucket(call.bucket).ok().and_then(|bucket| bucket.settings().policy);
        ObjectItems { wanted, habits, base: &base, bucket: call.bucket, policy, objects }
    });
    let listing = ObjectsResource {
        kind: fields.has("kind").then_some("storage#objects"),
        next_page_token: page.next.filter(|_| fields.has("nextPageToken")).map(|next| next.to_token()),
        prefixes: if fields.has("prefixes") { page.prefixes } else { Vec::new() },
        items,
    };
    Ok(json(StatusCode::OK, &listing))
}

/// Returns true if the answer is to be compressed with gzip. Google's front end does so only if both `Accept-Encoding`
/// and `User-Agent` name gzip. <https://cloud.google.com/storage/docs/json_api#gzip>
pub(super) fn is_packed(headers: &HeaderMap) -> bool {
    let names_it = |value: &HeaderValue| value.to_str().is_ok_and(|text| text.contains("gzip"));
    accepts_gzip(headers) && headers.get(USER_AGENT).is_some_and(names_it)
}

/// Compresses an answer with gzip.
pub(super) fn packed(answer: Response<ResponseBody>) -> Response<ResponseBody> {
    let (mut head, body) = answer.into_parts();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    let bytes = body.into_whole().unwrap_or_default();
    // Writing into memory never fails.
    let bytes = gzip.write_all(&bytes).and_then(|()| gzip.finish()).unwrap_or_default();
    head.headers.insert(CONTENT_LENGTH, bytes.len().into());
    head.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    Response::from_parts(head, ResponseBody::whole(bytes))
}
