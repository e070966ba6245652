//! Which libraries the rivals stand on.

/// What all of them were built from.
const LOCK: &str = include_str!("../../../../Cargo.lock");

/// The libraries that move the rivals' bytes.
const LIBRARIES: [&str; 4] = ["hyper", "h2", "rustls", "tokio"];

/// Their names and versions, for people.
pub(super) fn of_rivals() -> String {
    let named = LIBRARIES.map(|name| match version(LOCK, name) {
        Some(version) => format!("{name} {version}"),
        None => name.to_owned(),
    });
    named.join(", ")
}

/// The newest version of a package in a lock file, which has them sorted.
fn version<'a>(lock: &'a str, name: &str) -> Option<&'a str> {
    let head = format!("[[package]]\nname = \"{name}\"\nversion = \"");
    lock.rsplit_once(&head)?.1.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_file_tells_versions() {
        let lock = "[[package]]\nname = \"h2\"\nversion = \"0.4.1\"\n\n[[package]]\nname = \"h2\"\nversion = \"0.5.0\"\n";
        assert_eq!((version(lock, "h2"), version(lock, "h")), (Some("0.5.0"), None));
        let all = of_rivals();
        assert!(LIBRARIES.iter().all(|name| version(LOCK, name).is_some()), "{all}");
    }
}
