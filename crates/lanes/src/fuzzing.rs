//! Entries for fuzzers, each a function of any bytes that panics where something doesn't hold. Built for `crates/fuzz` alone.

mod dispatcher;

pub use crate::h1::fuzzing::answer as h1_answer;
pub use dispatcher::events;

/// An origin, however it is written. What is read is written so that it is read again as the same.
pub fn origin(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(origin) = crate::Origin::parse(text) {
        let again = crate::Origin::parse(&origin.to_string());
        assert_eq!(again.ok(), Some(origin), "{text:?}");
    }
}
