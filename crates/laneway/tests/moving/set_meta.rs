//! Changing the metadata of large S3 objects, which need more than one request to copy.

use laneway::internal::CopySizes;
use laneway::{MetaChange, SetMetaRequest};
use laneway_server::{Attributes, Config, Faults, Habits, ObjectOptions};

use crate::stage::{BUCKET, DIALECTS, MIB, Report, Stage, noise};

/// Returns a stage whose client copies objects above 6 MiB by parts, and the bytes of such an object
/// with a tag.
fn large(config: Config) -> (Stage, Vec<u8>) {
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
        let (stage, bytes) = large(Config { habits, ..Config::default() });
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
        let (stage, _) = large(Config::default());
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
    let (stage, bytes) = large(Config::default());
    stage.server.set_faults(Faults::parse(["complete:1 lose-answer"]).unwrap());
    set_meta(&stage).all_done();
    assert!(stage.stored("t/large") == bytes);
}
