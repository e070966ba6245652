//! DeleteObject and DeleteObjects.

use std::sync::Arc;

use s3s::dto::*;
use s3s::{S3Request, S3Result, s3_error};

use super::{Dialect, conditions, refusal, usual_code, versions};
use crate::fault::draws::Draws;
use crate::objects::Refused;
use crate::objects::precondition::Precondition;

const KEYS_MAX: usize = 1000;

pub(super) fn one(dialect: &Dialect, input: DeleteObjectInput) -> S3Result<DeleteObjectOutput> {
    let precondition = conditions::of_write(dialect.habits.conditions.delete, input.if_match, None)?;
    delete(dialect, &input.bucket, &input.key, &precondition)?;
    Ok(DeleteObjectOutput::default())
}

pub(super) fn many(
    dialect: &Dialect,
    request: S3Request<DeleteObjectsInput>,
) -> S3Result<DeleteObjectsOutput> {
    let S3Request { input, extensions, .. } = request;
    let draws = extensions.get::<Arc<Draws>>();
    if input.delete.objects.is_empty() || input.delete.objects.len() > KEYS_MAX {
        return Err(s3_error!(MalformedXML, "from 1 to 1000 keys can be deleted at once"));
    }
    dialect.objects.bucket(&input.bucket).map_err(refusal)?;
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
        let outcome = versions::only(object.version_id.as_deref())
            .and_then(|()| delete(dialect, &input.bucket, &object.key, &precondition));
        match outcome {
            Ok(()) => deleted.push(DeletedObject { key: Some(object.key), ..Default::default() }),
            Err(error) => errors.push(Error {
                code: Some(error.code().as_str().to_owned()),
                message: error.message().map(str::to_owned),
                key: Some(object.key),
                version_id: object.version_id,
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

/// Removing what isn't there succeeds, unless something was demanded of it.
fn delete(dialect: &Dialect, bucket: &str, key: &str, precondition: &Precondition) -> S3Result<()> {
    match dialect.objects.delete(bucket, key, precondition) {
        Ok(()) => Ok(()),
        Err(Refused::NoObject) if precondition.is_none() => Ok(()),
        Err(refused) => Err(refusal(refused)),
    }
}
