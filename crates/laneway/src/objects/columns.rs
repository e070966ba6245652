//! Predicts the next reads of a Parquet file. The prediction is that the program reads the same columns in
//! the next row groups.
//!
//! Without reading ahead, a program that reads row groups one after the other waits a round trip for each of
//! them. The file's footer contains the exact ranges of the same columns in the next row groups, so Laneway
//! can fetch these ranges in advance. The longer the program reads in this way, the more row groups Laneway
//! fetches in advance.

#[cfg(feature = "fuzzing")]
pub(super) mod fuzzing;
mod layout;

use std::collections::VecDeque;
use std::ops::Range;

use self::layout::ColumnLayout;

/// The maximum number of bytes that Laneway fetches in advance for a reader. With the usual row groups of 128
/// MiB, these bytes are a few columns of two row groups. A connection of 1 Gbit/s delivers 16 MiB in 130 ms.
const WINDOW: u64 = 16 << 20;

/// After the second consecutive row group, Laneway fetches one row group in advance. For every 4 row groups
/// that the program reads in this way, Laneway fetches one more in advance. If the program stops early, the
/// number of wasted row groups is at most a quarter of the number that it has read, plus one.
const EARNED_BY: usize = 4;

/// The layout of a file, and the row groups that were read or fetched in advance so far.
#[derive(Debug)]
pub(super) struct Columns {
    layout: ColumnLayout,
    /// The range of every column in every row group, in the order of the file: range, row group, column.
    places: Vec<(Range<u64>, usize, usize)>,
    run: Option<ReadRun>,
    /// The row group after the last one whose fetch in advance has begun, or 0 if there is none.
    ahead: usize,
}

/// Row groups that were read one after the other.
#[derive(Debug)]
struct ReadRun {
    last: usize,
    columns: Vec<usize>,
    len: usize,
}

impl Columns {
    /// Returns the initial state for a file with these last bytes. Returns `None` if they contain no footer
    /// with more than two row groups: smaller files have no row group to fetch in advance.
    pub(super) fn of(last: &[u8], size: u64) -> Option<Self> {
        ColumnLayout::of(last, size).filter(|layout| layout.groups.len() > 2).map(Self::new)
    }

    fn new(layout: ColumnLayout) -> Self {
        let mut places: Vec<_> = layout
            .groups
            .iter()
            .enumerate()
            .flat_map(|(group, chunks)| {
                chunks.iter().enumerate().map(move |(column, chunk)| (chunk.clone(), group, column))
            })
            .collect();
        // If a footer gives several row groups the same range, `located` finds the first one.
        places.sort_unstable_by_key(|(chunk, group, _)| (chunk.start, *group));
        Self { layout, places, run: None, ahead: 0 }
    }

    /// Returns whether the last two reads were of consecutive row groups. If not, the program won't read the
    /// row groups that were fetched in advance.
    fn goes_on(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.len > 1)
    }

    /// Records that the program reads these ranges. Returns the ranges to fetch in advance: the same columns
    /// of following row groups, without row groups whose fetch has already begun.
    pub(super) fn read(&mut self, asked: &[Range<u64>]) -> Vec<Vec<Range<u64>>> {
        let run = self.located(asked).map(|(group, columns)| match self.run.take() {
            Some(run) if run.columns == columns && run.last + 1 == group => {
                ReadRun { last: group, columns, len: run.len + 1 }
            }
            _ => {
                self.ahead = 0;
                ReadRun { last: group, columns, len: 1 }
            }
        });
        let Some(run) = run else {
            (self.run, self.ahead) = (None, 0);
            return Vec::new();
        };
        let first = run.last + 1;
        let most = if run.len > 1 { run.len.div_ceil(EARNED_BY) } else { 0 };
        let (mut begin, mut bytes) = (Vec::new(), 0_u64);
        for group in first..first.saturating_add(most).min(self.layout.groups.len()) {
            let ranges = self.ranges(group, &run.columns);
            // The sizes come from the file, which may be crafted so that their sum overflows.
            bytes = ranges.iter().fold(bytes, |sum, range| sum.saturating_add(range.end - range.start));
            if bytes > WINDOW {
                break;
            }
            if group >= self.ahead {
                begin.push(ranges);
                self.ahead = group + 1;
            }
        }
        self.run = Some(run);
        begin
    }

    /// Returns the row group and the columns that these ranges cover exactly, or `None` if there are none.
    /// Also returns `None` if [`ranges`](Self::ranges) returns other ranges for these columns, for example
    /// because it joins columns that the program reads one by one. Predictions come from `ranges`, so no later
    /// read by such a program would match a prediction.
    fn located(&self, asked: &[Range<u64>]) -> Option<(usize, Vec<usize>)> {
        let mut found = None;
        let mut columns = Vec::new();
        for range in asked {
            let mut at = range.start;
            let first = self.places.partition_point(|(chunk, ..)| chunk.start < at);
            for (chunk, group, column) in &self.places[first..] {
                if at >= range.end {
                    break;
                }
                if chunk.start != at || *found.get_or_insert(*group) != *group {
                    return None;
                }
                columns.push(*column);
                at = chunk.end;
            }
            if at != range.end {
                return None;
            }
        }
        found.map(|group| (group, columns)).filter(|(group, columns)| self.ranges(*group, columns) == asked)
    }

    /// Returns the ranges of these columns in a row group. Joins the ranges of columns that are adjacent in
    /// the file.
    fn ranges(&self, group: usize, columns: &[usize]) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for chunk in columns.iter().filter_map(|column| self.layout.groups[group].get(*column)) {
            match ranges.last_mut() {
                Some(last) if last.end == chunk.start => last.end = chunk.end,
                _ => ranges.push(chunk.clone()),
            }
        }
        ranges
    }
}

/// The fetches that were begun in advance, each with the ranges of the read that it predicts. `R` is a fetch,
/// and dropping it cancels the fetch.
pub(super) struct PredictedReads<R> {
    columns: Option<Columns>,
    waiting: VecDeque<(Vec<Range<u64>>, R)>,
}

impl<R> PredictedReads<R> {
    pub(super) fn new(last: &[u8], size: u64) -> Self {
        Self { columns: Columns::of(last, size), waiting: VecDeque::new() }
    }

    /// Returns the fetch of these ranges, if it was begun in advance. Also begins the next fetches with
    /// `begin`, and cancels those whose prediction was wrong.
    pub(super) fn take(&mut self, asked: &[Range<u64>], begin: impl Fn(Vec<Range<u64>>) -> R) -> Option<R> {
        let columns = self.columns.as_mut()?;
        let more = columns.read(asked);
        let right = self.waiting.iter().position(|(ranges, _)| ranges == asked);
        let skipped = right.unwrap_or(self.waiting.len());
        drop(self.waiting.drain(..skipped));
        let taken = self.waiting.pop_front();
        if skipped > 0 || !columns.goes_on() {
            self.waiting.clear();
        }
        self.waiting.extend(more.into_iter().map(|ranges| (ranges.clone(), begin(ranges))));
        taken.map(|(_, bringing)| bringing)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;
    use std::slice;

    use super::*;
    use crate::objects::columns::layout::tests::file;

    /// Row groups of five columns of 10, 20, ... times `unit` bytes. Each group's columns are a byte longer
    /// than those of the group before.
    fn columns(groups: usize, unit: u64) -> Columns {
        let mut at = 4;
        let groups: Vec<Vec<_>> = (0..groups)
            .map(|group| {
                (1..=5)
                    .map(|column| {
                        let start = at;
                        at += column * 10 * unit + group as u64;
                        start..at
                    })
                    .collect()
            })
            .collect();
        Columns::new(ColumnLayout { groups })
    }

    fn asked(columns: &Columns, group: usize) -> Vec<Range<u64>> {
        columns.ranges(group, &[0, 2, 3])
    }

    #[test]
    fn neighbours_are_one_range_as_their_readers_ask_for_them() {
        let columns = columns(3, 1);
        let chunks = &columns.layout.groups[1];
        assert_eq!(asked(&columns, 1), [chunks[0].clone(), chunks[2].start..chunks[3].end]);
        assert_eq!(columns.located(&asked(&columns, 1)), Some((1, vec![0, 2, 3])));
    }

    #[test]
    fn each_row_group_is_begun_once_and_the_more_are_ahead_the_more_were_read() {
        let mut columns = columns(64, 1);
        let (mut begun, mut ahead) = (Vec::new(), Vec::new());
        for group in 0..64 {
            let more = columns.read(&asked(&columns, group));
            let first = columns.ahead - more.len();
            begun.extend(more.into_iter().enumerate().inspect(|(at, ranges)| {
                assert_eq!(*ranges, asked(&columns, first + at));
            }));
            ahead.push(columns.ahead.saturating_sub(group + 1));
            let wasted = columns.ahead.saturating_sub(group + 1) as f64 / (group + 1) as f64;
            assert!(group < 3 || wasted <= 0.4, "{group}");
        }
        assert_eq!(begun.len(), 62, "all row groups but the first two");
        assert_eq!(ahead[..10], [0, 1, 1, 1, 2, 2, 2, 2, 3, 3]);
        assert_eq!(ahead[44..].iter().max(), Some(&13));
        assert_eq!(ahead[60..], [3, 2, 1, 0], "there are no more row groups");
    }

    #[test]
    fn who_reads_other_columns_or_leaves_row_groups_out_has_nothing_ahead() {
        let mut columns = columns(20, 1);
        for group in [0, 2, 4, 6, 8] {
            assert!(columns.read(&asked(&columns, group)).is_empty(), "every other one");
        }
        assert_eq!(columns.read(&asked(&columns, 9)).len(), 1);
        let others = columns.ranges(10, &[1]);
        assert!(columns.read(&others).is_empty());
        assert_eq!(columns.read(&columns.ranges(11, &[1])).len(), 1);
        let part: Vec<_> =
            columns.ranges(12, &[1]).into_iter().map(|range| range.start..range.end - 1).collect();
        assert!(columns.read(&part).is_empty(), "a part of a column");
        assert!(columns.read(&columns.ranges(13, &[1])).is_empty(), "it begins anew");
        assert!(columns.read(&[]).is_empty());
        let two = [columns.ranges(3, &[4]), columns.ranges(4, &[0])].concat();
        assert_eq!(columns.located(&two), None, "columns of two row groups");
        assert_eq!(columns.located(slice::from_ref(&(two[0].start..two[1].end))), None);
        assert_eq!(columns.located(slice::from_ref(&(0..4))), None);
        let apart: Vec<_> = columns.layout.groups[3][2..4].to_vec();
        assert_eq!(columns.located(&apart), None, "neighbours that aren't joined");
        let end = columns.places.last().map(|(chunk, ..)| chunk.end).unwrap_or_default();
        assert_eq!(columns.located(slice::from_ref(&(end..end + 1))), None);
    }

    #[test]
    fn no_more_is_ahead_than_the_window_holds() {
        // A read takes 80 units (4.2 MB) of each row group, so three row groups fit into the window.
        let mut large = columns(64, 52_429);
        for group in 0..64 {
            drop(large.read(&asked(&large, group)));
            let ahead = large.ahead.saturating_sub(group + 1);
            assert!(ahead <= 3, "{group}: {ahead}");
        }
        let mut larger = columns(8, 300_000);
        for group in 0..8 {
            assert!(larger.read(&asked(&larger, group)).is_empty(), "one row group alone exceeds the window");
        }
    }

    #[test]
    fn a_file_of_two_row_groups_or_of_another_kind_has_nothing_to_read_ahead() {
        let file = layout::tests::file(2);
        assert!(Columns::of(&file, file.len() as u64).is_none());
        assert!(Columns::of(b"PAR1", 4).is_none());
        let file = layout::tests::file(3);
        let mut columns = Columns::of(&file, file.len() as u64).unwrap();
        assert_eq!(columns.places.len(), 12);
        let first = columns.ranges(0, &[0, 2]);
        let second = columns.ranges(1, &[0, 2]);
        assert!(columns.read(&first).is_empty());
        assert_eq!(columns.read(&second), [columns.ranges(2, &[0, 2])]);
    }

    #[test]
    fn what_was_begun_is_handed_over_once_and_given_up_where_it_was_wrong() {
        let file = file(24);
        let groups = ColumnLayout::of(&file, file.len() as u64).unwrap().groups;
        let asked = |group: usize| vec![groups[group][0].clone(), groups[group][2].clone()];
        let of = |ranges: &[Range<u64>]| (0..24).find(|group| asked(*group) == ranges).unwrap();
        let mut begun = PredictedReads::new(&file, file.len() as u64);
        let begins = RefCell::new(Vec::new());
        let begin = |ranges: Vec<_>| {
            begins.borrow_mut().push(of(&ranges));
            Rc::new(of(&ranges))
        };
        let mut taken: Vec<Option<usize>> = Vec::new();
        for group in [0, 1, 2, 3, 4] {
            taken.push(begun.take(&asked(group), begin).map(|bringing| *bringing));
        }
        assert_eq!(taken, [None, None, Some(2), Some(3), Some(4)]);
        assert_eq!(*begins.borrow(), [2, 3, 4, 5, 6]);
        let held: Vec<_> = begun.waiting.iter().map(|(_, bringing)| Rc::downgrade(bringing)).collect();
        assert_eq!(held.len(), 2);
        // The reader leaves out row group 5. Its fetch is abandoned, and the fetch of row group 6 is used.
        assert_eq!(begun.take(&asked(6), begin).as_deref(), Some(&6));
        assert_eq!(held[0].upgrade(), None);
        assert!(begun.waiting.is_empty());
        assert_eq!(begun.take(&asked(7), begin), None);
        assert_eq!(begins.borrow()[5..], [8]);
        assert_eq!(begun.take(slice::from_ref(&(0..4)), begin), None);
        assert!(begun.waiting.is_empty(), "another range is read");
        for group in 0..13 {
            begun.take(&asked(group), begin);
        }
        assert_eq!(begun.waiting.len(), 4);
        assert_eq!(begun.take(&asked(14), begin).as_deref(), Some(&14));
        assert!(begun.waiting.is_empty(), "fetches beyond the skipped row group are abandoned too");
    }

    #[test]
    fn nothing_is_begun_twice_where_row_groups_lie_alike() {
        let at = |group: usize| group as u64 * 10..group as u64 * 10 + 10;
        // Row group 16 has the same range as row group 2, so a read of row group 16 looks like a read of row
        // group 2.
        let groups: Vec<Vec<_>> =
            (0..24).map(|group| vec![at(if group == 16 { 2 } else { group })]).collect();
        let columns = Some(Columns::new(ColumnLayout { groups: groups.clone() }));
        let mut begun = PredictedReads { columns, waiting: VecDeque::new() };
        for group in &groups {
            begun.take(group, |_| ());
            let mut waiting: Vec<_> = begun.waiting.iter().map(|(ranges, ())| ranges[0].start).collect();
            let len = waiting.len();
            waiting.sort_unstable();
            waiting.dedup();
            assert_eq!(waiting.len(), len, "behind {group:?}");
        }
    }
}
