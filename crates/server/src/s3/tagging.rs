//! Tags of objects.

use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;
use s3s::dto::*;
use s3s::{S3Result, s3_error};

use super::{S3Dialect, refusal, versions};
use crate::objects::precondition::Precondition;

/// S3's limits for tags.
const TAGS_MAX: usize = 10;
const BUCKET_TAGS_MAX: usize = 50;
const KEY_CHARS_MAX: usize = 128;
const VALUE_CHARS_MAX: usize = 256;

/// Reads the tags in `x-amz-tagging`, which has the format of a URL's query.
pub(super) fn in_header(header: &str) -> S3Result<BTreeMap<String, String>> {
    let pairs = header.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let decode = |text: &str| {
            let text = text.replace('+', " ");
            percent_decode_str(&text).decode_utf8().map(|text| text.into_owned()).ok()
        };
        decode(key).zip(decode(value)).ok_or_else(|| {
            s3_error!(InvalidArgument, "The header 'x-amz-tagging' shall be encoded as UTF-8 then URLEncoded")
        })
    });
    checked(pairs.collect::<S3Result<_>>()?)
}

/// Reads the tags of a bucket.
pub(super) fn of_bucket(tags: TagSet) -> S3Result<BTreeMap<String, String>> {
    if tags.len() > BUCKET_TAGS_MAX {
        return Err(s3_error!(InvalidTag, "Bucket tag count cannot be greater than 50"));
    }
    distinct(tags.into_iter().map(pair).collect())
}

fn pair(tag: Tag) -> (String, String) {
    (tag.key.unwrap_or_default(), tag.value.unwrap_or_default())
}

fn checked(pairs: Vec<(String, String)>) -> S3Result<BTreeMap<String, String>> {
    if pairs.len() > TAGS_MAX {
        return Err(s3_error!(InvalidTag, "Object tags cannot be greater than 10"));
    }
    distinct(pairs)
}

fn distinct(pairs: Vec<(String, String)>) -> S3Result<BTreeMap<String, String>> {
    let count = pairs.len();
    let fits = |(key, value): &(String, String)| {
        (1..=KEY_CHARS_MAX).contains(&key.chars().count()) && value.chars().count() <= VALUE_CHARS_MAX
    };
    if !pairs.iter().all(fits) {
        return Err(s3_error!(InvalidTag, "The TagKey or the TagValue you have provided is invalid"));
    }
    let tags: BTreeMap<_, _> = pairs.into_iter().collect();
    match tags.len() == count {
        true => Ok(tags),
        false => Err(s3_error!(InvalidTag, "Cannot provide multiple Tags with the same key")),
    }
}

pub(super) fn get(dialect: &S3Dialect, input: GetObjectTaggingInput) -> S3Result<GetObjectTaggingOutput> {
    let object = versions::find(dialect, &input.bucket, &input.key, input.version_id.as_deref())?;
    let tag = |(key, value): (&String, &String)| Tag { key: Some(key.clone()), value: Some(value.clone()) };
    let tag_set = object.attributes.options.tags.iter().map(tag).collect();
    Ok(GetObjectTaggingOutput { tag_set, version_id: versions::reported(dialect, &input.bucket, &object) })
}

pub(super) fn put(dialect: &S3Dialect, input: PutObjectTaggingInput) -> S3Result<PutObjectTaggingOutput> {
    let tags = checked(input.tagging.tag_set.into_iter().map(pair).collect())?;
    let version_id = set(dialect, &input.bucket, &input.key, input.version_id.as_deref(), tags)?;
    Ok(PutObjectTaggingOutput { version_id })
}

pub(super) fn delete(
    dialect: &S3Dialect,
    input: DeleteObjectTaggingInput,
) -> S3Result<DeleteObjectTaggingOutput> {
    let none = BTreeMap::new();
    let version_id = set(dialect, &input.bucket, &input.key, input.version_id.as_deref(), none)?;
    Ok(DeleteObjectTaggingOutput { version_id })
}

/// Replaces the tags. Returns the object's version.
fn set(
    dialect: &S3Dialect,
    bucket: &str,
    key: &str,
    version: Option<&str>,
    tags: BTreeMap<String, String>,
) -> S3Result<Option<String>> {
    versions::find(dialect, bucket, key, version)?;
    let change = |attributes: &mut crate::objects::Attributes| {
        attributes.options.tags = tags;
        Ok::<_, s3s::S3Error>(())
    };
    let which = versions::asked(version)?;
    let changed =
        dialect.objects.patch(bucket, key, which, &Precondition::default(), change).map_err(refusal)??;
    Ok(versions::reported(dialect, bucket, &changed))
}

#[cfg(test)]
mod tests {
    use s3s::S3ErrorCode;

    use super::*;

    #[test]
    fn tags_are_decoded_and_their_limits_kept() {
        let tags = in_header("team=a%20b&x%3Dy=1%262&alone").unwrap();
        assert_eq!(tags["team"], "a b");
        assert_eq!(tags["x=y"], "1&2");
        assert_eq!(tags["alone"], "");
        assert!(in_header("").unwrap().is_empty());
        let refusal = |header: &str| in_header(header).unwrap_err().code().clone();
        assert_eq!(refusal("a=1&a=2"), S3ErrorCode::InvalidTag);
        let many: Vec<String> = (0..11).map(|n| format!("k{n}=v")).collect();
        assert_eq!(refusal(&many.join("&")), S3ErrorCode::InvalidTag);
        assert_eq!(refusal("=v"), S3ErrorCode::InvalidTag);
    }
}
