//! Facts about the build, for `--version`.

/// Version, commit, target and TLS library, a line each; the first is what `-V` prints.
pub(crate) const LONG: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit ",
    env!("LANEWAY_COMMIT"),
    "\ntarget ",
    env!("LANEWAY_TARGET"),
    "\nTLS ",
    env!("LANEWAY_TLS"),
);

/// The build script's, for its tests.
#[cfg(test)]
#[path = "../build/facts.rs"]
mod facts;

#[cfg(test)]
mod tests {
    use super::LONG;

    #[test]
    fn a_version_has_its_commit_target_and_tls_library() {
        let lines: Vec<_> = LONG.lines().collect();
        let [version, commit, target, tls] = lines[..] else { panic!("{LONG}") };
        assert_eq!(version, env!("CARGO_PKG_VERSION"));
        let commit = commit.strip_prefix("commit ").expect("a commit");
        assert!(commit == "unknown" || commit.len() >= 7, "{commit}");
        assert!(target.starts_with("target ") && target.matches('-').count() >= 2, "{target}");
        assert!(tls.starts_with("TLS rustls 0.") && tls.contains(" with ring 0."), "{tls}");
    }
}
