//! Decides what to do with an upload that an earlier run left, and which of its parts count as sent.

use std::collections::BTreeMap;
use std::time::Duration;

use laneway_store::{Part, StoredPart};
use serde::{Deserialize, Serialize};

use crate::location::identity::FileIdentity;

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
