//! The classes of failures in `--json`, which are the names of the library's error kinds. Programs read them,
//! so a newer kind keeps the class that such failures had before.

use laneway::ErrorKind;

/// Returns the class of a kind.
pub(crate) fn class(kind: ErrorKind) -> &'static str {
    let class = match kind {
        ErrorKind::AlreadyExists | ErrorKind::NotModified => ErrorKind::Precondition,
        ErrorKind::Timeout => ErrorKind::Transport,
        ErrorKind::Internal => ErrorKind::Local,
        kind => kind,
    };
    class.name()
}

/// Returns all classes with their meanings, for the documentation.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    let kinds = ErrorKind::ALL.iter().filter(|kind| class(**kind) == kind.name());
    kinds.map(|kind| (kind.name(), kind.meaning()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_list_is_whole_and_every_kind_has_a_class_of_it() {
        let semantics = concat!(env!("CARGO_MANIFEST_DIR"), "/../../SEMANTICS.md");
        let semantics = std::fs::read_to_string(semantics).expect("SEMANTICS.md");
        for (name, meaning) in all() {
            assert!(semantics.contains(&format!("| `{name}` | {meaning} |")), "{name}");
        }
        for kind in ErrorKind::ALL {
            assert!(all().any(|(name, _)| name == class(*kind)), "{kind:?}");
        }
        assert_eq!((all().count(), class(ErrorKind::AlreadyExists)), (18, "precondition"));
    }
}
