//! Tags that copies by parts would lose, and archived objects in trees.

use laneway::internal::CopySizes;
use laneway::{CopyRequest, CustomerKey, Location, Op, Outcome};
use laneway_server::{Attributes, Config, Habits, ObjectOptions, RefusedHeaders};

use crate::stage::{BUCKET, DIALECTS, KINDS, Kind, MIB, Place, Stage, noise};

fn s3() -> Kind {
    DIALECTS.into_iter().find(|kind| kind.provider == laneway::Provider::S3).unwrap()
}

#[test]
fn a_copy_by_parts_keeps_the_tags_of_its_source_unless_it_is_given_others() {
    let stage = Stage::set_up(s3(), Config::default(), |settings| {
        settings.copy_sizes(CopySizes { whole_max: 6 * MIB as u64, part: 5 * MIB as u64 })
    });
    let tags = [("team".to_owned(), "a b".to_owned())];
    let attributes = Attributes {
        options: ObjectOptions { tags: tags.clone().into(), ..ObjectOptions::default() },
        ..Attributes::default()
    };
    stage.server.store().put_with(BUCKET, "large", &noise(11 * MIB, 1), attributes).unwrap();
    stage.cp(stage.url("large"), stage.url("copy")).all_done();
    let tags_of =
        |key: &str| stage.server.store().object(BUCKET, key).unwrap().attributes.options.tags.clone();
    assert_eq!(tags_of("copy"), tags.into());

    let request = CopyRequest::new(vec![stage.url("large")], stage.url("retagged"));
    let put = laneway::PutOptions::default().tag("n", "1");
    stage.copy(request.put(put.clone())).all_done();
    assert_eq!(tags_of("retagged"), put.tags);
}

#[test]
fn a_tree_leaves_out_what_lies_in_an_archive_and_says_how_much() {
    let stage = Stage::new(s3());
    for key in ["t/1", "t/2"] {
        let attributes = Attributes { storage_class: Some("GLACIER".into()), ..Attributes::default() };
        stage.server.store().put_with(BUCKET, key, b"cold", attributes).unwrap();
    }
    stage.object("t/warm", b"warm");
    std::fs::create_dir_all(stage.path("")).unwrap();
    for destination in [None, Some(stage.url("copies/"))] {
        let report = match destination {
            None => stage.cp_r(stage.url("t"), stage.path("down")),
            Some(destination) => stage.cp_r(stage.url("t"), destination),
        };
        assert_eq!((report.summary.files, report.summary.skipped, report.summary.failed), (1, 2, 0));
        let warnings = report.warnings.join("\n");
        assert!(warnings.contains("one of 2 archived objects"), "{warnings}");
        assert!(report.items.iter().all(|item| !matches!(item.outcome, Outcome::Failed(_))));
    }
    assert_eq!(std::fs::read(stage.path("down/warm")).unwrap(), b"warm");
}

/// Returns a stage with a tree of twenty archived objects, a restored one and one that was never archived.
fn archived_tree(habits: Habits) -> Stage {
    let stage = Stage::with(s3(), Config { habits, ..Config::default() });
    let cold = Attributes { storage_class: Some("DEEP_ARCHIVE".into()), ..Attributes::default() };
    for key in (0..20).map(|i| format!("t/{i}")).chain(["t/restored".to_owned()]) {
        stage.server.store().put_with(BUCKET, &key, b"cold", cold.clone()).unwrap();
    }
    assert!(stage.server.store().restore(BUCKET, "t/restored", 1));
    stage.object("t/warm", b"warm");
    // From one answer the client learns which service this is.
    std::fs::create_dir_all(stage.path("")).unwrap();
    stage.cp(stage.url("t/warm"), stage.path("warm")).all_done();
    stage
}

/// Copies the tree, which skips the archived objects. Returns the number of requests of each verb.
fn requests_of(stage: &Stage, to: Place, verbs: [&str; 2]) -> [u64; 2] {
    let count = || verbs.map(|verb| stage.requests(verb));
    let before = count();
    let report = stage.cp_r(stage.url("t"), to);
    assert_eq!((report.summary.files, report.summary.skipped, report.summary.failed), (2, 20, 0));
    let warnings = report.warnings.join("\n");
    assert!(warnings.contains("one of 20 archived objects"), "{warnings}");
    let after = count();
    [after[0] - before[0], after[1] - before[1]]
}

#[test]
fn amazons_listings_spare_a_tree_the_requests_for_what_lies_in_an_archive() {
    let stage = archived_tree(Habits::strict());
    assert_eq!(requests_of(&stage, stage.path("down").into(), ["list", "get"]), [1, 2]);
    assert_eq!(std::fs::read(stage.path("down/restored")).unwrap(), b"cold");
    assert_eq!(requests_of(&stage, stage.url("copies/").into(), ["list", "copy"]), [1, 2]);
    let planned = stage.copy(
        CopyRequest::new(vec![stage.url("t")], Location::Local(stage.path("dry")))
            .recursive(true)
            .dry_run(true),
    );
    assert_eq!((planned.summary.files, planned.summary.skipped), (2, 20));
}

#[test]
fn where_listings_may_not_tell_what_is_restored_all_of_a_tree_is_tried() {
    let silent = archived_tree(Habits::minio());
    assert_eq!(requests_of(&silent, silent.path("down").into(), ["list", "get"]), [1, 22]);
    assert_eq!(std::fs::read(silent.path("down/restored")).unwrap(), b"cold");

    let prefixes = &["x-amz-optional-object-attributes"];
    let refused_headers = Some(RefusedHeaders { prefixes, status: 400, code: "InvalidArgument" });
    let refusing = archived_tree(Habits { refused_headers, ..Habits::strict() });
    assert_eq!(requests_of(&refusing, refusing.path("down").into(), ["list", "get"]), [2, 22]);
    assert_eq!(
        requests_of(&refusing, refusing.path("again").into(), ["list", "get"]),
        [1, 22],
        "the client remembers the refusal"
    );
}

#[test]
fn a_named_object_in_an_archive_is_an_error_that_says_so() {
    let stage = Stage::new(s3());
    let attributes = Attributes { storage_class: Some("DEEP_ARCHIVE".into()), ..Attributes::default() };
    stage.server.store().put_with(BUCKET, "k", b"cold", attributes).unwrap();
    let report = stage.cp(stage.url("k"), stage.path("k"));
    let (class, message) = report.failure();
    assert_eq!(class, "archived");
    assert!(message.contains("restored"), "{message}");
    assert!(!stage.path("k").exists());

    // With this many sources Laneway first lists their sizes. The sources still count as single objects, not as
    // a tree.
    let warm = (0..40).map(|i| format!("warm{i}"));
    warm.clone().for_each(|key| stage.object(&key, b"warm"));
    let sources = warm.chain(["k".to_owned()]).map(|key| stage.url(&key)).collect();
    std::fs::create_dir_all(stage.path("many")).unwrap();
    let report = stage.copy(CopyRequest::new(sources, laneway::Location::Local(stage.path("many"))));
    assert_eq!(report.failure().0, "archived");
    assert_eq!((report.summary.files, report.summary.skipped), (40, 0));
}

#[test]
fn trees_and_large_files_go_up_and_come_back_under_a_customers_key() {
    for kind in KINDS {
        let mut stage = Stage::set_up(kind, Config::default(), |settings| {
            settings.customer_key(CustomerKey::parse(&[7; 32]).ok())
        });
        let large = noise(40 * MIB + 5, 1);
        stage.file("t/large", &large);
        stage.file("t/small", b"small");
        let up = stage.cp_r(stage.path("t"), stage.url("t"));
        assert_eq!(up.all_verified().ops(Op::Upload), 2, "{kind:?}");
        stage.cp_r(stage.url("t"), stage.path("back")).all_verified();
        assert!(std::fs::read(stage.path("back/large")).unwrap() == large, "{kind:?}");
        assert_eq!(std::fs::read(stage.path("back/small")).unwrap(), b"small");
        stage.renew_with(|settings| settings.customer_key(None));
        let refused = stage.cp(stage.url("t/small"), stage.path("no"));
        assert_eq!(refused.failure().0, "invalid", "{kind:?}");
    }
}
