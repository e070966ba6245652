//! Functions for fuzzers that read journals of downloads with arbitrary content.

use arbitrary::Unstructured;
use laneway_store::Version;

use super::journal::{Claim, DownloadSubject, encode, read, seal};
use crate::content::checksum::Crc;
use crate::plan::slices::{missing_ranges, settled_claims};

/// Returns an object of this size.
fn subject(size: u64) -> DownloadSubject {
    DownloadSubject { url: "gs://b/k".to_owned(), version: Version::Generation(1), size, crc: Crc::Crc32c }
}

/// Reads arbitrary bytes as a journal, with and without a valid header, and then a journal with valid records
/// of arbitrary claims. Checks that the accepted claims and the ranges still to fetch together cover each
/// byte of the object once.
pub fn download_journal(input: &[u8]) {
    let mut drawn = Unstructured::new(input);
    let Ok(size) = drawn.arbitrary::<u64>() else { return };
    let size = if size.is_multiple_of(2) { size % (64 << 20) } else { size };
    let subject = subject(size);
    let header = subject.header();
    let _ = read(input, &header);
    assert!(subject.journal_max() >= header.len() as u64);
    check(read(&[&header[..], input].concat(), &header).expect("the header is valid"), size);
    let (mut claims, mut bytes) = (Vec::new(), header.clone());
    while let Ok((start, len, sum, boot)) = drawn.arbitrary::<(u64, u32, u64, u64)>() {
        // Make most claims lie within the object, because others are refused early.
        let start = if boot.is_multiple_of(8) || size == 0 { start } else { start % size };
        // The highest bit of a record's length has another meaning.
        let (len, is_checked) = (len & (u32::MAX >> 1), sum.is_multiple_of(2));
        let claim = Claim { start, len, sum, boot, is_checked };
        bytes.extend(encode(&claim, seal(&header)));
        claims.extend((len > 0).then_some(claim));
        if drawn.is_empty() {
            break;
        }
    }
    assert_eq!(read(&bytes, &header).as_deref(), Some(&claims[..]));
    check(claims, size);
}

fn check(claims: Vec<Claim>, size: u64) {
    let believed = settled_claims(claims, size, Claim::range);
    let gaps = missing_ranges(believed.iter().map(Claim::range), size);
    let mut all: Vec<_> = believed.iter().map(Claim::range).chain(gaps).collect();
    all.sort_by_key(|range| range.start);
    let mut at = 0;
    for range in all {
        assert!(range.start == at && range.end > at, "{range:?} after {at}");
        at = range.end;
    }
    assert_eq!(at, size);
}
