use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

/// Returns the names of the files, and all other findings as text, both sorted.
fn walked(root: &Path, follow_links: bool, threads: usize) -> (Vec<String>, Vec<String>) {
    let mut batches = start(
        root.to_owned(),
        Walk { links: if follow_links { Links::All } else { Links::ToFiles }, ..Walk::default() },
        threads,
    )
    .unwrap();
    let (mut files, mut others) = (Vec::new(), Vec::new());
    while let Some(batch) = batches.blocking_recv() {
        assert!(!batch.is_empty() && batch.len() <= BATCH_MAX);
        for found in batch {
            match found {
                WalkFinding::File(found) => files.push(found.name),
                WalkFinding::Failed(_, error) => others.push(error.to_string()),
                WalkFinding::LeftOut(_, warning) => others.push(warning.to_string()),
            }
        }
    }
    files.sort();
    others.sort();
    (files, others)
}

fn file(root: &Path, name: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, name).unwrap();
}

#[test]
fn every_file_is_found_once_by_any_number_of_threads() {
    let dir = tempfile::tempdir().unwrap();
    let mut expected = Vec::new();
    for i in 0..40 {
        for j in 0..30 {
            expected.push(format!("{}/{i}/{j}", i % 7));
            file(dir.path(), &expected[expected.len() - 1]);
        }
    }
    expected.sort();
    for threads in [1, 2, 5] {
        assert_eq!(walked(dir.path(), false, threads), (expected.clone(), Vec::new()));
    }
}

#[test]
fn a_tree_deeper_than_the_open_directories_is_walked_to_its_bottom() {
    let dir = tempfile::tempdir().unwrap();
    let deep = "d/".repeat(2 * OPEN_MAX) + "f";
    file(dir.path(), &deep);
    file(dir.path(), "d/d/g");
    assert_eq!(walked(dir.path(), false, 1).0, [deep, "d/d/g".to_owned()]);
}

#[test]
fn links_to_files_are_followed_and_links_to_directories_when_asked() {
    let dir = tempfile::tempdir().unwrap();
    file(dir.path(), "real/f");
    symlink("real/f", dir.path().join("link-to-file")).unwrap();
    symlink("real", dir.path().join("link-to-dir")).unwrap();
    let (files, others) = walked(dir.path(), false, 2);
    assert_eq!(files, ["link-to-file", "real/f"]);
    assert!(others.len() == 1 && others[0].contains("link to a directory"));
    assert_eq!(walked(dir.path(), true, 2).0, ["link-to-dir/f", "link-to-file", "real/f"]);
}

#[test]
fn a_link_that_leads_back_up_does_not_loop() {
    let dir = tempfile::tempdir().unwrap();
    file(dir.path(), "a/b/f");
    symlink("../..", dir.path().join("a/b/up")).unwrap();
    symlink(".", dir.path().join("self")).unwrap();
    let (files, others) = walked(dir.path(), true, 3);
    assert_eq!(files, ["a/b/f"]);
    assert!(others.len() == 2 && others.iter().all(|o| o.contains("leads back")), "{others:?}");
}

#[test]
fn what_is_no_file_is_left_out_and_what_cannot_be_read_is_told() {
    let dir = tempfile::tempdir().unwrap();
    file(dir.path(), "f");
    symlink("nowhere", dir.path().join("dangling")).unwrap();
    fs::write(dir.path().join(std::ffi::OsStr::from_bytes(b"bad\xff")), "").unwrap();
    std::os::unix::net::UnixListener::bind(dir.path().join("socket")).unwrap();
    let (files, others) = walked(dir.path(), false, 1);
    assert_eq!(files, ["f"]);
    assert_eq!(others.len(), 3);
    for part in ["not UTF-8", "the link is broken", "not a regular file"] {
        assert!(others.iter().any(|o| o.contains(part)), "{part}: {others:?}");
    }
}

#[test]
fn what_downloads_left_is_left_out_and_nothing_that_only_looks_like_it() {
    let dir = tempfile::tempdir().unwrap();
    let mark = "0123456789abcdef";
    let left = [
        format!("d/.k.laneway-{mark}.part"),
        format!("d/.k.laneway-{mark}.journal"),
        "d/.k.laneway-0123beef.part".to_owned(),
    ];
    let own = [format!(".k.laneway-{mark}.part/f"), format!("k.laneway-{mark}.part"), "k.part".to_owned()];
    left.iter().chain(&own).for_each(|name| file(dir.path(), name));
    let (files, others) = walked(dir.path(), false, 1);
    assert_eq!(files, own);
    assert!(
        others.len() == 3 && others.iter().all(|o| o.contains("partial file of a download")),
        "{others:?}"
    );
}

#[test]
fn an_unreadable_directory_is_told_and_the_rest_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    file(dir.path(), "open/f");
    file(dir.path(), "closed/g");
    fs::set_permissions(dir.path().join("closed"), fs::Permissions::from_mode(0o000)).unwrap();
    let (files, others) = walked(dir.path(), false, 2);
    fs::set_permissions(dir.path().join("closed"), fs::Permissions::from_mode(0o755)).unwrap();
    assert!(files.contains(&"open/f".to_owned()));
    // Root can read a directory of mode 0, so the walk may find the file in it instead.
    assert!(
        others.iter().any(|o| o.contains("closed: can't be read")) || files.contains(&"closed/g".to_owned())
    );
}

#[test]
fn a_missing_root_is_told() {
    let (files, others) = walked(Path::new("/nonexistent/x"), false, 2);
    assert!(files.is_empty() && others.len() == 1);
}

#[test]
fn a_walk_that_nobody_listens_to_ends() {
    let dir = tempfile::tempdir().unwrap();
    for i in 0..(BATCH_MAX * (BATCHES_WAITING_MAX + 4)) {
        fs::write(dir.path().join(i.to_string()), "").unwrap();
    }
    let mut batches = start(dir.path().to_owned(), Walk::default(), 1).unwrap();
    assert!(batches.blocking_recv().is_some());
    drop(batches);
}

#[test]
fn a_directory_is_handed_on_in_order_where_that_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["c", "a", "b", "a.d"] {
        fs::write(dir.path().join(name), "").unwrap();
    }
    let mut batches =
        start(dir.path().to_owned(), Walk { order: WalkOrder::Directory, ..Walk::default() }, 1).unwrap();
    let names = batches.blocking_recv().unwrap().into_iter().map(|found| match found {
        WalkFinding::File(found) => found.name,
        other => panic!("{other:?}"),
    });
    assert_eq!(names.collect::<Vec<_>>(), ["a", "a.d", "b", "c"]);
}

/// Returns the names in the order that a walk gives them.
fn in_order(root: &Path, walk: Walk) -> Vec<String> {
    let mut batches = start(root.to_owned(), Walk { order: WalkOrder::Names, ..walk }, 4).unwrap();
    let mut names = Vec::new();
    while let Some(batch) = batches.blocking_recv() {
        names.extend(batch.into_iter().filter_map(|found| match found {
            WalkFinding::File(found) => Some(found.name),
            _ => None,
        }));
    }
    names
}

#[test]
fn a_tree_is_handed_on_in_the_order_of_its_names_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let deep = format!("a/{}f", "d/".repeat(2 * OPEN_MAX));
    let mut names =
        ["a-b", "a/b", "a/b.c/x", "a/b/x", "a0", "a.d/e", "\u{e9}/f", "z", "A/b", "link/f", "a/b!"]
            .map(str::to_owned)
            .to_vec();
    names.retain(|name| name != "a/b" && name != "link/f");
    names.push(deep);
    names.iter().for_each(|name| file(dir.path(), name));
    // A link to a directory sorts like a directory if the walk follows it, and like a file otherwise.
    symlink("z-real", dir.path().join("link")).unwrap();
    file(dir.path(), "z-real/f");
    file(dir.path(), "link.x");
    names.extend(["link.x", "z-real/f", "link/f"].map(str::to_owned));
    names.sort();
    assert_eq!(in_order(dir.path(), Walk { links: Links::All, ..Walk::default() }), names);
    names.retain(|name| name != "link/f");
    for links in [Links::ToFiles, Links::None] {
        assert_eq!(in_order(dir.path(), Walk { links, ..Walk::default() }), names);
    }
}

#[test]
fn a_directory_that_is_left_out_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["cache/x", "a/cache/x", "a/f"] {
        file(dir.path(), name);
    }
    fs::set_permissions(dir.path().join("cache"), fs::Permissions::from_mode(0o000)).unwrap();
    let filter = Filter::default().exclude("cache").unwrap();
    let mut batches = start(dir.path().to_owned(), Walk { filter, ..Walk::default() }, 1).unwrap();
    let found = batches.blocking_recv().unwrap();
    assert!(matches!(&found[..], [WalkFinding::File(file)] if file.name == "a/f"), "{found:?}");
    assert!(batches.blocking_recv().is_none());
    fs::set_permissions(dir.path().join("cache"), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_link_that_is_not_to_be_followed_is_told() {
    let dir = tempfile::tempdir().unwrap();
    file(dir.path(), "f");
    for (target, name) in [("f", "to-file"), (".", "to-directory"), ("nowhere", "dangling")] {
        symlink(target, dir.path().join(name)).unwrap();
    }
    let walk = Walk { links: Links::None, ..Walk::default() };
    let mut batches = start(dir.path().to_owned(), walk, 1).unwrap();
    let found = batches.blocking_recv().unwrap();
    let left = found
        .iter()
        .filter(|f| matches!(f, WalkFinding::LeftOut(_, w) if w.message.contains("symbolic link")));
    assert_eq!((left.count(), found.len()), (3, 4), "{found:?}");
}
