//! Names below a destination folder. Decides which keys may become files, and which would leave the folder or
//! collide.

use std::fmt;

/// The longest file name in bytes that every common file system allows.
pub(crate) const NAME_MAX: usize = 255;

/// A relative path that is safe to create below a folder: it has no special component such as `..`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Relative {
    path: String,
    /// Where the last component begins.
    name_at: usize,
}

/// The reason why a key can't become a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Unsafe {
    #[error("the key names no file")]
    Empty,
    #[error("the key is an absolute path")]
    Absolute,
    #[error("the key holds an empty path component, which a file system can't keep")]
    EmptyComponent,
    #[error("the key holds a `{0}` component, which would lead elsewhere")]
    Dots(&'static str),
    #[error("the key holds a NUL")]
    Nul,
    #[error("a component of the key is longer than 255 bytes")]
    TooLong,
    #[error("the key holds a character or a name that Windows gives a meaning of its own")]
    Windows,
}

impl Relative {
    /// Checks a name whose components are separated by `/`.
    ///
    /// # Errors
    /// The reason why the name can't become a file.
    pub(crate) fn new(path: String) -> Result<Self, Unsafe> {
        Self::checked(path, cfg!(windows))
    }

    fn checked(path: String, windows: bool) -> Result<Self, Unsafe> {
        if path.is_empty() {
            return Err(Unsafe::Empty);
        }
        if path.starts_with('/') {
            return Err(Unsafe::Absolute);
        }
        if path.contains('\0') {
            return Err(Unsafe::Nul);
        }
        for component in path.split('/') {
            match component {
                "" => return Err(Unsafe::EmptyComponent),
                "." => return Err(Unsafe::Dots(".")),
                ".." => return Err(Unsafe::Dots("..")),
                long if long.len() > NAME_MAX => return Err(Unsafe::TooLong),
                name if windows && means_something_to_windows(name) => return Err(Unsafe::Windows),
                _ => {}
            }
        }
        let name_at = path.rfind('/').map_or(0, |slash| slash + 1);
        Ok(Self { path, name_at })
    }

    /// Returns the folder, or an empty text for the destination itself.
    pub(crate) fn folder(&self) -> &str {
        self.path[..self.name_at].trim_end_matches('/')
    }

    /// Returns the last component.
    pub(crate) fn name(&self) -> &str {
        &self.path[self.name_at..]
    }

    /// Returns the whole name.
    pub(crate) fn as_str(&self) -> &str {
        &self.path
    }
}

impl fmt::Display for Relative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)
    }
}

/// Returns whether Windows gives the name a special meaning: separators, drives and streams, device names,
/// and endings that it drops silently.
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

    fn check(path: &str) -> Result<Relative, Unsafe> {
        Relative::checked(path.to_owned(), false)
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
        assert_eq!(check("../x"), Err(Unsafe::Dots("..")));
        assert_eq!(check("a/../../x"), Err(Unsafe::Dots("..")));
        assert_eq!(check("a/.."), Err(Unsafe::Dots("..")));
        assert_eq!(check("/etc/passwd"), Err(Unsafe::Absolute));
        assert_eq!(check("a\0b"), Err(Unsafe::Nul));
    }

    #[test]
    fn keys_that_a_file_system_would_fold_into_one_are_refused() {
        assert_eq!(check("a//b"), Err(Unsafe::EmptyComponent));
        assert_eq!(check("a/"), Err(Unsafe::EmptyComponent));
        assert_eq!(check("a/./b"), Err(Unsafe::Dots(".")));
        assert_eq!(check(""), Err(Unsafe::Empty));
    }

    #[test]
    fn a_component_may_have_255_bytes_and_no_more() {
        assert!(check(&format!("d/{}", "x".repeat(255))).is_ok());
        assert_eq!(check(&format!("{}/f", "ü".repeat(128))), Err(Unsafe::TooLong));
    }

    #[test]
    fn what_windows_would_read_as_something_else_is_refused_there() {
        for path in ["a\\..\\b", "C:x", "con", "Aux.txt", "COM1", "a.", "a ", "b/nul.tar.gz", "a*"] {
            assert_eq!(Relative::checked(path.to_owned(), true), Err(Unsafe::Windows), "{path}");
            assert!(check(path).is_ok(), "{path}");
        }
        assert!(Relative::checked("console/comet".to_owned(), true).is_ok());
    }
}
