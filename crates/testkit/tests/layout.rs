//! Checks two rules: all product code defines a type's name only once, and a small file has more than one user.
//!
//! `.ci/layout.limits` contains the number of exceptions that each crate still has. A change that removes an exception
//! must lower this number.
//! `LANEWAY_SHOW_LAYOUT=1` prints the exceptions.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The crates with product code.
const CRATES: [&str; 11] = [
    "crates/cli",
    "crates/laneway",
    "crates/lanes",
    "crates/quantity",
    "crates/server",
    "crates/store",
    "bindings/c",
    "bindings/core",
    "bindings/jvm/native",
    "bindings/object-store",
    "bindings/python",
];

/// The names that the root of each crate may define.
const AT_ROOTS: [&str; 2] = ["Error", "Options"];

/// If a file has fewer lines than this and a single user, its code belongs in the file of this user.
const SMALL_LINES: usize = 60;

const LIMITS: &str = ".ci/layout.limits";
const SHOW_VARIABLE: &str = "LANEWAY_SHOW_LAYOUT";

#[test]
fn a_type_name_is_defined_once() {
    let mut places: BTreeMap<String, BTreeSet<(&str, PathBuf)>> = BTreeMap::new();
    for name in CRATES {
        for (path, file) in product_files(name) {
            for defined in types(&file.code) {
                let is_at_root = path.components().count() == 1 && AT_ROOTS.contains(&defined);
                if !is_at_root {
                    places.entry(defined.to_owned()).or_default().insert((name, place(&path)));
                }
            }
        }
    }
    let repeated = places.into_iter().filter(|(_, places)| places.len() > 1);
    let repeated =
        repeated.flat_map(|(name, places)| places.into_iter().map(move |it| (it.0, name.clone(), it.1)));
    check(
        "repeated-types",
        repeated.map(|(name, defined, path)| (name, format!("{defined} in {}", path.display()))),
    );
}

#[test]
fn a_small_file_has_more_than_one_user() {
    let lonely = CRATES.iter().flat_map(|name| {
        let found = lonely(&product_files(name));
        found.into_iter().map(|(file, user)| (*name, format!("{} for {}", file.display(), user.display())))
    });
    check("lonely-files", lonely);
}

/// Compares the findings in each crate with its limit.
fn check(kind: &str, findings: impl Iterator<Item = (&'static str, String)>) {
    let mut by_crate: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    findings.for_each(|(name, finding)| by_crate.entry(name).or_default().push(finding));
    let limits = fs::read_to_string(root().join(LIMITS)).expect("the limits can be read");
    let limit = |name: &str| {
        let mut rows = limits.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let row = rows.find(|row| row.starts_with(&[name, kind]));
        row.map_or(0, |row| row[2].parse().expect("a limit is a number"))
    };
    let mut problems = Vec::new();
    for (name, findings) in by_crate {
        if std::env::var_os(SHOW_VARIABLE).is_some() {
            println!("{name} {kind} {}\n  {}", findings.len(), findings.join("\n  "));
        }
        if findings.len() > limit(name) {
            let (count, limit) = (findings.len(), limit(name));
            problems.push(format!("{name} has {count} {kind}, not {limit}:\n{}", findings.join("\n")));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the workspace")
}

/// A file of product code.
#[derive(Debug, Default)]
struct SourceFile {
    /// Its text without comments and tests.
    code: String,
    lines: usize,
}

/// The product code of a crate, by the files' paths below `src`.
fn product_files(name: &str) -> BTreeMap<PathBuf, SourceFile> {
    let source = root().join(name).join("src");
    let (mut files, mut tests, mut left) = (BTreeMap::new(), Vec::new(), vec![source.clone()]);
    while let Some(path) = left.pop() {
        if path.is_dir() {
            left.extend(fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("an entry").path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("a source file can be read");
            let own = path.strip_prefix(&source).expect("it lies below").to_owned();
            let (code, of_tests) = without_tests(&text);
            tests.extend(of_tests.into_iter().map(|module| folder_of(&own).join(module)));
            files.insert(own, SourceFile { code, lines: text.lines().count() });
        }
    }
    files.retain(|path, _| !tests.iter().any(|test| path.with_extension("").starts_with(test)));
    files
}

/// Returns the code of a file without comments and its modules of tests, and the names of such modules in other files.
fn without_tests(text: &str) -> (String, Vec<String>) {
    let (mut code, mut of_tests, mut is_test, mut is_skipped) = (String::new(), Vec::new(), false, false);
    for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
        if is_skipped {
            is_skipped = line != "}";
            continue;
        }
        let module = without_visibility(line).strip_prefix("mod ").filter(|_| is_test);
        match module.and_then(|module| module.strip_suffix(';')) {
            Some(module) => of_tests.push(module.to_owned()),
            None if module.is_some() => is_skipped = true,
            None => code.extend([line, "\n"]),
        }
        is_test = line == "#[cfg(test)]" || (is_test && line.starts_with("#["));
    }
    (code, of_tests)
}

/// Returns the folder of a file's child modules.
fn folder_of(path: &Path) -> PathBuf {
    match path.to_str() {
        Some("lib.rs" | "main.rs") => PathBuf::new(),
        _ => path.with_extension(""),
    }
}

/// Returns the place where a name is defined. The files for each platform are one place.
fn place(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if folder.ends_with("platform") => folder.to_owned(),
        _ => path.to_owned(),
    }
}

fn without_visibility(line: &str) -> &str {
    let Some(rest) = line.strip_prefix("pub") else { return line };
    match rest.strip_prefix('(') {
        Some(scope) => scope.split_once(") ").map_or(line, |(_, rest)| rest),
        None => rest.trim_start(),
    }
}

/// Returns the names of the types and traits that a text defines.
fn types(code: &str) -> BTreeSet<&str> {
    let definitions = code.lines().filter_map(|line| {
        let line = without_visibility(line);
        let keywords = ["struct ", "enum ", "union ", "trait ", "type "];
        keywords.iter().find_map(|keyword| line.strip_prefix(keyword))
    });
    definitions.filter_map(|definition| words(definition).next()).collect()
}

/// Returns the small files with one user, and that user.
fn lonely(files: &BTreeMap<PathBuf, SourceFile>) -> Vec<(PathBuf, PathBuf)> {
    let modules: BTreeMap<PathBuf, &PathBuf> = files.keys().map(|path| (folder_of(path), path)).collect();
    let exports = files.iter().map(|(path, file)| (folder_of(path), imports(&file.code))).collect();
    let tree = ModuleTree { modules, exports };
    let mut users: BTreeMap<&PathBuf, BTreeSet<&PathBuf>> = BTreeMap::new();
    for (path, file) in files {
        for used in paths(&file.code).iter().filter_map(|used| tree.file_of(&folder_of(path), used, 0)) {
            if used != path {
                users.entry(used).or_default().insert(path);
            }
        }
    }
    let is_small =
        |path: &PathBuf| files[path].lines < SMALL_LINES && !folder_of(path).as_os_str().is_empty();
    // Leave out the files below `platform`: there is one for each platform, and all have the same user.
    let is_small = |path: &PathBuf| is_small(path) && place(path) == *path;
    let is_leaf = |path: &PathBuf| !files.keys().any(|other| other.starts_with(folder_of(path)));
    let alone = users.into_iter().filter(|(path, users)| users.len() == 1 && is_small(path) && is_leaf(path));
    alone.filter_map(|(path, users)| Some((path.clone(), users.first()?.to_path_buf()))).collect()
}

/// The modules of a crate, by the folders of their children.
struct ModuleTree<'a> {
    modules: BTreeMap<PathBuf, &'a PathBuf>,
    /// The names that each module imports or exports again, with their paths.
    exports: BTreeMap<PathBuf, BTreeMap<String, Vec<String>>>,
}

impl<'a> ModuleTree<'a> {
    /// Returns the file that defines what a path in a module means.
    fn file_of(&self, module: &Path, path: &[String], depth: usize) -> Option<&'a PathBuf> {
        let mut at = module.to_owned();
        for (number, word) in path.iter().enumerate() {
            match word.as_str() {
                "crate" => at = PathBuf::new(),
                "self" => {}
                "super" => at = at.parent()?.to_owned(),
                word if self.modules.contains_key(&at.join(word)) => at.push(word),
                word => {
                    let other = self.exports.get(&at).and_then(|exports| exports.get(word));
                    // Don't follow an import whose path is this same path.
                    if let Some(other) =
                        other.filter(|other| depth < 8 && (number > 0 || other[..] != path[..]))
                    {
                        return self.file_of(&at, other, depth + 1);
                    }
                    return self.modules.get(&at).copied().filter(|_| number > 0);
                }
            }
        }
        self.modules.get(&at).copied().filter(|_| at != module)
    }
}

/// Returns the names that a file imports, with their paths.
fn imports(code: &str) -> BTreeMap<String, Vec<String>> {
    let statements = code.split(';').filter_map(|statement| {
        let start =
            statement.rfind("use ").filter(|at| *at == 0 || statement[..*at].ends_with([' ', '\n']))?;
        Some(&statement[start + 4..])
    });
    let mut found = BTreeMap::new();
    for path in statements.flat_map(expanded) {
        found.extend(path.last().cloned().map(|name| (name, path)));
    }
    found
}

/// Returns the paths of an import, as in `a::{b, c::d}`.
fn expanded(text: &str) -> Vec<Vec<String>> {
    let (mut paths, mut prefixes, mut path) = (Vec::new(), Vec::new(), Vec::<String>::new());
    let mut word = String::new();
    for c in text.chars().chain([',']) {
        if c.is_alphanumeric() || c == '_' {
            word.push(c);
            continue;
        }
        if !word.is_empty() {
            path.push(std::mem::take(&mut word));
        }
        match c {
            '{' => prefixes.push(path.clone()),
            ',' | '}' => {
                let base = prefixes.last().cloned().unwrap_or_default();
                if path.len() > base.len() {
                    // `a::{self}` means `a`. Renamed imports aren't followed.
                    path.retain(|word| word != "self");
                    if !path.iter().any(|word| word == "as") {
                        paths.push(path.clone());
                    }
                }
                if c == '}' {
                    prefixes.pop();
                }
                path = prefixes.last().cloned().unwrap_or_default();
            }
            _ => {}
        }
    }
    paths
}

/// Returns the paths that a text uses. Those it only exports again are left out.
fn paths(code: &str) -> BTreeSet<Vec<String>> {
    let mut found = BTreeSet::new();
    for statement in code.split(';') {
        let trimmed = statement.trim_start();
        if trimmed.starts_with("pub") && without_visibility(trimmed).starts_with("use ") {
            continue;
        }
        if let Some(import) = trimmed.strip_prefix("use ") {
            found.extend(expanded(import));
            continue;
        }
        let tokens = statement.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
        for token in tokens.filter(|token| token.contains("::")) {
            let path = token.split("::").filter(|word| !word.is_empty());
            found.insert(path.map(|word| word.trim_matches(':').to_owned()).collect());
        }
    }
    found
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

#[test]
fn repeated_names_and_lonely_files_are_found() {
    let text = "pub struct A<T>(T);\n#[cfg(test)]\nmod tests {\n    struct B;\n}\ntype C = u8;\n#[cfg(test)]\nmod d;\n";
    let (code, of_tests) = without_tests(text);
    assert_eq!(types(&code), ["A", "C"].into());
    assert_eq!(of_tests, ["d"]);
    let file = |code: &str| SourceFile { code: code.to_owned(), lines: 5 };
    let files = [
        ("lib.rs", "mod a;\nmod b;\npub use a::A;\n"),
        ("a.rs", "mod c;\npub use c::C;\nuse crate::b::f;\npub struct A;\n"),
        ("a/c.rs", "pub struct C;\n"),
        ("b.rs", "fn g() { crate::a::C }\npub fn f() {}\n"),
    ];
    let files = files.map(|(path, code)| (PathBuf::from(path), file(code))).into();
    assert_eq!(lonely(&files), [("a/c.rs", "b.rs"), ("b.rs", "a.rs")].map(|(a, b)| (a.into(), b.into())));
}
