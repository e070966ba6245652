//! Copies between stores, and changes of the metadata of large S3 objects, which are copies onto themselves.

use laneway::internal::CopySizes;
use laneway::{
    CopyRequest, Entry, ListRequest, Location, MetaChange, Op, Outcome, Provider, SetMetaRequest, Verified,
};
use laneway_server::{Attributes, Config, Faults, GcsConfig, Habits, ObjectOptions, Versioning};

use crate::stage::{BUCKET, DIALECTS, KINDS, Kind, MIB, Report, Stage, noise};

fn other(kind: Kind) -> Provider {
    match kind.provider {
        Provider::Gcs => Provider::S3,
        _ => Provider::Gcs,
    }
}

#[test]
fn inside_one_store_the_store_copies_and_no_byte_comes_by() {
    for kind in KINDS {
        let stage = Stage::new(kind);
        let big = noise(20 * MIB, 1);
        stage.object("t/big", &big);
        stage.object("t/a b%/ü", b"x");
        let report = stage.cp_r(stage.url("t"), stage.url("u/"));
        assert_eq!(report.all_verified().ops(Op::Copy), 2);
        assert!(stage.stored("u/t/big") == big);
        assert_eq!(stage.stored("u/t/a b%/ü"), b"x");
        assert!(report.summary.network_bytes < MIB as u64, "{:?}", report.summary);
    }
}

#[test]
fn listed_objects_of_one_part_are_copied_by_one_request_each() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        (0..10).for_each(|i| stage.object(&format!("t/{i}"), format!("{i}").as_bytes()));
        let report = stage.cp_r(stage.url("t"), stage.url("u"));
        assert_eq!(report.all_verified().ops(Op::Copy), 10);
        assert_eq!((stage.requests("copy"), stage.requests("head")), (10, 0), "{kind:?}");
        assert_eq!(stage.stored("u/7"), b"7");
    }
}

#[test]
fn what_is_replaced_after_it_was_listed_is_copied_as_it_is_then() {
    for kind in DIALECTS {
        // The stall delays the answers to the first attempts until the faults end. Then those answers are
        // lost.
        let stage = Stage::with_faults(kind, &["copy:1-2 stall"]);
        ["t/a", "t/b"].iter().for_each(|key| stage.object(key, b"listed"));
        let report = std::thread::scope(|scope| {
            let copying = scope.spawn(|| stage.cp_r(stage.url("t"), stage.url("u")));
            stage.wait_for("copy", 2);
            stage.object("t/a", b"another one");
            stage.server.set_faults(Faults::default());
            copying.join().unwrap()
        });
        report.all_done();
        assert_eq!((stage.stored("u/a"), stage.stored("u/b")), (b"another one".to_vec(), b"listed".to_vec()));
    }
}

#[test]
fn a_copy_that_differs_from_its_listing_is_an_integrity_error() {
    // Use GCS, because its listings contain checksums.
    let kind = DIALECTS.into_iter().find(|kind| kind.provider == Provider::Gcs).unwrap();
    let stage = Stage::with_faults(kind, &["copy stall"]);
    stage.object("t/a", b"listed");
    let report = std::thread::scope(|scope| {
        let copying = scope.spawn(|| stage.cp_r(stage.url("t"), stage.url("u")));
        stage.wait_for("copy", 1);
        stage.object("t/a", b"another one");
        stage.server.set_faults(Faults::parse(["head status 403"]).unwrap());
        copying.join().unwrap()
    });
    let (cause, why) = report.failure();
    assert!(cause == "integrity" && why.contains("u/a"), "{cause}: {why}");
}

#[test]
fn a_move_inside_one_store_leaves_only_the_copy() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        stage.object("a", b"x");
        let request = CopyRequest::new(vec![stage.url("a")], stage.url("b"));
        stage.copy(request.remove_source(true)).all_done();
        assert_eq!(stage.keys(), ["b"]);
    }
}

#[test]
fn objects_are_joined_by_the_store_in_their_order() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        let count = if kind.provider == Provider::Gcs { 40 } else { 3 };
        let size = if kind.provider == Provider::Gcs { 10 } else { 5 * MIB };
        let parts: Vec<Vec<u8>> =
            (0..count).map(|i| noise(if i + 1 == count { 7 } else { size }, i as u64)).collect();
        parts.iter().enumerate().for_each(|(i, part)| stage.object(&format!("p/{i:02}"), part));
        let sources: Vec<_> = (0..count).map(|i| stage.url(&format!("p/{i:02}"))).collect();
        let put = laneway::PutOptions::default().condition(laneway::Condition::Absent);
        let made = stage.client.compose(&sources, &stage.url("all"), put.clone()).unwrap();
        assert_eq!(made.size, parts.iter().map(|part| part.len() as u64).sum::<u64>());
        assert!(stage.stored("all") == parts.concat(), "{kind:?}");
        assert_eq!(stage.keys().len(), count + 1, "no temporary object stays");
        let again = stage.client.compose(&sources, &stage.url("all"), put).unwrap_err();
        assert_eq!(again.kind(), laneway::ErrorKind::AlreadyExists, "{again}");
        let missing = stage.client.compose(&[stage.url("none")], &stage.url("x"), Default::default());
        assert!(missing.unwrap_err().is_not_found());
    }
}

/// GCS requires that the sources have the storage class of the new object.
#[test]
fn joined_objects_and_temporary_ones_have_the_class_of_the_sources() {
    // With the fault, the temporary objects stay.
    for stay in [0, 2] {
        let rules: &[&str] = if stay > 0 { &["delete status 403"] } else { &[] };
        let stage = Stage::with_faults(DIALECTS[0], rules);
        let store = stage.server.store();
        store.keep_versions(BUCKET, Versioning::Enabled).unwrap();
        let keys: Vec<_> = (0..40).map(|i| format!("p/{i:02}")).collect();
        for key in &keys {
            let attributes = Attributes { storage_class: Some("COLDLINE".into()), ..Attributes::default() };
            store.put_with(BUCKET, key, b"x", attributes).unwrap();
        }
        let sources: Vec<_> = keys.iter().map(|key| stage.url(key)).collect();
        let made = stage.client.compose(&sources, &stage.url("all"), Default::default()).unwrap();
        assert_eq!(made.storage_class.as_deref(), Some("COLDLINE"));
        let mut listing = ListRequest::new(stage.url("")).recursive(true);
        listing.all_versions = true;
        let mut listing = stage.client.list(listing);
        let mut classes = Vec::new();
        while let Some(entry) = listing.next_blocking() {
            let Entry::Object(meta) = entry.unwrap() else { panic!("only objects are listed") };
            classes.push(meta.storage_class.clone());
        }
        assert_eq!(classes, vec![Some("COLDLINE".to_owned()); keys.len() + 1 + stay], "{rules:?}");
    }
}

#[test]
fn s3_objects_are_joined_without_checksums_if_the_store_refuses_those() {
    let rules = [("copy:1 status 400 InvalidRequest", true), ("copy status 400 InvalidRequest", false)];
    for (rule, is_joined) in rules {
        let stage = Stage::with_faults(DIALECTS[1], &[rule]);
        let (first, last) = (noise(5 * MIB, 1), noise(7, 2));
        stage.object("1", &first);
        stage.object("2", &last);
        let sources = [stage.url("1"), stage.url("2")];
        let made = stage.client.compose(&sources, &stage.url("all"), Default::default());
        assert_eq!(made.is_ok(), is_joined, "{made:?}");
        assert_eq!((stage.requests("begin"), stage.server.counters().multipart_open), (2, 0), "{rule}");
        match is_joined {
            true => assert!(stage.stored("all") == [first, last].concat()),
            false => assert_eq!(stage.keys(), ["1", "2"]),
        }
    }
}

#[test]
fn s3_objects_are_joined_by_parts_and_again_after_a_conflict() {
    let faults = Faults::parse(["complete:1-2 status 409 ConditionalRequestConflict"]).unwrap();
    let stage = Stage::set_up(DIALECTS[1], Config { faults, ..Config::default() }, |settings| {
        settings.copy_sizes(CopySizes { whole_max: u64::MAX, part: 10 * MIB as u64 })
    });
    let (first, last) = (noise(21 * MIB + 1, 1), noise(7, 2));
    stage.object("1", &first);
    stage.object("2", &last);
    let sources = [stage.url("1"), stage.url("2")];
    stage.client.compose(&sources, &stage.url("all"), Default::default()).unwrap();
    assert!(stage.stored("all") == [first, last].concat());
    assert_eq!((stage.requests("begin"), stage.requests("copy")), (3, 3 * 4));
    assert_eq!(stage.server.counters().multipart_open, 0);
}

#[test]
fn between_stores_objects_stream_through_with_what_is_known_of_them() {
    for kind in KINDS {
        let stage = Stage::new(kind);
        stage.server.create_bucket("other").unwrap();
        let big = noise(50 * MIB + 3, 1);
        let attributes = Attributes { content_type: Some("x/y".into()), ..Attributes::default() };
        stage.server.store().put_with(BUCKET, "t/big", &big, attributes).unwrap();
        let attributes = Attributes {
            cache_control: Some("max-age=7".into()),
            metadata: [("colour".to_owned(), "green".to_owned())].into(),
            ..Attributes::default()
        };
        stage.server.store().put_with(BUCKET, "t/small", b"small", attributes).unwrap();
        stage.object("t/empty", b"");
        let report = stage.cp_r(stage.url("t"), Location::object(other(kind), "other", "c"));
        report.all_verified();
        assert_eq!(report.items.len(), 3);
        assert!(stage.server.store().read("other", "c/big").unwrap() == big, "{kind:?}");
        assert_eq!(stage.server.store().read("other", "c/small").unwrap(), b"small");
        let meta = stage.client.stat(&Location::object(other(kind), "other", "c/big")).unwrap();
        assert_eq!(meta.content_type.as_deref(), Some("x/y"));
        // The answer with the bytes may state a `Cache-Control` that differs from the object's, and may omit
        // other metadata.
        let meta = stage.client.stat(&Location::object(other(kind), "other", "c/small")).unwrap();
        assert_eq!(meta.cache_control.as_deref(), Some("max-age=7"), "{kind:?}");
        assert_eq!(meta.metadata.unwrap()["colour"], "green", "{kind:?}");
    }
}

#[test]
fn an_object_that_is_damaged_on_its_way_between_stores_is_not_kept() {
    for kind in DIALECTS {
        for size in [5000, 40 * MIB] {
            let stage = Stage::with_faults(kind, &["get:1-99 corrupt"]);
            stage.server.create_bucket("other").unwrap();
            stage.object("k", &noise(size, 1));
            let report = stage.cp(stage.url("k"), Location::object(other(kind), "other", "k"));
            assert_eq!(report.failure().0, "integrity", "{kind:?} {size}");
            assert!(stage.server.store().keys("other").is_empty());
            let counters = stage.server.counters();
            assert_eq!((counters.multipart_open, counters.resumable_open), (0, 0));
        }
    }
}

#[test]
fn a_missing_source_is_told() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        stage.server.create_bucket("other").unwrap();
        assert_eq!(stage.cp(stage.url("absent"), stage.url("b")).failure().0, "not_found");
        let report = stage.cp(stage.url("absent"), Location::object(other(kind), "other", "b"));
        assert_eq!(report.failure().0, "not_found");
    }
}

#[test]
fn copying_something_to_itself_is_refused_before_anything_is_asked() {
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        stage.object("k", b"x");
        let request = CopyRequest::new(vec![stage.url("k")], stage.url("k"));
        let report = stage.copy(request.remove_source(true));
        assert_eq!((report.failure().0, report.summary.requests), ("usage", 0));
        assert_eq!(stage.stored("k"), b"x");
    }
}

#[test]
fn a_server_side_copy_says_what_it_was_compared_by() {
    let stage = Stage::new(KINDS[0]);
    stage.object("t/k", b"x");
    let report = stage.cp_r(stage.url("t"), stage.url("u"));
    assert!(matches!(report.items[0].outcome, Outcome::Done { verified: Verified::Crc32c }), "{report:?}");
}

/// A stage for S3 whose client copies objects above 6 MiB by parts.
fn copying_by_parts(rules: &[&str]) -> Stage {
    let stage = Stage::set_up(KINDS[2], Config::default(), |settings| {
        settings.copy_sizes(CopySizes { whole_max: 6 * MIB as u64, part: 5 * MIB as u64 })
    });
    stage.server.set_faults(laneway_server::Faults::parse(rules.iter().copied()).unwrap());
    stage
}

#[test]
fn what_one_call_does_not_copy_is_copied_by_parts_inside_the_store() {
    let stage = copying_by_parts(&[]);
    let (large, small) = (noise(23 * MIB + 9, 1), noise(6 * MIB, 2));
    let attributes = Attributes { content_type: Some("x/y".into()), ..Attributes::default() };
    stage.server.store().put_with(BUCKET, "t/large", &large, attributes).unwrap();
    stage.object("t/small", &small);
    let report = stage.cp_r(stage.url("t"), stage.url("u/"));
    report.all_done();
    assert!(stage.stored("u/t/large") == large && stage.stored("u/t/small") == small);
    let counters = stage.server.counters();
    // Five part copies for the large object, one call for the small one.
    assert_eq!((stage.requests("copy"), counters.multipart_open), (6, 0));
    assert!(report.summary.network_bytes < MIB as u64, "{:?}", report.summary);
    let meta = stage.client.stat(&stage.url("u/t/large")).unwrap();
    assert_eq!(meta.content_type.as_deref(), Some("x/y"));
}

#[test]
fn a_failed_copy_in_parts_is_aborted_with_its_error() {
    for (rule, kind) in [("copy:3 status 403", "permission"), ("copy:3 status 412", "precondition")] {
        let stage = copying_by_parts(&[rule]);
        stage.object("t/large", &noise(23 * MIB, 1));
        let report = stage.cp_r(stage.url("t"), stage.url("u/"));
        assert_eq!(report.failure().0, kind, "{rule}: {report:?}");
        assert_eq!(stage.keys(), ["t/large"]);
        assert_eq!(stage.server.counters().multipart_open, 0, "{rule}");
    }
}

#[test]
fn a_rewrite_that_takes_several_calls_is_carried_to_its_end() {
    let gcs = GcsConfig { rewrite_bytes_max: Some(4 * MIB as u64), ..GcsConfig::default() };
    let stage = Stage::with(KINDS[0], Config { gcs, ..Config::default() });
    let bytes = noise(23 * MIB, 1);
    stage.object("t/large", &bytes);
    let report = stage.cp_r(stage.url("t"), stage.url("u/"));
    report.all_verified();
    assert!(stage.stored("u/t/large") == bytes);
    assert_eq!(stage.requests("copy"), 6);
}

/// Returns a stage whose client copies objects above 6 MiB by parts, and the bytes of such an object with a
/// tag.
fn large_stage(config: Config) -> (Stage, Vec<u8>) {
    let stage = Stage::set_up(DIALECTS[1], config, |settings| {
        settings.copy_sizes(CopySizes { whole_max: 6 * MIB as u64, part: 5 * MIB as u64 })
    });
    let bytes = noise(12 * MIB + 7, 1);
    let options =
        ObjectOptions { tags: [("team".to_owned(), "a".to_owned())].into(), ..ObjectOptions::default() };
    let metadata = [("author".to_owned(), "me".to_owned())].into();
    let attributes =
        Attributes { content_type: Some("x/y".into()), metadata, options, ..Attributes::default() };
    stage.server.store().put_with(BUCKET, "t/large", &bytes, attributes).unwrap();
    (stage, bytes)
}

fn set_meta(stage: &Stage) -> Report {
    let change = MetaChange::default().cache_control("no-store").metadata("n", "1");
    Report::of(stage.client.set_meta(SetMetaRequest::new(vec![stage.url("t/")], change).recursive(true)))
}

#[test]
fn what_one_request_does_not_copy_is_changed_by_parts_of_itself() {
    for habits in ["s3", "minio"] {
        let habits = Habits::named(habits).unwrap();
        let (stage, bytes) = large_stage(Config { habits, ..Config::default() });
        set_meta(&stage).all_done();
        assert!(stage.stored("t/large") == bytes);
        let changed = stage.server.store().object(BUCKET, "t/large").unwrap().attributes.clone();
        assert_eq!(changed.cache_control.as_deref(), Some("no-store"));
        assert_eq!((changed.content_type.as_deref(), changed.metadata.len()), (Some("x/y"), 2));
        assert_eq!(changed.options.tags["team"], "a");
        assert!(stage.requests("copy") >= 3 && stage.server.counters().multipart_open == 0);
        // The object's bytes don't pass through this machine.
        assert!(stage.server.counters().bytes_out < MIB as u64, "{:?}", stage.server.counters());
    }
}

#[test]
fn what_another_writer_puts_midway_stays_and_nothing_is_left_behind() {
    for rule in ["copy:3 delay 2s", "complete delay 2s"] {
        let (stage, _) = large_stage(Config::default());
        stage.server.set_faults(Faults::parse([rule]).unwrap());
        let report = std::thread::scope(|scope| {
            let changing = scope.spawn(|| set_meta(&stage));
            match rule.starts_with("copy") {
                true => stage.wait_for("copy", 3),
                false => stage.wait_for("complete", 1),
            }
            stage.object("t/large", b"another writer's");
            changing.join().unwrap()
        });
        assert_eq!(report.failure().0, "precondition", "{rule}");
        assert_eq!(stage.stored("t/large"), b"another writer's", "{rule}");
        stage.wait_until("no upload left", |counters| counters.multipart_open == 0);
    }
}

#[test]
fn a_change_whose_last_answer_is_lost_is_made_all_the_same() {
    let (stage, bytes) = large_stage(Config::default());
    stage.server.set_faults(Faults::parse(["complete:1 lose-answer"]).unwrap());
    set_meta(&stage).all_done();
    assert!(stage.stored("t/large") == bytes);
}
