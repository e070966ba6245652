//! Reads arbitrary bytes as the journal of an upload, for fuzzers.

use laneway_store::StoredPart;

use super::journal::{crc64, is_newer, read};
use crate::plan::parts::{UnfinishedAction, believed, worth};

/// Reads arbitrary bytes as a journal, and the same bytes as lines with valid checksums.
pub fn upload_journal(input: &[u8]) {
    let _ = (is_newer(input), read(input));
    let lines = input.split(|byte| *byte == b'\n');
    let checked = lines.map(|line| [format!("{:016x} ", crc64(line)).as_bytes(), line].concat());
    let bytes = checked.collect::<Vec<_>>().join(&b'\n');
    let Some(left) = read(&bytes) else { return };
    assert!(!is_newer(&bytes));
    let idle = std::time::Duration::ZERO;
    assert_eq!(worth(&left.subject, &left.subject.clone(), idle), UnfinishedAction::GoOn);
    let stored = left.parts.values().map(|part| StoredPart {
        number: part.number,
        etag: part.etag.clone(),
        size: part.size,
        crc32c: part.crc32c,
    });
    let stored: Vec<_> = stored.collect();
    let (size, part_len) = (left.subject.file.size, left.subject.part_len);
    let kept = believed(&left.parts, &stored, size, part_len);
    // Other code adds up the sizes of parts, so the sum must not overflow.
    let total = kept.values().try_fold(0_u64, |total, part| total.checked_add(part.size));
    assert!(total.is_some_and(|total| total <= size), "{total:?} of {size}");
}
