//! Finds out what `laneway --version` says beside the version: the commit, the target and the TLS library.

#[path = "build/facts.rs"]
mod facts;

use std::path::{Path, PathBuf};
use std::process::Command;

use facts::version;

/// Filled in by `git archive`, which makes the tarballs of a release, by way of `.gitattributes`.
const ARCHIVED: &str = "COMMIT";

fn main() {
    let folder = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let root = folder.join("../..");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=build");
    println!("cargo:rerun-if-changed={ARCHIVED}");
    println!("cargo:rerun-if-env-changed=LANEWAY_COMMIT");

    let (named, archived) =
        (std::env::var("LANEWAY_COMMIT").ok(), std::fs::read_to_string(folder.join(ARCHIVED)).ok());
    println!("cargo:rustc-env=LANEWAY_COMMIT={}", facts::commit(named, archived, || checked_out(&root)));
    println!("cargo:rustc-env=LANEWAY_TARGET={}", std::env::var("TARGET").unwrap_or_default());

    let lock = root.join("Cargo.lock");
    watch(&lock);
    let lock = std::fs::read_to_string(lock).unwrap_or_default();
    let named = |package: &str| match version(&lock, package) {
        Some(version) => format!("{package} {version}"),
        None => package.to_owned(),
    };
    println!("cargo:rustc-env=LANEWAY_TLS={} with {}", named("rustls"), named("ring"));
}

/// The commit that is checked out; nothing where these sources only lie inside some other repository.
fn checked_out(root: &Path) -> Option<String> {
    let top = git(root, &["rev-parse", "--show-toplevel"])?;
    if Path::new(&top).canonicalize().ok()? != root.canonicalize().ok()? {
        return None;
    }
    let folder = |flag| git(root, &["rev-parse", "--path-format=absolute", flag]).map(PathBuf::from);
    let (own, common) = (folder("--git-dir")?, folder("--git-common-dir")?);
    watch(&own.join("HEAD"));
    if let Some(branch) = git(root, &["symbolic-ref", "-q", "HEAD"]) {
        watch(&common.join(branch));
    }
    watch(&common.join("packed-refs"));
    git(root, &["rev-parse", "HEAD"])
}

fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(folder).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !text.trim().is_empty()).then(|| text.trim().to_owned())
}

/// Has this run again when a file changes. One that isn't there would have it run each time.
fn watch(path: &Path) {
    if path.exists() {
        println!("cargo:rerun-if-changed={}", path.display());
    }
}
