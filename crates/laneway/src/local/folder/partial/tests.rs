//! Tests how runs leave and resume partial files.

use std::path::Path;
use std::sync::Arc;

use laneway_store::Version;

use super::*;
use crate::content::checksum::{ChecksumSet, Crc};
use crate::local::folder::{CommitOptions, FilePlace, Folder, StagedFile};
use crate::location::relative::RelativePath;

const SIZE: u64 = 1000;

fn subject() -> DownloadSubject {
    let version = Version::ETag("e".into());
    DownloadSubject { url: "s3://b/k".into(), version, size: SIZE, crc: Crc::Crc32c }
}

fn place(dir: &Path) -> FilePlace {
    Folder::new(dir).place(&RelativePath::new("f".into()).unwrap())
}

fn resume(dir: &Path, subject: &DownloadSubject, boot: u64) -> (StagedFile, Vec<(u64, u64)>) {
    let how = PartialRequest { subject, fresh: false, boot, is_cancelled: &|| false };
    let (staged, done) = place(dir).resume(&how).unwrap();
    (staged, done.into_iter().map(|(start, run)| (start, run.len)).collect())
}

fn write(staged: &StagedFile, start: u64, bytes: &[u8]) {
    staged.write_at(bytes, start).unwrap();
    staged.claim(start, &RangeChecksums::of(bytes, ChecksumSet::CRC32C));
}

/// Leaves the partial file of a killed run: 100 bytes at offset 0, and 50 at offset 300.
fn left_behind(dir: &Path, boot: u64) {
    let (staged, done) = resume(dir, &subject(), boot);
    assert!(done.is_empty());
    write(&staged, 0, &[1; 60]);
    write(&staged, 60, &[2; 40]);
    write(&staged, 300, &[3; 50]);
    assert_eq!(staged.keep(), Some(150));
}

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn part_in(dir: &Path) -> std::path::PathBuf {
    dir.join(names(dir).into_iter().find(|name| name.ends_with(".part")).unwrap())
}

#[test]
fn what_a_run_left_is_gone_on_with_and_put_in_its_place() {
    let dir = tempfile::tempdir().unwrap();
    left_behind(dir.path(), 1);
    assert!(place(dir.path()).is_begun("s3://b/k") && !place(dir.path()).is_begun("s3://b/other"));
    let (staged, done) = resume(dir.path(), &subject(), 1);
    assert_eq!(done, [(0, 100), (300, 50)]);
    write(&staged, 100, &[4; 200]);
    assert_eq!(staged.keep(), Some(350));
    let (staged, done) = resume(dir.path(), &subject(), 1);
    assert_eq!(done, [(0, 350)]);
    staged.write_at(&[5; 650], 350).unwrap();
    staged.commit(CommitOptions::default()).unwrap();
    assert_eq!(names(dir.path()), ["f"], "the file and its journal are removed");
    let bytes = [vec![1; 60], vec![2; 40], vec![4; 200], vec![3; 50], vec![5; 650]].concat();
    assert_eq!(std::fs::read(dir.path().join("f")).unwrap(), bytes);
}

#[test]
fn a_file_that_is_neither_kept_nor_done_is_removed_with_its_journal() {
    let dir = tempfile::tempdir().unwrap();
    left_behind(dir.path(), 1);
    let (staged, _) = resume(dir.path(), &subject(), 1);
    drop(staged);
    assert!(names(dir.path()).is_empty());
    let (staged, _) = resume(dir.path(), &subject(), 1);
    assert_eq!(staged.keep(), None, "there is nothing to resume");
    assert!(names(dir.path()).is_empty());
}

#[test]
fn nothing_is_written_to_a_file_that_was_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let (staged, _) = resume(dir.path(), &subject(), 1);
    write(&staged, 0, &[1; 10]);
    staged.keep().unwrap();
    assert!(staged.write_at(&[2; 10], 0).unwrap_err().is_cancelled());
    assert_eq!(std::fs::read(part_in(dir.path())).unwrap()[..10], [1; 10]);
}

#[test]
fn after_a_reboot_only_what_is_really_there_is_believed() {
    for unknown in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        left_behind(dir.path(), 1);
        let part = File::options().write(true).open(part_in(dir.path())).unwrap();
        part.write_all_at(&[0; 1], 70).unwrap();
        let next = if unknown { 0 } else { 2 };
        let (staged, done) = resume(dir.path(), &subject(), next);
        assert_eq!(done, [(0, 60), (300, 50)], "the part that was lost is fetched again");
        write(&staged, 60, &[2; 40]);
        assert_eq!(staged.keep(), Some(150));
        drop(staged);
        let (_, done) = resume(dir.path(), &subject(), next);
        assert_eq!(done, [(0, 100), (300, 50)]);
    }
}

#[test]
fn what_was_read_back_once_is_believed_in_the_same_boot() {
    let dir = tempfile::tempdir().unwrap();
    left_behind(dir.path(), 1);
    assert_eq!(resume(dir.path(), &subject(), 2).0.keep(), Some(150));
    let part = File::options().write(true).open(part_in(dir.path())).unwrap();
    part.write_all_at(&[9; 1], 0).unwrap();
    assert_eq!(resume(dir.path(), &subject(), 2).1, [(0, 100), (300, 50)], "nothing is read twice");
}

#[test]
fn a_job_that_is_cancelled_while_it_reads_back_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    left_behind(dir.path(), 1);
    let how = PartialRequest { subject: &subject(), fresh: false, boot: 2, is_cancelled: &|| true };
    let (staged, done) = place(dir.path()).resume(&how).unwrap();
    assert!(done.is_empty());
    assert_eq!(staged.keep(), Some(150));
    drop(staged);
    assert_eq!(resume(dir.path(), &subject(), 2).1, [(0, 100), (300, 50)]);
}

#[test]
fn what_is_of_another_state_or_size_is_begun_anew() {
    let others = [
        DownloadSubject { version: Version::ETag("f".into()), ..subject() },
        DownloadSubject { size: SIZE + 1, ..subject() },
        DownloadSubject { crc: Crc::Crc64nvme, ..subject() },
    ];
    for other in others {
        let dir = tempfile::tempdir().unwrap();
        left_behind(dir.path(), 1);
        let (staged, done) = resume(dir.path(), &other, 1);
        assert!(done.is_empty(), "{other:?}");
        assert_eq!(names(dir.path()).len(), 2, "the same two files");
        let bytes = std::fs::read(part_in(dir.path())).unwrap();
        assert!(bytes == vec![0; other.size as usize], "the other object's bytes are removed");
        drop(staged);
        assert!(resume(dir.path(), &subject(), 1).1.is_empty());
    }
}

#[test]
fn a_file_or_a_journal_alone_says_nothing() {
    for gone in [".part", ".journal"] {
        let dir = tempfile::tempdir().unwrap();
        left_behind(dir.path(), 1);
        let name = names(dir.path()).into_iter().find(|name| name.ends_with(gone)).unwrap();
        std::fs::remove_file(dir.path().join(name)).unwrap();
        assert!(!place(dir.path()).is_begun("s3://b/k"));
        assert!(resume(dir.path(), &subject(), 1).1.is_empty(), "without {gone}");
    }
}

#[test]
fn a_journal_longer_than_any_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    left_behind(dir.path(), 1);
    let journal = part_in(dir.path()).with_extension("journal");
    File::options().write(true).open(journal).unwrap().set_len(1 << 40).unwrap();
    assert!(resume(dir.path(), &subject(), 1).1.is_empty());
}

#[test]
fn two_at_once_have_a_file_each() {
    let dir = tempfile::tempdir().unwrap();
    left_behind(dir.path(), 1);
    let (first, done) = resume(dir.path(), &subject(), 1);
    assert_eq!(done.len(), 2);
    let (second, done) = resume(dir.path(), &subject(), 1);
    assert!(done.is_empty() && !second.is_journaled(), "the second run shares no file with the first");
    place(dir.path()).forget("s3://b/k");
    first.write_at(&[1; SIZE as usize], 0).unwrap();
    second.write_at(&[2; SIZE as usize], 0).unwrap();
    second.commit(CommitOptions::default()).unwrap();
    assert_eq!(std::fs::read(dir.path().join("f")).unwrap(), [2; SIZE as usize]);
    first.commit(CommitOptions::default()).unwrap();
    assert_eq!(std::fs::read(dir.path().join("f")).unwrap(), [1; SIZE as usize]);
    assert_eq!(names(dir.path()), ["f"]);
}

#[test]
fn what_lies_under_the_name_and_is_no_file_of_ours_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let victim = dir.path().join("victim");
    std::fs::write(&victim, "theirs").unwrap();
    let name = PartialNames::of(OsStr::new("f"), "s3://b/k").part;
    let at = dir.path().join(name);
    let lay: [&dyn Fn(); 3] = [
        &|| std::os::unix::fs::symlink(&victim, &at).unwrap(),
        &|| std::fs::hard_link(&victim, &at).unwrap(),
        &|| std::fs::create_dir(&at).unwrap(),
    ];
    for lay in lay {
        lay();
        let (staged, done) = resume(dir.path(), &subject(), 1);
        assert!(done.is_empty() && !staged.is_journaled());
        staged.write_at(b"ours", 0).unwrap();
        staged.commit(CommitOptions::default()).unwrap();
        assert_eq!(std::fs::read(&victim).unwrap(), b"theirs");
        let _ = std::fs::remove_file(&at);
    }
}

#[test]
fn a_file_that_took_the_temporary_name_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (staged, _) = resume(dir.path(), &subject(), 1);
    write(&staged, 0, &[1; 10]);
    let part = part_in(dir.path());
    // Replace the partial file by another file. This happens if an object whose name is that of the partial
    // file is downloaded to the same folder.
    std::fs::write(dir.path().join("other"), "theirs").unwrap();
    std::fs::rename(dir.path().join("other"), &part).unwrap();
    let error = staged.commit(CommitOptions::default()).unwrap_err();
    assert!(
        error.kind() == crate::ErrorKind::Refused && error.to_string().contains(".part was replaced"),
        "{error}"
    );
    drop(staged);
    assert_eq!(std::fs::read(part).unwrap(), b"theirs");
    assert!(!dir.path().join("f").exists());
}

#[test]
fn names_tell_sources_and_destinations_apart() {
    let names = |name: &str, url: &str| PartialNames::of(OsStr::new(name), url).part;
    let all = [names("f", "s3://b/k"), names("g", "s3://b/k"), names("f", "gs://b/k")];
    assert!(all[0] != all[1] && all[0] != all[2] && all[1] != all[2]);
    // A long name is shortened, but the hash covers the whole name.
    let long = "x".repeat(250);
    assert_ne!(names(&format!("{long}a"), "u"), names(&format!("{long}b"), "u"));
}

/// A journal of arbitrary bytes causes no panic, and yields no claim beyond the object's end.
#[test]
fn a_journal_of_any_bytes_is_survived() {
    let mut random = crate::plan::random::RandomNumbers(5);
    for _ in 0..200 {
        let dir = tempfile::tempdir().unwrap();
        left_behind(dir.path(), 1);
        let journal = part_in(dir.path()).with_extension("journal");
        let mut bytes = std::fs::read(&journal).unwrap();
        for _ in 0..random.below(20) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.below(256) as u8;
        }
        bytes.truncate(random.below(bytes.len() as u64 + 40) as usize);
        std::fs::write(&journal, bytes).unwrap();
        let (_staged, done) = resume(dir.path(), &subject(), 1);
        assert!(done.iter().all(|run| [(0, 60), (60, 40), (0, 100), (300, 50)].contains(run)), "{done:?}");
    }
}

#[test]
fn threads_may_claim_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let (staged, _) = resume(dir.path(), &subject(), 1);
    let staged = Arc::new(staged);
    std::thread::scope(|scope| {
        for i in 0..10 {
            let staged = Arc::clone(&staged);
            scope.spawn(move || (0..10).for_each(|j| write(&staged, i * 100 + j * 10, &[i as u8; 10])));
        }
    });
    staged.keep();
    assert_eq!(resume(dir.path(), &subject(), 1).1, [(0, SIZE)]);
}

#[test]
fn a_watcher_gets_the_ranges_of_new_claims_until_the_watch_ends() {
    let dir = tempfile::tempdir().unwrap();
    let (staged, _) = resume(dir.path(), &subject(), 1);
    write(&staged, 0, &[1; 60]);
    let mut ranges = staged.watch();
    write(&staged, 300, &[3; 50]);
    write(&staged, 60, &[2; 40]);
    staged.end_watch();
    write(&staged, 400, &[4; 10]);
    let watched: Vec<_> = std::iter::from_fn(|| ranges.blocking_recv()).collect();
    assert_eq!(watched, [300..350, 60..100]);
}
