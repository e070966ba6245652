//! A permission in an object's access control list.

/// A permission that an access control list grants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AccessGrant {
    /// The account or group, as the store names it: an S3 account's id, `AllUsers`, `user-a@b.example`.
    pub grantee: String,
    /// The permission, as the store names it: `READ`, `FULL_CONTROL`, `OWNER`.
    pub permission: String,
}
