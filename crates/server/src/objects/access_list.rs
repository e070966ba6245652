//! Predefined access control lists. The store keeps the names that the dialects give them, and enforces none.

/// The id of the account that owns everything.
pub(crate) const ACCOUNT: &str = "000000000000";

/// A group of users beside the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    AllUsers,
    AuthenticatedUsers,
}

/// Returns the group to which a predefined list grants access, and true if it may write. `None` means that the list
/// grants access only to the owner. The JSON API spells the names in another way (`publicRead`) than S3 and the XML API
/// (`public-read`).
pub(crate) fn granted(acl: Option<&str>) -> Option<(Group, bool)> {
    match acl?.replace('-', "").to_ascii_lowercase().as_str() {
        "publicread" => Some((Group::AllUsers, false)),
        "publicreadwrite" => Some((Group::AllUsers, true)),
        "authenticatedread" => Some((Group::AuthenticatedUsers, false)),
        _ => None,
    }
}
