//! The modules of a crate form no circles, so that each can be read with those below it alone. Counted are the modules that a
//! crate's `lib.rs` names, with everything below each of them: what is inside one of them is one family.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Crates whose modules have been sorted. The program's arguments know its verbs, which are a list.
const SORTED: [&str; 4] = ["lanes", "laneway", "server", "store"];

/// For each module those that it uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

#[test]
fn no_modules_form_a_circle() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crates' folder");
    for name in SORTED {
        let source = crates.join(name).join("src");
        let root = fs::read_to_string(source.join("lib.rs")).expect("a crate's root");
        let (modules, names) = declared(&root);
        assert!(modules.len() > 5, "{name} has only {modules:?}");
        let mut uses = Uses::new();
        for module in &modules {
            let text = text_of(&source, module);
            let used = used(&text).into_iter().filter_map(|word| match modules.contains(&word) {
                true => Some(word),
                false => names.get(&word).cloned(),
            });
            uses.insert(module.clone(), used.filter(|used| used != module).collect());
        }
        assert!(uses.values().any(|used| !used.is_empty()), "nothing in {name} uses anything");
        assert_eq!(circle(&uses), None, "in {name}");
    }
}

/// The modules of a crate, and from which of them the names come that it exports.
fn declared(root: &str) -> (BTreeSet<String>, BTreeMap<String, String>) {
    let (mut modules, mut names) = (BTreeSet::new(), BTreeMap::new());
    for statement in root
        .lines()
        .map(|line| line.trim())
        .filter(|line| !line.starts_with("//"))
        .collect::<String>()
        .split(';')
    {
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

/// The text of a module and all below it, without its tests.
fn text_of(source: &Path, module: &str) -> String {
    let mut text = String::new();
    let mut left = vec![source.join(format!("{module}.rs")), source.join(module)];
    while let Some(path) = left.pop() {
        let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        if ["tests", "scenario"].contains(&name) {
            continue;
        }
        if let Ok(entries) = fs::read_dir(&path) {
            left.extend(entries.map(|entry| entry.expect("an entry").path()));
        } else if let Ok(file) = fs::read_to_string(&path) {
            let code = file.split("\nmod tests {").next().unwrap_or_default();
            text.extend(
                code.lines()
                    .filter(|line| !line.trim_start().starts_with("//"))
                    .map(|line| format!("{line}\n")),
            );
        }
    }
    text
}

/// What a text names directly below its crate's root.
fn used(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (_, after) in text.match_indices("crate::").map(|(at, path)| (at, &text[at + path.len()..])) {
        match after.strip_prefix('{') {
            // `use crate::{a, b::c}` names its first words.
            Some(list) => {
                let list = list.split('}').next().unwrap_or_default();
                found.extend(list.split(',').filter_map(|item| words(item).next()).map(str::to_owned));
            }
            None => found.extend(words(after).next().map(str::to_owned)),
        }
    }
    found
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// Modules that use each other, directly or through others.
fn circle(uses: &Uses) -> Option<Vec<&str>> {
    let mut left: BTreeMap<&str, BTreeSet<&str>> =
        uses.iter().map(|(module, used)| (&**module, used.iter().map(|used| &**used).collect())).collect();
    // Whoever uses nothing that is left stands in no circle, nor does whoever nobody uses.
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
        used("use crate::{Error, a::X};\nfn f(b: crate::b::B) {}"),
        ["Error", "a", "b"].map(str::to_owned).into()
    );
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
