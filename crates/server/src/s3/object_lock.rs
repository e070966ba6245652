//! Object Lock: retentions and legal holds of versions, and the default of a bucket.
//! <https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-lock.html>

use s3s::dto::*;
use s3s::{S3Error, S3ErrorCode, S3Result, s3_error};

use super::object_options::until_us;
use super::{S3Dialect, refusal, timestamp, versions};
use crate::objects::object::RetentionLock;
use crate::objects::precondition::Precondition;
use crate::objects::settings::{BucketSettings, DefaultLock, LockPeriod};
use crate::objects::{Attributes, Versioning, now_us};

const PERIOD_DAYS_MAX: i32 = 36_500;
const PERIOD_YEARS_MAX: i32 = 100;

pub(super) fn configuration(
    dialect: &S3Dialect,
    input: GetObjectLockConfigurationInput,
) -> S3Result<GetObjectLockConfigurationOutput> {
    let bucket = dialect.objects.bucket(&input.bucket).map_err(refusal)?;
    let settings = bucket.settings();
    if !settings.locks {
        return Err(s3_error!(
            ObjectLockConfigurationNotFoundError,
            "Object Lock configuration does not exist for this bucket"
        ));
    }
    let rule = settings.default_lock.map(|lock| {
        let (days, years) = match lock.period {
            LockPeriod::Days(days) => (Some(days as i32), None),
            LockPeriod::Years(years) => (None, Some(years as i32)),
        };
        let mode = Some(ObjectLockRetentionMode::from_static(mode(lock.strict)));
        ObjectLockRule { default_retention: Some(DefaultRetention { days, mode, years }) }
    });
    let enabled = ObjectLockEnabled::from_static(ObjectLockEnabled::ENABLED);
    let configuration = ObjectLockConfiguration { object_lock_enabled: Some(enabled), rule };
    Ok(GetObjectLockConfigurationOutput { object_lock_configuration: Some(configuration) })
}

pub(super) fn configure(
    dialect: &S3Dialect,
    input: PutObjectLockConfigurationInput,
) -> S3Result<PutObjectLockConfigurationOutput> {
    let wanted = input.object_lock_configuration.ok_or_else(malformed)?;
    let is_enabled = wanted.object_lock_enabled.is_some_and(|of| of.as_str() == ObjectLockEnabled::ENABLED);
    if !is_enabled {
        return Err(malformed());
    }
    let default_lock = wanted.rule.map(default_lock).transpose()?;
    let configure = |settings: &mut BucketSettings| {
        if settings.versioning() != Versioning::Enabled {
            return Err(s3_error!(
                InvalidBucketState,
                "Versioning must be 'Enabled' on the bucket to apply a Object Lock configuration"
            ));
        }
        (settings.locks, settings.default_lock) = (true, default_lock);
        Ok(())
    };
    dialect.objects.change_bucket(&input.bucket, configure).map_err(refusal)??;
    Ok(PutObjectLockConfigurationOutput::default())
}

/// Reads the default retention in a rule. Its period must be given either in days or in years.
fn default_lock(rule: ObjectLockRule) -> S3Result<DefaultLock> {
    let wanted = rule.default_retention.ok_or_else(malformed)?;
    let strict = is_strict(wanted.mode.as_ref().ok_or_else(malformed)?)?;
    let (number, most) = match (wanted.days, wanted.years) {
        (Some(days), None) => (days, PERIOD_DAYS_MAX),
        (None, Some(years)) => (years, PERIOD_YEARS_MAX),
        _ => return Err(malformed()),
    };
    if number > most {
        return Err(s3_error!(InvalidArgument, "Default retention period too large."));
    }
    let number = u32::try_from(number).ok().filter(|number| *number > 0).ok_or_else(|| {
        s3_error!(InvalidArgument, "Default retention period must be a positive integer value.")
    })?;
    let period = if wanted.days.is_some() { LockPeriod::Days(number) } else { LockPeriod::Years(number) };
    Ok(DefaultLock { strict, period })
}

pub(super) fn retention(
    dialect: &S3Dialect,
    input: GetObjectRetentionInput,
) -> S3Result<GetObjectRetentionOutput> {
    admit(dialect, &input.bucket)?;
    let object = versions::find(dialect, &input.bucket, &input.key, input.version_id.as_deref())?;
    let retention = object.attributes.options.retention.ok_or_else(missing)?;
    let retention = ObjectLockRetention {
        mode: Some(ObjectLockRetentionMode::from_static(mode(retention.strict))),
        retain_until_date: Some(timestamp(retention.until_us)),
    };
    Ok(GetObjectRetentionOutput { retention: Some(retention) })
}

pub(super) fn retain(
    dialect: &S3Dialect,
    input: PutObjectRetentionInput,
) -> S3Result<PutObjectRetentionOutput> {
    let wanted = match input.retention.ok_or_else(malformed)? {
        ObjectLockRetention { mode: None, retain_until_date: None } => None,
        ObjectLockRetention { mode: Some(mode), retain_until_date: Some(until) } => {
            let retention = RetentionLock { strict: is_strict(&mode)?, until_us: until_us(&until) };
            if retention.until_us <= now_us() {
                return Err(s3_error!(InvalidArgument, "The retain until date must be in the future!"));
            }
            Some(retention)
        }
        _ => return Err(malformed()),
    };
    admit(dialect, &input.bucket)?;
    let bypasses = input.bypass_governance_retention == Some(true);
    change(dialect, &input.bucket, &input.key, input.version_id.as_deref(), |attributes| {
        if !may_follow(attributes.options.retention, wanted, bypasses, now_us()) {
            return Err(protected());
        }
        attributes.options.retention = wanted;
        Ok(())
    })?;
    Ok(PutObjectRetentionOutput::default())
}

/// Returns true if a retention may replace the present one. A retention may always be extended. Other changes are
/// possible only in the mode GOVERNANCE, by a request that bypasses it.
fn may_follow(
    present: Option<RetentionLock>,
    wanted: Option<RetentionLock>,
    bypasses: bool,
    now_us: u64,
) -> bool {
    let Some(present) = present.filter(|present| present.until_us > now_us) else { return true };
    let extends =
        wanted.is_some_and(|wanted| wanted.strict == present.strict && wanted.until_us >= present.until_us);
    extends || (!present.strict && bypasses)
}

pub(super) fn legal_hold(
    dialect: &S3Dialect,
    input: GetObjectLegalHoldInput,
) -> S3Result<GetObjectLegalHoldOutput> {
    admit(dialect, &input.bucket)?;
    let object = versions::find(dialect, &input.bucket, &input.key, input.version_id.as_deref())?;
    let is_on = object.attributes.options.legal_hold.ok_or_else(missing)?;
    let status = ObjectLockLegalHoldStatus::from_static(if is_on { "ON" } else { "OFF" });
    Ok(GetObjectLegalHoldOutput { legal_hold: Some(ObjectLockLegalHold { status: Some(status) }) })
}

pub(super) fn hold(
    dialect: &S3Dialect,
    input: PutObjectLegalHoldInput,
) -> S3Result<PutObjectLegalHoldOutput> {
    let status = input.legal_hold.and_then(|hold| hold.status).ok_or_else(malformed)?;
    let is_on = match status.as_str() {
        ObjectLockLegalHoldStatus::ON => true,
        ObjectLockLegalHoldStatus::OFF => false,
        _ => return Err(malformed()),
    };
    admit(dialect, &input.bucket)?;
    change(dialect, &input.bucket, &input.key, input.version_id.as_deref(), |attributes| {
        attributes.options.legal_hold = Some(is_on);
        Ok(())
    })?;
    Ok(PutObjectLegalHoldOutput::default())
}

/// Returns an error if a request for a bucket without Object Lock has the header `x-amz-bypass-governance-retention`,
/// even with the value `false`.
pub(super) fn check_bypass(dialect: &S3Dialect, bucket: &str, header: Option<bool>) -> S3Result<()> {
    let locks = dialect.objects.bucket(bucket).map_err(refusal)?.settings().locks;
    if header.is_some() && !locks {
        return Err(s3_error!(
            InvalidArgument,
            "x-amz-bypass-governance-retention is only applicable to Object Lock enabled buckets."
        ));
    }
    Ok(())
}

/// Returns an error if the new object will be locked and the upload has no checksum.
pub(super) fn check_integrity(
    dialect: &S3Dialect,
    bucket: &str,
    options: &crate::objects::object::ObjectOptions,
    headers: &http::HeaderMap,
) -> S3Result<()> {
    let by_default = dialect.objects.bucket(bucket).is_ok_and(|of| of.settings().default_lock.is_some());
    if !by_default && options.retention.is_none() && options.legal_hold.is_none() {
        return Ok(());
    }
    let is_checksum = |name: &http::HeaderName| {
        name.as_str().starts_with("x-amz-checksum-")
            || matches!(name.as_str(), "content-md5" | "x-amz-trailer")
    };
    if headers.keys().any(is_checksum) {
        return Ok(());
    }
    Err(s3_error!(
        InvalidRequest,
        "Content-MD5 OR x-amz-checksum- HTTP header is required for Put Object requests with Object Lock parameters"
    ))
}

/// Returns the error for a request that would delete a locked version, or weaken its lock.
pub(super) fn protected() -> S3Error {
    s3_error!(AccessDenied, "Access Denied because object protected by object lock.")
}

/// Returns an error if the bucket doesn't have Object Lock.
fn admit(dialect: &S3Dialect, bucket: &str) -> S3Result<()> {
    match dialect.objects.bucket(bucket).map_err(refusal)?.settings().locks {
        true => Ok(()),
        false => Err(s3_error!(InvalidRequest, "Bucket is missing Object Lock Configuration")),
    }
}

fn change(
    dialect: &S3Dialect,
    bucket: &str,
    key: &str,
    version: Option<&str>,
    change: impl FnOnce(&mut Attributes) -> S3Result<()>,
) -> S3Result<()> {
    versions::find(dialect, bucket, key, version)?;
    let which = versions::asked(version)?;
    let changed = dialect.objects.patch(bucket, key, which, &Precondition::default(), change);
    changed.map_err(refusal)?.map(drop)
}

fn is_strict(mode: &ObjectLockRetentionMode) -> S3Result<bool> {
    match mode.as_str() {
        ObjectLockRetentionMode::COMPLIANCE => Ok(true),
        ObjectLockRetentionMode::GOVERNANCE => Ok(false),
        _ => Err(malformed()),
    }
}

fn mode(strict: bool) -> &'static str {
    if strict { ObjectLockRetentionMode::COMPLIANCE } else { ObjectLockRetentionMode::GOVERNANCE }
}

fn missing() -> S3Error {
    s3_error!(NoSuchObjectLockConfiguration, "The specified object does not have a ObjectLock configuration")
}

fn malformed() -> S3Error {
    S3Error::with_message(
        S3ErrorCode::MalformedXML,
        "The XML you provided was not well-formed or did not validate against our published schema",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retention_is_extended_and_only_governance_is_loosened_by_a_bypass() {
        let of = |strict, until_us| Some(RetentionLock { strict, until_us });
        for (present, wanted, bypasses, expected) in [
            (None, of(true, 9), false, true),
            (of(false, 9), of(false, 10), false, true),
            (of(false, 9), of(false, 8), false, false),
            (of(false, 9), of(false, 8), true, true),
            (of(false, 9), of(true, 10), false, false),
            (of(false, 9), None, false, false),
            (of(false, 9), None, true, true),
            (of(true, 9), of(true, 10), false, true),
            (of(true, 9), of(true, 8), true, false),
            (of(true, 9), of(false, 10), true, false),
            (of(true, 9), None, true, false),
            (of(true, 4), None, false, true),
        ] {
            assert_eq!(
                may_follow(present, wanted, bypasses, 5),
                expected,
                "{present:?} {wanted:?} {bypasses}"
            );
        }
    }
}
