//! Finds the existing tests, by source file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The suite whose tests a macro makes from a table of behaviours.
const TABLE: &str = "store/tests/conformance";

/// The tests of each source file, by its path without the extension.
pub(crate) struct Tests(BTreeMap<PathBuf, BTreeSet<String>>);

impl Tests {
    pub(crate) fn below(folder: &Path) -> Self {
        let mut tests = Self(BTreeMap::new());
        tests.add(folder, folder);
        tests
    }

    /// Adds the tests in `folder`, by their paths below `top`.
    pub(crate) fn add(&mut self, folder: &Path, top: &Path) {
        for entry in fs::read_dir(folder).expect("a folder can be listed") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                self.add(&path, top);
                continue;
            }
            let read = || fs::read_to_string(&path).expect("a source file can be read");
            let tests = match path.extension().and_then(|extension| extension.to_str()) {
                Some("rs") if folder.ends_with(TABLE) => behaviours(&read(), &path),
                Some("rs") => marked(&read()),
                Some("py") => functions(&read(), "def ").filter(|name| name.starts_with("test_")).collect(),
                _ => continue,
            };
            let own = path.strip_prefix(top).expect("it lies below").with_extension("");
            self.0.insert(own, tests);
        }
    }

    /// Returns true if this test exists, or for `*`, a file with tests.
    pub(crate) fn has(&self, name: &str) -> bool {
        // A crate, or one of its test programs.
        let (program, path) = name.split_once(": ").unwrap_or(("", name));
        let mut modules: Vec<&str> = path.split("::").collect();
        let test = modules.pop().unwrap_or_default();
        let is_in = |file: &Path| {
            let parts = parts(file);
            (program.is_empty() || parts.contains(&program)) && follow(&parts, &modules)
        };
        let mut files = self.0.iter().filter(|(file, _)| is_in(file));
        files.any(|(_, tests)| if test == "*" { !tests.is_empty() } else { tests.contains(test) })
    }

    /// Returns true if a test program or a test has this name.
    pub(crate) fn has_alone(&self, name: &str) -> bool {
        let (program, name) = name.split_once(": ").unwrap_or(("", name));
        self.0.iter().any(|(file, tests)| {
            let parts = parts(file);
            let is_there = tests.contains(name) || follow(&parts, &["tests", name]);
            (program.is_empty() || parts.contains(&program)) && is_there
        })
    }
}

fn parts(file: &Path) -> Vec<&str> {
    file.iter().filter_map(|part| part.to_str()).collect()
}

/// Returns true if all modules are consecutive parts of the file's path.
fn follow(parts: &[&str], modules: &[&str]) -> bool {
    parts.windows(modules.len()).any(|window| window == modules)
}

/// Returns the names of all functions.
fn functions<'a>(text: &'a str, keyword: &'a str) -> impl Iterator<Item = String> + 'a {
    let functions = text.split(keyword).skip(1).filter_map(|rest| rest.split_once(['(', '<']));
    functions.map(|(name, _)| name.trim().to_owned())
}

/// Returns the functions that an attribute marks as tests.
fn marked(text: &str) -> BTreeSet<String> {
    let (mut tests, mut is_marked) = (BTreeSet::new(), false);
    for line in text.lines().map(str::trim) {
        if line.starts_with("#[") {
            is_marked |= line.starts_with("#[test]") || line.starts_with("#[tokio::test");
        } else if line.contains("fn ") {
            tests.extend(functions(line, "fn ").next().filter(|_| is_marked));
            is_marked = false;
        }
    }
    tests
}

/// Returns the functions that the table beside their folder names.
fn behaviours(text: &str, path: &Path) -> BTreeSet<String> {
    let table = path.parent().map(|folder| folder.with_extension("rs")).expect("a folder");
    let table = fs::read_to_string(table).expect("the table can be read");
    let module = path.file_stem().and_then(|stem| stem.to_str()).expect("a name");
    let is_named = |name: &String| table.contains(&format!("{module}::{name} ["));
    functions(text, "fn ").filter(is_named).collect()
}
