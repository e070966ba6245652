//! The entry point of the fuzzer for AWS's shared files.

use super::ini;

/// Parses a configuration file. Panics if a section's name isn't part of its title, or if an error names a line that
/// the file doesn't have.
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
