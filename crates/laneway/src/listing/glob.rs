//! Expands patterns in local paths that the user has quoted. The shell has expanded unquoted patterns
//! already.
//!
//! As in a shell, `*`, `?` and character sets don't match a dot at the beginning of a name. As in `gcloud
//! storage`, `**` matches only files, at any depth, including files in hidden folders.

use std::io;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::location::pattern::Pattern;

/// Returns whether a path is a pattern: it has wildcards, and no file has exactly that name. Looks at the
/// disk.
pub(crate) fn is_pattern(path: &Path) -> bool {
    path.to_str().is_some_and(|text| Pattern::parse(text).is_some()) && path.symlink_metadata().is_err()
}

/// Returns the matches of a pattern in order. Returns any other path as it is. Blocks the thread.
///
/// # Errors
/// If a folder can't be read, or nothing matches.
pub(crate) fn expanded(path: PathBuf) -> Result<Vec<PathBuf>, Error> {
    let Some(text) = path.to_str().filter(|_| is_pattern(&path)) else { return Ok(vec![path]) };
    let root = if text.starts_with('/') { PathBuf::from("/") } else { PathBuf::new() };
    let mut found = vec![root];
    let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty()).collect();
    for (i, part) in parts.iter().enumerate() {
        found = match Pattern::parse(part) {
            _ if part.contains("**") => {
                let rest = parts[i..].join("/");
                // This can't fail, because `rest` contains the wildcard `**`.
                let Some(pattern) = Pattern::parse(&rest) else { break };
                found = below(found, &pattern)?;
                break;
            }
            Some(pattern) => matching(found, &pattern, part.starts_with('.'))?,
            None => found
                .iter()
                .map(|path| path.join(part))
                .filter(|path| path.symlink_metadata().is_ok())
                .collect(),
        };
    }
    if text.ends_with('/') {
        found.retain(|path| path.is_dir());
    }
    match found.is_empty() {
        true => Err(Error::not_found(text, "no file matches")),
        false => Ok(found),
    }
}

/// Returns the entries of these folders whose names match.
fn matching(folders: Vec<PathBuf>, pattern: &Pattern, with_hidden: bool) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    for folder in folders.iter().filter(|folder| is_folder(folder)) {
        for name in names(folder)? {
            if (with_hidden || !name.starts_with('.')) && pattern.matches(&name) {
                found.push(folder.join(name));
            }
        }
    }
    Ok(found)
}

/// Returns the files at any depth below these folders whose paths, relative to the folder, match.
fn below(folders: Vec<PathBuf>, pattern: &Pattern) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    for top in folders.into_iter().filter(|folder| is_folder(folder)) {
        let mut left = vec![(top.clone(), String::new())];
        while let Some((folder, above)) = left.pop() {
            let mut inner = Vec::new();
            for name in names(&folder)? {
                let path = folder.join(&name);
                let below = if above.is_empty() { name } else { format!("{above}/{name}") };
                // Don't enter links to folders, because they may lead back up.
                let is_tree = path.symlink_metadata().is_ok_and(|m| m.is_dir());
                if is_tree {
                    inner.push((path, below));
                } else if !path.is_dir() && pattern.matches(&below) {
                    found.push(path);
                }
            }
            left.extend(inner.into_iter().rev());
        }
    }
    found.sort();
    Ok(found)
}

fn is_folder(path: &Path) -> bool {
    path.as_os_str().is_empty() || path.is_dir()
}

/// Returns the names in a folder, in order. Leaves out names that aren't UTF-8: users can't type them, and
/// they can't be keys.
fn names(folder: &Path) -> Result<Vec<String>, Error> {
    let at = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let failed = |e: io::Error| Error::local(at, "can't be read", e);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(at).map_err(failed)? {
        names.extend(entry.map_err(failed)?.file_name().into_string());
    }
    names.sort_unstable();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the matches of a pattern in a folder of awkward names, relative to that folder.
    fn matches(pattern: &str) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a1", "a2", ".hidden", "b/a3", "b/.git/a4", "b/c/a5", "x*y", "[z]"] {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let found = expanded(dir.path().join(pattern));
        let relative = |path: &PathBuf| path.strip_prefix(dir.path()).unwrap().to_str().unwrap().to_owned();
        found.map(|paths| paths.iter().map(relative).collect()).unwrap_or_default()
    }

    #[test]
    fn wildcards_stay_within_a_folder_and_leave_hidden_names_alone() {
        assert_eq!(matches("a?"), ["a1", "a2"]);
        assert_eq!(matches("*"), ["[z]", "a1", "a2", "b", "x*y"]);
        assert_eq!(matches(".h*"), [".hidden"]);
        assert_eq!(matches("*/a*"), ["b/a3"]);
        assert_eq!(matches("*/"), ["b"]);
        assert_eq!(matches("*/c/a[0-9]"), ["b/c/a5"]);
    }

    #[test]
    fn two_stars_go_through_folders_and_match_files() {
        assert_eq!(matches("**/a*"), ["b/.git/a4", "b/a3", "b/c/a5"]);
        assert_eq!(matches("b/**"), ["b/.git/a4", "b/a3", "b/c/a5"]);
    }

    #[test]
    fn what_has_the_very_name_is_meant_before_anything_that_matches() {
        assert_eq!(matches("x*y"), ["x*y"]);
        assert_eq!(matches("[z]"), ["[z]"]);
        assert_eq!(matches("none"), ["none"]);
    }

    #[test]
    fn a_pattern_without_a_match_is_told() {
        let error = expanded(PathBuf::from("/nonexistent/x*")).unwrap_err();
        assert!(error.is_not_found() && error.to_string().contains("/nonexistent/x*"), "{error}");
    }
}
