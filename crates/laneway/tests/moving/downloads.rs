//! Downloads of single objects into files, streams and devices.

use std::ops::Range;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use laneway::{ByteRange, CopyRequest, ErrorKind, Location, Outcome, ReadRequest, Verified};
use laneway_server::Attributes;

use crate::stage::{BUCKET, DIALECTS, KINDS, MIB, Place, Stage, at_once, names, noise};

#[test]
fn objects_of_every_size_come_down_whole() {
    for kind in KINDS {
        let stage = Stage::new(kind);
        for size in [0, 1, 256 << 10, (256 << 10) + 1, MIB + 1, 16 * MIB, 40 * MIB + 5] {
            let bytes = noise(size, size as u64);
            stage.object("k", &bytes);
            stage.cp(stage.url("k"), stage.path("out/k")).all_verified();
            assert!(std::fs::read(stage.path("out/k")).unwrap() == bytes, "{kind:?} {size}");
        }
        assert_eq!(names(&stage.path("out")), ["k"], "no temporary file is left");
    }
}

#[test]
fn a_small_object_costs_one_request() {
    for kind in KINDS {
        let stage = Stage::new(kind);
        stage.object("k", b"small");
        let report = stage.cp(stage.url("k"), stage.path("k"));
        assert_eq!(report.all_verified().summary.requests, 1, "{kind:?}");
    }
}

#[test]
fn a_large_object_is_fetched_in_slices_and_each_byte_once() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        let bytes = noise(64 * MIB, 5);
        stage.object("k", &bytes);
        let report = stage.cp(stage.url("k"), stage.path("k"));
        report.all_verified();
        assert!(report.summary.requests > 3, "{kind:?}: {:?}", report.summary);
        assert!(std::fs::read(stage.path("k")).unwrap() == bytes);
    }
}

#[test]
fn a_missing_object_is_told_and_leaves_no_file() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        let report = stage.cp(stage.url("absent"), stage.path("out"));
        let (class, text) = report.failure();
        assert!(class == "not_found" && text.contains("absent"), "{text}");
        assert!(names(&stage.path("")).is_empty());
    }
}

#[test]
fn an_object_stored_compressed_comes_back_as_stored() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        // Only the header claims gzip. The test fails if Laneway decompresses the body.
        let bytes = noise(3000, 9);
        let attributes = Attributes { content_encoding: Some("gzip".into()), ..Attributes::default() };
        stage.server.store().put_with(BUCKET, "k.gz", &bytes, attributes).unwrap();
        stage.cp(stage.url("k.gz"), stage.path("k.gz")).all_verified();
        assert!(std::fs::read(stage.path("k.gz")).unwrap() == bytes);
    }
}

/// GCS sends these answers in chunks, and states their length in a header of its own.
#[test]
fn a_large_object_stored_compressed_comes_whole_without_a_content_length() {
    at_once(&KINDS, |kind| {
        let stage = Stage::new(kind);
        let attributes = Attributes { content_encoding: Some("gzip".into()), ..Attributes::default() };
        let sizes = [9 * MIB, 40 * MIB];
        for size in sizes {
            let key = format!("t/{size}");
            stage.server.store().put_with(BUCKET, &key, &noise(size, 9), attributes.clone()).unwrap();
        }
        for size in sizes {
            stage.cp(stage.url(&format!("t/{size}")), stage.path("named")).all_verified();
            assert!(std::fs::read(stage.path("named")).unwrap() == noise(size, 9), "{kind:?} {size}");
        }
        stage.cp_r(stage.url("t"), stage.path("tree")).all_verified();
        let key = format!("t/{}", 40 * MIB);
        assert!(std::fs::read(stage.path("tree").join(&key[2..])).unwrap() == noise(40 * MIB, 9), "{kind:?}");
        for (range, expected) in [(None, 0..40 * MIB), (Some(between(5..(20 << 20) + 1)), 5..(20 << 20) + 1)]
        {
            let mut read = Vec::new();
            stage.client.read(&ReadRequest::new(stage.url(&key)).ranges(range), &mut read).unwrap();
            assert!(read == noise(40 * MIB, 9)[expected], "{kind:?} {range:?}");
        }
    });
}

#[test]
fn devices_and_pipes_are_written_to_and_never_replaced() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        let bytes = noise(30 * MIB, 2);
        stage.object("k", &bytes);
        stage.cp(stage.url("k"), Location::Local("/dev/null".into())).all_verified();
        assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
        let fifo = stage.fifo("fifo");
        // A dry run doesn't wait for a reader of the pipe.
        let request = CopyRequest::new(vec![stage.url("k")], Location::Local(fifo.clone()));
        let report = stage.copy(request.dry_run(true));
        assert_eq!((report.summary.files, report.summary.bytes), (1, 30 * MIB as u64), "{report:?}");
        let reader = {
            let fifo = fifo.clone();
            std::thread::spawn(move || std::fs::read(fifo))
        };
        stage.cp(stage.url("k"), &fifo).all_verified();
        assert!(reader.join().unwrap().unwrap() == bytes, "{kind:?}");
    }
}

#[test]
fn a_full_device_is_an_error_of_the_item() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        stage.object("k", &noise(MIB, 2));
        let report = stage.cp(stage.url("k"), Location::Local("/dev/full".into()));
        let (class, text) = report.failure();
        assert!(class == "local" && text.contains("/dev/full") && text.contains("No space"), "{text}");
    }
}

/// The process may not write files above 1 MiB, which behaves like a full disk. The limit applies to a whole
/// process, so the test runs itself again in a limited process.
#[test]
fn a_full_disk_is_an_error_of_the_item_and_leaves_nothing() {
    const LIMITED: &str = "LANEWAY_TEST_LIMITED";
    if std::env::var_os(LIMITED).is_none() {
        let run = "trap '' XFSZ; ulimit -f 2048; exec \"$0\" --exact downloads::a_full_disk_is_an_error_of_the_item_and_leaves_nothing";
        let this = std::env::current_exe().unwrap();
        let ended = Command::new("sh").arg("-c").arg(run).arg(this).env(LIMITED, "1").output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stdout));
        return;
    }
    for kind in DIALECTS {
        for size in [3 * MIB, 40 * MIB] {
            let stage = Stage::new(kind);
            stage.object("t/big", &noise(size, 1));
            stage.object("t/small", b"fits");
            let report = stage.cp_r(stage.url("t"), stage.path("out"));
            let (class, text) = report.failure();
            assert!(class == "local" && text.contains("out/big"), "{text}");
            assert_eq!(names(&stage.path("out")), ["small"]);
        }
    }
}

#[test]
fn a_link_as_destination_is_followed_to_its_file() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        stage.object("k", b"new");
        stage.file("target", "old");
        symlink("target", stage.path("link")).unwrap();
        stage.cp(stage.url("k"), stage.path("link")).all_verified();
        assert!(stage.path("link").symlink_metadata().unwrap().is_symlink());
        assert_eq!(std::fs::read(stage.path("target")).unwrap(), b"new");
    }
}

#[test]
fn a_directory_where_the_file_should_go_and_a_closed_one_are_told() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        stage.object("k", b"x");
        std::fs::create_dir_all(stage.path("folder/k")).unwrap();
        let (class, text) = {
            let report = stage.cp(stage.url("k"), stage.path("folder/"));
            report.failure()
        };
        assert!(class == "refused" && text.contains("directory"), "{text}");
        let file = stage.file("file", "x");
        let report = stage.cp(stage.url("k"), file.join("below"));
        assert_eq!(report.failure().0, "local", "{report:?}");
        let closed = stage.path("closed");
        std::fs::create_dir(&closed).unwrap();
        std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o500)).unwrap();
        let report = stage.cp(stage.url("k"), closed.join("k"));
        // Root may write to the folder despite its mode.
        if report.summary.failed > 0 {
            let (class, text) = report.failure();
            assert!(class == "local" && text.contains("closed/k"), "{text}");
        }
    }
}

#[test]
fn ranges_are_read_as_they_are_asked_for() {
    for kind in KINDS {
        let stage = Stage::new(kind);
        let bytes = noise(20 * MIB, 4);
        stage.object("k", &bytes);
        let last = bytes.len() - 1;
        let whole = between(0..u64::MAX);
        let ranges = [
            (None, 0..bytes.len()),
            (Some(between(0..1)), 0..1),
            (Some(between(5..100)), 5..100),
            (Some(between(100..12 * MIB as u64 + 1)), 100..12 * MIB + 1),
            (Some(between(last as u64..last as u64 + 51)), last..last + 1),
            (Some(ByteRange::starting_at(19 * MIB as u64)), 19 * MIB..bytes.len()),
            (Some(ByteRange::last(7).unwrap()), bytes.len() - 7..bytes.len()),
            (Some(whole), 0..bytes.len()),
        ];
        for (range, expected) in ranges {
            let mut read = Vec::new();
            let item = stage.client.read(&ReadRequest::new(stage.url("k")).ranges(range), &mut read).unwrap();
            assert!(read == bytes[expected.clone()], "{kind:?} {range:?}");
            assert_eq!(item.bytes, expected.len() as u64);
            if range.is_none() {
                assert!(
                    !matches!(item.outcome, Outcome::Done { verified: Verified::Unverified }),
                    "{item:?}"
                );
            }
        }
        let outside =
            ReadRequest::new(stage.url("k")).ranges(vec![ByteRange::starting_at(bytes.len() as u64)]);
        assert_eq!(stage.client.read(&outside, Vec::new()).unwrap_err().kind(), ErrorKind::InvalidRange);
        let outside = outside.ranges(vec![between(1 << 40..(1 << 40) + 1)]);
        assert_eq!(stage.client.read(&outside, Vec::new()).unwrap_err().kind(), ErrorKind::InvalidRange);
    }
}

#[test]
fn a_reader_that_goes_away_ends_the_read() {
    struct Gone;
    impl std::io::Write for Gone {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        stage.object("k", &noise(40 * MIB, 4));
        let error = stage.client.read(&ReadRequest::new(stage.url("k")), Gone).unwrap_err();
        assert!(error.is_broken_pipe(), "{error}");
    }
}

#[test]
fn a_move_removes_the_object_once_its_file_is_verified() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        stage.object("t/small", b"x");
        stage.object("t/big", &noise(20 * MIB, 1));
        let request = CopyRequest::new(vec![stage.url("t")], Place::from(stage.path("out")).0);
        let report = stage.copy(request.remove_source(true).recursive(true));
        report.all_verified();
        assert!(stage.keys().is_empty(), "{kind:?} {:?}", stage.keys());
        assert_eq!(names(&stage.path("out")), ["big", "small"]);
    }
}

#[test]
fn a_durable_copy_is_a_copy() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        stage.object("k", b"kept");
        let request = CopyRequest::new(vec![stage.url("k")], Place::from(stage.path("k")).0);
        stage.copy(request.durable(true)).all_verified();
        assert_eq!(std::fs::read(stage.path("k")).unwrap(), b"kept");
    }
}

fn between(range: Range<u64>) -> ByteRange {
    ByteRange::between(range).unwrap()
}
