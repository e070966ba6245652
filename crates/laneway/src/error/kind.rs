//! The kinds of errors.

/// The kind of a failure. A caller can use it to decide what to do. A kind's number and name never change.
/// Later versions may add kinds with new numbers.
///
/// `SEMANTICS.md` in the repository also lists the kinds and their meanings.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
#[repr(u32)]
pub enum ErrorKind {
    /// The object, bucket or path doesn't exist.
    NotFound = 1,
    /// The object exists, and the write required that it doesn't.
    AlreadyExists = 2,
    /// The object isn't in the state that the request requires.
    Precondition = 3,
    /// The object hasn't changed since the version or time in the request, so there is nothing to fetch.
    NotModified = 4,
    /// The credentials don't permit the request.
    Permission = 5,
    /// There are no credentials, or the store doesn't accept them.
    Unauthenticated = 6,
    /// The store asked Laneway to slow down at every attempt.
    Throttled = 7,
    /// The store failed at every attempt, or its response is invalid.
    Server = 8,
    /// No response arrived, or only a part of one.
    Transport = 9,
    /// The deadline of the call passed.
    Timeout = 10,
    /// Bytes or checksums differ from the expected ones.
    Integrity = 11,
    /// The range lies outside the object, or is empty.
    InvalidRange = 12,
    /// The store refuses the request as invalid, whatever the state of the object is.
    Invalid = 13,
    /// The request as a whole is invalid, because of a mistake by the caller. Nothing was sent.
    Usage = 14,
    /// Laneway refuses a name or a combination that would be unsafe or ambiguous.
    Refused = 15,
    /// The store doesn't support the operation.
    Unsupported = 16,
    /// The object must be restored from an archive before it can be read.
    Archived = 17,
    /// The source changed, vanished or can't be read.
    Source = 18,
    /// Writing to the destination failed.
    Destination = 19,
    /// A file operation failed.
    Local = 20,
    /// The call or job was cancelled before it was done.
    Cancelled = 21,
    /// The engine itself failed because of a bug in this library.
    Internal = 22,
}

impl ErrorKind {
    /// All kinds, by number.
    pub const ALL: &[Self] = &[
        Self::NotFound,
        Self::AlreadyExists,
        Self::Precondition,
        Self::NotModified,
        Self::Permission,
        Self::Unauthenticated,
        Self::Throttled,
        Self::Server,
        Self::Transport,
        Self::Timeout,
        Self::Integrity,
        Self::InvalidRange,
        Self::Invalid,
        Self::Usage,
        Self::Refused,
        Self::Unsupported,
        Self::Archived,
        Self::Source,
        Self::Destination,
        Self::Local,
        Self::Cancelled,
        Self::Internal,
    ];

    /// Returns the kind's number, for code that needs a number instead of a name: bindings and exit codes,
    /// for example. No kind has the number 0.
    pub fn code(self) -> u32 {
        self as u32
    }

    /// Returns the kind's name in records and logs, in lower case.
    pub fn name(self) -> &'static str {
        self.described().0
    }

    /// Returns the kind's meaning in a few words.
    pub fn meaning(self) -> &'static str {
        self.described().1
    }

    fn described(self) -> (&'static str, &'static str) {
        match self {
            Self::NotFound => ("not_found", "the object, bucket or path doesn't exist"),
            Self::AlreadyExists => ("already_exists", "the object exists, and must not be replaced"),
            Self::Precondition => ("precondition", "the object isn't in the state that the request requires"),
            Self::NotModified => ("not_modified", "the object has not changed, so there is nothing to fetch"),
            Self::Permission => ("permission", "the credentials don't permit the request"),
            Self::Unauthenticated => {
                ("unauthenticated", "there are no credentials, or the store doesn't accept them")
            }
            Self::Throttled => ("throttled", "at every attempt, the store asked Laneway to slow down"),
            Self::Server => ("server", "the store failed, or sent an invalid answer"),
            Self::Transport => ("transport", "the store sent no answer, or only a part of it"),
            Self::Timeout => ("timeout", "the deadline of the call passed"),
            Self::Integrity => ("integrity", "bytes or checksums differ from the expected ones"),
            Self::InvalidRange => ("invalid_range", "the range lies outside the object"),
            Self::Invalid => ("invalid", "the store refuses the request as invalid"),
            Self::Usage => ("usage", "the command as a whole is invalid, so nothing was done"),
            Self::Refused => ("refused", "Laneway refuses an unsafe or ambiguous name, file or combination"),
            Self::Unsupported => ("unsupported", "the store doesn't support this request"),
            Self::Archived => ("archived", "the object has to be restored from an archive first"),
            Self::Source => ("source", "the source changed, vanished or can't be read"),
            Self::Destination => ("destination", "writing to the destination failed"),
            Self::Local => ("local", "a file operation failed"),
            Self::Cancelled => ("cancelled", "interrupted before it was done"),
            Self::Internal => ("internal", "Laneway itself failed"),
        }
    }

    pub(super) fn of(kind: laneway_store::ErrorKind) -> Self {
        use laneway_store::ErrorKind as Store;
        match kind {
            Store::NotFound => Self::NotFound,
            Store::AlreadyExists => Self::AlreadyExists,
            Store::Permission => Self::Permission,
            Store::Unauthenticated => Self::Unauthenticated,
            Store::Precondition => Self::Precondition,
            Store::NotModified => Self::NotModified,
            Store::Throttled => Self::Throttled,
            Store::Integrity => Self::Integrity,
            Store::Invalid => Self::Invalid,
            Store::Archived => Self::Archived,
            Store::InvalidRange => Self::InvalidRange,
            Store::Unsupported => Self::Unsupported,
            Store::Server => Self::Server,
            Store::Transport => Self::Transport,
            Store::Sink => Self::Destination,
            Store::Source => Self::Source,
        }
    }
}

impl std::fmt::Display for ErrorKind {
    /// Writes the kind's [`meaning`](Self::meaning).
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.meaning())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_stay_what_they_are() {
        let pinned = [
            (1, "not_found"),
            (2, "already_exists"),
            (3, "precondition"),
            (4, "not_modified"),
            (5, "permission"),
            (6, "unauthenticated"),
            (7, "throttled"),
            (8, "server"),
            (9, "transport"),
            (10, "timeout"),
            (11, "integrity"),
            (12, "invalid_range"),
            (13, "invalid"),
            (14, "usage"),
            (15, "refused"),
            (16, "unsupported"),
            (17, "archived"),
            (18, "source"),
            (19, "destination"),
            (20, "local"),
            (21, "cancelled"),
            (22, "internal"),
        ];
        let all: Vec<_> = ErrorKind::ALL.iter().map(|kind| (kind.code(), kind.name())).collect();
        assert_eq!(all, pinned, "kinds may be added at the end, but not renumbered or renamed");
    }

    #[test]
    fn the_documented_list_is_whole() {
        let semantics = concat!(env!("CARGO_MANIFEST_DIR"), "/../../SEMANTICS.md");
        let semantics = std::fs::read_to_string(semantics).unwrap();
        for kind in ErrorKind::ALL {
            let row = format!("| `{}` | {} | {} |", kind.name(), kind.code(), kind.meaning());
            assert!(semantics.contains(&row), "SEMANTICS.md lacks the row {row}");
        }
    }
}
