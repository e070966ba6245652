//! Trees, up and down.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::Path;

use laneway::{CopyRequest, Event, Location, Op, Outcome};

use crate::stage::{DIALECTS, KINDS, MIB, Stage, names, noise};

/// Returns every file below a folder.
fn contents(root: &Path) -> BTreeMap<String, Vec<u8>> {
    fn walk(root: &Path, below: &Path, files: &mut BTreeMap<String, Vec<u8>>) {
        for entry in std::fs::read_dir(below).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(root, &path, files);
            } else {
                let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
                files.insert(name, std::fs::read(path).unwrap());
            }
        }
    }
    let mut files = BTreeMap::new();
    walk(root, root, &mut files);
    files
}

/// Creates files with awkward names and sizes.
fn awkward_tree(stage: &Stage, root: &str) -> usize {
    let long = "x".repeat(250);
    let named = [
        "plain.txt",
        "a b/c d.txt",
        "p%20c/100%",
        "plus+and&/q?x=1#frag",
        "ü/ñ/日本語.txt",
        ".hidden/.file",
        "-dash",
        "quote'\"",
        "back\\slash",
        "tilde~/~",
        "dir.d/f",
        "semi;colon:=@,$",
        "[set]/{brace}/*star",
        long.as_str(),
    ];
    for (i, name) in named.iter().enumerate() {
        stage.file(&format!("{root}/{name}"), noise(i * 37, i as u64));
    }
    let sizes = [0, 1, MIB - 1, MIB, MIB + 1, 8 * MIB - 1, 8 * MIB, 8 * MIB + 1];
    for size in sizes {
        stage.file(&format!("{root}/sizes/{size}"), noise(size, size as u64));
    }
    for i in 0..300 {
        stage.file(&format!("{root}/many/{}/{i}", i % 13), noise(i, i as u64));
    }
    named.len() + sizes.len() + 300
}

#[test]
fn an_awkward_tree_comes_back_as_it_went_over_every_dialect_and_protocol() {
    for kind in KINDS {
        let stage = Stage::new(kind);
        let count = awkward_tree(&stage, "tree");
        let up = stage.cp_r(stage.path("tree"), stage.url("up/"));
        assert_eq!(up.all_verified().items.len(), count, "{kind:?}");
        assert!(stage.keys().contains(&"up/tree/plain.txt".to_owned()));
        let down = stage.cp_r(stage.url("up/tree"), stage.path("back"));
        assert_eq!(down.all_verified().items.len(), count, "{kind:?}");
        assert!(contents(&stage.path("tree")) == contents(&stage.path("back")), "{kind:?}");
    }
}

#[test]
fn a_small_tree_takes_one_request_a_file_and_one_a_listing_page() {
    for kind in KINDS {
        let stage = Stage::new(kind);
        for i in 0..50 {
            stage.file(&format!("tree/{i}"), noise(100, i));
        }
        let up = stage.cp_r(stage.path("tree"), stage.url(""));
        assert_eq!((up.all_verified().summary.requests, up.summary.files), (50, 50), "{kind:?}");
        let down = stage.cp_r(stage.url("tree/"), stage.path("back"));
        assert_eq!(down.all_verified().summary.requests, 51, "{kind:?}");
    }
}

#[test]
fn many_named_objects_take_one_listing_and_one_request_each() {
    for kind in KINDS {
        let stage = Stage::new(kind);
        let names: Vec<_> = (0..40).map(|i| format!("n/{i:02}")).collect();
        for (i, name) in names.iter().enumerate() {
            stage.object(name, &noise(100 + i, i as u64));
        }
        let sources: Vec<_> = names.iter().map(|name| stage.url(name)).collect();
        std::fs::create_dir_all(stage.path("out")).unwrap();
        let report = stage.copy(CopyRequest::new(sources, Location::from(stage.path("out").as_path())));
        assert_eq!(report.all_verified().summary.requests, 41, "{kind:?}");
        assert_eq!(std::fs::read(stage.path("out/07")).unwrap(), noise(107, 7));
    }
}

#[test]
fn named_objects_begin_while_their_listing_arrives() {
    for kind in DIALECTS {
        // GCS compresses its listings, so a few bytes contain many objects.
        let stage = Stage::with_faults(kind, &["list stall@4KiB"]);
        let names: Vec<_> = (0..400).map(|i| format!("n/{i:03}")).collect();
        names.iter().for_each(|name| stage.object(name, b"x"));
        let sources: Vec<_> = names.iter().map(|name| stage.url(name)).collect();
        std::fs::create_dir_all(stage.path("out")).unwrap();
        let mut job =
            stage.client.copy(CopyRequest::new(sources, Location::from(stage.path("out").as_path())));
        let first = job.next_blocking();
        assert!(matches!(first, Some(Event::Item(_))), "{first:?}");
        job.canceller().cancel();
        while job.next_blocking().is_some() {}
        // Objects that the listing hasn't reached yet must wait.
        assert!(stage.requests("get") < 300, "{kind:?}: {}", stage.requests("get"));
    }
}

#[test]
fn named_objects_come_also_where_listing_is_refused() {
    for kind in DIALECTS {
        let stage = Stage::with_faults(kind, &["list status 403"]);
        let names: Vec<_> = (0..40).map(|i| format!("n/{i:02}")).collect();
        names.iter().for_each(|name| stage.object(name, b"x"));
        let sources: Vec<_> = names.iter().map(|name| stage.url(name)).collect();
        std::fs::create_dir_all(stage.path("out")).unwrap();
        let report = stage.copy(CopyRequest::new(sources, Location::from(stage.path("out").as_path())));
        assert_eq!(report.all_verified().summary.files, 40, "{kind:?}");
    }
}

#[test]
fn the_destination_decides_what_a_copied_directory_is_called() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        stage.file("dir/f", "x");
        for (destination, key) in [("p/", "p/dir/f"), ("q", "q/f"), ("", "dir/f")] {
            stage.cp_r(stage.path("dir"), stage.url(destination)).all_verified();
            assert_eq!(stage.stored(key), b"x");
        }
        stage.cp_r(stage.path("dir/."), stage.url("dot/")).all_verified();
        assert_eq!(stage.stored("dot/f"), b"x");
        std::fs::create_dir(stage.path("there")).unwrap();
        for (source, destination) in [("p/dir", "there"), ("p/dir/", "absent"), ("p/dir", "into/")] {
            stage.cp_r(stage.url(source), stage.path(destination)).all_verified();
        }
        for name in ["there/f", "absent/f", "into/dir/f"] {
            assert!(stage.path(name).is_file(), "{name}");
        }
    }
}

#[test]
fn a_prefix_means_its_content_or_else_the_object_of_its_name() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        for key in ["p", "p/f", "px"] {
            stage.object(key, key.as_bytes());
        }
        let arrived = |folder: &str| {
            std::fs::create_dir(stage.path(folder)).unwrap();
            stage.cp_r(stage.url("p"), stage.path(folder)).all_verified();
            contents(&stage.path(folder))
        };
        std::fs::create_dir_all(stage.path("")).unwrap();
        assert_eq!(arrived("both"), [("f".to_owned(), b"p/f".to_vec())].into(), "{kind:?}");
        stage.rm(vec![stage.url("p/f")], false).all_done();
        assert_eq!(arrived("alone"), [("p".to_owned(), b"p".to_vec())].into(), "{kind:?}");
    }
}

#[test]
fn a_trees_contents_go_straight_into_a_folder_where_that_is_asked_for() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        stage.file("dir/f", "x");
        std::fs::create_dir(stage.path("there")).unwrap();
        let contents = |from: Location, to: Location| {
            let request = CopyRequest::new(vec![from], to);
            stage.copy(request.recursive(true).contents(true)).all_verified();
        };
        contents(Location::Local(stage.path("dir")), stage.url("p/"));
        contents(stage.url("p"), stage.url("q/"));
        contents(stage.url("q"), Location::Local(stage.path("there")));
        assert_eq!((stage.stored("p/f"), stage.stored("q/f")), (b"x".to_vec(), b"x".to_vec()));
        assert!(stage.path("there/f").is_file());
    }
}

#[test]
fn keys_that_cannot_be_safe_files_are_refused_one_by_one() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        let long = format!("t/{}", "n".repeat(256));
        let bad = ["t/../../evil", "t/a/../b", "t//etc/passwd", "t/a//b", "t/./c", long.as_str()];
        for key in bad.iter().chain(&["t/good", "t/..fine"]) {
            stage.object(key, b"x");
        }
        let report = stage.cp_r(stage.url("t/"), stage.path("out/deep"));
        assert_eq!(report.summary.failed, bad.len() as u64, "{kind:?}: {report:?}");
        assert_eq!(report.summary.files, 2);
        let failures = report.failures();
        for key in bad {
            assert!(failures.iter().any(|failure| failure.contains(key)), "{key}: {failures:?}");
        }
        assert_eq!(names(&stage.path("out/deep")), ["..fine", "good"]);
        assert_eq!(names(&stage.path("out")), ["deep"]);
    }
}

#[test]
fn a_file_and_a_folder_of_one_name_are_one_error_and_nothing_is_lost() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        stage.object("t/a", b"file");
        stage.object("t/a/b", b"inner");
        stage.object("t/c", b"other");
        let report = stage.cp_r(stage.url("t"), stage.path("out"));
        let (class, text) = report.failure();
        assert_eq!((class, report.summary.files), ("refused", 2), "{text}");
        assert!(text.contains("directory"), "{text}");
        assert_eq!(std::fs::read(stage.path("out/c")).unwrap(), b"other");
    }
}

#[test]
fn keys_that_a_folder_takes_for_one_are_an_error_and_nothing_is_lost() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        for key in ["t/Name", "t/name", "t/other"] {
            stage.object(key, key.as_bytes());
        }
        // A hard link under both names imitates a file system that ignores case.
        std::fs::hard_link(stage.file("d/seen", ""), stage.path("d/SEEN")).unwrap();
        let report = stage.cp_r(stage.url("t"), stage.path("d"));
        assert_eq!((report.summary.files, report.summary.failed), (2, 1), "{kind:?}");
        let (class, why) = report.failure();
        assert!(class == "refused" && why.contains("differs only in case"), "{why}");
        let there = contents(&stage.path("d"));
        assert_eq!(there.len(), 4, "the two existing names are still there: {there:?}");
    }
}

#[test]
fn a_folder_marker_becomes_a_folder() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        stage.object("t/", b"");
        stage.object("t/empty/", b"");
        stage.object("t/full/", b"");
        stage.object("t/full/f", b"x");
        stage.cp_r(stage.url("t/"), stage.path("out")).all_done();
        assert!(stage.path("out/empty").is_dir() && stage.path("out/full/f").is_file());
    }
}

/// On disk the markers become folders. In the store they stay markers.
#[test]
fn a_move_takes_folder_markers_with_it() {
    for kind in KINDS {
        for to_store in [false, true] {
            let stage = Stage::new(kind);
            let markers = ["t/", "t/empty/", "t/full/"];
            markers.iter().for_each(|key| stage.object(key, b""));
            stage.object("t/full/f", b"x");
            let destination = match to_store {
                true => stage.url("out/"),
                false => Location::Local(stage.path("out")),
            };
            let report = stage.copy(
                CopyRequest::new(vec![stage.url("t/")], destination).recursive(true).remove_source(true),
            );
            report.all_done();
            assert_eq!(report.ops(Op::Move), 4, "{kind:?} {to_store}");
            match to_store {
                true => assert_eq!(stage.keys(), ["out/t/", "out/t/empty/", "out/t/full/", "out/t/full/f"]),
                false => {
                    assert!(stage.keys().is_empty(), "{kind:?}: {:?}", stage.keys());
                    assert!(stage.path("out/empty").is_dir());
                    assert_eq!(std::fs::read(stage.path("out/full/f")).unwrap(), b"x");
                }
            }
        }
    }
}

#[test]
fn a_link_inside_the_destination_does_not_lead_out_of_it() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        stage.object("t/link/f", b"x");
        stage.object("t/file", b"x");
        stage.file("outside/file", "theirs");
        std::fs::create_dir_all(stage.path("out")).unwrap();
        symlink(stage.path("outside"), stage.path("out/link")).unwrap();
        symlink(stage.path("outside/file"), stage.path("out/file")).unwrap();
        let report = stage.cp_r(stage.url("t/*"), stage.path("out/"));
        let failures = report.failures();
        assert!(failures.len() == 2 && failures.iter().all(|f| f.contains("symbolic link")), "{failures:?}");
        assert_eq!(names(&stage.path("outside")), ["file"]);
        assert_eq!(std::fs::read(stage.path("outside/file")).unwrap(), b"theirs");
    }
}

#[test]
fn two_sources_that_map_to_one_destination_are_one_error() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        for key in ["x/1", "y/1", "y/2"] {
            stage.object(key, key.as_bytes());
        }
        let sources = vec![stage.url("x/1"), stage.url("y/*")];
        let report = stage.copy(CopyRequest::new(sources, crate::stage::Place::from(stage.path("out/")).0));
        assert!(report.failure().1.contains("another source"), "{report:?}");
        assert_eq!(std::fs::read(stage.path("out/1")).unwrap(), b"x/1");
        assert_eq!(names(&stage.path("out")), ["1", "2"]);
    }
}

#[test]
fn patterns_take_what_they_match() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        for key in ["p/a1.txt", "p/a2.txt", "p/b.txt", "p/a3.md", "p/adir/x.txt"] {
            stage.object(key, b"x");
        }
        stage.cp(stage.url("p/a*.txt"), stage.path("one/")).all_verified();
        assert_eq!(names(&stage.path("one")), ["a1.txt", "a2.txt"]);
        stage.cp(stage.url("p/**.txt"), stage.path("two/")).all_verified();
        assert_eq!(names(&stage.path("two")), ["a1.txt", "a2.txt", "b.txt", "x.txt"]);
        stage.cp_r(stage.url("p/a?i*"), stage.path("three/")).all_verified();
        assert_eq!(names(&stage.path("three/adir")), ["x.txt"]);
        let report = stage.cp(stage.url("p/z*"), stage.path("four/"));
        assert_eq!(report.failure().0, "not_found");
    }
}

#[test]
fn what_exists_is_left_alone_when_that_is_asked_for() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        stage.file("tree/old", "new");
        stage.file("tree/new", "new");
        stage.object("tree/old", b"old");
        let request = |source, destination| {
            CopyRequest::new(vec![source], destination).recursive(true).no_clobber(true)
        };
        let tree = laneway::Location::Local(stage.path("tree"));
        let up = stage.copy(request(tree, stage.url("tree")));
        assert_eq!((up.summary.files, up.summary.skipped, up.summary.failed), (1, 1, 0), "{up:?}");
        assert_eq!((stage.stored("tree/old"), stage.stored("tree/new")), (b"old".to_vec(), b"new".to_vec()));
        stage.file("back/new", "mine");
        let down = stage.copy(request(stage.url("tree/*"), crate::stage::Place::from(stage.path("back")).0));
        assert_eq!((down.summary.files, down.summary.skipped), (1, 1), "{down:?}");
        assert_eq!(std::fs::read(stage.path("back/new")).unwrap(), b"mine");
    }
}

#[test]
fn a_dry_run_tells_everything_and_does_nothing() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        stage.file("tree/a", "1");
        stage.object("there/b", b"22");
        let dry =
            |source, destination| CopyRequest::new(vec![source], destination).recursive(true).dry_run(true);
        let up = stage.copy(dry(laneway::Location::Local(stage.path("tree")), stage.url("up")));
        let down = stage.copy(dry(stage.url("there"), laneway::Location::Local(stage.path("down"))));
        for report in [up, down] {
            assert!(
                matches!(report.items[..], [laneway::Item { outcome: Outcome::Planned, .. }]),
                "{report:?}"
            );
        }
        assert_eq!(stage.keys(), ["there/b"]);
        assert!(!stage.path("down").exists());
    }
}
