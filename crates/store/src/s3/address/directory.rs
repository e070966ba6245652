//! Directory buckets (S3 Express One Zone): `NAME--ZONE--x-s3`. Their endpoint is in the zone that the name contains.

use super::arn::is_label;

/// The endings of the names of directory buckets and of access points to them.
const ENDINGS: [&str; 2] = ["--x-s3", "--xa-s3"];

/// Returns true if a name belongs to a directory bucket. AWS reserves these endings, so no other bucket's name has
/// them.
pub(in super::super) fn is_directory(bucket: &str) -> bool {
    ENDINGS.iter().any(|ending| bucket.ends_with(ending))
}

/// Returns the zone of a directory bucket.
///
/// # Errors
/// Returns the mistake in the name.
pub(super) fn zone(bucket: &str) -> Result<&str, String> {
    let wrong = |why: &str| Err(format!("{bucket:?} isn't a valid name of a directory bucket: {why}"));
    let Some(named) = ENDINGS.iter().find_map(|ending| bucket.strip_suffix(ending)) else {
        return wrong("it doesn't end in --x-s3");
    };
    let Some((name, zone)) = named.rsplit_once("--").filter(|(name, _)| !name.is_empty()) else {
        return wrong("it names no zone");
    };
    if !is_label(bucket) || bucket.bytes().any(|b| b.is_ascii_uppercase()) || name.starts_with('-') {
        return wrong("it can't be part of a host name");
    }
    match zone.split_once('-') {
        Some((area, place)) if !area.is_empty() && !place.is_empty() => Ok(zone),
        _ => wrong("it names no zone"),
    }
}

/// Returns the region in a zone's id: `usw2-az1` is in us-west-2. Returns `None` if the region can't be derived from
/// the id.
pub(super) fn region_of_zone(zone: &str) -> Option<String> {
    let area = zone.split('-').next()?;
    let (continent, rest) = area.split_at_checked(2)?;
    if !matches!(continent, "af" | "ap" | "ca" | "eu" | "il" | "me" | "mx" | "sa" | "us") {
        return None;
    }
    let digits = rest.find(|c: char| c.is_ascii_digit())?;
    let (direction, number) = rest.split_at(digits);
    let direction = match direction {
        "c" => "central",
        "e" => "east",
        "n" => "north",
        "ne" => "northeast",
        "nw" => "northwest",
        "s" => "south",
        "se" => "southeast",
        "sw" => "southwest",
        "w" => "west",
        _ => return None,
    };
    number.bytes().all(|b| b.is_ascii_digit()).then(|| format!("{continent}-{direction}-{number}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_buckets_name_ends_in_its_zone() {
        assert_eq!(zone("b--usw2-az1--x-s3"), Ok("usw2-az1"));
        assert_eq!(zone("my--s3--bucket--abcd-ab1--x-s3"), Ok("abcd-ab1"));
        assert_eq!(zone("p--test1-long1-zone-ab1--xa-s3"), Ok("test1-long1-zone-ab1"));
        for bad in ["b--usaz1--x-s3", "usw2-az1--x-s3", "my.b--usw2-az1--x-s3", "B--usw2-az1--x-s3"] {
            assert!(zone(bad).is_err(), "{bad}");
        }
        assert!(is_directory("b--usw2-az1--x-s3") && !is_directory("b--usw2-az1--x-s3x"));
    }

    #[test]
    fn a_zones_id_tells_its_region() {
        for (zone, region) in [
            ("use1-az4", Some("us-east-1")),
            ("usw2-az12", Some("us-west-2")),
            ("apne1-az1", Some("ap-northeast-1")),
            ("aps1-az3", Some("ap-south-1")),
            ("eun1-az1", Some("eu-north-1")),
            ("usw2-lax1-az1", Some("us-west-2")),
            ("abcd-ab1", None),
            ("test-zone-ab1", None),
            ("é-a", None),
        ] {
            assert_eq!(region_of_zone(zone).as_deref(), region, "{zone}");
        }
    }
}
