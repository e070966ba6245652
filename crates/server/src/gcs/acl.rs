//! Predefined access control lists. Nothing is enforced here, so only those are taken that grant nothing to others.
//! <https://cloud.google.com/storage/docs/access-control/lists#predefined-acl>

use super::answer::Problem;

/// The lists by the names of both APIs, and whether they grant nothing to others than the owner and the project.
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

/// Checks the predefined list in a parameter or header. `accepts` is true if one that isn't enforced may be kept.
pub(crate) fn check(accepts: bool, name: &str, value: Option<&str>) -> Result<(), Problem> {
    let Some(value) = value else { return Ok(()) };
    match PREDEFINED.iter().find(|(known, _)| *known == value) {
        None => Err(Problem::invalid(format!("Invalid argument for {name}: '{value}'"))),
        Some((_, is_private)) if *is_private || accepts => Ok(()),
        Some(_) => Err(Problem::not_here(&format!("{name} {value}"))),
    }
}
