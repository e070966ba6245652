//! What the library shows stands in a checked-in list, so that a change of it is seen in review: `crates/laneway/public-api.txt`,
//! a line for each item. `LANEWAY_WRITE_PUBLIC_API=1` writes the list anew.

#[path = "public_api/signature.rs"]
mod signature;
#[path = "public_api/surface.rs"]
mod surface;

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use surface::{Described, surface};

/// The library, and the crates that it re-exports items of.
const CRATES: [&str; 3] = ["laneway", "laneway-store", "laneway-lanes"];

/// rustdoc, told that it may write JSON though it is a stable release. Set for it alone: crates that ask which compiler they have
/// would be built anew by another answer.
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

/// What rustdoc says of a crate, with dependencies checked in the same folder as everything else is built in.
fn described(name: &str) -> Described {
    let target = target();
    let rustdoc = target.join("rustdoc-with-json");
    // A newer script would be another rustdoc to cargo.
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

/// The folder that this was built in: `target/debug/deps/THIS`.
fn target() -> PathBuf {
    let this = env::current_exe().expect("a path");
    this.ancestors().nth(3).expect("cargo's folders").to_owned()
}
