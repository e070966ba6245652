//! A manifest as anybody may have written it, for fuzzers.

use super::{Known, Subject};
use crate::Location;

/// Lines of a manifest, the first of which says whose it is.
pub fn manifest(input: &[u8]) {
    let source: Location = "gs://b/k".parse().expect("a URL");
    let subject = Subject::new("copy", &[source], None);
    assert_eq!(subject.check(subject.line().trim_ascii_end()), Ok(None));
    let mut known = Known::default();
    for line in input.split(|byte| *byte == b'\n') {
        if let Err(why) = subject.check(line) {
            assert!(why.starts_with("this "), "{why}");
        }
        let _ = known.read(line);
    }
    let _ = known.has_done("gs://b/k", None, "", 0);
}
