//! Facts about a build, read from text files: commit, versions of libraries.

/// Returns the commit: the one that a packager named, or else that of the archive, or else that of git.
pub(crate) fn commit(
    named: Option<String>,
    archived: Option<String>,
    checked_out: impl FnOnce() -> Option<String>,
) -> String {
    let named = named.filter(|commit| !commit.is_empty());
    // In a clone, the file still holds the placeholder that `git archive` fills in.
    let is_commit = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit());
    let archived = archived.map(|text| text.trim().to_owned()).filter(|text| is_commit(text));
    named.or(archived).or_else(checked_out).unwrap_or_else(|| "unknown".to_owned())
}

/// Returns the commit in the file that `cargo package` writes.
pub(crate) fn packaged(note: &str) -> Option<String> {
    Some(note.split_once("\"sha1\": \"")?.1.split_once('"')?.0.to_owned())
}

/// Returns the version of a package in a lock file.
pub(crate) fn version(lock: &str, package: &str) -> Option<String> {
    let name = format!("name = \"{package}\"");
    let mut lines = lock.lines().skip_while(|line| *line != name);
    lines.next()?;
    let version = lines.next()?.strip_prefix("version = \"")?.strip_suffix('"')?;
    Some(version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_named_by_the_packager_then_by_the_tarball_and_then_by_git() {
        let of = |named: &str, archived: Option<&str>, checked_out: Option<&str>| {
            commit(Some(named.to_owned()), archived.map(str::to_owned), || checked_out.map(str::to_owned))
        };
        assert_eq!(of("v1-fedora", Some("0af\n"), Some("1bc")), "v1-fedora");
        assert_eq!(of("", Some("0af\n"), Some("1bc")), "0af");
        assert_eq!(of("", Some("$Format:%H$\n"), Some("1bc")), "1bc");
        assert_eq!(of("", Some("\n"), Some("1bc")), "1bc");
        assert_eq!(of("", None, None), "unknown");
        assert_eq!(commit(None, Some("0af".to_owned()), || panic!("git is not asked")), "0af");
    }

    #[test]
    fn a_package_tells_its_commit_by_cargos_note() {
        let note = "{\n  \"git\": {\n    \"sha1\": \"0af\",\n    \"dirty\": true\n  },\n  \"path_in_vcs\": \"crates/cli\"\n}";
        assert_eq!(packaged(note).as_deref(), Some("0af"));
        assert_eq!(packaged("{}"), None);
    }

    #[test]
    fn a_lock_file_tells_the_version_of_a_package_by_its_whole_name() {
        let lock = "[[package]]\nname = \"rustls-pki-types\"\nversion = \"1.2.3\"\n\n[[package]]\nname = \"rustls\"\nversion = \"0.23.1\"\n";
        assert_eq!(version(lock, "rustls").as_deref(), Some("0.23.1"));
        assert_eq!(version(lock, "ring"), None);
    }
}
