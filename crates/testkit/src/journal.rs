//! Reads what interrupted transfers left, without the code that wrote it.

use std::fs;
use std::path::Path;

/// Returns the bytes that the journal in a folder claims, or 0 without a journal.
///
/// It parses the format by itself. A header has a magic, four bytes, and the object's size, URL and version with their
/// lengths, padded to 32. Records of 32 bytes follow, with the length at 24.
pub fn claimed(folder: &Path) -> u64 {
    let mut paths = fs::read_dir(folder).expect("read").map(|entry| entry.expect("an entry").path());
    let journal = paths.find(|path| path.extension().is_some_and(|e| e == "journal"));
    let Some(bytes) = journal.and_then(|path| fs::read(path).ok()) else { return 0 };
    let number = |at: usize| {
        bytes.get(at..at + 4).map_or(0, |four| u32::from_le_bytes(four.try_into().expect("four")) as usize)
    };
    let url = number(28);
    let header = (32 + url + 4 + number(32 + url)).next_multiple_of(32);
    bytes
        .get(header..)
        .unwrap_or_default()
        .chunks_exact(32)
        .fold(0, |sum, record| sum + u64::from(u32::from_le_bytes(record[24..28].try_into().expect("four"))))
}

/// Returns the sizes of the parts in a folder's upload journals. Each line is a checksum and a JSON object.
pub fn recorded_parts(folder: &Path) -> Vec<u64> {
    let paths = fs::read_dir(folder).expect("read").map(|entry| entry.expect("an entry").path());
    let journals: Vec<String> = paths.filter_map(|path| fs::read_to_string(path).ok()).collect();
    let records = journals.iter().flat_map(|text| text.lines()).filter_map(|line| line.split_once(' '));
    let records = records.filter_map(|(_, json)| serde_json::from_str::<serde_json::Value>(json).ok());
    records.filter_map(|record| record["Part"]["size"].as_u64()).collect()
}
