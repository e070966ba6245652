//! The library's public interface is kept in a checked-in list, so that a review shows each change:
//! `crates/laneway/public-api.txt`, with a line for each item. `LANEWAY_WRITE_PUBLIC_API=1` rewrites the list.

#[path = "public_api/surface.rs"]
mod surface;

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use surface::{Described, surface};

/// The library, and the crates whose items it re-exports.
const CRATES: [&str; 3] = ["laneway", "laneway-store", "laneway-lanes"];

/// A script that permits a stable rustdoc to write JSON. It sets the variable only for rustdoc. If cargo
/// itself had the variable, it would rebuild the crates that query the compiler.
const RUSTDOC: &str = "#!/bin/sh\nRUSTC_BOOTSTRAP=1 exec \"${LANEWAY_RUSTDOC:-rustdoc}\" \"$@\"\n";

#[test]
fn what_the_library_shows_is_what_the_list_says() {
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("../laneway/public-api.txt");
    let shown: Vec<String> = surface(&CRATES.map(described));
    assert!(shown.len() > 400, "only {} items were found", shown.len());
    if env::var_os("LANEWAY_WRITE_PUBLIC_API").is_some() {
        fs::write(&list, shown.join("\n") + "\n").expect("the list is written");
        return;
    }
    let listed = fs::read_to_string(&list).expect("the list can be read");
    let listed: Vec<&str> = listed.lines().collect();
    let gone =
        listed.iter().filter(|line| !shown.iter().any(|shown| shown == *line)).map(|line| format!("-{line}"));
    let new = shown.iter().filter(|line| !listed.contains(&line.as_str())).map(|line| format!("+{line}"));
    let changes: Vec<String> = gone.chain(new).collect();
    assert!(
        changes.is_empty() && listed.len() == shown.len(),
        "the public surface is another than crates/laneway/public-api.txt says; `make public-api` writes it anew:\n{}",
        changes.join("\n")
    );
}

/// Returns rustdoc's description of a crate. It shares the target folder with the rest of the build.
fn described(name: &str) -> Described {
    let target = target();
    let rustdoc = target.join("rustdoc-with-json");
    // Write the script only if it has changed. To cargo, a newer file would look like another rustdoc.
    if !fs::read_to_string(&rustdoc).is_ok_and(|there| there == RUSTDOC) {
        fs::write(&rustdoc, RUSTDOC).expect("a script is written");
        fs::set_permissions(&rustdoc, fs::Permissions::from_mode(0o755)).expect("it can be run");
    }
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["rustdoc", "--quiet", "--locked", "--lib", "--package", name, "--target-dir"]).arg(&target);
    cargo.args(["--", "-Zunstable-options", "--output-format=json", "--cap-lints=allow"]);
    if let Some(own) = env::var_os("RUSTDOC") {
        cargo.env("LANEWAY_RUSTDOC", own);
    }
    let ended = cargo
        .env("RUSTDOC", &rustdoc)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .status()
        .expect("cargo runs");
    assert!(ended.success(), "rustdoc can't describe {name}: {ended}");
    let crate_name = name.replace('-', "_");
    let json =
        fs::read(target.join("doc").join(format!("{crate_name}.json"))).expect("rustdoc's description");
    Described { name: crate_name, json: serde_json::from_slice(&json).expect("it is JSON") }
}

/// Returns the folder of this build: `target/debug/deps/THIS`.
fn target() -> PathBuf {
    let this = env::current_exe().expect("a path");
    this.ancestors().nth(3).expect("cargo's folders").to_owned()
}
