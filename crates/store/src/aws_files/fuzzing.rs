//! Shared files as anybody may have written them, for fuzzers.

use super::ini;

/// A configuration file, of which what was read can be written and read again.
pub fn ini(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match ini::parse(text) {
        Ok(sections) => {
            for title in sections.keys() {
                let (_, name) = ini::kind_and_name(title);
                assert!(name.len() <= title.len());
            }
        }
        Err(line) => assert!((1..=text.lines().count()).contains(&line), "line {line}"),
    }
}
