//! Checks that modules don't use each other in circles. A reader can then understand a module with only the modules that
//! it uses. The tests check the modules that a crate's `lib.rs` declares, each with all modules below it. They also check
//! the modules in folders of the library.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The crates whose modules must not form circles. `cli` isn't checked: its arguments use the verbs, and the verbs use the
/// arguments.
const SORTED: [&str; 4] = ["lanes", "laneway", "server", "store"];

/// The folders of the library whose modules must not form circles. In each other folder, related modules may use each
/// other.
const FOLDERS: [&str; 10] =
    ["client", "content", "engine", "job", "listing", "local", "location", "objects", "request", "transfer"];

/// The modules that each module uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// The page with the drawings, and the variable that rewrites it.
const PAGE: &str = "docs/house.md";
const WRITE_VARIABLE: &str = "LANEWAY_WRITE_HOUSE";

/// The marks around the drawings on the page. The rest is written by hand.
const BEGIN: &str = "<!-- drawn by crates/testkit/tests/circles.rs -->\n";
const END: &str = "<!-- end of what is drawn -->\n";

#[test]
fn no_modules_form_a_circle() {
    for name in SORTED {
        let uses = uses_in(name);
        assert!(uses.values().any(|used| !used.is_empty()), "nothing in {name} uses anything");
        assert_eq!(circle(&uses), None, "in {name}");
    }
    for folder in FOLDERS {
        assert_eq!(circle(&uses_in_folder(folder)), None, "in laneway's {folder}");
    }
}

#[test]
fn the_house_is_drawn_as_it_stands() {
    let path = crates().with_file_name(PAGE);
    let page = fs::read_to_string(&path).expect("the page can be read");
    let (before, rest) = page.split_once(BEGIN).expect("where the drawings begin");
    let (_, after) = rest.split_once(END).expect("where they end");
    let drawn: String = SORTED.iter().map(|name| drawing("###", name, &uses_in(name))).collect();
    let folders = FOLDERS.map(|name| drawing("####", name, &uses_in_folder(name)));
    let folders = format!("\n### The folders of laneway\n{}", folders.concat());
    let drawn = format!("{before}{BEGIN}{drawn}{folders}{END}{after}");
    if std::env::var_os(WRITE_VARIABLE).is_some() {
        return fs::write(&path, &drawn).expect("the page can be written");
    }
    assert!(page == drawn, "{PAGE} is not how the crates stand: {WRITE_VARIABLE}=1 writes it anew");
}

fn crates() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crates' folder")
}

/// Returns the uses between the modules of a crate.
fn uses_in(name: &str) -> Uses {
    let source = crates().join(name).join("src");
    let root = fs::read_to_string(source.join("lib.rs")).expect("a crate's root");
    let (modules, names) = declared(&root);
    assert!(modules.len() > 5, "{name} has only {modules:?}");
    let used_by = |module: &String| {
        let files = files_below(vec![source.join(format!("{module}.rs")), source.join(module)]);
        let text: String = files.iter().map(|file| code_of(file)).collect();
        let used = used(&text, "crate::").into_iter().filter_map(|word| match modules.contains(&word) {
            true => Some(word),
            false => names.get(&word).cloned(),
        });
        used.filter(|used| used != module).collect()
    };
    modules.iter().map(|module| (module.clone(), used_by(module))).collect()
}

/// Returns the uses between the modules of a folder of the library. The folder's own file is a module among them.
fn uses_in_folder(folder: &str) -> Uses {
    let source = crates().join("laneway/src").join(folder);
    let own = code_of(&source.with_extension("rs"));
    let (modules, names) = declared(&own);
    let module_of = |word: String| match modules.contains(&word) {
        true => word,
        false => names
            .get(&word)
            .filter(|module| modules.contains(*module))
            .map_or(folder.to_owned(), Clone::clone),
    };
    let used_by = |module: &String| {
        let mut found = BTreeSet::new();
        for file in files_below(vec![source.join(format!("{module}.rs")), source.join(module)]) {
            let depth = file.strip_prefix(&source).expect("it lies below").components().count();
            let code = code_of(&file);
            found.extend(used(&code, &"super::".repeat(depth)));
            found.extend(used(&code, &format!("crate::{folder}::")));
        }
        found.into_iter().map(module_of).filter(|used| used != module).collect()
    };
    let mut uses: Uses = modules.iter().map(|module| (module.clone(), used_by(module))).collect();
    // A re-export in the folder's own file isn't a use.
    let is_used = |module: &&String| {
        let mut statements = own.split(';').map(str::trim_start);
        statements.any(|it| !it.starts_with("pub") && it.contains(&format!("{module}::")))
    };
    uses.insert(folder.to_owned(), modules.iter().filter(is_used).cloned().collect());
    uses
}

/// Draws a crate's modules in layers, each module above all modules that it uses. Also writes the arrows between modules,
/// without the arrows that other arrows imply.
fn drawing(heading: &str, name: &str, uses: &Uses) -> String {
    let mut layers: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for module in uses.keys() {
        layers.entry(height(uses, module)).or_default().push(module);
    }
    let rows =
        layers.into_iter().rev().map(|(height, modules)| format!("{height:2}  {}\n", modules.join("  ")));
    let rows: String = rows.collect();
    let arrows = uses.iter().filter(|(_, used)| !used.is_empty()).map(|(module, used)| {
        let is_implied = |one: &&String| used.iter().any(|other| other != *one && reaches(uses, other, one));
        let direct: Vec<&str> = used.iter().filter(|one| !is_implied(one)).map(|one| &**one).collect();
        format!("{module} → {}\n", direct.join(", "))
    });
    let arrows: String = arrows.collect();
    format!(
        "\n{heading} {name}\n\n```\n{rows}```\n\n<details><summary>Arrows</summary>\n\n```\n{arrows}```\n\n</details>\n\n"
    )
}

/// Returns the length of the longest path down from a module.
fn height(uses: &Uses, module: &str) -> usize {
    uses[module].iter().map(|used| height(uses, used) + 1).max().unwrap_or_default()
}

fn reaches(uses: &Uses, from: &str, to: &str) -> bool {
    uses[from].iter().any(|used| used == to || reaches(uses, used, to))
}

/// Returns the modules of a crate, and the module of each exported name.
fn declared(root: &str) -> (BTreeSet<String>, BTreeMap<String, String>) {
    let (mut modules, mut names) = (BTreeSet::new(), BTreeMap::new());
    for statement in root
        .lines()
        .map(|line| line.trim())
        .filter(|line| !line.starts_with("//"))
        .collect::<String>()
        .split(';')
    {
        // Modules that exist only for tests count too.
        let statement = statement.trim_start_matches("#[cfg(test)]");
        let statement = statement.trim_start_matches("pub(crate) ").trim_start_matches("pub ");
        if let Some(module) = statement.strip_prefix("mod ") {
            modules.insert(module.to_owned());
        } else if let Some((module, exported)) =
            statement.strip_prefix("use ").and_then(|use_| use_.split_once("::"))
        {
            names.extend(words(exported).map(|name| (name.to_owned(), module.to_owned())));
        }
    }
    (modules, names)
}

/// Returns the files among these paths and below them, without tests.
fn files_below(mut left: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut files = Vec::new();
    while let Some(path) = left.pop() {
        let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        if ["tests", "scenario"].contains(&name) {
            continue;
        }
        if let Ok(entries) = fs::read_dir(&path) {
            left.extend(entries.map(|entry| entry.expect("an entry").path()));
        } else if path.exists() {
            files.push(path);
        }
    }
    files
}

/// Returns the text of a file without its tests and comments.
fn code_of(path: &Path) -> String {
    let file = fs::read_to_string(path).expect("a source file can be read");
    let code = file.split("\nmod tests {").next().unwrap_or_default();
    code.lines().filter(|line| !line.trim_start().starts_with("//")).map(|line| format!("{line}\n")).collect()
}

/// Returns the names directly below a path, such as the crate's root, in a text.
fn used(text: &str, path: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, _) in text.match_indices(path).filter(|(at, _)| !text[..*at].ends_with("super::")) {
        let after = &text[at + path.len()..];
        match after.strip_prefix('{') {
            // `use crate::{a, b::c}` uses the modules `a` and `b`.
            Some(list) => {
                let list = list.split('}').next().unwrap_or_default();
                found.extend(list.split(',').filter_map(|item| words(item).next()).map(str::to_owned));
            }
            None => found.extend(words(after).next().map(str::to_owned)),
        }
    }
    found.remove("super");
    found
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// Finds modules that use each other, directly or through others.
fn circle(uses: &Uses) -> Option<Vec<&str>> {
    let mut left: BTreeMap<&str, BTreeSet<&str>> =
        uses.iter().map(|(module, used)| (&**module, used.iter().map(|used| &**used).collect())).collect();
    // A module isn't part of a circle if it uses no remaining module, or if no remaining module uses it.
    loop {
        let used: BTreeSet<&str> = left.values().flatten().copied().collect();
        let is_outside = |module: &str, uses: &BTreeSet<&str>| uses.is_empty() || !used.contains(module);
        let outside: Vec<&str> = left
            .iter()
            .filter(|(module, uses)| is_outside(module, uses))
            .map(|(module, _)| *module)
            .collect();
        if outside.is_empty() {
            return (!left.is_empty()).then(|| left.into_keys().collect());
        }
        left.retain(|module, _| !outside.contains(module));
        left.values_mut().for_each(|uses| uses.retain(|used| !outside.contains(used)));
    }
}

#[test]
fn a_circle_is_found_and_a_ladder_is_none() {
    let root = "mod a;\npub mod b;\nmod c;\npub use c::{Error, Kind};\n";
    let (modules, names) = declared(root);
    assert_eq!(modules, ["a", "b", "c"].map(str::to_owned).into());
    assert_eq!(names["Kind"], "c");
    assert_eq!(
        used("use crate::{Error, a::X};\nfn f(b: crate::b::B) {}", "crate::"),
        ["Error", "a", "b"].map(str::to_owned).into()
    );
    assert_eq!(used("use super::a::X;\nuse super::super::b;", "super::"), ["a".to_owned()].into());
    let uses = |pairs: &[(&str, &[&str])]| -> Uses {
        pairs
            .iter()
            .map(|(m, used)| ((*m).to_owned(), used.iter().map(|u| (*u).to_owned()).collect()))
            .collect()
    };
    assert_eq!(circle(&uses(&[("a", &["b", "c"]), ("b", &["c"]), ("c", &[])])), None);
    let round = uses(&[("a", &["b"]), ("b", &["c"]), ("c", &["b"]), ("d", &["a"])]);
    assert_eq!(circle(&round), Some(vec!["b", "c"]));
}
