//! The ranges that the methods read.

use std::ops::Range;

use super::SEED;
use crate::random::Random;

/// Minimum and maximum size of scattered ranges.
const LEN_MIN: u64 = 4 << 10;
const LEN_MAX: u64 = 64 << 10;

/// The shape of the table file.
const ROW_GROUPS: u64 = 64;
const COLUMNS: u64 = 50;
const FOOTER: u64 = 64 << 10;

/// The columns that are read. Two of them are adjacent, so that a method can merge their ranges.
const READ: [u64; 3] = [7, 8, 31];

/// The smallest size of the object. The ranges of both cases, scattered ranges and columns, fit into it.
pub(super) const SIZE_MIN: u64 = 16 << 20;

/// Returns ranges of 4 to 64 KiB at random positions in an object.
pub(super) fn scattered(count: usize, size: u64) -> Vec<Vec<Range<u64>>> {
    let mut random = Random::new(SEED);
    let mut range = || {
        let len = random.between(LEN_MIN, LEN_MAX);
        let start = random.between(0, size - len);
        start..start + len
    };
    vec![(0..count).map(|_| range()).collect()]
}

/// Returns a footer, and then three column chunks of each row group. Columns differ in width, as in real tables.
pub(super) fn columns(size: u64) -> Vec<Vec<Range<u64>>> {
    let mut random = Random::new(SEED);
    let widths: Vec<u64> = (0..COLUMNS).map(|_| random.between(1, 40)).collect();
    let group = (size - FOOTER) / ROW_GROUPS;
    let unit = group / widths.iter().sum::<u64>();
    let chunk = |row_group: u64, column: u64| {
        let before = widths[..column as usize].iter().sum::<u64>();
        let start = row_group * group + before * unit;
        start..start + widths[column as usize] * unit
    };
    let chunks = (0..ROW_GROUPS).flat_map(|row_group| READ.map(|column| chunk(row_group, column)));
    vec![vec![size - FOOTER..size; 1], chunks.collect()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_lie_in_the_object_and_are_the_same_in_every_run() {
        for size in [SIZE_MIN, 1 << 30] {
            for lots in [scattered(400, size), columns(size)] {
                assert!(lots.iter().flatten().all(|range| range.start < range.end && range.end <= size));
            }
            assert_eq!(scattered(9, size), scattered(9, size));
        }
        let lens: Vec<u64> = scattered(400, 1 << 30)[0].iter().map(|range| range.end - range.start).collect();
        assert!(lens.iter().all(|len| (LEN_MIN..=LEN_MAX).contains(len)));
    }

    #[test]
    fn a_table_has_a_footer_and_three_chunks_in_each_row_group() {
        let lots = columns(1 << 30);
        assert_eq!((lots[0].len(), lots[1].len()), (1, 192));
        assert_eq!(lots[1][0].end, lots[1][1].start, "the first two columns aren't adjacent");
        assert!(lots[1][1].end < lots[1][2].start && lots[1][2].end < lots[1][3].start);
    }
}
