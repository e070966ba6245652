//! Cuts an upload or a copy into parts, within the limits of its store. Decides which parts of an upload that
//! an earlier run left count as sent.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use laneway_store::{Capabilities, Part, PartRules, Store, StoredPart};
use serde::{Deserialize, Serialize};

use crate::location::FileIdentity;

/// The usual size of a part in bytes.
pub(crate) const PART_USUAL: u64 = 16 << 20;
/// GCS requires the chunks of a resumable upload to be multiples of this many bytes. [`PART_USUAL`] is such a
/// multiple.
pub(crate) const CHUNK_UNIT: u64 = 256 << 10;
/// If an upload's length is unknown, the size of its parts doubles each time this percentage of the allowed
/// number of parts has been sent. With 10,000 allowed parts, the first 18 GiB are sent in parts of the usual
/// size. The largest part has 4 GiB, and all parts together hold 6 TiB.
const DOUBLING_PERCENT: u64 = 12;

/// Returns the size of all parts but the last, for an upload of `size` bytes.
pub(crate) fn part_len(size: u64, rules: PartRules) -> u64 {
    let least = size.div_ceil(rules.count_max.max(1)).next_multiple_of(1 << 20);
    least.max(PART_USUAL).max(rules.bytes_min).min(rules.bytes_max)
}

/// The sizes of the parts of a stream, whose length is known only at its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StreamPartSizes {
    /// The size of the first part. If all parts must have the same size, their size.
    first: u64,
    grows: bool,
    rules: PartRules,
}

impl StreamPartSizes {
    /// If the store accepts `unequal` parts, the parts grow, so that 10,000 parts hold up to 6 TiB. Otherwise
    /// all parts have the same size. Parts of the usual size hold 156 GiB in total, so the parts are larger
    /// if the `expected` size requires it.
    fn new(rules: PartRules, unequal: bool, expected: Option<u64>) -> Self {
        Self { first: part_len(expected.unwrap_or(0), rules), grows: unequal, rules }
    }

    /// Returns how to cut an upload to `store`.
    pub(crate) fn of(store: &Store, expected: Option<u64>) -> Self {
        Self::new(store.capabilities().parts, store.takes_unequal_parts(), expected)
    }

    /// Returns the maximum number of parts that the store allows.
    pub(crate) fn count_max(self) -> u64 {
        self.rules.count_max
    }

    /// Returns the size of part `number`, counted from 1, or `None` if the number is above the limit.
    pub(crate) fn len(self, number: u32) -> Option<u64> {
        let (before, count_max) = (u64::from(number.checked_sub(1)?), self.rules.count_max);
        let doublings = before / (count_max * DOUBLING_PERCENT / 100).max(1);
        let grown = if self.grows { PART_USUAL << doublings.min(8) } else { 0 };
        (before < count_max).then(|| self.first.max(grown).min(self.rules.bytes_max))
    }

    /// Returns how many bytes all parts can hold together.
    pub(crate) fn holds(self) -> u64 {
        (1..).map_while(|number| self.len(number)).sum()
    }
}

/// The maximum size of an object that is copied in one call, and the size of the parts of larger objects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CopySizes {
    /// The size in bytes of the largest object that is copied in one call. If the store's own limit is lower,
    /// that limit applies. This field has no effect for GCS, which has no limit.
    pub whole_max: u64,
    /// The size in bytes of the parts of a larger object. The default is 1 GiB. The store copies the bytes
    /// itself, so each part costs only a request.
    pub part: u64,
}

impl Default for CopySizes {
    fn default() -> Self {
        Self { whole_max: u64::MAX, part: 1 << 30 }
    }
}

impl CopySizes {
    /// Returns whether an object of `size` bytes must be copied in parts. A change of an object's metadata
    /// is also such a copy.
    pub(crate) fn is_large(self, size: u64, can: &Capabilities) -> bool {
        can.copy_bytes_max.is_some_and(|max| size > max.min(self.whole_max))
    }

    /// Returns the parts of an object of `size` bytes, numbered from 1. If there would be too many parts, they
    /// are larger than `self.part`.
    pub(crate) fn parts(self, size: u64, rules: PartRules) -> impl Iterator<Item = (u32, Range<u64>)> {
        let least = size.div_ceil(rules.count_max.max(1)).max(rules.bytes_min);
        let part = self.part.max(least).min(rules.bytes_max).max(1);
        (1..).zip((0..size.div_ceil(part)).map(move |i| i * part..size.min((i + 1) * part)))
    }

    /// Returns the ranges of several objects that make up one upload, each with the index of its object. The
    /// ranges of an object have nearly the same length, so that none is shorter than a part may be.
    pub(crate) fn ranges_of_all(self, sizes: &[u64], rules: PartRules) -> Vec<(usize, Range<u64>)> {
        // Rounding adds at most one range for each object.
        let count = rules.count_max.saturating_sub(sizes.len() as u64).max(1);
        let least = sizes.iter().sum::<u64>().div_ceil(count).max(2 * rules.bytes_min);
        let most = self.part.max(least).min(rules.bytes_max).max(1);
        let mut ranges = Vec::new();
        for (at, size) in sizes.iter().copied().enumerate().filter(|(_, size)| *size > 0) {
            let part = size.div_ceil(size.div_ceil(most));
            ranges.extend((0..size.div_ceil(part)).map(|i| (at, i * part..size.min((i + 1) * part))));
        }
        ranges
    }
}

/// An upload is abandoned if it has made no progress for this time. By then GCS has ended the session, and
/// S3's usual lifecycle rule removes the parts.
pub(crate) const IDLE_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// Identifies an upload by its file, its destination and its settings.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct UploadSubject {
    /// The file's absolute path. Bytes that aren't ASCII are escaped.
    pub(crate) path: String,
    pub(crate) url: String,
    pub(crate) endpoint: String,
    pub(crate) file: FileIdentity,
    /// A checksum of the object's properties, such as its metadata, and of the store's settings that change
    /// the object, such as an encryption key. The checksum doesn't include the object's bytes.
    pub(crate) options: u64,
    pub(crate) part_len: u64,
}

/// The action of a new upload on the unfinished upload of a journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum UnfinishedAction {
    /// Continue the unfinished upload: it sends the same file in the same state to the same object.
    GoOn,
    /// Abort the unfinished upload: it sends the same file to the same object, but its settings differ, the
    /// file has changed, or it made no progress for too long.
    Abort,
    /// Leave the unfinished upload alone: it belongs to another file or object.
    Nothing,
}

/// Returns what an upload of `subject` does with the unfinished upload `left`, which has made no progress for
/// `idle`.
pub(crate) fn worth(left: &UploadSubject, subject: &UploadSubject, idle: Duration) -> UnfinishedAction {
    let is_same_way =
        (&left.path, &left.url, &left.endpoint) == (&subject.path, &subject.url, &subject.endpoint);
    match is_same_way {
        false => UnfinishedAction::Nothing,
        true if left == subject && idle <= IDLE_MAX => UnfinishedAction::GoOn,
        true => UnfinishedAction::Abort,
    }
}

/// Returns the parts that need not be sent again. The object has `size` bytes, in parts of `part_len`. The
/// journal must have recorded such a part, the store must list it, and both must agree.
pub(crate) fn believed(
    recorded: &BTreeMap<u32, Part>,
    listed: &[StoredPart],
    size: u64,
    part_len: u64,
) -> BTreeMap<u32, Part> {
    let expected = |number: u32| {
        let at = u64::from(number.checked_sub(1)?).checked_mul(part_len)?;
        (at < size).then(|| part_len.min(size - at))
    };
    let listed = listed.iter().filter(|part| expected(part.number) == Some(part.size));
    let same = listed.filter_map(|stored| recorded.get(&stored.number).filter(|part| stored.is_same(part)));
    same.map(|part| (part.number, part.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::random::RandomNumbers;

    const RULES: PartRules = PartRules::S3;
    const LARGEST: u64 = RULES.object_bytes_max();

    fn is_allowed(len: u64) -> bool {
        (RULES.bytes_min..=RULES.bytes_max).contains(&len) && len.is_multiple_of(CHUNK_UNIT)
    }

    #[test]
    fn any_object_fits_in_the_parts_there_may_be() {
        assert_eq!(LARGEST, 53_687_091_200_000, "48.8 TiB");
        for size in [0, 1, PART_USUAL, 160 << 30, (160 << 30) + 1, 5 << 40, LARGEST] {
            let len = part_len(size, RULES);
            assert!(is_allowed(len) && size.div_ceil(len) <= RULES.count_max, "{size}");
        }
    }

    #[test]
    fn parts_keep_to_the_limits_of_their_store() {
        let few = PartRules { count_max: 100, bytes_min: 32 << 20, bytes_max: 64 << 20 };
        assert_eq!([0, 5000 << 20, 6400 << 20].map(|size| part_len(size, few) >> 20), [32, 50, 64]);
        let cut = StreamPartSizes::new(few, true, None);
        let lens: Vec<u64> = (1..).map_while(|number| cut.len(number)).collect();
        assert_eq!((lens.len(), lens[0] >> 20, lens[99] >> 20), (100, 32, 64));
    }

    #[test]
    fn growing_parts_reach_five_tebibytes_within_the_limits() {
        let cut = StreamPartSizes::new(RULES, true, None);
        let lens: Vec<u64> = (1..).map_while(|number| cut.len(number)).collect();
        assert_eq!((lens.len() as u64, lens[0]), (RULES.count_max, PART_USUAL));
        assert_eq!((lens[1199], lens[1200], lens[9999]), (PART_USUAL, 2 * PART_USUAL, 4 << 30));
        assert!(lens.iter().all(|len| is_allowed(*len)));
        assert!(lens.is_sorted());
        assert!(cut.holds() >= 5 << 40);
    }

    #[test]
    fn equal_parts_are_equal_and_as_large_as_is_expected() {
        let usual = StreamPartSizes::new(RULES, false, None);
        assert_eq!(usual.holds() >> 30, 156);
        for expected in [1, 200 << 30, 5 << 40, LARGEST] {
            let cut = StreamPartSizes::new(RULES, false, Some(expected));
            assert!(cut.holds() >= expected && cut.len(1) == cut.len(10_000));
            assert_eq!((cut.len(0), cut.len(10_001)), (None, None));
        }
        let grows = StreamPartSizes::new(RULES, true, Some(8 << 40));
        assert!(grows.holds() >= 8 << 40 && grows.len(1) == Some(part_len(8 << 40, RULES)));
    }

    #[test]
    fn an_object_is_large_where_its_store_limits_copies() {
        let any = Capabilities::default();
        let limited = Capabilities { copy_bytes_max: Some(5 << 30), ..Capabilities::default() };
        let (own, small) = (CopySizes::default(), CopySizes { whole_max: 1 << 20, ..CopySizes::default() });
        assert!(!own.is_large(u64::MAX, &any) && !small.is_large(u64::MAX, &any));
        assert!(own.is_large((5 << 30) + 1, &limited) && !own.is_large(5 << 30, &limited));
        assert!(small.is_large((1 << 20) + 1, &limited));
    }

    #[test]
    fn parts_are_each_byte_once_and_no_more_than_there_may_be() {
        let sizes = [(5 << 30) + 1, 5 << 40, 1 << 30, 1, (1 << 30) * 7];
        for (size, part) in sizes.into_iter().flat_map(|size| [(size, 1 << 30), (size, 5 << 20)]) {
            let mut at = 0;
            let mut count = 0;
            for (number, range) in (CopySizes { part, ..CopySizes::default() }).parts(size, PartRules::S3) {
                count += 1;
                assert!(
                    u64::from(number) == count && range.start == at && range.end > at,
                    "{size} by {part}"
                );
                at = range.end;
            }
            assert!(
                at == size && count <= PartRules::S3.count_max,
                "{size} by {part}: {count} parts up to {at}"
            );
        }
        assert_eq!(CopySizes::default().parts(0, PartRules::S3).count(), 0);
    }

    #[test]
    fn ranges_of_several_objects_are_each_byte_once_and_long_enough() {
        let rules = PartRules::S3;
        let cases: [&[u64]; 4] = [
            &[(1 << 30) + 1, 0, 7],
            &[rules.bytes_min, (5 << 30) + 1, 10 << 20, (10 << 20) + 1, 1],
            &[5 << 40; 3],
            &[1 << 30; 5000],
        ];
        for (sizes, part) in cases.into_iter().flat_map(|sizes| [(sizes, 1 << 30), (sizes, 5 << 20)]) {
            let ranges = (CopySizes { part, ..CopySizes::default() }).ranges_of_all(sizes, rules);
            assert!(ranges.len() as u64 <= rules.count_max, "{part}: {}", ranges.len());
            assert!(ranges.is_sorted_by_key(|(at, range)| (*at, range.start)));
            for (at, size) in sizes.iter().enumerate() {
                let own: Vec<_> = ranges.iter().filter(|(of, _)| *of == at).map(|(_, range)| range).collect();
                let least = rules.bytes_min.min(*size);
                assert!(
                    own.iter().all(|range| range.end - range.start >= least),
                    "{size} by {part}: {own:?}"
                );
                assert_eq!(own.iter().map(|range| range.end - range.start).sum::<u64>(), *size);
                assert!(own.windows(2).all(|two| two[0].end == two[1].start), "{size} by {part}: {own:?}");
            }
        }
    }

    fn subject() -> UploadSubject {
        let file = FileIdentity { inode: 1, size: 40, modified: (2, 3), changed: (4, 5) };
        let (path, url, endpoint) = ("/f".into(), "s3://b/k".into(), "http://h".into());
        UploadSubject { path, url, endpoint, file, options: 6, part_len: 7 }
    }

    #[test]
    fn an_upload_is_gone_on_with_only_if_nothing_has_changed() {
        let zero = Duration::ZERO;
        assert_eq!(worth(&subject(), &subject(), IDLE_MAX), UnfinishedAction::GoOn);
        let file = subject().file;
        for changed in [
            UploadSubject { file: FileIdentity { inode: 9, ..file }, ..subject() },
            UploadSubject { file: FileIdentity { size: 41, ..file }, ..subject() },
            UploadSubject { file: FileIdentity { modified: (2, 4), ..file }, ..subject() },
            UploadSubject { file: FileIdentity { changed: (4, 6), ..file }, ..subject() },
            UploadSubject { options: 7, ..subject() },
            UploadSubject { part_len: 8, ..subject() },
        ] {
            assert_eq!(worth(&changed, &subject(), zero), UnfinishedAction::Abort, "{changed:?}");
        }
        for other in [
            UploadSubject { path: "/g".into(), ..subject() },
            UploadSubject { url: "s3://b/K".into(), ..subject() },
            UploadSubject { endpoint: "https://h".into(), ..subject() },
        ] {
            assert_eq!(worth(&other, &subject(), zero), UnfinishedAction::Nothing, "{other:?}");
        }
    }

    #[test]
    fn an_upload_that_nothing_was_done_for_in_a_week_is_aborted() {
        let idle = IDLE_MAX + Duration::from_secs(1);
        assert_eq!(worth(&subject(), &subject(), idle), UnfinishedAction::Abort);
    }

    /// Tests random records and lists. A part may be treated as sent only if both contain it and agree about
    /// it, and it has the length that its number requires.
    #[test]
    fn a_part_is_believed_only_where_journal_store_and_plan_agree() {
        let mut some = 0;
        for seed in 0..2_000 {
            let mut random = RandomNumbers(seed);
            let (size, part_len) = (1 + random.below(60), 1 + random.below(9));
            let part = |random: &mut RandomNumbers| {
                let number = random.below(8) as u32;
                let full = part_len.min(size.saturating_sub(u64::from(number.max(1) - 1) * part_len));
                let len = if random.below(5) == 0 { random.below(10) } else { full };
                Part {
                    number,
                    etag: format!("\"{}\"", random.below(2)),
                    size: len,
                    crc32c: Some(random.below(2) as u32),
                    md5: None,
                }
            };
            let recorded: BTreeMap<u32, Part> =
                (0..random.below(8)).map(|_| part(&mut random)).map(|part| (part.number, part)).collect();
            let listed: Vec<StoredPart> = (0..random.below(8))
                .map(|_| {
                    let Part { number, etag, size, crc32c, .. } = part(&mut random);
                    let crc32c = crc32c.filter(|_| random.below(2) == 0);
                    StoredPart { number, etag: etag.trim_matches('"').to_owned(), size, crc32c }
                })
                .collect();
            let believed = believed(&recorded, &listed, size, part_len);
            for (number, part) in &believed {
                let at = u64::from(*number - 1) * part_len;
                assert_eq!((part.number, part.size), (*number, part_len.min(size - at)), "seed {seed}");
                assert_eq!(recorded.get(number), Some(part), "seed {seed}");
                assert!(listed.iter().any(|listed| listed.is_same(part)), "seed {seed}");
            }
            for part in recorded.values().filter(|part| part.number > 0) {
                let at = u64::from(part.number - 1) * part_len;
                let fits = at < size && part.size == part_len.min(size - at);
                let is_listed = listed.iter().any(|listed| listed.is_same(part));
                assert_eq!(believed.contains_key(&part.number), fits && is_listed, "seed {seed}");
            }
            some += believed.len();
        }
        assert!(some > 100, "only {some} parts were believed, so that this shows little");
    }
}
