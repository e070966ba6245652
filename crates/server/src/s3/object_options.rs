//! Reads the requested properties of a new object from headers that several operations share.

use std::collections::BTreeMap;

use s3s::dto::{ObjectLockLegalHoldStatus, ObjectLockMode, Timestamp};
use s3s::{S3Result, s3_error};

use super::tagging;
use crate::objects::object::RetentionLock;

/// Returns the [`ObjectOptions`](crate::objects::object::ObjectOptions) from the input of an operation that creates an object.
macro_rules! options_of {
    ($dialect:expr, $input:expr) => {{
        let customer = $crate::s3::object_options::customer_of!($input)?;
        let managed = $crate::s3::encryption::ManagedEncryption {
            algorithm: $input.server_side_encryption.as_ref().map(|algorithm| algorithm.as_str()),
            kms_key: $input.ssekms_key_id.as_deref(),
            bucket_key: $input.bucket_key_enabled,
            context: $input.ssekms_encryption_context.as_deref(),
        };
        $crate::objects::object::ObjectOptions {
            encryption: $crate::s3::encryption::of_new(&managed, customer)?,
            acl: $crate::s3::acl::of_new($dialect, $input.acl.as_ref())?,
            tags: $crate::s3::object_options::tags($input.tagging.as_deref())?,
            retention: $crate::s3::object_options::retention(
                $input.object_lock_mode.as_ref(),
                $input.object_lock_retain_until_date.as_ref(),
            )?,
            legal_hold: $crate::s3::object_options::legal_hold(
                $input.object_lock_legal_hold_status.as_ref(),
            )?,
            ..Default::default()
        }
    }};
}

/// Returns the customer's key in a request.
macro_rules! customer_of {
    ($input:expr) => {
        $crate::s3::encryption::customer(
            $input.sse_customer_algorithm.as_deref(),
            $input.sse_customer_key.as_deref(),
            $input.sse_customer_key_md5.as_deref(),
        )
    };
}

/// Returns the customer's key of a copy's source.
macro_rules! source_customer_of {
    ($input:expr) => {
        $crate::s3::encryption::customer(
            $input.copy_source_sse_customer_algorithm.as_deref(),
            $input.copy_source_sse_customer_key.as_deref(),
            $input.copy_source_sse_customer_key_md5.as_deref(),
        )
    };
}

/// Adds an object's encryption to an answer.
macro_rules! tell_encryption {
    ($output:expr, $encryption:expr) => {
        match $encryption {
            Some($crate::objects::object::ObjectEncryption::Managed { algorithm, kms_key, bucket_key }) => {
                $output.server_side_encryption =
                    Some(s3s::dto::ServerSideEncryption::from(algorithm.clone()));
                $output.ssekms_key_id = kms_key.clone();
                $output.bucket_key_enabled = bucket_key.then_some(true);
            }
            Some($crate::objects::object::ObjectEncryption::Customer { md5, .. }) => {
                $output.sse_customer_algorithm = Some("AES256".to_owned());
                $output.sse_customer_key_md5 = Some(md5.clone());
            }
            None => {}
        }
    };
}

/// Adds an object's retention to an answer.
macro_rules! tell_lock {
    ($output:expr, $options:expr) => {
        if let Some(retention) = &$options.retention {
            let mode = if retention.strict { "COMPLIANCE" } else { "GOVERNANCE" };
            $output.object_lock_mode = Some(s3s::dto::ObjectLockMode::from_static(mode));
            $output.object_lock_retain_until_date = Some($crate::s3::timestamp(retention.until_us));
        }
        if let Some(is_on) = $options.legal_hold {
            let status = if is_on { "ON" } else { "OFF" };
            $output.object_lock_legal_hold_status =
                Some(s3s::dto::ObjectLockLegalHoldStatus::from_static(status));
        }
    };
}

pub(super) use {customer_of, options_of, source_customer_of, tell_encryption, tell_lock};

/// Reads the mode and the date of a retention. A request must have both or neither.
pub(super) fn retention(
    mode: Option<&ObjectLockMode>,
    until: Option<&Timestamp>,
) -> S3Result<Option<RetentionLock>> {
    let (mode, until) = match (mode, until) {
        (None, None) => return Ok(None),
        (Some(mode), Some(until)) => (mode.as_str(), until),
        _ => {
            return Err(s3_error!(
                InvalidArgument,
                "x-amz-object-lock-retain-until-date and x-amz-object-lock-mode must both be supplied"
            ));
        }
    };
    let strict = match mode {
        "COMPLIANCE" => true,
        "GOVERNANCE" => false,
        _ => return Err(s3_error!(InvalidArgument, "Unknown wormMode directive.")),
    };
    let until_us = until_us(until);
    if until_us <= crate::objects::now_us() {
        return Err(s3_error!(InvalidArgument, "The retain until date must be in the future!"));
    }
    Ok(Some(RetentionLock { strict, until_us }))
}

/// Returns a date as microseconds since 1970.
pub(super) fn until_us(date: &Timestamp) -> u64 {
    let date = time::OffsetDateTime::from(date.clone());
    u64::try_from(date.unix_timestamp_nanos() / 1000).unwrap_or_default()
}

/// Reads the header of a legal hold.
pub(super) fn legal_hold(status: Option<&ObjectLockLegalHoldStatus>) -> S3Result<Option<bool>> {
    match status.map(ObjectLockLegalHoldStatus::as_str) {
        None => Ok(None),
        Some("ON") => Ok(Some(true)),
        Some("OFF") => Ok(Some(false)),
        Some(_) => Err(s3_error!(InvalidArgument, "Legal Hold must be either of 'ON' or 'OFF'")),
    }
}

/// Reads the tags in a header.
pub(super) fn tags(header: Option<&str>) -> S3Result<BTreeMap<String, String>> {
    tagging::in_header(header.unwrap_or_default())
}
