//! SEMANTICS.md names the tests that prove each of its promises, docs/incidents.md those of what has gone wrong elsewhere: a test that is
//! renamed or moved takes its name there along.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// What explains how names are read.
const EXPLAINED: [&str; 3] = ["moving::x::y", "exchange::x::y", "server: x::y"];

/// The pages that name tests, and the fewest names on each: fewer mean that they weren't found, not that there are fewer.
const PAGES: [(&str, usize); 2] = [("SEMANTICS.md", 400), ("docs/incidents.md", 30)];

#[test]
fn every_test_that_a_page_names_is_where_it_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut tests = Tests::below(&root.join("crates"));
    let bindings = root.join("bindings");
    tests.add(&bindings.join("python/tests"), &bindings);
    for (page, names_min) in PAGES {
        let text = fs::read_to_string(root.join(page)).expect("the page can be read");
        let names = names(&text);
        assert!(names.len() >= names_min, "only {} names were found in {page}", names.len());
        let lost: Vec<&String> = names.iter().filter(|name| !tests.has(name)).collect();
        assert!(lost.is_empty(), "{} names of no test in {page}:\n{lost:#?}", lost.len());
    }
}

/// What stands in backticks and is a path of tests, as in `store: s3::get::*`.
fn names(text: &str) -> BTreeSet<String> {
    let quoted = text.split('`').skip(1).step_by(2);
    let names = quoted.map(|name| name.split_whitespace().collect::<Vec<_>>().join(" "));
    names.filter(|name| is_path(name) && !EXPLAINED.contains(&name.as_str())).collect()
}

fn is_path(name: &str) -> bool {
    let (krate, path) = name.split_once(": ").unwrap_or(("", name));
    let is_word = |word: &str| {
        word == "*"
            || (!word.is_empty()
                && word.bytes().all(|b| b.is_ascii_lowercase() || b"_0123456789".contains(&b)))
    };
    path.contains("::") && path.split("::").all(is_word) && (krate.is_empty() || is_word(krate))
}

/// The functions of each source file.
struct Tests(BTreeMap<PathBuf, BTreeSet<String>>);

impl Tests {
    fn below(folder: &Path) -> Self {
        let mut tests = Self(BTreeMap::new());
        tests.add(folder, folder);
        tests
    }

    /// What lies in `folder`, under its path below `top`.
    fn add(&mut self, folder: &Path, top: &Path) {
        for entry in fs::read_dir(folder).expect("a folder can be listed") {
            let path = entry.expect("an entry").path();
            let keyword = match path.extension().and_then(|extension| extension.to_str()) {
                Some("rs") => "fn ",
                Some("py") => "def ",
                _ => "",
            };
            if path.is_dir() {
                self.add(&path, top);
            } else if !keyword.is_empty() {
                let text = fs::read_to_string(&path).expect("a source file can be read");
                let functions = text.split(keyword).skip(1).filter_map(|rest| rest.split_once(['(', '<']));
                let functions = functions.map(|(name, _)| name.trim().to_owned()).collect();
                let own = path.strip_prefix(top).expect("it lies below").with_extension("");
                self.0.insert(own, functions);
            }
        }
    }

    /// Whether there is such a test, or for `*` a file with some.
    fn has(&self, name: &str) -> bool {
        // A crate, or one of its test programs.
        let (krate, path) = name.split_once(": ").unwrap_or(("", name));
        let mut modules: Vec<&str> = path.split("::").collect();
        let test = modules.pop().unwrap_or_default();
        let is_in = |file: &Path| {
            let parts: Vec<&str> = file.iter().filter_map(|part| part.to_str()).collect();
            (krate.is_empty() || parts.contains(&krate)) && follow(&parts, &modules)
        };
        let mut files = self.0.iter().filter(|(file, _)| is_in(file));
        files.any(|(_, functions)| if test == "*" { !functions.is_empty() } else { functions.contains(test) })
    }
}

/// Whether all modules are parts of the file's path, one after the other.
fn follow(parts: &[&str], modules: &[&str]) -> bool {
    parts.windows(modules.len()).any(|window| window == modules)
}

#[test]
fn a_name_that_nobody_has_any_more_is_found() {
    let tests = Tests::below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests"));
    assert!(tests.has("semantics::a_name_that_nobody_has_any_more_is_found") && tests.has("semantics::*"));
    assert!(!tests.has("semantics::a_name_that_nobody_has") && !tests.has("elsewhere::*"));
    assert_eq!(names("`a::b_c`, `A::b`, `x`, `store: s3::*`").len(), 2);
}
