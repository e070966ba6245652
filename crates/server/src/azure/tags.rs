//! Index tags of blobs: their formats in headers and documents, and the expressions that select blobs by tags.
//! <https://learn.microsoft.com/rest/api/storageservices/find-blobs-by-tags>

use std::collections::{BTreeMap, BTreeSet};

use super::error::BlobError;
use crate::query::Query;

/// The limits of the service: tags of a blob, and the length of names and values.
const TAGS_MAX: usize = 10;
const NAME_CHARS_MAX: usize = 128;
const VALUE_CHARS_MAX: usize = 256;

/// Parses the header `x-ms-tags`, which has the tags as a query.
pub(super) fn in_header(text: &str) -> Result<BTreeMap<String, String>, BlobError> {
    let pairs = Query::parse(Some(text)).into_pairs();
    checked(pairs)
}

/// Returns tags if the service permits them.
pub(super) fn checked(
    pairs: impl IntoIterator<Item = (String, String)>,
) -> Result<BTreeMap<String, String>, BlobError> {
    let mut tags = BTreeMap::new();
    for (name, value) in pairs {
        let is_valid = (1..=NAME_CHARS_MAX).contains(&name.chars().count())
            && value.chars().count() <= VALUE_CHARS_MAX
            && [&name, &value].iter().all(|text| text.chars().all(is_permitted));
        if !is_valid || tags.insert(name, value).is_some() {
            return Err(BlobError::new("InvalidTags"));
        }
    }
    if tags.len() > TAGS_MAX {
        return Err(BlobError::new("InvalidTags"));
    }
    Ok(tags)
}

fn is_permitted(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || " +-./:=_".contains(letter)
}

/// An expression on tags: `"a" = 'b' AND "c" >= 'd'`, and alternatives of such expressions with `OR`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TagFilter(Vec<Vec<TagComparison>>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct TagComparison {
    name: String,
    operator: String,
    value: String,
}

/// The maximum number of tags in an expression that finds blobs, without `@container`.
const QUERY_TAGS_MAX: usize = 10;

impl TagFilter {
    /// Parses the expression of Find Blobs by Tags, or returns the reason why the service refuses it.
    pub(super) fn of_query(text: &str) -> Result<TagFilter, String> {
        let filter = TagFilter::parse(text)?;
        let all: Vec<&TagComparison> = filter.0.iter().flatten().collect();
        let at = "Error parsing query at or near character position 1:";
        if filter.0.len() > 1 || all.iter().any(|comparison| comparison.operator == "<>") {
            return Err(format!("{at} unexpected operator"));
        }
        let names: BTreeSet<&str> = all.iter().map(|comparison| comparison.name.as_str()).collect();
        if names.iter().filter(|name| **name != CONTAINER).count() > QUERY_TAGS_MAX {
            return Err(format!(
                "Error parsing query: there can be at most {QUERY_TAGS_MAX} unique tags in a query"
            ));
        }
        for comparison in all {
            let problem = match comparison {
                TagComparison { name, .. } if name == CONTAINER => continue,
                TagComparison { name, .. } if name.starts_with('@') => "unsupported parameter",
                TagComparison { name, .. } if !(1..=NAME_CHARS_MAX).contains(&name.chars().count()) => {
                    "tag must be between 1 and 128 characters in length"
                }
                TagComparison { value, .. } if value.chars().count() > VALUE_CHARS_MAX => {
                    "tag value must be between 0 and 256 characters in length"
                }
                TagComparison { name, value, .. } if !name.chars().chain(value.chars()).all(is_permitted) => {
                    "character not permitted in tag name or value"
                }
                _ => continue,
            };
            return Err(format!("{at} {problem}"));
        }
        Ok(filter)
    }

    /// Parses the expression in `x-ms-if-tags`.
    pub(super) fn of_condition(text: &str) -> Result<TagFilter, String> {
        let filter = TagFilter::parse(text)?;
        let is_permitted = |comparison: &TagComparison| {
            !comparison.name.starts_with('@')
                && comparison.name.chars().chain(comparison.value.chars()).all(is_permitted)
        };
        match filter.0.iter().flatten().all(is_permitted) {
            true => Ok(filter),
            false => Err("character not permitted in tag name or value".to_owned()),
        }
    }

    fn parse(text: &str) -> Result<TagFilter, String> {
        let mut rest = text.trim();
        let mut alternatives = vec![Vec::new()];
        let unexpected = |rest: &str| {
            let position = text.len() - rest.len() + 1;
            format!(
                "Error parsing query at or near character position {position}: unexpected '{}'",
                rest.chars().take(10).collect::<String>()
            )
        };
        loop {
            let (comparison, after) = comparison(rest).ok_or_else(|| unexpected(rest))?;
            alternatives.last_mut().ok_or_else(|| unexpected(rest))?.push(comparison);
            rest = after.trim_start();
            if rest.is_empty() {
                return Ok(TagFilter(alternatives));
            }
            let (conjunction, after) = rest.split_once(' ').ok_or_else(|| unexpected(rest))?;
            if conjunction.eq_ignore_ascii_case("or") {
                alternatives.push(Vec::new());
            } else if !conjunction.eq_ignore_ascii_case("and") {
                return Err(unexpected(rest));
            }
            rest = after.trim_start();
        }
    }

    /// Returns true if the expression names a tag.
    pub(super) fn names(&self, name: &str) -> bool {
        self.0.iter().flatten().any(|comparison| comparison.name == name)
    }

    /// Returns true if the tags match. `@container` stands for the container's name.
    pub(super) fn matches(&self, tags: &BTreeMap<String, String>, container: Option<&str>) -> bool {
        let holds = |comparison: &TagComparison| {
            let tag = match comparison.name.as_str() {
                CONTAINER => container,
                name => tags.get(name).map(String::as_str),
            };
            let value = comparison.value.as_str();
            match (tag, comparison.operator.as_str()) {
                (Some(tag), "=") => tag == value,
                (Some(tag), ">") => tag > value,
                (Some(tag), ">=") => tag >= value,
                (Some(tag), "<") => tag < value,
                (Some(tag), "<=") => tag <= value,
                (Some(tag), "<>") => tag != value,
                _ => false,
            }
        };
        self.0.iter().any(|all| all.iter().all(holds))
    }
}

/// The name in an expression that stands for the container.
const CONTAINER: &str = "@container";

/// Splits off one comparison.
fn comparison(text: &str) -> Option<(TagComparison, &str)> {
    let (name, after) = word(text)?;
    let after = after.trim_start();
    let operator = ["<>", ">=", "<=", "=", ">", "<"].into_iter().find(|name| after.starts_with(name))?;
    let after = after[operator.len()..].trim_start();
    let (value, after) = after.strip_prefix('\'')?.split_once('\'')?;
    Some((TagComparison { name, operator: operator.to_owned(), value: value.to_owned() }, after))
}

/// Splits off a name. In double quotes it may have any characters, and otherwise only those of an identifier.
fn word(text: &str) -> Option<(String, &str)> {
    if let Some(quoted) = text.strip_prefix('"') {
        let (name, rest) = quoted.split_once('"')?;
        return Some((name.to_owned(), rest));
    }
    let bare = text.strip_prefix('@').unwrap_or(text);
    let len = bare.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
    let end = text.len() - bare.len() + len;
    (len > 0).then(|| (text[..end].to_owned(), &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_selects_blobs_by_their_tags() {
        let tags = in_header("a=1&colour=dark+red").unwrap();
        for (text, expected) in [
            ("\"a\" = '1'", true),
            ("a='1' AND \"colour\" >= 'dark'", true),
            ("a='2' OR colour='dark red'", true),
            ("a='2' OR a='3'", false),
            ("\"a\" <> '2'", true),
            ("\"b\" <> '1'", false),
            ("@container='demo' AND a<'2'", true),
            ("@container='other'", false),
        ] {
            assert_eq!(TagFilter::parse(text).unwrap().matches(&tags, Some("demo")), expected, "{text}");
        }
        for text in ["", "a", "a=1", "a='1' XOR b='2'", "a='1", "='1'", "\"a", "a-b='1'", "é='1'"] {
            assert!(TagFilter::parse(text).is_err(), "{text}");
        }
        assert!(TagFilter::of_query("a='1' OR b='2'").unwrap_err().starts_with("Error parsing query at"));
        assert!(TagFilter::of_condition("@container='demo'").is_err());
    }

    #[test]
    fn refuses_tags_that_the_service_refuses() {
        let long = "x".repeat(129);
        let many = (0..11).map(|n| format!("t{n}=v")).collect::<Vec<_>>().join("&");
        for text in ["a=%2A", "=v", &format!("{long}=v"), &many, "a=1&a=2"] {
            assert_eq!(in_header(text).unwrap_err().code(), "InvalidTags", "{text}");
        }
    }
}
