//! Functions for the fuzzers in `crates/fuzz`. Each takes arbitrary bytes, and panics if a property doesn't
//! hold for them.

use std::iter;

pub use crate::inventory::fuzzing::inventory;
use crate::listing::names_from::{LineRules, name};
pub use crate::local::folder::fuzzing::download_journal;
use crate::location::pattern::Pattern;
use crate::location::relative::RelativePath;
pub use crate::manifest::fuzzing::manifest;
pub use crate::objects::parquet_footer;
pub use crate::transfer::upload::fuzzing::upload_journal;
use crate::{ByteRange, Filter, Location};

/// Splits a text into its first line and the rest.
fn first_line(input: &[u8]) -> Option<(&str, &str)> {
    let text = std::str::from_utf8(input).ok()?;
    Some(text.split_once('\n').unwrap_or((text, "")))
}

/// Parses a text as a location, as a byte range and as a relative path. Writing a parsed URL or range and
/// parsing it again must give the same value.
pub fn location(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(location) = text.parse::<Location>() {
        let (_, _) = (location.is_pattern(), location.is_written_as_folder());
        if location.is_object() {
            assert_eq!(location.to_string().parse::<Location>().ok(), Some(location), "{text:?}");
        }
    }
    if let Ok(range) = text.parse::<ByteRange>() {
        assert_eq!(range.to_string().parse::<ByteRange>().ok(), Some(range), "{text:?}");
        for size in [0, 1, 1000, u64::MAX] {
            let within = range.within(size);
            assert!(within.is_none_or(|within| within.start <= within.end && within.end <= size), "{text:?}");
        }
    }
    if let Ok(relative) = RelativePath::new(text.to_owned()) {
        let parts: Vec<_> = std::path::Path::new(text).components().collect();
        let is_plain = |part: &std::path::Component<'_>| matches!(part, std::path::Component::Normal(_));
        assert!(!parts.is_empty() && parts.iter().all(is_plain), "{text:?}");
        assert_eq!(parts.last().and_then(|last| last.as_os_str().to_str()), Some(relative.name()));
    }
}

/// Matches the pattern on the first line against the text on the next. A second, simpler matcher must agree.
pub fn pattern(input: &[u8]) {
    let Some((glob, text)) = first_line(input) else { return };
    let Some(pattern) = Pattern::parse(glob) else { return };
    let matches = pattern.matches(text);
    if matches {
        let rest = text.strip_prefix(pattern.literal_prefix()).expect("a match begins with the prefix");
        assert!(!pattern.is_one_level() || !rest.contains('/'), "{glob:?} {text:?}");
    }
    if let Some(folder) = pattern.matching_folder(text) {
        assert!(pattern.matches(folder) && text[folder.len()..].starts_with('/'), "{glob:?} {text:?}");
    }
    // The second matcher doesn't support sets such as `[a-z]`, and takes exponential time, so it gets only
    // short texts.
    if !glob.contains('[') && glob.len() <= 12 && text.len() <= 24 {
        let (glob, text): (Vec<char>, Vec<char>) = (glob.chars().collect(), text.chars().collect());
        assert_eq!(matches, is_match(&glob, &text), "{glob:?} {text:?}");
    }
}

/// Returns whether a text matches a pattern. For each star it tries every text that the star could stand for.
fn is_match(glob: &[char], text: &[char]) -> bool {
    match glob {
        [] => text.is_empty(),
        ['*', '*', rest @ ..] => (0..=text.len()).any(|taken| is_match(rest, &text[taken..])),
        ['*', rest @ ..] => {
            let most = text.iter().take_while(|c| **c != '/').count();
            (0..=most).any(|taken| is_match(rest, &text[taken..]))
        }
        ['?', rest @ ..] => text.split_first().is_some_and(|(c, after)| *c != '/' && is_match(rest, after)),
        [own, rest @ ..] => text.split_first().is_some_and(|(c, after)| c == own && is_match(rest, after)),
    }
}

/// Applies a filter to the name on the first line. The following lines are the filter's rules.
pub fn filter(input: &[u8]) {
    let Some((path, rules)) = first_line(input) else { return };
    let Ok(filter) = Filter::default().lines(rules) else { return };
    let takes = filter.takes(path, 1, None);
    let is_one_rule = !rules.contains(['\n', '\r']) && !rules.starts_with(['#', ';', '+', '-']);
    if is_one_rule && !rules.trim().is_empty() && rules.len() + path.len() <= 64 {
        assert_eq!(takes, !is_left_out(rules, path), "{path:?} {rules:?}");
    }
    for (at, _) in path.match_indices('/').filter(|(at, _)| *at > 0) {
        let is_left_out = filter.leaves_out_all_below(&path[..at]);
        assert!(!(takes && is_left_out), "{rules:?} include {path:?}, but nothing below {:?}", &path[..at]);
    }
}

/// Returns whether a rule excludes a name. To be independent of the filter's code, it compares the rule with
/// every run of consecutive components of the name.
fn is_left_out(rule: &str, name: &str) -> bool {
    let (plain, path) = (rule.trim_matches('/'), name.trim_end_matches('/'));
    let pattern = Pattern::parse(plain);
    let is_match = |text: &str| pattern.as_ref().map_or(text == plain, |pattern| pattern.matches(text));
    let slashes = || path.match_indices('/').map(|(at, _)| at);
    let starts =
        iter::once(0).chain(slashes().map(|at| at + 1)).filter(|at| *at == 0 || !rule.starts_with('/'));
    let may_be_last = !rule.ends_with('/') || path.len() < name.len();
    let ends: Vec<usize> = slashes().chain(may_be_last.then_some(path.len())).collect();
    starts.into_iter().any(|start| ends.iter().any(|end| start <= *end && is_match(&path[start..*end])))
}

/// Reads each line as a name in a user's list of names (`--files-from`).
pub fn names_from(input: &[u8]) {
    for reading in [LineRules::Exact, LineRules::Rclone] {
        for line in input.split(|byte| *byte == b'\n') {
            if let Ok(Some(name)) = name(line, reading, false) {
                assert!(!name.is_empty() && !name.starts_with('/'));
                assert!(reading == LineRules::Rclone || name.as_bytes() == line);
            }
        }
    }
}
