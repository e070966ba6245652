//! Footers as anybody may have written them, for fuzzers, and a reader that goes by what they tell.

use std::cell::Cell;
use std::ops::Range;

use super::layout::{Layout, MAGIC};
use super::{Begun, Columns, WINDOW};

/// Bytes of a footer that a row group takes at least, and each of its columns: their fields' heads, one byte a number, and their ends.
const GROUP_LEN_MIN: usize = 3;
const COLUMN_LEN_MIN: usize = 7;

/// The last bytes of a file. Before them stand a byte that draws how many lie before these, and whether they end by themselves or a right end
/// is added; and one that draws the columns that are read.
pub fn parquet_footer(input: &[u8]) {
    let [drawn, picked, last @ ..] = input else { return };
    let mut last = last.to_vec();
    if drawn & 1 == 1 {
        last.extend((last.len() as u32).to_le_bytes());
        last.extend(MAGIC);
    }
    let size = (1 << (drawn >> 1 & 63)) + last.len() as u64;
    let Some(layout) = Layout::of(&last, size) else { return };
    let is_there = |range: &Range<u64>| range.start < range.end && range.end <= size - MAGIC.len() as u64;
    assert!(layout.groups.iter().flatten().all(is_there));
    let columns = layout.groups.iter().map(Vec::len).sum::<usize>();
    assert!(layout.groups.len() * GROUP_LEN_MIN + columns * COLUMN_LEN_MIN <= last.len());
    let more_of_it = [b"more of it", &last[..]].concat();
    assert!(size < more_of_it.len() as u64 || Layout::of(&more_of_it, size).as_ref() == Some(&layout));

    let Some(columns) = Columns::of(&last, size) else { return };
    let ahead = Cell::new(0);
    let mut begun = Begun::new(&last, size);
    let begin = |ranges: Vec<Range<u64>>| {
        assert!(ranges.iter().all(is_there));
        let len = ranges.iter().map(|range| range.end - range.start).sum();
        ahead.set(ahead.get() + len);
        Bringing { len, ahead: &ahead }
    };
    for (group, chunks) in layout.groups.iter().enumerate() {
        let picked: Vec<_> = (0..chunks.len()).filter(|column| picked >> (column % 8) & 1 == 1).collect();
        begun.take(&columns.ranges(group, &picked), begin);
        assert!(ahead.get() <= WINDOW, "{} bytes are ahead of row group {group}", ahead.get());
    }
}

/// What counts as ahead until it is given up.
struct Bringing<'a> {
    len: u64,
    ahead: &'a Cell<u64>,
}

impl Drop for Bringing<'_> {
    fn drop(&mut self) {
        self.ahead.set(self.ahead.get() - self.len);
    }
}
