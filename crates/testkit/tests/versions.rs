//! The version is in `Cargo.toml` (`[workspace.package]`). Crates, Maven modules and their pages that repeat it must
//! agree; `.ci/version` writes all of them.

use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn what_repeats_the_version_says_the_workspaces() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = vec![root.join("Cargo.toml")];
    pages(&root.join("bindings/jvm"), &mut files);
    let (mut repeated, mut others) = (0, Vec::new());
    for file in files {
        let text = fs::read_to_string(&file).expect("a file can be read");
        let (same, count) = repeating(&text, env!("CARGO_PKG_VERSION"));
        repeated += count;
        if same != text {
            others.push(file);
        }
    }
    assert!(repeated > 15, "only {repeated} places were found");
    assert!(others.is_empty(), "another version stands in {others:?}");
}

/// Finds the files for Maven and the pages for people.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder can be listed") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str());
        match name {
            Some("pom.xml" | "README.md") => found.push(path),
            Some("target" | "src") => {}
            _ if path.is_dir() => pages(&path, found),
            _ => {}
        }
    }
}

/// Returns the text with this version at each place that repeats it, and the number of places.
fn repeating(text: &str, version: &str) -> (String, usize) {
    let (mut same, mut count, mut before) = (String::new(), 0, "");
    for line in text.split_inclusive('\n') {
        let mut rest = line;
        while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
            let (head, tail) = rest.split_at(at);
            let number = tail.split(|c: char| !c.is_ascii_digit() && c != '.').next().unwrap_or_default();
            let number = number.trim_end_matches('.');
            let dependency = line.starts_with("laneway") && head.ends_with("version = \"");
            let module = before.contains("<artifactId>laneway") && head.ends_with("<version>");
            let word = head.rsplit(|c: char| !c.is_ascii_lowercase() && c != '-').next().unwrap_or_default();
            let archive = word.starts_with("laneway-") && word.ends_with('-');
            let is_ours = dependency || module || archive;
            count += usize::from(is_ours);
            same += head;
            same += if is_ours { version } else { number };
            rest = &tail[number.len()..];
        }
        same += rest;
        before = line;
    }
    (same, count)
}

#[test]
fn versions_of_others_stay() {
    let text = "laneway = { path = \"crates/laneway\", version = \"0.1.0\" }\nrustls = { version = \"0.23\" }\n\
        <artifactId>laneway-core</artifactId>\n<version>0.1.0</version>\n<artifactId>hadoop</artifactId>\n<version>3.5.0</version>\n\
        laneway-hadoop, beside hadoop-aws 3.5.0: laneway-core-0.1.0.jar,laneway-hadoop-0.1.0.jar.\n";
    assert_eq!(repeating(text, "0.2.0").1, 4);
    assert_eq!(repeating(text, "0.2.0").0, text.replace("0.1.0", "0.2.0"));
}
