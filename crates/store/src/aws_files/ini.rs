//! The syntax of AWS's shared files, as AWS's reference guide describes it
//! (<https://docs.aws.amazon.com/sdkref/latest/guide/file-format.html>).

use std::collections::BTreeMap;

/// The sections of a file by their titles, exactly as the file has them. Two sections with the same title are merged,
/// and the later setting wins.
pub(super) type Sections = BTreeMap<String, Section>;

/// The settings of a section. Their names are in lower case.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(super) struct Section {
    pub(super) values: BTreeMap<String, String>,
    /// Settings that are indented under another setting: `s3 =`, then `addressing_style = path`.
    pub(super) nested: BTreeMap<String, BTreeMap<String, String>>,
}

/// Reads a file's text.
///
/// If a line is neither a section, a setting nor a comment, the error is the line's number, counted from 1. The error
/// doesn't contain the line's text, because the text may be a secret.
pub(super) fn parse(text: &str) -> Result<Sections, usize> {
    let mut sections = Sections::new();
    let mut section: Option<&mut Section> = None;
    let mut above: Option<String> = None;
    for (n, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        let is_indented = line.starts_with([' ', '\t']);
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if !is_indented && line.starts_with('[') {
            let name = line[1..].split_once(']').ok_or(n + 1)?.0;
            section = Some(sections.entry(name.trim().to_owned()).or_default());
            above = None;
            continue;
        }
        let section = section.as_deref_mut().ok_or(n + 1)?;
        if is_indented && let Some(above) = &above {
            let begun = section.values.get(above).is_some_and(|value| !value.is_empty());
            match setting(line) {
                Some((name, value)) if !begun => {
                    section.nested.entry(above.clone()).or_default().insert(name, value);
                }
                // An indented line continues the value above it.
                _ if begun => {
                    let value = section.values.entry(above.clone()).or_default();
                    value.push('\n');
                    value.push_str(line);
                }
                _ => return Err(n + 1),
            }
            continue;
        }
        let (name, value) = setting(line).ok_or(n + 1)?;
        section.values.insert(name.clone(), value);
        above = Some(name);
    }
    Ok(sections)
}

fn setting(line: &str) -> Option<(String, String)> {
    // botocore's parser accepts `=` and `:`, so files with colons exist.
    let (name, value) = line.split_once(['=', ':'])?;
    let name = name.trim().to_ascii_lowercase();
    (!name.is_empty()).then(|| (name, without_comment(value).trim().to_owned()))
}

/// A comment begins with a space or tab, then `#` or `;`. The value ends there.
fn without_comment(value: &str) -> &str {
    let comment = [" #", " ;", "\t#", "\t;"].iter().filter_map(|sign| value.find(sign)).min();
    comment.map_or(value, |at| &value[..at])
}

/// Splits a section's title into kind and name: `profile "a b"` is the profile `a b`. A title of one word has no kind.
pub(super) fn kind_and_name(title: &str) -> (Option<&str>, &str) {
    match title.split_once([' ', '\t']) {
        Some((kind, name)) => (Some(kind), unquoted(name.trim())),
        None => (None, title),
    }
}

fn unquoted(name: &str) -> &str {
    let without = |quote: char| name.strip_prefix(quote)?.strip_suffix(quote);
    without('"').or_else(|| without('\'')).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value<'a>(sections: &'a Sections, section: &str, name: &str) -> Option<&'a str> {
        sections.get(section)?.values.get(name).map(String::as_str)
    }

    #[test]
    fn settings_stand_in_their_section_with_names_in_lower_case() {
        let text = "\u{feff}# top\n[default]\r\nRegion = eu-west-1\r\n\n; more\n[profile a]\nregion=us-west-2 # far\nx : y=z\n";
        let sections = parse(text).expect("it parses");
        assert_eq!(value(&sections, "default", "region"), Some("eu-west-1"));
        assert_eq!(value(&sections, "profile a", "region"), Some("us-west-2"));
        assert_eq!(value(&sections, "profile a", "x"), Some("y=z"));
    }

    #[test]
    fn indented_settings_belong_to_the_one_above_them() {
        let text = "[a]\ns3 =\n  addressing_style = path\n\tregion = nested\nregion = own\n";
        let sections = parse(text).expect("it parses");
        assert_eq!(sections["a"].nested["s3"]["addressing_style"], "path");
        assert_eq!(value(&sections, "a", "region"), Some("own"));
    }

    #[test]
    fn a_value_may_go_on_in_the_next_line() {
        let sections = parse("[a]\ncommand = one\n  two = 2\n").expect("it parses");
        assert_eq!(value(&sections, "a", "command"), Some("one\ntwo = 2"));
    }

    #[test]
    fn a_section_that_comes_twice_is_one() {
        let sections = parse("[a]\nx = 1\ny = 1\n[a]\nx = 2\n").expect("it parses");
        assert_eq!((value(&sections, "a", "x"), value(&sections, "a", "y")), (Some("2"), Some("1")));
    }

    #[test]
    fn a_line_that_says_nothing_is_named_by_its_number() {
        assert_eq!(parse("[a]\nx = 1\nsecret\n"), Err(3));
        assert_eq!(parse("x = 1\n"), Err(1));
        assert_eq!(parse("[a\n"), Err(1));
    }

    #[test]
    fn a_title_has_a_kind_and_a_name_that_may_be_quoted() {
        assert_eq!(kind_and_name("profile a"), (Some("profile"), "a"));
        assert_eq!(kind_and_name("profile \"a b\""), (Some("profile"), "a b"));
        assert_eq!(kind_and_name("sso-session  x"), (Some("sso-session"), "x"));
        assert_eq!(kind_and_name("default"), (None, "default"));
    }
}
