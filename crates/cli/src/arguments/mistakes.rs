//! The answers to a command line that can't be read. Options of other tools get an answer of their own.

use std::ffi::OsString;

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Options that people type because other tools have them: the verbs that they are typed with (all where there are none), and the answer.
const ANSWERS: &[(&[&str], &[&str], &str)] = &[
    (&["-d"], &["sync", "rsync"], "use --delete, which removes from DST what SRC doesn't have"),
    (&["--no-clobber"], &["sync", "rsync"], "use --ignore-existing"),
    (
        &[
            "-m",
            "--part-size",
            "--multipart-chunksize",
            "--chunk-size",
            "--concurrency",
            "--transfers",
            "--checkers",
            "--parallel",
        ],
        &[],
        "not needed: Laneway chooses by itself",
    ),
    (
        &["--no-verify-ssl", "--insecure", "--no-check-certificate", "-k"],
        &[],
        "use --ca-cert FILE to trust a certificate; certificates are always verified",
    ),
    (&["--retries", "--max-retries", "--low-level-retries"], &[], "use --retry-for TIME"),
    (&["--bwlimit", "--limit-rate"], &[], "use --bandwidth-limit RATE"),
    (&["--compare-dest", "--copy-dest", "--backup-dir"], &[], "not supported"),
    (
        &["--acl", "--grants", "-a"],
        &["sync", "rsync", "setmeta"],
        "not supported; bucket policies say who may use new objects",
    ),
    (
        &["-u", "--update", "--size-only", "-c", "--checksum"],
        &["cp", "mv", "copy", "move"],
        "use sync, which compares before it copies; every copy is verified by its checksum",
    ),
];

/// The standard library's words for a text that is no number.
const OF_PARSERS: &[&str] = &[
    "invalid digit found in string",
    "number too large to fit in target type",
    "number too small to fit in target type",
    "cannot parse integer from empty string",
    "invalid float literal",
    "cannot parse float from empty string",
];

/// The same error in our words.
pub(crate) fn explained(line: &[OsString], mut error: clap::Error) -> String {
    let argument = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(argument)) => argument.clone(),
        _ => String::new(),
    };
    if error.kind() == ErrorKind::UnknownArgument {
        let typed = argument.split('=').next().unwrap_or_default();
        let is_typed_with = |verbs: &[&str]| {
            verbs.is_empty() || line.iter().any(|word| verbs.iter().any(|verb| word == verb))
        };
        let answer = ANSWERS.iter().find(|(names, verbs, _)| names.contains(&typed) && is_typed_with(verbs));
        if let Some((_, _, answer)) = answer {
            return format!("{typed}: {answer}");
        }
        // How to pass it as a value helps nobody.
        error.remove(ContextKind::Suggested);
        let suggested = match error.get(ContextKind::SuggestedArg) {
            Some(ContextValue::String(suggested)) => suggested.clone(),
            _ => String::new(),
        };
        if !is_misspelt(typed, &suggested) {
            error.remove(ContextKind::SuggestedArg);
        }
    }
    let text = error.render().to_string();
    let text = text.trim_end();
    let text = text.strip_prefix("error: ").unwrap_or(text);
    OF_PARSERS.iter().fold(text.to_owned(), |text, words| text.replace(words, "expects a count of 0 or more"))
}

/// Returns whether an option belongs to all commands of a definition.
pub(super) fn is_common(command: &Command, option: &str) -> bool {
    let name = option.split('=').next().unwrap_or_default();
    command.get_arguments().filter(|arg| arg.is_global_set()).any(|arg| {
        arg.get_long_and_visible_aliases().into_iter().flatten().any(|long| format!("--{long}") == name)
            || arg.get_short().is_some_and(|short| format!("-{short}") == name)
    })
}

/// Returns whether one option was meant by another: few letters differ, or one begins with the other.
fn is_misspelt(typed: &str, meant: &str) -> bool {
    let (typed, meant) = (typed.trim_start_matches('-'), meant.trim_start_matches('-'));
    let meant = meant.split([' ', '=']).next().unwrap_or_default();
    let is_beginning = typed.len() > 2 && (meant.starts_with(typed) || typed.starts_with(meant));
    is_beginning || distance(typed, meant) <= 1 + typed.len() / 6
}

/// Returns how many letters have to be changed, added or left out to make one word of another.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in to.iter().enumerate() {
            let changed = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_almost_the_same_is_suggested() {
        assert!(is_misspelt("--recursiv", "--recursive") && is_misspelt("--dryrum", "--dry-run"));
        for (typed, suggested) in [
            ("--insecure", "--include"),
            ("--retries", "--recursive"),
            ("--compare-dest", "--ca-cert"),
            ("--no-clobber", "--lock-mode"),
        ] {
            assert!(!is_misspelt(typed, suggested), "{typed} {suggested}");
        }
    }
}
