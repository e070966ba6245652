//! SEMANTICS.md holds the promises, each with an id. docs/semantics-tests.md names the tests that prove each of them,
//! and docs/incidents.md those of failures elsewhere. If a test is renamed or moved, its name there must change, and
//! each promise must have at least one test.

#[path = "semantics/promises.rs"]
mod promises;
#[path = "semantics/tests_below.rs"]
mod tests_below;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use tests_below::Tests;

/// Names that only explain the notation.
const EXPLAINED: [&str; 4] = ["moving::x::y", "exchange::x::y", "server: x::y", "python: x::y"];

/// The pages that name tests, and the fewest names on each. With fewer, the parser has missed some.
const PAGES: [(&str, usize); 2] = [(INDEX, 400), ("docs/incidents.md", 30)];

/// The page with the tests of each promise.
const INDEX: &str = "docs/semantics-tests.md";

/// The fewest promises, for the same reason.
const PROMISES_MIN: usize = 200;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns all tests of the workspace and of the Python package.
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
fn every_promise_has_tests_that_are_there() {
    let page = fs::read_to_string(root().join("SEMANTICS.md")).expect("the page can be read");
    let index = fs::read_to_string(root().join(INDEX)).expect("the index can be read");
    let (tests, promises) = (all_tests(), promises::of(&page));
    assert!(promises.len() >= PROMISES_MIN, "only {} promises were found", promises.len());
    let problems = problems(&promises, &promises::rows(&index), |name| is_proof(&tests, name));
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
    let with_promises: BTreeSet<&str> = promises.iter().map(|promise| promise.section).collect();
    let without: Vec<&str> = promises::sections(&page).filter(|name| !with_promises.contains(name)).collect();
    assert!(without.is_empty(), "sections without a promise: {without:?}");
}

/// Returns promises without an id or a test, duplicate ids, rows without a promise, and names that prove nothing.
fn problems(
    promises: &[promises::Promise<'_>],
    rows: &[(&str, Vec<String>)],
    is_proof: impl Fn(&str) -> bool,
) -> Vec<String> {
    let (mut problems, mut ids, mut proven) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    for promise in promises {
        if promise.id.is_empty() {
            problems.push(format!("SEMANTICS.md:{}: no id", promise.line));
        } else if !ids.insert(promise.id) {
            problems.push(format!("SEMANTICS.md:{}: {} stands twice", promise.line, promise.id));
        }
    }
    for (id, names) in rows {
        if !ids.contains(id) {
            problems.push(format!("{INDEX}: {id} is no promise"));
        }
        if !proven.insert(*id) {
            problems.push(format!("{INDEX}: {id} stands twice"));
        }
        if names.is_empty() {
            problems.push(format!("{INDEX}: {id} has no test"));
        }
        let lost = names.iter().filter(|name| !is_proof(name));
        problems.extend(lost.map(|name| format!("{INDEX}: {id} names {name}, which is no test")));
    }
    problems.extend(ids.difference(&proven).map(|id| format!("{INDEX}: {id} has no row")));
    problems
}

/// Returns true if a name stands for tests: their path, a file with tests, a test program, or a test's own name.
fn is_proof(tests: &Tests, name: &str) -> bool {
    match name {
        path if is_path(path) => tests.has(path),
        file if file.contains('/') => root().join(file).exists(),
        alone => tests.has_alone(alone),
    }
}

/// Returns the texts in backticks that are paths of tests, as in `store: s3::get::*`.
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
    assert!(tests.has_alone("every_promise_has_tests_that_are_there") && !tests.has_alone("all_tests"));
    assert_eq!(names("`a::b_c`, `A::b`, `x`, `store: s3::*`, `object-store: a::b`").len(), 3);
}

#[test]
fn a_promise_without_a_test_is_found() {
    let page = "# Page\n1. Not a promise\n## One\n- **AB-1** It holds.\n- **AB-2** It holds too.\n- No id.\n\
                ## Two\n- **AB-1** Again.\n- **AB-3** Not in the index.\n## Three\n";
    let index = "| promise | tests |\n|---|---|\n| AB-1 | `a::b`, `c: d` |\n| AB-2 | none |\n| AB-4 | `a::b` |\n| AB-4 | `e` |\n";
    let promises = promises::of(page);
    let ids: Vec<&str> = promises.iter().map(|promise| promise.id).collect();
    assert_eq!(ids, ["AB-1", "AB-2", "", "AB-1", "AB-3"]);
    assert_eq!(promises[4], promises::Promise { id: "AB-3", section: "Two", line: 9 });
    assert_eq!(promises::sections(page).collect::<Vec<_>>(), ["One", "Two", "Three"]);
    let problems = problems(&promises, &promises::rows(index), |name| name != "c: d");
    let expected = [
        "SEMANTICS.md:6: no id",
        "SEMANTICS.md:8: AB-1 stands twice",
        "docs/semantics-tests.md: AB-1 names c: d, which is no test",
        "docs/semantics-tests.md: AB-2 has no test",
        "docs/semantics-tests.md: AB-4 is no promise",
        "docs/semantics-tests.md: AB-4 is no promise",
        "docs/semantics-tests.md: AB-4 stands twice",
        "docs/semantics-tests.md: AB-3 has no row",
    ];
    assert_eq!(problems, expected);
}
