//! Predefined access control lists. The server enforces none, so by default it accepts only those that give nobody but
//! the owner and the project access. <https://cloud.google.com/storage/docs/access-control/lists#predefined-acl>

use super::answer::Problem;

/// The names of the lists in both APIs. The second value is true if a list grants access only to the owner and the
/// project.
const PREDEFINED: [(&str, bool); 14] = [
    ("private", true),
    ("projectPrivate", true),
    ("project-private", true),
    ("bucketOwnerRead", true),
    ("bucket-owner-read", true),
    ("bucketOwnerFullControl", true),
    ("bucket-owner-full-control", true),
    ("authenticatedRead", false),
    ("authenticated-read", false),
    ("publicRead", false),
    ("public-read", false),
    ("publicReadWrite", false),
    ("public-read-write", false),
    ("aws-exec-read", false),
];

/// Checks the predefined list in a parameter or header. If `accepts` is true, lists that grant access to others are
/// accepted too, without being enforced.
pub(crate) fn check(accepts: bool, name: &str, value: Option<&str>) -> Result<(), Problem> {
    let Some(value) = value else { return Ok(()) };
    match PREDEFINED.iter().find(|(known, _)| *known == value) {
        None => Err(Problem::invalid(format!("Invalid argument for {name}: '{value}'"))),
        Some((_, is_private)) if *is_private || accepts => Ok(()),
        Some(_) => Err(Problem::not_here(&format!("{name} {value}"))),
    }
}
