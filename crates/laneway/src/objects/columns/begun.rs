//! The fetches that were begun ahead for one reader of a Parquet file.

use std::collections::VecDeque;
use std::ops::Range;

use super::Columns;

/// The fetches that were begun ahead, each with the ranges of the read that it predicts. `R` is a fetch;
/// dropping it cancels the fetch.
pub(in crate::objects) struct Begun<R> {
    columns: Option<Columns>,
    waiting: VecDeque<(Vec<Range<u64>>, R)>,
}

impl<R> Begun<R> {
    pub(in crate::objects) fn new(last: &[u8], size: u64) -> Self {
        Self { columns: Columns::of(last, size), waiting: VecDeque::new() }
    }

    /// Returns the fetch of these ranges, if it was begun ahead. Also begins the next fetches with `begin`,
    /// and cancels those whose prediction was wrong.
    pub(in crate::objects) fn take(
        &mut self,
        asked: &[Range<u64>],
        begin: impl Fn(Vec<Range<u64>>) -> R,
    ) -> Option<R> {
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
    use crate::objects::columns::layout::{Layout, tests::file};

    #[test]
    fn what_was_begun_is_handed_over_once_and_given_up_where_it_was_wrong() {
        let file = file(24);
        let groups = Layout::of(&file, file.len() as u64).unwrap().groups;
        let asked = |group: usize| vec![groups[group][0].clone(), groups[group][2].clone()];
        let of = |ranges: &[Range<u64>]| (0..24).find(|group| asked(*group) == ranges).unwrap();
        let mut begun = Begun::new(&file, file.len() as u64);
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
        // Row group 16 lies in the same place as row group 2, so a reader of 16 is taken for one of 2.
        let groups: Vec<Vec<_>> =
            (0..24).map(|group| vec![at(if group == 16 { 2 } else { group })]).collect();
        let columns = Some(Columns::new(Layout { groups: groups.clone() }));
        let mut begun = Begun { columns, waiting: VecDeque::new() };
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
