//! SEMANTICS.md names the tests that prove each of its promises, docs/incidents.md those of what has gone wrong elsewhere: a test that is
//! renamed or moved takes its name there along, and a promise has at least one.

#[path = "semantics/promises.rs"]
mod promises;
#[path = "semantics/tests_below.rs"]
mod tests_below;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use tests_below::Tests;

/// What explains how names are read.
const EXPLAINED: [&str; 3] = ["moving::x::y", "exchange::x::y", "server: x::y"];

/// The pages that name tests, and the fewest names on each: fewer mean that they weren't found, not that there are fewer.
const PAGES: [(&str, usize); 2] = [("SEMANTICS.md", 400), ("docs/incidents.md", 30)];

/// The fewest promises, likewise.
const PROMISES_MIN: usize = 200;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All tests of the workspace, and those of the Python package.
fn all_tests() -> Tests {
    let mut tests = Tests::below(&root().join("crates"));
    let bindings = root().join("bindings");
    tests.add(&bindings.join("python/tests"), &bindings);
    tests.add(&bindings.join("object-store/tests"), &bindings);
    tests
}

#[test]
fn every_test_that_a_page_names_is_where_it_says() {
    let tests = all_tests();
    for (page, names_min) in PAGES {
        let text = fs::read_to_string(root().join(page)).expect("the page can be read");
        let names = names(&text);
        assert!(names.len() >= names_min, "only {} names were found in {page}", names.len());
        let lost: Vec<&String> = names.iter().filter(|name| !tests.has(name)).collect();
        assert!(lost.is_empty(), "{} names of no test in {page}:\n{lost:#?}", lost.len());
    }
}

#[test]
fn every_promise_names_tests_that_are_there() {
    let text = fs::read_to_string(root().join("SEMANTICS.md")).expect("the page can be read");
    let (tests, promises) = (all_tests(), promises::of(&text));
    assert!(promises.len() >= PROMISES_MIN, "only {} promises were found", promises.len());
    let problem = |promise: &promises::Promise| {
        let why = promise.problem(|name| is_proof(&tests, name))?;
        Some(format!("line {} ({}): {why}", promise.line, promise.section))
    };
    let problems: Vec<String> = promises.iter().filter_map(problem).collect();
    assert!(problems.is_empty(), "{} promises:\n{}", problems.len(), problems.join("\n"));
    let proven: BTreeSet<&str> = promises.iter().map(|promise| promise.section.as_str()).collect();
    let without: Vec<&str> = promises::sections(&text).filter(|section| !proven.contains(section)).collect();
    assert!(without.is_empty(), "sections without a promise: {without:?}");
}

/// Whether a name stands for tests: a path of them, a file that holds some, a test program or a test by its name alone.
fn is_proof(tests: &Tests, name: &str) -> bool {
    match name {
        path if is_path(path) => tests.has(path),
        file if file.contains('/') => root().join(file).exists(),
        alone => tests.has_alone(alone),
    }
}

/// What stands in backticks and is a path of tests, as in `store: s3::get::*`.
fn names(text: &str) -> BTreeSet<String> {
    let names = promises::quoted(text);
    names.filter(|name| is_path(name) && !EXPLAINED.contains(&name.as_str())).collect()
}

fn is_path(name: &str) -> bool {
    let (program, path) = name.split_once(": ").unwrap_or(("", name));
    let is_word = |word: &str| {
        word == "*"
            || (!word.is_empty()
                && word.bytes().all(|b| b.is_ascii_lowercase() || b"_0123456789".contains(&b)))
    };
    path.contains("::")
        && path.split("::").all(is_word)
        && program.split('-').all(|word| word.is_empty() || is_word(word))
}

#[test]
fn a_name_that_nobody_has_any_more_is_found() {
    let tests = Tests::below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests"));
    assert!(tests.has("semantics::a_name_that_nobody_has_any_more_is_found") && tests.has("semantics::*"));
    assert!(!tests.has("semantics::a_name_that_nobody_has") && !tests.has("elsewhere::*"));
    assert!(!tests.has("semantics::all_tests"), "a function that is no test proves nothing");
    assert!(tests.has_alone("every_promise_names_tests_that_are_there") && !tests.has_alone("all_tests"));
    assert_eq!(names("`a::b_c`, `A::b`, `x`, `store: s3::*`, `object-store: a::b`").len(), 3);
}

#[test]
fn a_promise_without_a_test_is_found() {
    let page = "# Page\n## One\n- It holds. — `a::b`\n- It holds too,\n  and also here. —\n  `c` (often), `d/e.rs`\n\n  | table |\n\n\
                ## Two\n- Nobody looks.\n- It is `a::b` and not proven.\n- Prose — behind `a::b` a dash.\n## Three\n";
    let found = promises::of(page);
    let problems: Vec<_> = found.iter().map(|promise| promise.problem(|_| true).is_some()).collect();
    assert_eq!(problems, [false, false, true, true, true]);
    assert_eq!(found[1].line, 4);
    assert!(found[1].problem(|name| name != "d/e.rs").is_some_and(|why| why.contains("d/e.rs")));
    assert_eq!(promises::sections(page).collect::<Vec<_>>(), ["One", "Two", "Three"]);
}
