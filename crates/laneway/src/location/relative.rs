//! Names below a folder. This module refuses keys that can't be the path of a file, or whose path would lead
//! out of the folder.

use std::fmt;

/// The maximum length in bytes of a file name that all common file systems allow.
pub(crate) const NAME_MAX: usize = 255;

/// A relative path that is safe to create below a folder, because it has no component such as `..`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct RelativePath {
    path: String,
    /// The offset in `path` at which the last component begins.
    name_at: usize,
}

/// The reason why a name can't become the path of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum UnsafeName {
    #[error("the name is empty, so no file can have it")]
    Empty,
    #[error("the name is an absolute path, so it may lead out of the folder")]
    Absolute,
    #[error("the name has an empty component (`//` or a `/` at its end), which a file system can't keep")]
    EmptyComponent,
    #[error("the name has a `{0}` component, which can't name a file or folder")]
    Dots(&'static str),
    #[error("the name has a NUL character, which a file system can't keep")]
    Nul,
    #[error("a component of the name is longer than 255 bytes, the limit of common file systems")]
    TooLong,
    #[error("the name has a character or a component that is reserved on Windows")]
    Windows,
}

impl RelativePath {
    /// Checks a name whose components are separated by `/`.
    ///
    /// # Errors
    /// The reason why the name can't become a file.
    pub(crate) fn new(path: String) -> Result<Self, UnsafeName> {
        Self::checked(path, cfg!(windows))
    }

    fn checked(path: String, windows: bool) -> Result<Self, UnsafeName> {
        if path.is_empty() {
            return Err(UnsafeName::Empty);
        }
        if path.starts_with('/') {
            return Err(UnsafeName::Absolute);
        }
        if path.contains('\0') {
            return Err(UnsafeName::Nul);
        }
        for component in path.split('/') {
            match component {
                "" => return Err(UnsafeName::EmptyComponent),
                "." => return Err(UnsafeName::Dots(".")),
                ".." => return Err(UnsafeName::Dots("..")),
                long if long.len() > NAME_MAX => return Err(UnsafeName::TooLong),
                name if windows && means_something_to_windows(name) => return Err(UnsafeName::Windows),
                _ => {}
            }
        }
        let name_at = path.rfind('/').map_or(0, |slash| slash + 1);
        Ok(Self { path, name_at })
    }

    /// Returns the name's folder without a trailing slash. It is empty for a name without slashes.
    pub(crate) fn folder(&self) -> &str {
        self.path[..self.name_at].trim_end_matches('/')
    }

    /// Returns the last component.
    pub(crate) fn name(&self) -> &str {
        &self.path[self.name_at..]
    }

    /// Returns the whole relative path.
    pub(crate) fn as_str(&self) -> &str {
        &self.path
    }
}

impl fmt::Display for RelativePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)
    }
}

/// Returns whether a component is reserved on Windows. A component is reserved if it contains a separator or
/// a special character such as `:`, or if it is the name of a device. A component that ends in a dot or a
/// space is also reserved, because Windows drops these characters.
fn means_something_to_windows(name: &str) -> bool {
    const DEVICES: [&str; 4] = ["CON", "PRN", "AUX", "NUL"];
    let stem = name.split('.').next().unwrap_or(name).trim_end().to_ascii_uppercase();
    let numbered = stem.len() == 4
        && (stem.starts_with("COM") || stem.starts_with("LPT"))
        && stem.ends_with(|c: char| c.is_ascii_digit());
    name.contains(|c: char| c.is_control() || "\\:<>\"|?*".contains(c))
        || name.ends_with(['.', ' '])
        || numbered
        || DEVICES.contains(&stem.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str) -> Result<RelativePath, UnsafeName> {
        RelativePath::checked(path.to_owned(), false)
    }

    #[test]
    fn a_plain_key_is_split_into_folder_and_name() {
        let relative = check("a/b c/ü%.txt").unwrap();
        assert_eq!((relative.folder(), relative.name()), ("a/b c", "ü%.txt"));
        let relative = check("..a").unwrap();
        assert_eq!((relative.folder(), relative.name()), ("", "..a"));
    }

    #[test]
    fn a_key_that_would_leave_the_destination_is_refused() {
        assert_eq!(check("../x"), Err(UnsafeName::Dots("..")));
        assert_eq!(check("a/../../x"), Err(UnsafeName::Dots("..")));
        assert_eq!(check("a/.."), Err(UnsafeName::Dots("..")));
        assert_eq!(check("/etc/passwd"), Err(UnsafeName::Absolute));
        assert_eq!(check("a\0b"), Err(UnsafeName::Nul));
    }

    #[test]
    fn keys_that_a_file_system_would_fold_into_one_are_refused() {
        assert_eq!(check("a//b"), Err(UnsafeName::EmptyComponent));
        assert_eq!(check("a/"), Err(UnsafeName::EmptyComponent));
        assert_eq!(check("a/./b"), Err(UnsafeName::Dots(".")));
        assert_eq!(check(""), Err(UnsafeName::Empty));
    }

    #[test]
    fn a_component_may_have_255_bytes_and_no_more() {
        assert!(check(&format!("d/{}", "x".repeat(255))).is_ok());
        assert_eq!(check(&format!("{}/f", "ü".repeat(128))), Err(UnsafeName::TooLong));
    }

    #[test]
    fn what_windows_would_read_as_something_else_is_refused_there() {
        for path in ["a\\..\\b", "C:x", "con", "Aux.txt", "COM1", "a.", "a ", "b/nul.tar.gz", "a*"] {
            assert_eq!(RelativePath::checked(path.to_owned(), true), Err(UnsafeName::Windows), "{path}");
            assert!(check(path).is_ok(), "{path}");
        }
        assert!(RelativePath::checked("console/comet".to_owned(), true).is_ok());
    }
}
