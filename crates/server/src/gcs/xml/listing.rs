//! Listings of the XML API, version 1 and 2.

use super::{ApiError, ApiResult, XmlCall, XmlDocument, conditions, quoted};
use crate::gcs::resource::rfc3339;
use crate::objects::listing::{Cursor, ListingQuery};

pub(super) fn buckets(call: &XmlCall<'_>) -> ApiResult {
    let mut document = XmlDocument::open("ListAllMyBucketsResult");
    document.begin("Buckets");
    for bucket in call.state.objects.buckets() {
        document.begin("Bucket");
        document.element("Name", &bucket.name);
        document.element("CreationDate", &rfc3339(bucket.created_us));
        document.end();
    }
    Ok(document.close())
}

pub(super) fn objects(call: &XmlCall<'_>) -> ApiResult {
    let value = |name| call.query.value(name).filter(|value| !value.is_empty());
    let second = value("list-type") == Some("2");
    let from = match value("continuation-token") {
        Some(token) => {
            Cursor::from_token(token).ok_or_else(|| ApiError::invalid("Invalid continuation-token"))?
        }
        None => match value("marker").or(value("start-after")) {
            Some(key) => Cursor::After(key.to_owned()),
            None => Cursor::Start,
        },
    };
    let query = ListingQuery {
        prefix: value("prefix").unwrap_or_default().to_owned(),
        delimiter: value("delimiter").unwrap_or_default().to_owned(),
        from,
        end: None,
        max: conditions::number("max-keys", value("max-keys"))?.unwrap_or(1000).min(1000) as usize,
        ..Default::default()
    };
    let page = call.state.objects.list(call.bucket, &query);
    let page = page.map_err(|refused| ApiError::refused(refused, call.bucket, ""))?;
    let mut document = XmlDocument::open("ListBucketResult");
    document.element("Name", call.bucket);
    document.element("Prefix", &query.prefix);
    document.element("MaxKeys", &query.max.to_string());
    document.element("IsTruncated", if page.next.is_some() { "true" } else { "false" });
    match &page.next {
        Some(next) if second => document.element("NextContinuationToken", &next.to_token()),
        Some(Cursor::After(key) | Cursor::AfterPrefix(key)) => document.element("NextMarker", key),
        _ => {}
    }
    for object in &page.objects {
        document.begin("Contents");
        document.element("Key", &object.key);
        document.element("Generation", &object.generation.to_string());
        document.element("MetaGeneration", &object.metageneration.to_string());
        document.element("LastModified", &rfc3339(object.updated_us));
        document.element("ETag", &quoted(&object.etag));
        document.element("Size", &object.size.to_string());
        document.element("StorageClass", object.storage_class());
        document.end();
    }
    for prefix in &page.prefixes {
        document.begin("CommonPrefixes");
        document.element("Prefix", prefix);
        document.end();
    }
    Ok(document.close())
}
