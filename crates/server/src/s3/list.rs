//! ListObjects, version 1 and 2.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use s3s::dto::*;
use s3s::{S3Result, s3_error};

use super::buckets::is_directory;
use super::{ACCOUNT, S3Dialect, archive, checksums, refusal, timestamp};
use crate::habits::Treatment;
use crate::objects::listing::{Cursor, ListingPage, ListingQuery};
use crate::objects::now_us;

/// The maximum number of entries on a page.
const KEYS_MAX: i32 = 1000;
/// The characters that `encoding-type=url` doesn't encode.
const UNRESERVED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'/');

pub(super) fn first_version(dialect: &S3Dialect, input: ListObjectsInput) -> S3Result<ListObjectsOutput> {
    let start = behind(input.marker.as_deref().unwrap_or_default(), input.delimiter.as_deref());
    let query = query(input.prefix.as_deref(), input.delimiter.as_deref(), start, input.max_keys)?;
    let max_keys = query.max as i32;
    let mut page = page(dialect, &input.bucket, &query, input.max_keys)?;
    let write = EntryFormat {
        restores: archive::is_asked_for(input.optional_object_attributes.as_ref())?,
        owner: Some(owner()),
        ..EntryFormat::of(input.encoding_type.as_ref())
    };
    let next = page.next.take();
    let (contents, common_prefixes) = write.entries(page);
    // S3 sends NextMarker only if the request has a delimiter, because the last entry may then be a common prefix.
    let next_marker = match &next {
        Some(Cursor::After(key) | Cursor::AfterPrefix(key)) if input.delimiter.is_some() => {
            Some(write.text(key))
        }
        _ => None,
    };
    Ok(ListObjectsOutput {
        name: Some(input.bucket),
        prefix: Some(write.text(input.prefix.as_deref().unwrap_or_default())),
        marker: Some(write.text(input.marker.as_deref().unwrap_or_default())),
        delimiter: write.delimiter(input.delimiter),
        encoding_type: input.encoding_type,
        max_keys: Some(max_keys),
        is_truncated: Some(next.is_some()),
        next_marker,
        contents,
        common_prefixes,
        ..Default::default()
    })
}

pub(super) fn second_version(
    dialect: &S3Dialect,
    input: ListObjectsV2Input,
) -> S3Result<ListObjectsV2Output> {
    let is_second = match dialect.habits.listings.second_version {
        Treatment::Honoured => true,
        Treatment::Ignored => false,
        Treatment::Refused => return Err(s3_error!(NotImplemented, "list-type is not supported")),
    };
    let start = match (input.continuation_token.as_deref(), input.start_after.as_deref()) {
        _ if !is_second => Cursor::Start,
        (None | Some(""), None | Some("")) => Cursor::Start,
        (None | Some(""), Some(key)) => Cursor::After(key.to_owned()),
        (Some(token), _) => Cursor::from_token(token)
            .ok_or_else(|| s3_error!(InvalidArgument, "The continuation token provided is incorrect"))?,
    };
    let query = query(input.prefix.as_deref(), input.delimiter.as_deref(), start, input.max_keys)?;
    let max_keys = query.max as i32;
    let mut page = page(dialect, &input.bucket, &query, input.max_keys)?;
    let write = EntryFormat {
        restores: archive::is_asked_for(input.optional_object_attributes.as_ref())?,
        owner: (input.fetch_owner == Some(true)).then(owner),
        ..EntryFormat::of(input.encoding_type.as_ref())
    };
    let next = page.next.take();
    if is_directory(&input.bucket) {
        // Listings of directory buckets aren't sorted. The keys are reversed so that clients that rely on the order
        // fail.
        page.objects.reverse();
    }
    let key_count = (page.objects.len() + page.prefixes.len()) as i32;
    let (contents, common_prefixes) = write.entries(page);
    Ok(ListObjectsV2Output {
        name: Some(input.bucket),
        prefix: Some(write.text(input.prefix.as_deref().unwrap_or_default())),
        delimiter: write.delimiter(input.delimiter),
        encoding_type: input.encoding_type,
        start_after: input.start_after.map(|key| write.text(&key)),
        continuation_token: input.continuation_token,
        max_keys: Some(max_keys),
        key_count: Some(key_count).filter(|_| is_second),
        is_truncated: Some(next.is_some()),
        next_continuation_token: next
            .filter(|_| is_second && dialect.habits.listings.tokens)
            .map(|next| next.to_token()),
        contents,
        common_prefixes,
        ..Default::default()
    })
}

/// Returns a page in the order of the imitated service, or an error if its policy denies the request.
fn page(
    dialect: &S3Dialect,
    bucket: &str,
    query: &ListingQuery,
    max_keys: Option<i32>,
) -> S3Result<ListingPage> {
    let habits = &dialect.habits.listings;
    let is_denied = habits.prefixes.is_some_and(|prefixes| !prefixes.contains(&query.prefix.as_str()))
        || (!habits.max_keys && max_keys.is_some());
    if is_denied {
        return Err(s3_error!(AccessDenied, "Access Denied"));
    }
    match habits.sorted {
        true => dialect.objects.list(bucket, query).map_err(refusal),
        false => unsorted(dialect, bucket, query),
    }
}

/// Returns a page that is sorted by the keys' reversed bytes, to imitate a service whose listings aren't sorted by key.
fn unsorted(dialect: &S3Dialect, bucket: &str, query: &ListingQuery) -> S3Result<ListingPage> {
    let reversed = |key: &str| key.bytes().rev().collect::<Vec<u8>>();
    let all = ListingQuery { from: Cursor::Start, max: usize::MAX, ..query.clone() };
    let ListingPage { objects, prefixes, .. } = dialect.objects.list(bucket, &all).map_err(refusal)?;
    let objects = objects.into_iter().map(|object| (reversed(&object.key), Ok(object)));
    let prefixes = prefixes.into_iter().map(|prefix| (reversed(&prefix), Err(prefix)));
    let mut entries: Vec<_> = objects.chain(prefixes).collect();
    entries.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    let after = match &query.from {
        Cursor::After(key) | Cursor::AfterPrefix(key) => Some(reversed(key)),
        _ => None,
    };
    entries.retain(|(key, _)| after.as_ref().is_none_or(|after| key > after));
    let is_truncated = entries.len() > query.max && query.max > 0;
    entries.truncate(query.max);
    let mut page = ListingPage::default();
    for (_, entry) in entries {
        page.next = Some(match &entry {
            Ok(object) => Cursor::After(object.key.clone()),
            Err(prefix) => Cursor::AfterPrefix(prefix.clone()),
        });
        match entry {
            Ok(object) => page.objects.push(object),
            Err(prefix) => page.prefixes.push(prefix),
        }
    }
    page.next = page.next.filter(|_| is_truncated);
    Ok(page)
}

/// Returns the position at which a page after a marker begins. A page may end with a common prefix. If this prefix is
/// the marker, all keys below it are skipped.
pub(super) fn behind(marker: &str, delimiter: Option<&str>) -> Cursor {
    match delimiter {
        _ if marker.is_empty() => Cursor::Start,
        Some(delimiter) if !delimiter.is_empty() && marker.ends_with(delimiter) => {
            Cursor::AfterPrefix(marker.into())
        }
        _ => Cursor::After(marker.into()),
    }
}

pub(super) fn query(
    prefix: Option<&str>,
    delimiter: Option<&str>,
    from: Cursor,
    max_keys: Option<i32>,
) -> S3Result<ListingQuery> {
    let max = max_keys.unwrap_or(KEYS_MAX).min(KEYS_MAX);
    let max =
        usize::try_from(max).map_err(|_| s3_error!(InvalidArgument, "max-keys must not be negative"))?;
    Ok(ListingQuery {
        prefix: prefix.unwrap_or_default().to_owned(),
        delimiter: delimiter.unwrap_or_default().to_owned(),
        from,
        end: None,
        max,
        ..Default::default()
    })
}

/// The format of entries.
pub(super) struct EntryFormat {
    /// True if keys are percent-encoded, because XML can't contain every key.
    encoded: bool,
    /// True if entries have the restore status of archived objects.
    restores: bool,
    /// The owner in each entry, if the request asks for it.
    owner: Option<Owner>,
}

/// Returns the owner of everything.
pub(super) fn owner() -> Owner {
    Owner { display_name: None, id: Some(ACCOUNT.to_owned()) }
}

impl EntryFormat {
    pub(super) fn of(encoding: Option<&EncodingType>) -> EntryFormat {
        let encoded = encoding.is_some_and(|encoding| encoding.as_str() == EncodingType::URL);
        EntryFormat { encoded, restores: false, owner: None }
    }

    pub(super) fn text(&self, key: &str) -> String {
        if self.encoded { utf8_percent_encode(key, UNRESERVED).to_string() } else { key.to_owned() }
    }

    /// Returns the delimiter as it stands in an answer. S3 omits an empty delimiter.
    pub(super) fn delimiter(&self, delimiter: Option<String>) -> Option<String> {
        delimiter.filter(|delimiter| !delimiter.is_empty()).map(|delimiter| self.text(&delimiter))
    }

    fn entries(&self, page: ListingPage) -> (Option<ObjectList>, Option<CommonPrefixList>) {
        let now = now_us();
        let objects = page.objects.iter().map(|object| {
            let checksum = checksums::of(object);
            Object {
                checksum_algorithm: Some(vec![ChecksumAlgorithm::from_static(checksums::name(
                    checksum.algorithm,
                ))]),
                checksum_type: Some(checksums::kind(checksum.composite)),
                e_tag: Some(ETag::Strong(object.etag.clone())),
                key: Some(self.text(&object.key)),
                last_modified: Some(timestamp(object.created_us)),
                owner: self.owner.clone(),
                restore_status: archive::status(object, now).filter(|_| self.restores),
                size: Some(object.size as i64),
                storage_class: Some(ObjectStorageClass::from(object.storage_class().to_owned())),
            }
        });
        let prefixes = page.prefixes.iter().map(|prefix| CommonPrefix { prefix: Some(self.text(prefix)) });
        (Some(objects.collect()), Some(prefixes.collect()))
    }
}
