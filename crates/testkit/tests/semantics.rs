//! SEMANTICS.md contains the promises, each with an id. docs/semantics-tests.md names the tests that prove each promise.
//! docs/incidents.md names the tests for failures that occurred in other projects. These tests check that each promise has
//! at least one test, and that both pages name tests by their present paths.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Names that only explain the notation.
const EXPLAINED: [&str; 4] = ["moving::x::y", "exchange::x::y", "server: x::y", "python: x::y"];

/// The pages that name tests, and the minimum number of names on each. If there are fewer, the parser has missed some.
const PAGES: [(&str, usize); 2] = [(INDEX, 400), ("docs/incidents.md", 30)];

/// The page with the tests of each promise.
const INDEX: &str = "docs/semantics-tests.md";

/// The minimum number of promises. If there are fewer, the parser has missed some.
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
    let (tests, promises) = (all_tests(), promises_of(&page));
    assert!(promises.len() >= PROMISES_MIN, "only {} promises were found", promises.len());
    let problems = problems(&promises, &rows(&index), |name| is_proof(&tests, name));
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
    let with_promises: BTreeSet<&str> = promises.iter().map(|promise| promise.section).collect();
    let without: Vec<&str> = sections(&page).filter(|name| !with_promises.contains(name)).collect();
    assert!(without.is_empty(), "sections without a promise: {without:?}");
}

/// Returns promises without an id or a test, duplicate ids, rows without a promise, and names that prove nothing.
fn problems(
    promises: &[Promise<'_>],
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
    let names = quoted(text);
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
    let promises = promises_of(page);
    let ids: Vec<&str> = promises.iter().map(|promise| promise.id).collect();
    assert_eq!(ids, ["AB-1", "AB-2", "", "AB-1", "AB-3"]);
    assert_eq!(promises[4], Promise { id: "AB-3", section: "Two", line: 9 });
    assert_eq!(sections(page).collect::<Vec<_>>(), ["One", "Two", "Three"]);
    let problems = problems(&promises, &rows(index), |name| name != "c: d");
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

// Parses the promises of a page, which are the items of its lists, and the rows of the page that names their tests.

/// An item of a list.
#[derive(Debug, PartialEq)]
struct Promise<'a> {
    /// The id, as in `DL-3`. It is empty if the item begins with anything else.
    id: &'a str,
    /// The heading above it.
    section: &'a str,
    /// The line number, from 1.
    line: usize,
}

/// Returns all list items of a page.
fn promises_of(page: &str) -> Vec<Promise<'_>> {
    let (mut promises, mut section) = (Vec::new(), "");
    for (number, line) in page.lines().enumerate() {
        if let Some(heading) = line.strip_prefix("## ") {
            section = heading;
        } else if let Some(text) = line.strip_prefix("- ") {
            let id = text.strip_prefix("**").and_then(|text| text.split_once("** "));
            let id = id.map_or("", |(id, _)| id);
            promises.push(Promise { id: if is_id(id) { id } else { "" }, section, line: number + 1 });
        }
    }
    promises
}

/// Returns the headings above promises.
fn sections(page: &str) -> impl Iterator<Item = &str> {
    page.lines().filter_map(|line| line.strip_prefix("## "))
}

/// Returns the rows of a table whose first column is an id: the id, and the names of tests in the second column.
fn rows(page: &str) -> Vec<(&str, Vec<String>)> {
    let cells =
        page.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
    cells.filter(|(id, _)| is_id(id)).map(|(id, tests)| (id, quoted(tests).collect())).collect()
}

/// Returns true for capital letters, a hyphen and a number.
fn is_id(text: &str) -> bool {
    text.split_once('-').is_some_and(|(topic, number)| {
        !topic.is_empty() && topic.bytes().all(|b| b.is_ascii_uppercase()) && number.parse::<u32>().is_ok()
    })
}

/// Returns the texts in backticks, each on one line.
fn quoted(text: &str) -> impl Iterator<Item = String> {
    let quoted = text.split('`').skip(1).step_by(2);
    quoted.map(|name| name.split_whitespace().collect::<Vec<_>>().join(" "))
}

// Finds the existing tests, by source file.

/// The suite whose tests a macro makes from a table of behaviours.
const TABLE: &str = "store/tests/conformance";

/// The tests of each source file, by its path without the extension.
struct Tests(BTreeMap<PathBuf, BTreeSet<String>>);

impl Tests {
    fn below(folder: &Path) -> Self {
        let mut tests = Self(BTreeMap::new());
        tests.add(folder, folder);
        tests
    }

    /// Adds the tests in `folder`, by their paths below `top`.
    fn add(&mut self, folder: &Path, top: &Path) {
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

    /// Returns true if this test exists. If the name ends in `*`, returns true if a file with tests has this path.
    fn has(&self, name: &str) -> bool {
        // `program` is a crate or one of its test programs.
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
    fn has_alone(&self, name: &str) -> bool {
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

/// Returns the functions of a file that are named in the table beside its folder.
fn behaviours(text: &str, path: &Path) -> BTreeSet<String> {
    let table = path.parent().map(|folder| folder.with_extension("rs")).expect("a folder");
    let table = fs::read_to_string(table).expect("the table can be read");
    let module = path.file_stem().and_then(|stem| stem.to_str()).expect("a name");
    let is_named = |name: &String| table.contains(&format!("{module}::{name} ["));
    functions(text, "fn ").filter(is_named).collect()
}
