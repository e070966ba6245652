//! Finds the facts that `laneway --version` prints besides the version: the commit, the target and the TLS
//! library. Also finds the versions of the libraries that the HTTP clients in `bench` use.

#[path = "build/facts.rs"]
mod facts;

use std::path::{Path, PathBuf};
use std::process::Command;

use facts::{packaged, version};

/// The file that holds the commit in a release's tarball. `git archive` fills it in, because `.gitattributes`
/// says so.
const ARCHIVED: &str = "COMMIT";

/// The file that holds the commit in a package from crates.io. `cargo package` puts it beside the manifest.
const PACKAGED: &str = ".cargo_vcs_info.json";

/// The libraries under the HTTP clients that `bench` compares Laneway with.
const LIBRARIES: [&str; 4] = ["hyper", "h2", "rustls", "tokio"];

fn main() {
    let folder = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let root = folder.join("../..");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=build");
    println!("cargo:rerun-if-changed={ARCHIVED}");
    println!("cargo:rerun-if-env-changed=LANEWAY_COMMIT");

    let text = |name| std::fs::read_to_string(folder.join(name)).ok();
    let named = std::env::var("LANEWAY_COMMIT").ok();
    let archived = text(PACKAGED).as_deref().and_then(packaged).or_else(|| text(ARCHIVED));
    println!("cargo:rustc-env=LANEWAY_COMMIT={}", facts::commit(named, archived, || checked_out(&root)));
    println!("cargo:rustc-env=LANEWAY_TARGET={}", std::env::var("TARGET").unwrap_or_default());

    // A package from crates.io has a lock file of its own.
    let lock = [folder.as_path(), &root].map(|folder| folder.join("Cargo.lock"));
    let lock = lock.into_iter().find(|lock| lock.exists()).unwrap_or_default();
    watch(&lock);
    let lock = std::fs::read_to_string(lock).unwrap_or_default();
    let named = |package: &str| match version(&lock, package) {
        Some(version) => format!("{package} {version}"),
        None => package.to_owned(),
    };
    println!("cargo:rustc-env=LANEWAY_TLS={} with {}", named("rustls"), named("ring"));
    println!("cargo:rustc-env=LANEWAY_LIBRARIES={}", LIBRARIES.map(named).join(", "));
}

/// Returns the commit that is checked out, or `None` if these sources lie inside another repository.
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

/// Makes cargo run this script again when a file changes. Skips a missing file, for which cargo would run the script at
/// every build.
fn watch(path: &Path) {
    if path.exists() {
        println!("cargo:rerun-if-changed={}", path.display());
    }
}
