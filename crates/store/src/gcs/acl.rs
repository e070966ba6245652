//! Predefined access control lists, which GCS's two APIs spell differently.

/// Returns the JSON API's spelling, such as `publicRead`.
pub(super) fn in_json(acl: &str) -> String {
    let mut words = acl.split('-');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |mut name, word| {
        let mut letters = word.chars();
        name.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        name.push_str(letters.as_str());
        name
    })
}

/// Returns the XML API's spelling, such as `public-read`.
pub(super) fn in_xml(acl: &str) -> String {
    let mut name = String::with_capacity(acl.len() + 4);
    for letter in acl.chars() {
        if letter.is_ascii_uppercase() {
            name.push('-');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_writing_are_understood() {
        for (json, xml) in [
            ("publicRead", "public-read"),
            ("bucketOwnerFullControl", "bucket-owner-full-control"),
            ("private", "private"),
        ] {
            assert_eq!((in_json(xml).as_str(), in_json(json).as_str()), (json, json));
            assert_eq!((in_xml(json).as_str(), in_xml(xml).as_str()), (xml, xml));
        }
    }
}
