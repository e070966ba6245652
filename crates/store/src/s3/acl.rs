//! Access control lists of objects: GetObjectAcl and PutObjectAcl
//! (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/acl-overview.html>). By default, Amazon disables them in new
//! buckets.

use http::Method;
use serde::Deserialize;

use super::S3;
use super::head::object_target;
use crate::encode::QueryString;
use crate::exchange::{Exchange, Outgoing};
use crate::{AccessGrant, Error, ErrorKind, ObjectId, Operation, xml};

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AccessControlPolicy {
    #[serde(default)]
    access_control_list: GrantList,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct GrantList {
    grant: Vec<GrantElement>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct GrantElement {
    #[serde(default)]
    grantee: Grantee,
    #[serde(default)]
    permission: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Grantee {
    #[serde(rename = "ID")]
    id: Option<String>,
    #[serde(rename = "URI")]
    uri: Option<String>,
    email_address: Option<String>,
}

impl From<GrantElement> for AccessGrant {
    fn from(element: GrantElement) -> Self {
        let Grantee { id, uri, email_address } = element.grantee;
        // A group's URI ends in its name.
        let group = uri.map(|uri| uri.rsplit('/').next().unwrap_or_default().to_owned());
        let grantee = group.or(id).or(email_address).unwrap_or_default();
        Self { grantee, permission: element.permission }
    }
}

fn acl_target(id: &ObjectId) -> String {
    object_target(id, &QueryString::new().and("acl", ""))
}

impl S3 {
    pub(crate) async fn read_acl(&self, id: &ObjectId) -> Result<Vec<AccessGrant>, Error> {
        let exchange = Exchange::object(self, Operation::Access, id);
        let sent = exchange.send(&Outgoing::new(Method::GET, acl_target(id))).await?;
        let policy: AccessControlPolicy = xml::answer(&sent.response.body, &["AccessControlPolicy"])
            .map_err(|e| exchange.nonsense(&sent, format!("the answer isn't an access control list: {e}")))?;
        Ok(policy.access_control_list.grant.into_iter().map(AccessGrant::from).collect())
    }

    pub(super) async fn write_acl(&self, id: &ObjectId, acl: &str) -> Result<(), Error> {
        let exchange = Exchange::object(self, Operation::SetMeta, id);
        let outgoing = Outgoing::new(Method::PUT, acl_target(id)).header("x-amz-acl", acl);
        let outgoing = outgoing.map_err(|e| exchange.error(ErrorKind::Invalid, e.to_string()))?;
        exchange.send(&outgoing).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_names_an_account_or_a_group() {
        let body = b"<AccessControlPolicy xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Owner><ID>o</ID></Owner>\
            <AccessControlList><Grant><Grantee xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:type=\"CanonicalUser\">\
            <ID>o</ID></Grantee><Permission>FULL_CONTROL</Permission></Grant><Grant><Grantee><URI>\
            http://acs.amazonaws.com/groups/global/AllUsers</URI></Grantee><Permission>READ</Permission></Grant>\
            </AccessControlList></AccessControlPolicy>";
        let policy: AccessControlPolicy = xml::answer(body, &["AccessControlPolicy"]).expect("a policy");
        let grants: Vec<_> = policy.access_control_list.grant.into_iter().map(AccessGrant::from).collect();
        let grant = |grantee: &str, permission: &str| AccessGrant {
            grantee: grantee.to_owned(),
            permission: permission.to_owned(),
        };
        assert_eq!(grants, [grant("o", "FULL_CONTROL"), grant("AllUsers", "READ")]);
    }
}
