//! List Blobs and Find Blobs by Tags.

use std::collections::BTreeMap;
use std::sync::Arc;

use quick_xml::escape::escape;

use super::answer::{XmlWriter, insert};
use super::conditions::etag;
use super::containers::page_size;
use super::error::{BlobError, BlobResult};
use super::tags::TagFilter;
use super::{BlobCall, blobs, blocks, copies, properties, timestamp};
use crate::habits::Treatment;
use crate::objects::listing::{Cursor, ListingQuery, Order};
use crate::objects::soft_deleted::DeletionTimes;
use crate::objects::{Object, now_us};

/// The parts of a listing that a request includes.
struct ListingParts(Vec<&'static str>);

/// The values of `include`. The store accepts those of features that it lacks, as an account without them would.
const PARTS: [&str; 11] = [
    "copy",
    "deleted",
    "metadata",
    "snapshots",
    "uncommittedblobs",
    "tags",
    "versions",
    "deletedwithversions",
    "immutabilitypolicy",
    "legalhold",
    "permissions",
];

impl ListingParts {
    fn of(call: &BlobCall<'_>) -> Result<ListingParts, BlobError> {
        let name = "include";
        let text = call.query.value(name).unwrap_or_default();
        let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
        let known = words.map(|word| PARTS.into_iter().find(|part| part.eq_ignore_ascii_case(word)));
        let parts = known.collect::<Option<Vec<_>>>();
        parts
            .map(ListingParts)
            .ok_or_else(|| BlobError::of_parameter("InvalidQueryParameterValue", name, text))
    }

    fn has(&self, part: &str) -> bool {
        self.0.contains(&part)
    }
}

/// A day in microseconds.
const DAY_US: u64 = 24 * 60 * 60 * 1_000_000;

pub(super) fn list(call: &BlobCall<'_>) -> BlobResult {
    let container = &call.target.container;
    call.state.objects.bucket(container)?;
    let parts = ListingParts::of(call)?;
    let parameter = |name: &str| call.query.value(name).filter(|text| !text.is_empty());
    let start = parameter("startFrom").filter(|_| call.state.habits.start_from == Treatment::Honoured);
    let from = match (parameter("marker"), start) {
        (Some(marker), _) => Cursor::from_token(marker)
            .ok_or_else(|| BlobError::of_parameter("InvalidQueryParameterValue", "marker", marker))?,
        (None, Some(start)) => Cursor::At(start.to_owned()),
        (None, None) => Cursor::Start,
    };
    let query = ListingQuery {
        prefix: parameter("prefix").unwrap_or_default().to_owned(),
        delimiter: parameter("delimiter").unwrap_or_default().to_owned(),
        from,
        end: parameter("endBefore").map(str::to_owned),
        max: page_size(call)?,
        glob: None,
        include_trailing_delimiter: false,
    };
    let (snapshots, versions) = (parts.has("snapshots"), parts.has("versions"));
    let mut more = Vec::new();
    let mut deleted = BTreeMap::new();
    if parts.has("uncommittedblobs") {
        more = blocks::uncommitted_blobs(call);
    }
    // This store keeps deleted blobs beside the versions, and lists only one of both.
    if parts.has("deleted") && !snapshots && !versions {
        for (object, times) in call.state.objects.newest_deleted(container, &query.prefix)? {
            deleted.insert(object.generation, times);
            more.push(object);
        }
    }
    let mut page = match snapshots || versions {
        true => call.state.objects.list_versions(container, &query, Order::OldestFirst)?,
        false => call.state.objects.list_with(container, &query, more)?,
    };
    page.objects.retain(|object| match object.standing.noncurrent_us {
        None => true,
        Some(_) if deleted.contains_key(&object.generation) => true,
        Some(_) if object.is_snapshot() => snapshots,
        Some(_) => versions,
    });
    let mut document = XmlWriter::new();
    document.begin_with(
        "EnumerationResults",
        &[("ServiceEndpoint", &call.endpoint()), ("ContainerName", container)],
    );
    for (element, name) in
        [("Prefix", "prefix"), ("Marker", "marker"), ("MaxResults", "maxresults"), ("Delimiter", "delimiter")]
    {
        document.optional(element, parameter(name));
    }
    document.begin("Blobs");
    // Blobs and prefixes are in one order.
    let mut prefixes = page.prefixes.iter().peekable();
    for object in &page.objects {
        while let Some(prefix) = prefixes.next_if(|prefix| prefix.as_bytes() < object.key.as_bytes()) {
            write_prefix(&mut document, prefix);
        }
        write(call, &mut document, object, &parts, deleted.get(&object.generation));
    }
    for prefix in prefixes {
        write_prefix(&mut document, prefix);
    }
    document.end();
    document.element("NextMarker", &page.next.map(|next| next.to_token()).unwrap_or_default());
    let mut answer = document.answer();
    if call.access == super::Access::Public {
        insert(answer.headers_mut(), "x-ms-blob-public-access", "container");
    }
    Ok(answer)
}

fn write_prefix(document: &mut XmlWriter, prefix: &str) {
    document.begin("BlobPrefix");
    write_name(document, prefix);
    document.end();
}

/// Writes a name. If XML can't contain one of its letters, the name is percent-encoded and has an attribute that says so.
fn write_name(document: &mut XmlWriter, name: &str) {
    let is_writable = |c: char| matches!(c, '\t' | '\n' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..='\u{10ffff}');
    match name.chars().all(is_writable) {
        true => document.raw(&format!("<Name>{}</Name>", escape(name))),
        false => {
            let encoded = percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC);
            document.raw(&format!("<Name Encoded=\"true\">{encoded}</Name>"));
        }
    }
}

fn write(
    call: &BlobCall<'_>,
    document: &mut XmlWriter,
    object: &Arc<Object>,
    parts: &ListingParts,
    deleted: Option<&DeletionTimes>,
) {
    let now = now_us();
    let is_live = object.standing.noncurrent_us.is_none();
    let is_uncommitted = object.generation == 0;
    document.begin("Blob");
    write_name(document, &object.key);
    if deleted.is_some() {
        document.element("Deleted", "true");
    }
    if object.is_snapshot() {
        document.element("Snapshot", &timestamp::precise(object.generation));
    } else if object.standing.has_id {
        document.element("VersionId", &timestamp::precise(object.generation));
        if is_live {
            document.element("IsCurrentVersion", "true");
        }
    }
    document.begin("Properties");
    if is_uncommitted {
        document.element("Content-Length", "0");
        document.element("BlobType", "BlockBlob");
        document.end();
        document.end();
        return;
    }
    if let Some(times) = deleted {
        document.element("DeletedTime", &timestamp::http(times.deleted_us));
        let days = times.ends_us.saturating_sub(now) / DAY_US;
        document.element("RemainingRetentionDays", &days.to_string());
    }
    let attributes = &object.attributes;
    document.element("Creation-Time", &timestamp::http(object.created_us));
    document.element("Last-Modified", &timestamp::http(object.updated_us));
    // Listings have tags without quotes.
    document.element("Etag", etag(object).trim_matches('"'));
    document.element("Content-Length", &object.size.to_string());
    document.element("Content-Type", blobs::content_type(object));
    for (name, value) in [
        ("Content-Encoding", attributes.content_encoding.as_deref()),
        ("Content-Language", attributes.content_language.as_deref()),
        ("Content-CRC64", None),
        ("Content-MD5", blobs::content_md5(object).as_deref()),
        ("Cache-Control", attributes.cache_control.as_deref()),
        ("Content-Disposition", attributes.content_disposition.as_deref()),
    ] {
        document.element(name, value.unwrap_or_default());
    }
    document.element("BlobType", object.blob().kind());
    let (tier, is_set) = properties::tier(object, now);
    document.element("AccessTier", tier);
    if !is_set {
        document.element("AccessTierInferred", "true");
    }
    if let Some(changed_us) = object.blob().tier_changed_us {
        document.element("AccessTierChangeTime", &timestamp::http(changed_us));
    }
    if let Some((status, priority)) = properties::archive_status(object, now) {
        document.element("ArchiveStatus", &status);
        document.element("RehydratePriority", priority);
    }
    if is_live {
        let lease = call.state.leases.description(&call.target.container, &object.key);
        for (name, value) in ["LeaseStatus", "LeaseState", "LeaseDuration"].into_iter().zip(lease) {
            document.optional(name, value);
        }
    }
    if parts.has("copy") {
        for (_, name, value) in copies::fields(object) {
            document.element(name, &value);
        }
    }
    document.element("ServerEncrypted", "true");
    let tags = &attributes.options.tags;
    if !tags.is_empty() {
        document.element("TagCount", &tags.len().to_string());
    }
    document.end();
    if parts.has("metadata") && !attributes.metadata.is_empty() {
        document.begin("Metadata");
        for (name, value) in &attributes.metadata {
            document.element(name, value);
        }
        document.end();
    }
    if parts.has("tags") && !tags.is_empty() {
        document.begin("Tags");
        properties::write_tags(document, tags);
        document.end();
    }
    document.element("OrMetadata", "");
    document.end();
}

/// Find Blobs by Tags, in the account or in one container.
pub(super) fn find(call: &BlobCall<'_>) -> BlobResult {
    let text = call
        .query
        .value("where")
        .ok_or_else(|| BlobError::new("MissingRequiredQueryParameter").with("QueryParameterName", "where"))?;
    let filter = TagFilter::of_query(text).map_err(|reason| {
        BlobError::of_parameter("InvalidQueryParameterValue", "where", text).saying(reason)
    })?;
    let max = page_size(call)?;
    let from = match call.query.value("marker").filter(|marker| !marker.is_empty()) {
        None => 0,
        Some(marker) => marker
            .parse()
            .map_err(|_| BlobError::of_parameter("InvalidQueryParameterValue", "marker", marker))?,
    };
    let mut found = Vec::new();
    let everything = ListingQuery { max: usize::MAX, ..ListingQuery::default() };
    for bucket in call.state.objects.buckets() {
        if !call.target.container.is_empty() && bucket.name != call.target.container {
            continue;
        }
        let page = call.state.objects.list(&bucket.name, &everything)?;
        let matches = page.objects.into_iter().filter(|object| {
            let tags = &object.attributes.options.tags;
            !tags.is_empty() && filter.matches(tags, Some(&bucket.name))
        });
        found.extend(matches.map(|object| (bucket.name.clone(), object)));
    }
    let mut document = XmlWriter::new();
    document.begin_with("EnumerationResults", &[("ServiceEndpoint", &call.endpoint())]);
    document.element("Where", text);
    document.begin("Blobs");
    for (container, object) in found.iter().skip(from).take(max) {
        document.begin("Blob");
        write_name(&mut document, &object.key);
        document.element("ContainerName", container);
        document.begin("Tags");
        // The answer has only the tags that the expression names.
        let tags = &object.attributes.options.tags;
        properties::write_tags(&mut document, tags.iter().filter(|(name, _)| filter.names(name)));
        document.end();
        document.end();
    }
    document.end();
    let next = from.saturating_add(max);
    let next = if next < found.len() { next.to_string() } else { String::new() };
    document.element("NextMarker", &next);
    Ok(document.answer())
}
