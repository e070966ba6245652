//! A function for fuzzers that reads a Parquet file with an arbitrary footer.

use std::cell::Cell;
use std::ops::Range;

use super::layout::{ColumnLayout, MAGIC};
use super::{Columns, PredictedReads, WINDOW};

/// The minimum number of bytes in a footer for a row group, and for each of its columns. These bytes are the
/// field headers, one byte for each number, and the ends of structs.
const GROUP_LEN_MIN: usize = 3;
const COLUMN_LEN_MIN: usize = 7;

/// Parses the input as the last bytes of a file, and reads the columns as a program would. The first two
/// bytes of the input are choices. The first byte chooses the size of the file, and whether a valid length
/// and `PAR1` are appended. The second chooses the columns to read.
pub fn parquet_footer(input: &[u8]) {
    let [drawn, picked, last @ ..] = input else { return };
    let mut last = last.to_vec();
    if drawn & 1 == 1 {
        last.extend((last.len() as u32).to_le_bytes());
        last.extend(MAGIC);
    }
    let size = (1 << (drawn >> 1 & 63)) + last.len() as u64;
    let Some(layout) = ColumnLayout::of(&last, size) else { return };
    let is_there = |range: &Range<u64>| range.start < range.end && range.end <= size - MAGIC.len() as u64;
    assert!(layout.groups.iter().flatten().all(is_there));
    let columns = layout.groups.iter().map(Vec::len).sum::<usize>();
    assert!(layout.groups.len() * GROUP_LEN_MIN + columns * COLUMN_LEN_MIN <= last.len());
    let more_of_it = [b"more of it", &last[..]].concat();
    assert!(size < more_of_it.len() as u64 || ColumnLayout::of(&more_of_it, size).as_ref() == Some(&layout));

    let Some(columns) = Columns::of(&last, size) else { return };
    let ahead = Cell::new(0);
    let mut begun = PredictedReads::new(&last, size);
    let begin = |ranges: Vec<Range<u64>>| {
        assert!(ranges.iter().all(is_there));
        let len = ranges.iter().map(|range| range.end - range.start).sum();
        ahead.set(ahead.get() + len);
        FuzzedFetch { len, ahead: &ahead }
    };
    for (group, chunks) in layout.groups.iter().enumerate() {
        let picked: Vec<_> = (0..chunks.len()).filter(|column| picked >> (column % 8) & 1 == 1).collect();
        begun.take(&columns.ranges(group, &picked), begin);
        assert!(ahead.get() <= WINDOW, "{} bytes are ahead of row group {group}", ahead.get());
    }
}

/// A fetch for the fuzzer. Its bytes count as fetched in advance until it is dropped.
struct FuzzedFetch<'a> {
    len: u64,
    ahead: &'a Cell<u64>,
}

impl Drop for FuzzedFetch<'_> {
    fn drop(&mut self) {
        self.ahead.set(self.ahead.get() - self.len);
    }
}
