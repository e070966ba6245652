//! Buckets.

use s3s::S3Result;
use s3s::dto::*;

use super::{Dialect, refusal, timestamp};
use crate::objects::Refused;
use crate::objects::bucket_name::objection;

pub(super) fn list(dialect: &Dialect, input: ListBucketsInput) -> S3Result<ListBucketsOutput> {
    let prefix = input.prefix.unwrap_or_default();
    let buckets = dialect.objects.buckets();
    let buckets = buckets.iter().filter(|bucket| bucket.name.starts_with(&prefix)).map(|bucket| Bucket {
        bucket_region: Some(region(dialect, &bucket.name)),
        creation_date: Some(timestamp(bucket.created_us)),
        name: Some(bucket.name.clone()),
    });
    let owner = Owner { display_name: None, id: Some(dialect.config.access_key.clone()) };
    Ok(ListBucketsOutput { buckets: Some(buckets.collect()), owner: Some(owner), ..Default::default() })
}

pub(super) fn create(dialect: &Dialect, input: CreateBucketInput) -> S3Result<CreateBucketOutput> {
    if objection(&input.bucket).is_some() {
        return Err(refusal(Refused::BadBucketName));
    }
    // A region's endpoint makes buckets of that region. It must be named unless it is the first region.
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
    dialect.objects.create_bucket_named(&input.bucket).map_err(refusal)?;
    Ok(CreateBucketOutput { location: Some(format!("/{}", input.bucket)) })
}

pub(super) fn head(dialect: &Dialect, input: HeadBucketInput) -> S3Result<HeadBucketOutput> {
    dialect.objects.bucket(&input.bucket).map_err(refusal)?;
    Ok(HeadBucketOutput { bucket_region: Some(region(dialect, &input.bucket)), ..Default::default() })
}

pub(super) fn delete(dialect: &Dialect, input: DeleteBucketInput) -> S3Result<DeleteBucketOutput> {
    dialect.objects.delete_bucket(&input.bucket).map_err(refusal)?;
    Ok(DeleteBucketOutput::default())
}

pub(super) fn location(
    dialect: &Dialect,
    input: GetBucketLocationInput,
) -> S3Result<GetBucketLocationOutput> {
    dialect.objects.bucket(&input.bucket).map_err(refusal)?;
    // S3 returns an empty constraint for its first region.
    let region = Some(region(dialect, &input.bucket)).filter(|region| region != "us-east-1");
    Ok(GetBucketLocationOutput { location_constraint: region.map(BucketLocationConstraint::from) })
}

fn region(dialect: &Dialect, bucket: &str) -> String {
    dialect.config.bucket_regions.get(bucket).unwrap_or(&dialect.config.region).clone()
}
