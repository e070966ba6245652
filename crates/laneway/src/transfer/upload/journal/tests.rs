use std::os::unix::fs::PermissionsExt;

use laneway_store::PartChecksums;

use super::*;
use crate::plan::random::RandomNumbers;

fn subject() -> UploadSubject {
    let file = FileIdentity { inode: 1, size: 40, modified: (2, 3), changed: (4, 5) };
    let (path, url, endpoint) = ("/d/\\n \\xc3\\xbc".into(), "gs://b/k".into(), "http://h".into());
    UploadSubject { path, url, endpoint, file, options: 7, part_len: 16 }
}

fn upload() -> StoreUpload {
    let id = ObjectId::new("b", "k");
    StoreUpload::Multipart(Multipart { id, upload_id: "u\n".into(), checksums: PartChecksums::FullObject })
}

fn part(number: u32) -> Part {
    Part { number, etag: format!("\"e{number}\""), size: 16, crc32c: Some(number), md5: None }
}

fn open(folder: &Path) -> (UploadJournal, Option<JournalContent>) {
    UploadJournal::open(folder, &subject()).unwrap().unwrap()
}

fn bytes_of(folder: &Path) -> Vec<u8> {
    std::fs::read(folder.join(journal_name(&subject()))).unwrap()
}

#[test]
fn what_was_written_is_read_back_and_written_on() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("state/uploads");
    let (journal, left) = open(&folder);
    assert_eq!(left, None);
    journal.begin(&subject(), &upload()).unwrap();
    journal.part(&part(2));
    journal.part(&part(1));
    assert_eq!(journal.kept(), 32);
    drop(journal);
    // Add a third record that is incomplete.
    let mut torn = bytes_of(&folder);
    torn.extend_from_slice(b"0123 {");
    std::fs::write(folder.join(journal_name(&subject())), torn).unwrap();
    let (journal, left) = open(&folder);
    let left = left.unwrap();
    assert_eq!((&left.subject, &left.upload), (&subject(), &upload()));
    assert_eq!(left.parts.values().cloned().collect::<Vec<_>>(), [part(1), part(2)]);
    journal.go_on(32).unwrap();
    journal.part(&part(3));
    assert_eq!(journal.kept(), 48);
    drop(journal);
    let (journal, left) = open(&folder);
    assert_eq!(left.unwrap().parts.len(), 3);
    journal.begin(&subject(), &upload()).unwrap();
    drop(journal);
    let (journal, left) = open(&folder);
    assert_eq!(left.unwrap().parts.len(), 0);
    journal.remove();
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn nobody_else_can_read_it_and_no_two_hold_it() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("uploads");
    let (journal, _) = open(&folder);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder.join(journal_name(&subject()))), 0o600);
    assert_eq!(mode(&folder), 0o700);
    assert!(UploadJournal::open(&folder, &subject()).unwrap().is_none());
    drop(journal);
    assert!(UploadJournal::open(&folder, &subject()).unwrap().is_some());
}

#[test]
fn a_link_in_its_place_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("mine"), "mine").unwrap();
    std::os::unix::fs::symlink("mine", dir.path().join(journal_name(&subject()))).unwrap();
    assert!(UploadJournal::open(dir.path(), &subject()).unwrap().is_none());
    assert_eq!(std::fs::read(dir.path().join("mine")).unwrap(), b"mine");
}

/// Cuts a journal anywhere and changes random bytes. Every part that can still be read must be one that was
/// written.
#[test]
fn of_a_torn_or_damaged_journal_only_whole_lines_are_believed() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = open(dir.path());
    journal.begin(&subject(), &upload()).unwrap();
    (1..=20).for_each(|number| journal.part(&part(number)));
    let whole = bytes_of(dir.path());
    assert_eq!(read(&whole).unwrap().parts.len(), 20);
    for seed in 0..2_000 {
        let mut random = RandomNumbers(seed);
        let mut bytes = whole.clone();
        bytes.truncate(random.below(whole.len() as u64 + 1) as usize);
        for _ in 0..random.below(4) {
            let at = random.below(whole.len() as u64) as usize;
            let Some(byte) = bytes.get_mut(at) else { continue };
            *byte = random.below(256) as u8;
        }
        let Some(left) = read(&bytes) else { continue };
        assert_eq!((&left.subject, &left.upload), (&subject(), &upload()), "seed {seed}");
        assert!(left.parts.iter().all(|(number, found)| *found == part(*number)), "seed {seed}");
    }
    for foreign in ["", "\n", "x", "0000000000000000 {}\n", "{\"Part\":1}"] {
        assert_eq!(read(foreign.as_bytes()), None, "{foreign}");
    }
}

#[test]
fn only_what_was_left_alone_for_long_is_abandoned() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = open(dir.path());
    journal.begin(&subject(), &upload()).unwrap();
    let week = Duration::from_secs(7 * 24 * 3600);
    let find = |max| abandoned(dir.path(), week, max, |_| true);
    let count = || find(9).len();
    drop(journal);
    assert_eq!(count(), 0, "it is new");
    let path = dir.path().join(journal_name(&subject()));
    let old = SystemTime::now() - week - Duration::from_secs(60);
    File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
    std::fs::write(dir.path().join("other"), "").unwrap();
    File::options().write(true).open(dir.path().join("other")).unwrap().set_modified(old).unwrap();
    let found = find(9);
    assert!(found.len() == 1 && found[0].1.as_ref().is_some_and(|left| left.upload == upload()));
    assert_eq!(count(), 0, "it is held");
    drop(found);
    assert_eq!((count(), find(0).len()), (1, 0));
}

fn age(path: &Path, by: Duration) {
    File::options().write(true).open(path).unwrap().set_modified(SystemTime::now() - by).unwrap();
}

#[test]
fn what_is_not_wanted_takes_no_place_of_what_is() {
    let dir = tempfile::tempdir().unwrap();
    let hour = Duration::from_secs(3600);
    for number in 0..20 {
        let url = if number == 13 { "s3://b/mine".to_owned() } else { format!("gs://b/{number}") };
        let subject = UploadSubject { url, ..subject() };
        let (journal, _) = UploadJournal::open(dir.path(), &subject).unwrap().unwrap();
        journal.begin(&subject, &upload()).unwrap();
        age(&dir.path().join(journal_name(&subject)), hour * 2);
    }
    let found = abandoned(dir.path(), hour, 1, |left| left.subject.url.starts_with("s3:"));
    let urls: Vec<_> = found.iter().flat_map(|(_, left)| left).map(|left| &*left.subject.url).collect();
    assert_eq!(urls, ["s3://b/mine"]);
}

#[test]
fn a_journal_of_a_newer_format_is_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(journal_name(&subject()));
    let hour = Duration::from_secs(3600);
    let is_left = |json: &str| {
        let text = format!("{:016x} {json}\n", crc64(json.as_bytes()));
        let lay = || {
            std::fs::write(&path, &text).unwrap();
            age(&path, hour * 2);
        };
        lay();
        let is_swept = !abandoned(dir.path(), hour, 9, |_| true).is_empty();
        lay();
        let is_taken = UploadJournal::open(dir.path(), &subject()).unwrap().is_some();
        assert_eq!(is_taken, is_swept, "{json}");
        // A journal without a valid first line is removed, because `open` has taken it and no upload has
        // begun.
        assert_eq!(std::fs::read_to_string(&path).ok(), (!is_taken).then_some(text), "{json}");
        !is_taken
    };
    assert!(is_left(r#"{"Begun":{"format":2,"subject":"of another shape","more":[1]}}"#));
    assert!(!is_left(r#"{"Begun":{"format":1}}"#), "it is damaged");
    assert!(!is_left("{}"), "it is none");
}
