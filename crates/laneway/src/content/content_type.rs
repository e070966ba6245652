//! Guesses content types from file extensions.

/// Guesses the content type from the extension, as other tools do. Returns `None` for an unknown extension.
/// In that case Laneway sends no content type, and the store chooses one.
pub(crate) fn guess(name: &str) -> Option<&'static str> {
    let base = name.rsplit('/').next().unwrap_or(name);
    // The dot of a hidden file such as `.profile` doesn't begin an extension.
    let (stem, extension) = base.rsplit_once('.')?;
    if stem.is_empty() {
        return None;
    }
    mime_guess::from_ext(extension).first_raw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_extension_decides_whatever_its_case() {
        assert_eq!(guess("a/b.html"), Some("text/html"));
        assert_eq!(guess("B.JPG"), Some("image/jpeg"));
        assert_eq!(guess("x.json"), Some("application/json"));
    }

    #[test]
    fn names_without_an_extension_are_left_to_the_store() {
        assert_eq!(guess("Makefile"), None);
        assert_eq!(guess("dir.html/plain"), None);
        assert_eq!(guess(".html"), None);
    }
}
