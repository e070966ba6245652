//! Faults of a store's listing.

/// The maximum number of consecutive pages without a key. A store can send such pages if it filters keys or
/// cleans up.
pub(super) const EMPTY_PAGES_MAX: usize = 10_000;

/// A fault of a listing.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum ListingFault {
    #[error("the store lists this key after {0:?}: its listing goes backwards, or repeats itself")]
    Backwards(String, String),
    #[error("the store lists this key, which sorts before the requested keys")]
    Unbegun(String),
    #[error("the store lists this key, which doesn't begin with the requested prefix")]
    Outside(String),
    #[error("the store's listing repeats an earlier page")]
    Repeated(Option<String>),
    #[error("the store's listing doesn't end, and its last {EMPTY_PAGES_MAX} pages contain no key")]
    Endless(Option<String>),
}

impl ListingFault {
    /// Returns whether the reason for the fault can be that the store lists in no order.
    pub(crate) fn is_of_order(&self) -> bool {
        match self {
            Self::Backwards(before, key) => key < before,
            Self::Unbegun(_) => true,
            Self::Outside(_) | Self::Repeated(_) | Self::Endless(_) => false,
        }
    }

    /// Returns the key that the fault concerns, if it concerns one.
    pub(crate) fn key(&self) -> Option<&str> {
        match self {
            Self::Backwards(_, key) | Self::Unbegun(key) | Self::Outside(key) => Some(key),
            Self::Repeated(key) | Self::Endless(key) => key.as_deref(),
        }
    }
}
