//! The rules for bucket names of S3, <https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html>, and
//! of GCS, <https://cloud.google.com/storage/docs/buckets#naming>.

use std::net::Ipv4Addr;

use crate::Error;

/// Prefixes and suffixes that names of general purpose buckets must not have. `--x-s3` isn't among them, because names
/// of directory buckets end in it.
const RESERVED_PREFIXES: [&str; 3] = ["xn--", "sthree-", "amzn-s3-demo-"];
const RESERVED_SUFFIXES: [&str; 4] = ["-s3alias", "--ol-s3", ".mrap", "--table-s3"];

/// Checks a bucket's name.
///
/// # Errors
/// Returns the mistake in a name that neither S3 nor GCS permits.
pub fn parse_bucket_name(text: &str) -> Result<String, Error> {
    match objection(text).filter(|_| !is_allowed_by_gcs(text)) {
        None => Ok(text.to_owned()),
        Some(why) => Err(Error::unreadable("the name of a bucket", text, why)),
    }
}

/// Returns the rule of S3 that a name breaks, or `None` if the name is valid.
pub(crate) fn objection(name: &str) -> Option<&'static str> {
    let is_inner =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    let is_outer = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let bytes = name.as_bytes();
    if !(3..=63).contains(&bytes.len()) {
        Some("3 to 63 characters")
    } else if !bytes.iter().copied().all(is_inner) {
        Some("lower-case letters, digits, hyphens and dots, and underscores in GCS")
    } else if !is_outer(bytes.first()) || !is_outer(bytes.last()) {
        Some("a letter or a digit at both ends")
    } else if name.contains("..") {
        Some("no two dots side by side")
    } else if name.contains(".-") || name.contains("-.") {
        Some("no hyphen beside a dot")
    } else if name.parse::<Ipv4Addr>().is_ok() {
        Some("a name that isn't an IP address")
    } else if RESERVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || RESERVED_SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
    {
        Some("a beginning and an end that S3 doesn't keep for itself")
    } else {
        None
    }
}

/// Returns true if GCS allows a bucket to have this name.
pub(crate) fn is_allowed_by_gcs(name: &str) -> bool {
    let is_outer = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let length_max = if name.contains('.') { 222 } else { 63 };
    (3..=length_max).contains(&name.len())
        && name.split('.').all(|part| (1..=63).contains(&part.len()))
        && name.parse::<Ipv4Addr>().is_err()
        && !name.starts_with("goog")
        && !["google", "g00gle"].iter().any(|reserved| name.contains(reserved))
        && name.bytes().all(|byte| is_outer(byte) || matches!(byte, b'-' | b'_' | b'.'))
        && name.bytes().next().is_some_and(is_outer)
        && name.bytes().next_back().is_some_and(is_outer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gcs_allows_underscores_and_longer_names_with_dots() {
        for name in ["demo", "a_b", "123", &format!("{0}.{0}.{0}.b", "a".repeat(63))] {
            assert!(is_allowed_by_gcs(name), "{name}");
        }
        for name in [
            "UPPER",
            "ab",
            "-demo",
            "demo_",
            "a b",
            "a..b",
            "192.168.1.1",
            "goog-x",
            "my-google",
            &"a".repeat(64),
            &format!("{}.b", "a".repeat(64)),
        ] {
            assert!(!is_allowed_by_gcs(name), "{name}");
        }
    }

    #[test]
    fn names_are_those_that_s3_allows() {
        for name in ["demo", "my.bucket-1", "123", "a".repeat(63).as_str(), "base--usw2-az1--x-s3"] {
            assert_eq!(objection(name), None, "{name}");
        }
        let long = "a".repeat(64);
        for name in [
            "b",
            "ab",
            &long,
            "Demo",
            "a_b",
            "-ab",
            "ab-",
            ".ab",
            "a..b",
            "a.-b",
            "a-.b",
            "192.168.5.4",
            "xn--a",
            "a-s3alias",
            "ä12",
        ] {
            assert!(objection(name).is_some(), "{name}");
        }
    }

    #[test]
    fn parses_the_names_that_either_service_allows() {
        for name in ["demo", "a_b", "base--usw2-az1--x-s3", "my-google"] {
            assert_eq!(parse_bucket_name(name).unwrap(), name);
        }
        assert!(parse_bucket_name("b").unwrap_err().to_string().contains("3 to 63"));
        assert!(parse_bucket_name("A_b").unwrap_err().to_string().contains("lower-case letters"));
    }
}
