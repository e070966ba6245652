//! Decides what to do with a name that is on one side or on both.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::listing::filter::Filter;

/// The reasons for skipping a name.
pub(super) const NOT_THERE: &str = "the destination doesn't exist";
pub(super) const THERE: &str = "the destination exists";
pub(super) const NEWER: &str = "the destination is newer";

/// The size and times of a file or object on one side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SideFacts {
    pub(super) size: u64,
    /// The time of the last change: a file's modification time, or the time that the store reports for an
    /// object.
    pub(super) changed: Option<SystemTime>,
    /// The file's modification time in seconds since 1970. For an object, this is the time that its metadata
    /// holds, if any.
    pub(super) mtime: Option<i64>,
}

#[derive(Clone, Default, Debug)]
pub(super) struct SyncRules {
    pub(super) filter: Filter,
    pub(super) delete: bool,
    pub(super) checksum: bool,
    pub(super) size_only: bool,
    /// True if items that are newer at the destination are skipped.
    pub(super) update: bool,
    pub(super) existing: bool,
    pub(super) ignore_existing: bool,
    /// True if Laneway requests the metadata of source objects that look changed, to get the modification
    /// time in it. Such requests are needed if the source's listings don't show metadata, but the
    /// destination's files have a modification time.
    pub(super) asks_times: bool,
    /// True if a copy keeps the modification time of the source's file, provided that it is known.
    pub(super) keeps_times: bool,
}

/// Returns whether a sync with removals would copy its source a second time and remove the first copy. The
/// first copy is a folder with the source's name, and the only entry at the destination. A copy to a
/// destination with a trailing `/` makes such a folder. If the source itself has a folder of that name, the
/// destination's folder doesn't count as a first copy. `there` has the names directly below the destination,
/// where the names of folders end in a slash.
pub(super) fn holds_only_a_copy(own_name: &str, there: &[String], source_has_it: bool) -> bool {
    let is_it = |name: &String| name.strip_suffix('/') == Some(own_name);
    !source_has_it && matches!(there, [only] if is_it(only))
}

/// The way to compare two items of equal size if their listings don't show whether they are equal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ComparisonMethod {
    /// By checksums. Laneway requests an object's metadata if its listing shows no checksum.
    Checksum,
    /// By checksums, but only for items whose times differ and whose sizes are equal. A request for each object would cost more
    /// than it saves, so Laneway uses the checksums in listings if possible.
    Content,
    /// By the modification time in the object's metadata.
    Time,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SyncAction {
    /// Ignore the name.
    Nothing,
    /// Both sides are equal.
    Unchanged,
    Copy,
    /// Compare both sides in another way, and copy the item if they differ.
    Compare(ComparisonMethod),
    Skip(&'static str),
    Delete,
}

impl SyncRules {
    /// Returns the action for a name. If both sides have the name, the filter checks the source's size and
    /// time. An excluded name stays unchanged on both sides.
    pub(super) fn action(
        &self,
        name: &str,
        source: Option<&SideFacts>,
        destination: Option<&SideFacts>,
    ) -> SyncAction {
        let takes = |facts: &SideFacts| self.filter.takes(name, facts.size, facts.changed);
        match (source, destination) {
            (Some(source), _) if !takes(source) => SyncAction::Nothing,
            (Some(_), None) if self.existing => SyncAction::Skip(NOT_THERE),
            (Some(_), None) => SyncAction::Copy,
            (Some(_), Some(_)) if self.ignore_existing => SyncAction::Skip(THERE),
            (Some(source), Some(destination)) if source.size == destination.size && self.size_only => {
                SyncAction::Unchanged
            }
            (Some(source), Some(destination)) if self.update && is_newer(destination, source) => {
                match source.size == destination.size && is_as_new(source, destination) {
                    true => SyncAction::Unchanged,
                    false => SyncAction::Skip(NEWER),
                }
            }
            (Some(source), Some(destination)) if source.size != destination.size => SyncAction::Copy,
            (Some(_), Some(_)) if self.checksum => SyncAction::Compare(ComparisonMethod::Checksum),
            (Some(source), Some(destination)) if is_as_new(source, destination) => SyncAction::Unchanged,
            (Some(source), Some(_)) if self.asks_times && source.mtime.is_none() => {
                SyncAction::Compare(ComparisonMethod::Time)
            }
            // A copy sets the destination's time, so that the next sync finds both sides equal.
            (Some(source), Some(_)) if self.keeps_times && source.mtime.is_some() => SyncAction::Copy,
            (Some(_), Some(_)) => SyncAction::Compare(ComparisonMethod::Content),
            (None, Some(destination)) if self.delete && takes(destination) => SyncAction::Delete,
            (None, _) => SyncAction::Nothing,
        }
    }
}

/// Returns whether two items of equal size look equal by their times. If both sides have a modification time
/// of the file, the two times must be equal. Otherwise the destination must not be older than the source.
pub(super) fn is_as_new(source: &SideFacts, destination: &SideFacts) -> bool {
    if let (Some(source), Some(destination)) = (source.mtime, destination.mtime) {
        return source == destination;
    }
    match (source.changed, destination.changed) {
        (Some(source), Some(destination)) => destination >= as_precise(source, destination),
        _ => false,
    }
}

/// Returns whether one item was changed after the other. Compares the modification times of the files if both
/// are known.
fn is_newer(one: &SideFacts, other: &SideFacts) -> bool {
    match (one.mtime, other.mtime) {
        (Some(one), Some(other)) => one > other,
        _ => one.changed.zip(other.changed).is_some_and(|(one, other)| one > other),
    }
}

/// Truncates `time` to the precision of `other`. Stores report seconds or milliseconds. Without the
/// truncation, an object could look older than its file only because its time lacks digits.
fn as_precise(time: SystemTime, other: SystemTime) -> SystemTime {
    let nanos = |time: SystemTime| time.duration_since(UNIX_EPOCH).map(|since| since.subsec_nanos());
    let (Ok(own), Ok(other)) = (nanos(time), nanos(other)) else { return time };
    let unit = [1_000_000_000, 1_000_000, 1_000].into_iter().find(|unit| other % unit == 0).unwrap_or(1);
    time - Duration::from_nanos((own % unit).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(size: u64, changed_ms: u64) -> SideFacts {
        SideFacts { size, changed: Some(UNIX_EPOCH + Duration::from_millis(changed_ms)), mtime: None }
    }

    #[test]
    fn a_pair_is_copied_where_sizes_differ_or_the_destination_is_older() {
        let action = |s: SideFacts, d: SideFacts| SyncRules::default().action("a", Some(&s), Some(&d));
        assert_eq!(action(facts(1, 1000), facts(2, 2000)), SyncAction::Copy);
        assert_eq!(action(facts(1, 2001), facts(1, 1999)), SyncAction::Compare(ComparisonMethod::Content));
        assert_eq!(action(facts(1, 2000), facts(1, 2000)), SyncAction::Unchanged);
        assert_eq!(action(facts(1, 1000), facts(1, 9000)), SyncAction::Unchanged);
        assert_eq!(action(facts(1, 2999), facts(1, 2000)), SyncAction::Unchanged, "in whole seconds");
        assert_eq!(action(facts(1, 2999), facts(1, 2001)), SyncAction::Compare(ComparisonMethod::Content));
        let micros = |us| SideFacts { changed: Some(UNIX_EPOCH + Duration::from_micros(us)), ..facts(1, 0) };
        assert_eq!(action(micros(2_001_999), facts(1, 2001)), SyncAction::Unchanged, "in milliseconds");
        assert_eq!(
            action(micros(2_001_999), micros(2_001_001)),
            SyncAction::Compare(ComparisonMethod::Content)
        );
        let unknown = SideFacts { changed: None, ..facts(1, 0) };
        assert_eq!(action(facts(1, 0), unknown), SyncAction::Compare(ComparisonMethod::Content));
    }

    #[test]
    fn only_a_folder_of_the_sources_name_alone_is_taken_for_its_copy() {
        for (there, source_has_it, expected) in [
            (&["photos/"][..], false, true),
            (&["photos/"], true, false),
            (&["photos"], false, false),
            (&["photos2/"], false, false),
            (&["photos/", "other"], false, false),
            (&[], false, false),
        ] {
            let names: Vec<String> = there.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(holds_only_a_copy("photos", &names, source_has_it), expected, "{there:?}");
        }
    }

    #[test]
    fn where_both_tell_the_files_own_time_it_alone_counts() {
        let own = |mtime, changed| SideFacts { mtime: Some(mtime), ..facts(1, changed) };
        assert!(is_as_new(&own(7, 9000), &own(7, 1000)) && !is_as_new(&own(7, 1000), &own(8, 9000)));
        // The store's clock matters only if one side lacks the file's modification time.
        assert!(!is_as_new(&own(7, 7200), &facts(1, 3600)) && is_as_new(&facts(1, 3600), &own(3, 3600)));
    }

    /// Tests every combination of existing sides and options.
    #[test]
    fn each_name_gets_one_action() {
        let (old, new) = (facts(1, 1000), facts(1, 2000));
        let rules = |set: fn(&mut SyncRules)| {
            let mut rules = SyncRules::default();
            set(&mut rules);
            rules
        };
        let plain = rules(|_| {});
        let delete = rules(|r| r.delete = true);
        let existing = rules(|r| r.existing = true);
        let ignoring = rules(|r| r.ignore_existing = true);
        let checksum = rules(|r| r.checksum = true);
        let asking = rules(|r| r.asks_times = true);
        let keeping = rules(|r| r.keeps_times = true);
        let timed = SideFacts { mtime: Some(2), ..new };
        let (by_size, updating) = (rules(|r| r.size_only = true), rules(|r| r.update = true));
        for (rules, source, destination, expected) in [
            (&plain, Some(old), None, SyncAction::Copy),
            (&plain, None, Some(old), SyncAction::Nothing),
            (&plain, None, None, SyncAction::Nothing),
            (&delete, None, Some(old), SyncAction::Delete),
            (&delete, Some(old), Some(new), SyncAction::Unchanged),
            (&delete, Some(old), None, SyncAction::Copy),
            (&existing, Some(old), None, SyncAction::Skip(NOT_THERE)),
            (&by_size, Some(new), Some(old), SyncAction::Unchanged),
            (&by_size, Some(new), Some(facts(9, 0)), SyncAction::Copy),
            (&updating, Some(old), Some(facts(9, 2000)), SyncAction::Skip(NEWER)),
            (&updating, Some(old), Some(new), SyncAction::Unchanged),
            (&updating, Some(new), Some(facts(9, 1000)), SyncAction::Copy),
            (&existing, Some(new), Some(old), SyncAction::Compare(ComparisonMethod::Content)),
            (&keeping, Some(timed), Some(old), SyncAction::Copy),
            (&keeping, Some(new), Some(old), SyncAction::Compare(ComparisonMethod::Content)),
            (&ignoring, Some(new), Some(old), SyncAction::Skip(THERE)),
            (&ignoring, Some(new), Some(facts(9, 0)), SyncAction::Skip(THERE)),
            (&ignoring, Some(new), None, SyncAction::Copy),
            (&checksum, Some(old), Some(new), SyncAction::Compare(ComparisonMethod::Checksum)),
            (&checksum, Some(old), Some(facts(2, 9000)), SyncAction::Copy),
            (&checksum, Some(old), None, SyncAction::Copy),
            (&asking, Some(new), Some(old), SyncAction::Compare(ComparisonMethod::Time)),
            (&asking, Some(old), Some(new), SyncAction::Unchanged),
            (&asking, Some(new), Some(facts(9, 0)), SyncAction::Copy),
        ] {
            let action = rules.action("a", source.as_ref(), destination.as_ref());
            assert_eq!(action, expected, "{rules:?} {source:?} {destination:?}");
        }
    }

    #[test]
    fn what_the_filter_excludes_is_left_alone_on_both_sides() {
        let filter = Filter::default().exclude("*.tmp").unwrap().max_size(10);
        let rules = SyncRules { filter, delete: true, ..SyncRules::default() };
        let action = |name: &str, source: Option<SideFacts>, destination: Option<SideFacts>| {
            rules.action(name, source.as_ref(), destination.as_ref())
        };
        let (small, big) = (facts(1, 1000), facts(11, 1000));
        for (source, destination) in [(Some(small), None), (None, Some(small)), (Some(small), Some(big))] {
            assert_eq!(action("a.tmp", source, destination), SyncAction::Nothing);
        }
        assert_eq!(action("a", Some(big), Some(small)), SyncAction::Nothing, "excluded by its source");
        assert_eq!(action("a", Some(small), Some(big)), SyncAction::Copy);
        assert_eq!(action("a", None, Some(big)), SyncAction::Nothing, "excluded at the destination");
        assert_eq!(action("a", None, Some(small)), SyncAction::Delete);
    }
}
