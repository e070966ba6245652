//! DeleteObject and DeleteObjects.

use std::sync::Arc;

use s3s::dto::*;
use s3s::{S3Error, S3Request, S3Result, s3_error};

use super::{S3Dialect, conditions, object_lock, refusal, usual_code, versions};
use crate::fault::injector::FaultInjector;
use crate::objects::precondition::Precondition;
use crate::objects::versions::{VersionSelector, VersionSuccessor};
use crate::objects::{RemovalResult, StoreError};

const KEYS_MAX: usize = 1000;

pub(super) fn one(dialect: &S3Dialect, input: DeleteObjectInput) -> S3Result<DeleteObjectOutput> {
    let precondition = conditions::of_write(dialect.habits.conditions.delete, input.if_match, None)?;
    object_lock::check_bypass(dialect, &input.bucket, input.bypass_governance_retention)?;
    let bypasses = input.bypass_governance_retention == Some(true);
    let version = input.version_id.as_deref();
    let removed = delete(dialect, &input.bucket, &input.key, version, &precondition, bypasses)?;
    let (version_id, is_marker) = reported(&removed, input.version_id);
    Ok(DeleteObjectOutput { version_id, delete_marker: is_marker.then_some(true), ..Default::default() })
}

pub(super) fn many(
    dialect: &S3Dialect,
    request: S3Request<DeleteObjectsInput>,
) -> S3Result<DeleteObjectsOutput> {
    let S3Request { input, extensions, .. } = request;
    let draws = extensions.get::<Arc<FaultInjector>>();
    if input.delete.objects.is_empty() || input.delete.objects.len() > KEYS_MAX {
        return Err(s3_error!(MalformedXML, "from 1 to 1000 keys can be deleted at once"));
    }
    dialect.objects.bucket(&input.bucket).map_err(refusal)?;
    // S3 refuses this header for a bucket without Object Lock. This server ignores it there, because ceph's s3-tests
    // send it for every bucket that they empty.
    let bypasses = input.bypass_governance_retention == Some(true);
    let mut deleted = Vec::new();
    let mut errors = Vec::new();
    for object in input.delete.objects {
        if let Some(status) = draws.and_then(|draws| draws.refused_removal(&object.key)) {
            errors.push(Error {
                code: Some(usual_code(status).to_owned()),
                key: Some(object.key),
                ..Default::default()
            });
            continue;
        }
        let etag = object.e_tag.map(ETagCondition::ETag);
        let precondition = conditions::of_write(dialect.habits.conditions.delete, etag, None)?;
        let asked = object.version_id;
        match delete(dialect, &input.bucket, &object.key, asked.as_deref(), &precondition, bypasses) {
            Ok(removed) => {
                let (version, is_marker) = reported(&removed, asked.clone());
                deleted.push(DeletedObject {
                    delete_marker: is_marker.then_some(true),
                    delete_marker_version_id: version.filter(|_| is_marker),
                    key: Some(object.key),
                    version_id: asked,
                });
            }
            Err(error) => errors.push(Error {
                code: Some(error.code().as_str().to_owned()),
                message: error.message().map(str::to_owned),
                key: Some(object.key),
                version_id: asked,
            }),
        }
    }
    let quiet = input.delete.quiet == Some(true);
    Ok(DeleteObjectsOutput {
        deleted: (!quiet).then_some(deleted),
        errors: Some(errors).filter(|errors| !errors.is_empty()),
        ..Default::default()
    })
}

/// Deletes an object. If the object doesn't exist, that is a success and the result is `None`, unless the request has a
/// condition.
fn delete(
    dialect: &S3Dialect,
    bucket: &str,
    key: &str,
    version: Option<&str>,
    precondition: &Precondition,
    bypasses: bool,
) -> S3Result<Option<RemovalResult>> {
    let removed = match versions::asked(version).map_err(|_| no_version())? {
        VersionSelector::Live => dialect.objects.delete_or_mark(bucket, key, precondition, bypasses),
        which => dialect.objects.delete_version(
            bucket,
            key,
            which,
            VersionSuccessor::Newest,
            precondition,
            bypasses,
        ),
    };
    match removed {
        Ok(removed) => Ok(Some(removed)),
        Err(StoreError::NoObject) if precondition.is_none() => Ok(None),
        Err(refused) => Err(refusal(refused)),
    }
}

fn no_version() -> S3Error {
    s3_error!(NoSuchVersion, "The specified version does not exist.")
}

/// Returns the version id for the answer, and true if that version is a delete marker.
fn reported(removed: &Option<RemovalResult>, asked: Option<String>) -> (Option<String>, bool) {
    match removed {
        Some(RemovalResult::Marked(marker)) => (Some(versions::id(marker)), true),
        Some(RemovalResult::Version(version)) => {
            (Some(versions::id(version)), version.standing.is_delete_marker)
        }
        Some(RemovalResult::Gone) | None => (asked, false),
    }
}
