//! Large downloads that were interrupted and are resumed.

use std::path::Path;

use laneway::{CopyRequest, Event, Job, Location, Outcome};
use laneway_server::Faults;
use laneway_testkit::{Changes, claimed};

use crate::stage::{DIALECTS, KINDS, Kind, MIB, Place, Report, Stage, at_once, names, noise};

const SIZE: usize = 64 * MIB;
/// More than Laneway may fetch twice, and less than the first body delivers before it stalls.
const ENOUGH: u64 = 10 * MIB as u64;

/// Returns a stage whose bodies stall after 12 MiB, so that a download is still under way when its job is cancelled.
fn halting(kind: Kind) -> Stage {
    let stage = Stage::with_faults(kind, &["get stall@12MiB"]);
    std::fs::create_dir_all(stage.path("out")).unwrap();
    stage
}

fn download(stage: &Stage) -> CopyRequest {
    CopyRequest::new(vec![stage.url("k")], Place::from(stage.path("out/k")).0)
}

/// Begins a copy and waits until enough bytes have arrived in `folder`.
pub(crate) fn begun(stage: &Stage, request: CopyRequest, folder: &Path) -> Job {
    let changes = Changes::of(folder);
    let job = stage.client.copy(request);
    changes.wait_until(|| {
        assert_eq!(job.progress().items_done(), 0, "the copy ended too early");
        claimed(folder) >= ENOUGH
    });
    job
}

/// Panics if the kept bytes are fetched again. After the new job begins, each of the cancelled job's connections may still
/// deliver one buffer. The program's own tests run each job in its own process and use a tighter limit.
#[track_caller]
fn fetched_what_was_missing(report: &Report, kept: u64) {
    let (missing, fetched) = (SIZE as u64 - kept, report.summary.network_bytes);
    assert!((missing..missing + 8 * MIB as u64).contains(&fetched), "{fetched} fetched, {missing} missing");
    assert_eq!(report.summary.bytes, SIZE as u64);
}

/// Begins a download, and lets the store refuse all requests once enough bytes have arrived. Returns the number of kept bytes.
fn fail_half_way(stage: &Stage) -> u64 {
    let job = begun(stage, download(stage), &stage.path("out"));
    stage.server.set_faults(Faults::parse(["get status 403"]).unwrap());
    let report = Report::of(job);
    stage.server.set_faults(Faults::default());
    let (class, text) = report.failure();
    assert!(class == "permission" && text.contains("run the same command to continue from there"), "{text}");
    let Outcome::Failed(error) = &report.items[0].outcome else { panic!("{report:?}") };
    assert_eq!(error.kept_bytes(), report.summary.kept_bytes);
    assert!(error.kept_bytes() >= ENOUGH, "{error}");
    assert_eq!(names(&stage.path("out")).len(), 2, "a file and its journal");
    error.kept_bytes()
}

#[test]
fn a_download_that_failed_half_way_fetches_only_what_is_missing() {
    at_once(&KINDS, |kind| {
        let stage = halting(kind);
        let bytes = noise(SIZE, 1);
        stage.object("k", &bytes);
        let kept = fail_half_way(&stage);
        let report = stage.copy(download(&stage));
        report.all_verified();
        assert!(std::fs::read(stage.path("out/k")).unwrap() == bytes, "{kind:?}");
        assert_eq!(names(&stage.path("out")), ["k"], "{kind:?}");
        fetched_what_was_missing(&report, kept);
        assert_eq!(report.summary.resumed_bytes, kept, "{kind:?}");
    });
}

#[test]
fn an_object_that_was_replaced_meanwhile_is_fetched_anew() {
    at_once(&DIALECTS, |kind| {
        let stage = halting(kind);
        stage.object("k", &noise(SIZE, 1));
        fail_half_way(&stage);
        let new = noise(SIZE, 2);
        stage.object("k", &new);
        stage.copy(download(&stage)).all_verified();
        assert!(std::fs::read(stage.path("out/k")).unwrap() == new, "{kind:?}");
        assert_eq!(names(&stage.path("out")), ["k"]);
    });
}

#[test]
fn a_shrunk_or_removed_object_leaves_no_partial_download() {
    at_once(&DIALECTS, |kind| {
        let stage = halting(kind);
        stage.object("k", &noise(SIZE, 1));
        fail_half_way(&stage);
        stage.object("k", b"small");
        stage.copy(download(&stage)).all_verified();
        assert_eq!(std::fs::read(stage.path("out/k")).unwrap(), b"small", "{kind:?}");
        assert_eq!(names(&stage.path("out")), ["k"]);
    });
}

#[test]
fn a_listed_object_is_gone_on_with_too() {
    at_once(&DIALECTS, |kind| {
        let stage = halting(kind);
        let bytes = noise(SIZE, 1);
        stage.object("k", &bytes);
        let tree =
            || CopyRequest::new(vec![stage.url("")], Location::Local(stage.path("out"))).recursive(true);
        let folder = stage.path("out");
        let job = begun(&stage, tree(), &folder);
        stage.server.set_faults(Faults::parse(["get status 403"]).unwrap());
        let kept = Report::of(job).summary.kept_bytes;
        stage.server.set_faults(Faults::default());
        let report = stage.copy(tree());
        report.all_verified();
        fetched_what_was_missing(&report, kept);
        assert!(std::fs::read(folder.join("k")).unwrap() == bytes);
        assert_eq!(names(&folder), ["k"]);
    });
}

#[test]
fn a_cancelled_download_is_kept_where_that_is_asked_for() {
    at_once(&DIALECTS, |kind| {
        for keep_partial in [true, false] {
            let stage = halting(kind);
            let bytes = noise(SIZE, 1);
            stage.object("k", &bytes);
            let request = download(&stage).keep_partial(keep_partial);
            let job = begun(&stage, request, &stage.path("out"));
            job.canceller().cancel();
            let summary = Report::of(job).summary;
            assert!(summary.interrupted);
            assert_eq!(summary.kept_bytes > 0, keep_partial, "{kind:?}");
            assert_eq!(names(&stage.path("out")).len(), if keep_partial { 2 } else { 0 });
            stage.server.set_faults(Faults::default());
            let report = stage.copy(download(&stage));
            report.all_verified();
            fetched_what_was_missing(&report, summary.kept_bytes);
            assert!(std::fs::read(stage.path("out/k")).unwrap() == bytes);
            assert_eq!(names(&stage.path("out")), ["k"]);
        }
    });
}

#[test]
fn two_jobs_with_one_destination_share_no_file() {
    at_once(&DIALECTS, |kind| {
        let stage = halting(kind);
        let bytes = noise(SIZE, 1);
        stage.object("k", &bytes);
        let mut first = begun(&stage, download(&stage), &stage.path("out"));
        stage.server.set_faults(Faults::default());
        stage.copy(download(&stage)).all_verified();
        assert!(std::fs::read(stage.path("out/k")).unwrap() == bytes, "{kind:?}");
        while let Some(event) = first.next_blocking() {
            if let Event::Item(item) = event {
                assert!(matches!(item.outcome, Outcome::Done { .. }), "{item:?}");
            }
        }
        assert!(std::fs::read(stage.path("out/k")).unwrap() == bytes, "{kind:?}");
        assert_eq!(names(&stage.path("out")), ["k"]);
    });
}

/// The journal's checksums describe the bytes that really arrived, so a resumed download detects earlier damage.
#[test]
fn bytes_that_came_wrong_in_an_earlier_run_are_found_and_fetched_anew() {
    at_once(&DIALECTS, |kind| {
        let stage = Stage::with_faults(kind, &["get:1 corrupt@1000", "get:2-999 stall@3MiB"]);
        std::fs::create_dir_all(stage.path("out")).unwrap();
        let bytes = noise(SIZE, 1);
        stage.object("k", &bytes);
        fail_half_way(&stage);
        let report = stage.copy(download(&stage));
        report.all_verified();
        assert!(std::fs::read(stage.path("out/k")).unwrap() == bytes, "{kind:?}");
        assert!(report.summary.network_bytes >= SIZE as u64, "{kind:?}: {:?}", report.summary);
        assert_eq!(names(&stage.path("out")), ["k"]);
    });
}

#[test]
fn bytes_that_turn_out_wrong_are_not_kept() {
    at_once(&DIALECTS, |kind| {
        let stage = Stage::with_faults(kind, &["get:1 reset@3MiB", "get:2-99 corrupt"]);
        stage.object("k", &noise(SIZE, 1));
        assert_eq!(stage.copy(download(&stage)).failure().0, "integrity");
        assert!(names(&stage.path("out")).is_empty(), "{kind:?}");
    });
}

/// A change to a journal's bytes.
type Damage<'a> = &'a dyn Fn(&mut Vec<u8>);

/// For any content of a journal and its file, the same command writes the exact object and leaves nothing beside it.
#[test]
fn a_journal_that_others_have_written_or_damaged_leaves_the_file_exact() {
    at_once(&DIALECTS, |kind| {
        let stage = halting(kind);
        let bytes = noise(SIZE, 1);
        stage.object("k", &bytes);
        fail_half_way(&stage);
        let out = stage.path("out");
        let left: Vec<_> = names(&out)
            .into_iter()
            .map(|name| (out.join(&name), std::fs::read(out.join(name)).unwrap()))
            .collect();
        let is_journal = |path: &Path| path.extension().is_some_and(|extension| extension == "journal");
        let header_len = |journal: &[u8]| {
            let number = |at: usize| u32::from_le_bytes(journal[at..at + 4].try_into().unwrap()) as usize;
            let url = number(28);
            (32 + url + 4 + number(32 + url)).next_multiple_of(32)
        };
        let damages: [(&str, Damage<'_>); 6] = [
            ("foreign JSON", &|journal| {
                *journal = b"{\"format\": 1, \"size\": 18446744073709551615}\n".repeat(100)
            }),
            ("another format", &|journal| journal[16] = 9),
            ("an enormous object", &|journal| journal[20..28].fill(0xff)),
            ("enormous numbers", &|journal| {
                let from = header_len(journal);
                journal[from..].fill(0xff);
            }),
            ("half of each record", &|journal| {
                let from = header_len(journal);
                journal[from..].chunks_mut(32).for_each(|record| record[..8].fill(0));
            }),
            ("its end alone", &|journal| drop(journal.drain(..40))),
        ];
        for (about, damage) in damages {
            for (path, contents) in &left {
                let mut contents = contents.clone();
                if is_journal(path) {
                    damage(&mut contents);
                }
                std::fs::write(path, contents).unwrap();
            }
            stage.copy(download(&stage)).all_verified();
            assert!(std::fs::read(stage.path("out/k")).unwrap() == bytes, "{kind:?} {about}");
            assert_eq!(names(&out), ["k"], "{kind:?} {about}");
            std::fs::remove_file(stage.path("out/k")).unwrap();
        }
    });
}
