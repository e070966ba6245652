//! Buckets.

use s3s::dto::*;
use s3s::{S3Result, s3_error};

use super::list::owner;
use super::{S3Dialect, refusal, timestamp};
use crate::objects::bucket_name::objection;
use crate::objects::settings::BucketSettings;
use crate::objects::{StoreError, Versioning};

/// The maximum number of buckets on a page. <https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListBuckets.html>
const BUCKETS_MAX: i32 = 10_000;

pub(super) fn list(dialect: &S3Dialect, input: ListBucketsInput) -> S3Result<ListBucketsOutput> {
    if input.max_buckets.is_none() && !dialect.habits.unpaged_buckets {
        return Err(s3_error!(InvalidRequest, "Unpaginated requests are not supported for this account"));
    }
    let prefix = input.prefix.unwrap_or_default();
    let after = input.continuation_token.unwrap_or_default();
    let max = input.max_buckets.map_or(usize::MAX, |max| max.clamp(1, BUCKETS_MAX) as usize);
    let mut buckets = dialect.objects.buckets();
    buckets.retain(|bucket| bucket.name.starts_with(&prefix) && bucket.name > after);
    buckets.sort_by(|a, b| a.name.cmp(&b.name));
    // A token is the last name of its page. Clients must treat it as opaque.
    let token = buckets.get(max).and_then(|_| buckets.get(max - 1)).map(|last| last.name.clone());
    buckets.truncate(max);
    let buckets = buckets.iter().map(|bucket| Bucket {
        bucket_region: Some(region(dialect, &bucket.name)),
        creation_date: Some(timestamp(bucket.created_us)),
        name: Some(bucket.name.clone()),
    });
    let buckets = Some(buckets.collect());
    Ok(ListBucketsOutput { buckets, owner: Some(owner()), continuation_token: token, ..Default::default() })
}

pub(super) fn create(dialect: &S3Dialect, input: CreateBucketInput) -> S3Result<CreateBucketOutput> {
    if objection(&input.bucket).is_some() {
        return Err(refusal(StoreError::BadBucketName));
    }
    // The endpoint of a region creates buckets only in that region. The request must name the region, unless it is
    // us-east-1.
    let region = dialect.config.region.as_str();
    let named = input.create_bucket_configuration.and_then(|wanted| wanted.location_constraint);
    let wanted = named.as_ref().map_or("us-east-1", |constraint| constraint.as_str());
    if wanted != region {
        let message = match &named {
            Some(named) => format!(
                "The {} location constraint is incompatible for the region specific endpoint this request was sent to.",
                named.as_str()
            ),
            None => {
                "The unspecified location constraint is incompatible for the region specific endpoint this \
                     request was sent to."
                    .to_owned()
            }
        };
        return Err(s3s::S3Error::with_message(
            s3s::S3ErrorCode::IllegalLocationConstraintException,
            message,
        ));
    }
    // Object Lock requires versioning, so it turns versioning on.
    let locks = input.object_lock_enabled_for_bucket == Some(true);
    let versioning = locks.then_some(Versioning::Enabled);
    let acl = input.acl.map(|acl| acl.as_str().to_owned());
    let settings = BucketSettings { locks, versioning, acl, ..BucketSettings::default() };
    match dialect.objects.create_bucket_with(&input.bucket, settings) {
        // Only in us-east-1, creating a bucket that the caller already owns is a success.
        Err(StoreError::BucketExists) if region == "us-east-1" => {}
        made => made.map_err(refusal)?,
    }
    Ok(CreateBucketOutput { location: Some(format!("/{}", input.bucket)) })
}

pub(super) fn head(dialect: &S3Dialect, input: HeadBucketInput) -> S3Result<HeadBucketOutput> {
    dialect.objects.bucket(&input.bucket).map_err(refusal)?;
    Ok(HeadBucketOutput { bucket_region: Some(region(dialect, &input.bucket)), ..Default::default() })
}

pub(super) fn delete(dialect: &S3Dialect, input: DeleteBucketInput) -> S3Result<DeleteBucketOutput> {
    dialect.objects.delete_bucket(&input.bucket).map_err(refusal)?;
    Ok(DeleteBucketOutput::default())
}

pub(super) fn location(
    dialect: &S3Dialect,
    input: GetBucketLocationInput,
) -> S3Result<GetBucketLocationOutput> {
    dialect.objects.bucket(&input.bucket).map_err(refusal)?;
    // S3 returns an empty location constraint for us-east-1.
    let region = Some(region(dialect, &input.bucket)).filter(|region| region != "us-east-1");
    Ok(GetBucketLocationOutput { location_constraint: region.map(BucketLocationConstraint::from) })
}

fn region(dialect: &S3Dialect, bucket: &str) -> String {
    dialect.config.bucket_regions.get(bucket).unwrap_or(&dialect.config.region).clone()
}
