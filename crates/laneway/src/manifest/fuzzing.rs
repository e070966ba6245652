//! Manifests with arbitrary content, for fuzzers.

use std::path::Path;

use super::{ManifestContent, ManifestSubject, Targets};
use crate::Location;

/// Reads the lines of a manifest, after a first line that names the job.
pub fn manifest(input: &[u8]) {
    let source: Location = "gs://b/k".parse().expect("a URL");
    let mut targets = Targets::of(std::slice::from_ref(&source), true);
    let subject = ManifestSubject::new("copy", &[source], None);
    assert_eq!(subject.check(subject.line().trim_ascii_end()), Ok(()));
    let (mut of_job, mut of_run) = (ManifestContent::default(), ManifestContent::default());
    let run = ManifestSubject::run(Path::new("/"), String::new());
    for line in input.split(|byte| *byte == b'\n') {
        if let Err(why) = subject.check(line) {
            assert!(why.starts_with("this "), "{why}");
        }
        let _ = of_job.add(line, &subject, &mut targets);
        let _ = of_run.add(line, &run, &mut targets);
    }
    let _ = of_job.known.has_done(None, ("gs://b/k", None), ("", 0));
}
