//! The classes of failures, by which programs tell them apart.

use laneway_store::ErrorKind;

/// What went wrong, as far as a program decides by it. The names are stable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Class {
    /// The request makes no sense as a whole.
    Usage,
    /// What is asked for isn't there.
    NotFound,
    /// The store doesn't allow it.
    Permission,
    /// There are no credentials, or the store doesn't accept them.
    Unauthenticated,
    /// The object isn't in the state that was asked for.
    Precondition,
    /// The store asked to slow down for too long.
    Throttled,
    /// The store failed.
    Server,
    /// No answer, or not a whole one.
    Transport,
    /// The store refuses the request, whatever its state.
    Invalid,
    /// The object has to be restored from an archive first.
    Archived,
    /// The range lies outside the object.
    InvalidRange,
    /// The store can't do this.
    Unsupported,
    /// Bytes or checksums differ from what they must be.
    Integrity,
    /// A name or a combination that would be unsafe or ambiguous.
    Refused,
    /// A source that changed, vanished or can't be read.
    Source,
    /// A destination that doesn't take what comes.
    Destination,
    /// A file operation failed.
    Local,
    /// The job was cancelled before the item was done.
    Cancelled,
}

impl Class {
    /// All of them, in the order in which documentation lists them.
    pub const ALL: &[Self] = &[
        Self::Usage,
        Self::NotFound,
        Self::Permission,
        Self::Unauthenticated,
        Self::Precondition,
        Self::Throttled,
        Self::Server,
        Self::Transport,
        Self::Invalid,
        Self::Archived,
        Self::InvalidRange,
        Self::Unsupported,
        Self::Integrity,
        Self::Refused,
        Self::Source,
        Self::Destination,
        Self::Local,
        Self::Cancelled,
    ];

    /// Its name in records.
    pub fn name(self) -> &'static str {
        self.described().0
    }

    /// What it says, in a few words.
    pub fn meaning(self) -> &'static str {
        self.described().1
    }

    fn described(self) -> (&'static str, &'static str) {
        match self {
            Self::Usage => ("usage", "the command makes no sense as a whole"),
            Self::NotFound => ("not_found", "the object, bucket or path isn't there"),
            Self::Permission => ("permission", "the store doesn't allow it"),
            Self::Unauthenticated => ("unauthenticated", "no credentials, or none that the store accepts"),
            Self::Precondition => ("precondition", "the object isn't in the state that was asked for"),
            Self::Throttled => ("throttled", "the store asked to slow down until the attempts ran out"),
            Self::Server => ("server", "the store failed, or its answer makes no sense"),
            Self::Transport => ("transport", "no answer, or not a whole one"),
            Self::Invalid => ("invalid", "the store refuses the request, whatever its state"),
            Self::Archived => ("archived", "the object has to be restored from an archive first"),
            Self::InvalidRange => ("invalid_range", "the range lies outside the object"),
            Self::Unsupported => ("unsupported", "the store can't do this"),
            Self::Integrity => ("integrity", "bytes or checksums differ from what they must be"),
            Self::Refused => ("refused", "a name or a combination that would be unsafe or ambiguous"),
            Self::Source => ("source", "the source changed, vanished or can't be read"),
            Self::Destination => ("destination", "the destination doesn't take what comes"),
            Self::Local => ("local", "a file operation failed"),
            Self::Cancelled => ("cancelled", "interrupted before it was done"),
        }
    }

    pub(super) fn of(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::NotFound => Self::NotFound,
            ErrorKind::Permission => Self::Permission,
            ErrorKind::Unauthenticated => Self::Unauthenticated,
            ErrorKind::Precondition => Self::Precondition,
            ErrorKind::Throttled => Self::Throttled,
            ErrorKind::Integrity => Self::Integrity,
            ErrorKind::Invalid => Self::Invalid,
            ErrorKind::Archived => Self::Archived,
            ErrorKind::InvalidRange => Self::InvalidRange,
            ErrorKind::Unsupported => Self::Unsupported,
            ErrorKind::Server => Self::Server,
            ErrorKind::Transport => Self::Transport,
            ErrorKind::Sink => Self::Destination,
            ErrorKind::Source => Self::Source,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_has_a_name_of_its_own() {
        let names: std::collections::HashSet<_> = Class::ALL.iter().map(|class| class.name()).collect();
        assert_eq!(names.len(), Class::ALL.len());
        assert!(Class::ALL.iter().all(|class| !class.meaning().is_empty()));
    }

    #[test]
    fn the_documented_list_is_whole() {
        let semantics = concat!(env!("CARGO_MANIFEST_DIR"), "/../../SEMANTICS.md");
        let semantics = std::fs::read_to_string(semantics).unwrap();
        for class in Class::ALL {
            let row = format!("| `{}` | {} |", class.name(), class.meaning());
            assert!(semantics.contains(&row), "SEMANTICS.md lacks the row {row}");
        }
    }

    #[test]
    fn a_stores_errors_have_the_names_that_the_store_gives_them() {
        for kind in [ErrorKind::NotFound, ErrorKind::InvalidRange, ErrorKind::Sink, ErrorKind::Source] {
            assert_eq!(Class::of(kind).name(), kind.class());
        }
    }
}
