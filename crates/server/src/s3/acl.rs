//! The access control lists of buckets and objects. The server doesn't enforce them, so it supports only predefined
//! lists. [S3](https://docs.aws.amazon.com/AmazonS3/latest/userguide/acl-overview.html#canned-acl)

use s3s::dto::*;
use s3s::{S3Error, S3ErrorCode, S3Result, s3_error};

use super::list::owner;
use super::{ACCOUNT, S3Dialect, refusal, versions};
use crate::objects::object::{Group, granted};
use crate::objects::precondition::Precondition;

const ALL_USERS: &str = "http://acs.amazonaws.com/groups/global/AllUsers";
const AUTHENTICATED_USERS: &str = "http://acs.amazonaws.com/groups/global/AuthenticatedUsers";

/// Returns the predefined list to keep for an object. A bucket can be without access control lists, as every new bucket
/// at Amazon is. Such a bucket accepts only the list that it implies.
/// [S3](https://docs.aws.amazon.com/AmazonS3/latest/userguide/about-object-ownership.html)
pub(super) fn of_new(dialect: &S3Dialect, acl: Option<&ObjectCannedACL>) -> S3Result<Option<String>> {
    kept(dialect, acl.map(ObjectCannedACL::as_str))
}

fn kept(dialect: &S3Dialect, acl: Option<&str>) -> S3Result<Option<String>> {
    let acl = acl.map(str::to_owned);
    if dialect.habits.access_lists || acl.as_deref().is_none_or(|acl| acl == "bucket-owner-full-control") {
        return Ok(acl);
    }
    let code = S3ErrorCode::Custom("AccessControlListNotSupported".into());
    let mut error = S3Error::with_message(code, "The bucket does not allow ACLs");
    error.set_status_code(http::StatusCode::BAD_REQUEST);
    Err(error)
}

pub(super) fn get(dialect: &S3Dialect, input: GetObjectAclInput) -> S3Result<GetObjectAclOutput> {
    let object = versions::find(dialect, &input.bucket, &input.key, input.version_id.as_deref())?;
    let grants = grants(object.attributes.options.acl.as_deref());
    Ok(GetObjectAclOutput { grants: Some(grants), owner: Some(owner()), ..Default::default() })
}

pub(super) fn get_bucket(dialect: &S3Dialect, input: GetBucketAclInput) -> S3Result<GetBucketAclOutput> {
    let bucket = dialect.objects.bucket(&input.bucket).map_err(refusal)?;
    let grants = grants(bucket.settings().acl.as_deref());
    Ok(GetBucketAclOutput { grants: Some(grants), owner: Some(owner()) })
}

/// Returns the grants of a predefined list.
fn grants(acl: Option<&str>) -> Vec<Grant> {
    let grantee = |type_: &'static str, id: Option<&str>, uri: Option<&str>| Grantee {
        type_: Type::from(type_.to_owned()),
        id: id.map(str::to_owned),
        uri: uri.map(str::to_owned),
        display_name: None,
        email_address: None,
    };
    let grant = |grantee: Grantee, permission: &'static str| Grant {
        grantee: Some(grantee),
        permission: Some(Permission::from_static(permission)),
    };
    let mut grants = vec![grant(grantee("CanonicalUser", Some(ACCOUNT), None), Permission::FULL_CONTROL)];
    if let Some((group, writes)) = granted(acl) {
        let uri = match group {
            Group::AllUsers => ALL_USERS,
            Group::AuthenticatedUsers => AUTHENTICATED_USERS,
        };
        let permissions = [Some(Permission::READ), writes.then_some(Permission::WRITE)];
        let of_group = |permission| grant(grantee("Group", None, Some(uri)), permission);
        grants.extend(permissions.into_iter().flatten().map(of_group));
    }
    grants
}

pub(super) fn put_bucket(dialect: &S3Dialect, input: PutBucketAclInput) -> S3Result<PutBucketAclOutput> {
    let Some(acl) = &input.acl else { return Err(not_predefined()) };
    let acl = kept(dialect, Some(acl.as_str()))?;
    let changed = dialect.objects.change_bucket(&input.bucket, |settings| {
        settings.acl = acl;
        Ok::<_, S3Error>(())
    });
    changed.map_err(refusal)??;
    Ok(PutBucketAclOutput::default())
}

fn not_predefined() -> S3Error {
    s3_error!(NotImplemented, "Only predefined access control lists are implemented.")
}

pub(super) fn put(dialect: &S3Dialect, input: PutObjectAclInput) -> S3Result<PutObjectAclOutput> {
    if input.acl.is_none() {
        return Err(not_predefined());
    }
    versions::find(dialect, &input.bucket, &input.key, input.version_id.as_deref())?;
    let acl = of_new(dialect, input.acl.as_ref())?;
    let change = |attributes: &mut crate::objects::Attributes| {
        attributes.options.acl = acl;
        Ok::<_, S3Error>(())
    };
    let which = versions::asked(input.version_id.as_deref())?;
    let changed = dialect.objects.patch(&input.bucket, &input.key, which, &Precondition::default(), change);
    changed.map_err(refusal)??;
    Ok(PutObjectAclOutput::default())
}
