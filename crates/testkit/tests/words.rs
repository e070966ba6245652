//! Each word in the code has one meaning (docs/words.md). Retired words had several meanings, or the field has a better
//! known word. They must not be used in names again.

use std::fs;
use std::path::{Path, PathBuf};

/// The retired words, and their replacements.
const RETIRED: [(&str, &str); 21] = [
    ("told", "announced, reported"),
    ("ways", "directions"),
    ("carriage", "exchange"),
    ("intake", "incoming"),
    ("pulse", "tracker"),
    ("landing", "range writer"),
    ("news", "changed, new bytes"),
    ("surroundings", "activity"),
    ("contemporary", "comparable, concurrent"),
    ("contemporaries", "baseline"),
    ("patience", "timeout"),
    ("shun", "avoid"),
    ("shuns", "avoids"),
    ("shunned", "avoided"),
    ("terms", "options"),
    ("sighted", "source object"),
    ("light", "small"),
    ("heavy", "large"),
    ("piece", "part, chunk, segment"),
    ("pieces", "parts, chunks, segments"),
    ("doubled", "hedged"),
];

/// A name with at least this many words is the name of a test, which is a plain English sentence. It isn't checked.
const SENTENCE_WORDS: usize = 5;

#[test]
fn no_name_goes_back_to_a_retired_word() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crates' folder");
    let mut found = Vec::new();
    let mut files = Vec::new();
    sources(crates, &mut files);
    assert!(files.len() > 100, "only {} files were found", files.len());
    for file in &files {
        let text = fs::read_to_string(file).expect("a source file can be read");
        let name = file.file_stem().and_then(|stem| stem.to_str()).expect("a file has a name").to_owned();
        for identifier in identifiers(&text).into_iter().chain([name]) {
            if let Some((word, instead)) = retired(&identifier) {
                found.push(format!("{}: {identifier} ({word}: {instead})", file.display()));
            }
        }
    }
    found.sort();
    found.dedup();
    assert!(found.is_empty(), "{} names:\n{}", found.len(), found.join("\n"));
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder can be listed") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Returns the retired word in a name, and its replacement.
fn retired(identifier: &str) -> Option<(&'static str, &'static str)> {
    let words = words(identifier);
    if words.len() >= SENTENCE_WORDS {
        return None;
    }
    RETIRED.into_iter().find(|(word, _)| words.iter().any(|w| w == word))
}

/// Returns the words of a name in snake_case, CamelCase or CAPITALS, in lower case.
fn words(identifier: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in identifier.chars() {
        if c == '_' || (c.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        was_lower = c.is_lowercase();
        if c != '_' {
            words.last_mut().expect("there is one").extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns the identifiers of a source text, except those in comments, strings and characters.
fn identifiers(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let (mut found, mut at) = (Vec::new(), 0);
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    while at < chars.len() {
        match chars[at..] {
            ['/', '/', ..] => at += chars[at..].iter().take_while(|c| **c != '\n').count(),
            ['/', '*', ..] => at = after(&chars, at + 2, &['*', '/']),
            ['r', '"', ..] | ['r', '#', ..] if at == 0 || !is_part(chars[at - 1]) => {
                let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
                if chars.get(at + 1 + hashes) == Some(&'"') {
                    let end: Vec<char> =
                        std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
                    at = after(&chars, at + 2 + hashes, &end);
                } else {
                    at += 1 + hashes;
                }
            }
            ['"', ..] => {
                at += 1;
                while at < chars.len() && chars[at] != '"' {
                    at += if chars[at] == '\\' { 2 } else { 1 };
                }
                at += 1;
            }
            ['\'', '\\', ..] => at = after(&chars, at + 3, &['\'']),
            ['\'', _, '\'', ..] => at += 3,
            [c, ..] if c.is_alphabetic() || c == '_' => {
                let identifier: String = chars[at..].iter().copied().take_while(|c| is_part(*c)).collect();
                at += identifier.chars().count();
                found.push(identifier);
            }
            _ => at += 1,
        }
    }
    found
}

/// Returns the position after the next `end`.
fn after(chars: &[char], from: usize, end: &[char]) -> usize {
    let next = chars.get(from..).and_then(|rest| rest.windows(end.len()).position(|w| w == end));
    next.map_or(chars.len(), |next| from + next + end.len())
}

#[test]
fn a_retired_word_is_found_in_names_and_not_in_prose() {
    let text = r##"
        // the intake of a comment /* told */
        fn f<'a>(pulse: &'a str) -> Carriage { "a piece"; r#"a "heavy" one"#; '"'; b'\''; is_told }
        fn the_pieces_of_a_part_are_told_apart() {}
    "##;
    let found: Vec<_> = identifiers(text).iter().filter_map(|i| retired(i)).map(|(word, _)| word).collect();
    assert_eq!(found, ["pulse", "carriage", "told"]);
    assert_eq!(words("HTTPPiece_ofTheWay"), ["httppiece", "of", "the", "way"]);
}
