//! The tags and CORS rules of buckets.

use s3s::dto::*;
use s3s::{S3Result, s3_error};

use super::{S3Dialect, refusal, tagging};
use crate::objects::settings::BucketSettings;
use crate::objects::settings::CorsRule;

/// The maximum number of CORS rules of a bucket.
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketCors.html>
const RULES_MAX: usize = 100;
const METHODS: [&str; 5] = ["GET", "PUT", "HEAD", "POST", "DELETE"];

pub(super) fn get_cors(dialect: &S3Dialect, input: GetBucketCorsInput) -> S3Result<GetBucketCorsOutput> {
    let bucket = dialect.objects.bucket(&input.bucket).map_err(refusal)?;
    let settings = bucket.settings();
    if settings.cors.is_empty() {
        return Err(s3_error!(NoSuchCORSConfiguration, "The CORS configuration does not exist"));
    }
    let some = |list: &[String]| Some(list.to_vec()).filter(|list| !list.is_empty());
    let rules = settings.cors.iter().map(|rule| CORSRule {
        allowed_headers: some(&rule.headers),
        allowed_methods: rule.methods.clone(),
        allowed_origins: rule.origins.clone(),
        expose_headers: some(&rule.exposed),
        id: rule.id.clone(),
        max_age_seconds: rule.max_age_s.map(|seconds| seconds as i32),
    });
    Ok(GetBucketCorsOutput { cors_rules: Some(rules.collect()) })
}

pub(super) fn put_cors(dialect: &S3Dialect, input: PutBucketCorsInput) -> S3Result<PutBucketCorsOutput> {
    let rules = input.cors_configuration.cors_rules;
    if rules.is_empty() || rules.len() > RULES_MAX {
        return Err(s3_error!(
            MalformedXML,
            "The XML you provided was not well-formed or did not validate against our published schema"
        ));
    }
    let rules = rules.into_iter().map(rule).collect::<S3Result<Vec<_>>>()?;
    set(dialect, &input.bucket, |settings| settings.cors = rules)?;
    Ok(PutBucketCorsOutput::default())
}

fn rule(rule: CORSRule) -> S3Result<CorsRule> {
    if let Some(method) = rule.allowed_methods.iter().find(|method| !METHODS.contains(&method.as_str())) {
        let message = format!("Found unsupported HTTP method in CORS config. Unsupported method is {method}");
        return Err(s3s::S3Error::with_message(s3s::S3ErrorCode::InvalidRequest, message));
    }
    let headers = rule.allowed_headers.unwrap_or_default();
    if let Some(pattern) =
        rule.allowed_origins.iter().chain(&headers).find(|pattern| pattern.matches('*').count() > 1)
    {
        let message = format!("\"{pattern}\" can not have more than one wildcard.");
        return Err(s3s::S3Error::with_message(s3s::S3ErrorCode::InvalidRequest, message));
    }
    Ok(CorsRule {
        id: rule.id,
        origins: rule.allowed_origins,
        methods: rule.allowed_methods,
        headers,
        exposed: rule.expose_headers.unwrap_or_default(),
        max_age_s: rule.max_age_seconds.and_then(|seconds| u32::try_from(seconds).ok()),
    })
}

pub(super) fn delete_cors(
    dialect: &S3Dialect,
    input: DeleteBucketCorsInput,
) -> S3Result<DeleteBucketCorsOutput> {
    set(dialect, &input.bucket, |settings| settings.cors.clear())?;
    Ok(DeleteBucketCorsOutput::default())
}

pub(super) fn get_tags(
    dialect: &S3Dialect,
    input: GetBucketTaggingInput,
) -> S3Result<GetBucketTaggingOutput> {
    let bucket = dialect.objects.bucket(&input.bucket).map_err(refusal)?;
    let settings = bucket.settings();
    if settings.tags.is_empty() {
        return Err(s3_error!(NoSuchTagSet, "The TagSet does not exist"));
    }
    let tag = |(key, value): (&String, &String)| Tag { key: Some(key.clone()), value: Some(value.clone()) };
    Ok(GetBucketTaggingOutput { tag_set: settings.tags.iter().map(tag).collect() })
}

pub(super) fn put_tags(
    dialect: &S3Dialect,
    input: PutBucketTaggingInput,
) -> S3Result<PutBucketTaggingOutput> {
    let tags = tagging::of_bucket(input.tagging.tag_set)?;
    set(dialect, &input.bucket, |settings| settings.tags = tags)?;
    Ok(PutBucketTaggingOutput::default())
}

pub(super) fn delete_tags(
    dialect: &S3Dialect,
    input: DeleteBucketTaggingInput,
) -> S3Result<DeleteBucketTaggingOutput> {
    set(dialect, &input.bucket, |settings| settings.tags.clear())?;
    Ok(DeleteBucketTaggingOutput::default())
}

fn set(dialect: &S3Dialect, bucket: &str, change: impl FnOnce(&mut BucketSettings)) -> S3Result<()> {
    let changed = dialect.objects.change_bucket(bucket, |settings| {
        change(settings);
        Ok::<_, s3s::S3Error>(())
    });
    changed.map_err(refusal)?
}
