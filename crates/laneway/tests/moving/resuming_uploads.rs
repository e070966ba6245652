//! Large uploads that were interrupted and are resumed.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use laneway::{ClientBuilder, CopyRequest, Job, Location, Outcome, Provider, PutOptions};
use laneway_server::{Config, Faults, GcsConfig};
use laneway_testkit::{Changes, recorded_parts};
use tempfile::TempDir;

use crate::stage::{BUCKET, DIALECTS, KINDS, Kind, MIB, Place, Report, Stage, at_once, names, noise};

const PART: usize = 16 * MIB;
const SIZE: usize = PARTS as usize * PART;
const PARTS: u64 = 3;
/// Number of parts in the store at the interruption.
const SENT: u64 = 1;

/// An upload in parts, and the folder of its journal.
struct Interrupted {
    stage: Stage,
    journals: TempDir,
    file: PathBuf,
    bytes: Vec<u8>,
    /// If true, the upload uses a resumable session. GCS requires this for an upload that must not overwrite
    /// an object.
    is_session: bool,
}

/// Returns one upload of each kind that sends parts.
fn interrupted(kind: Kind) -> Vec<Interrupted> {
    let sessions = if kind.provider == Provider::Gcs { vec![false, true] } else { vec![false] };
    sessions.into_iter().map(|is_session| Interrupted::new(kind, is_session)).collect()
}

impl Interrupted {
    fn new(kind: Kind, is_session: bool) -> Self {
        let journals = tempfile::tempdir().unwrap();
        let stage =
            Stage::set_up(kind, Config::default(), |settings| settings.upload_journals(journals.path()));
        let bytes = noise(SIZE, 1);
        let file = stage.file("big", &bytes);
        Self { stage, journals, file, bytes, is_session }
    }

    fn request(&self) -> CopyRequest {
        let request = CopyRequest::new(vec![Place::from(&self.file).0], self.stage.url("big"));
        request.no_clobber(self.is_session)
    }

    fn faults(&self, rules: &[&str]) {
        self.stage.server.set_faults(Faults::parse(rules.iter().copied()).unwrap());
    }

    /// Begins the upload, and waits until the store has one part. Further parts stall.
    fn begun(&self, request: CopyRequest) -> Job {
        self.faults(&[&format!("part:{}-999 stall", SENT + 1)]);
        let changes = Changes::of(self.journals.path());
        let before = self.count("part");
        let job = self.stage.client.copy(request);
        match self.is_session {
            true => self.stage.wait_for("part", before + SENT + 1),
            false => changes.wait_until(|| recorded_parts(self.journals.path()).len() as u64 == SENT),
        }
        job
    }

    /// Lets the store refuse the rest of an upload.
    fn fail_half_way(&mut self) {
        let job = self.begun(self.request());
        self.faults(&["part status 403"]);
        let report = Report::of(job);
        self.faults(&[]);
        self.stage.renew();
        let (class, text) = report.failure();
        assert!(
            class == "permission" && text.contains("run the same command to continue from there"),
            "{text}"
        );
        assert!(!text.contains("upload_id") && !text.contains("uploadId"), "{text}");
        let Outcome::Failed(error) = &report.items[0].outcome else { panic!("{report:?}") };
        assert_eq!(error.kept_bytes(), SENT * PART as u64);
        assert_eq!(report.summary.kept_bytes, SENT * PART as u64);
        assert_eq!((self.open(), names(self.journals.path()).len()), (1, 1));
    }

    fn count(&self, verb: &str) -> u64 {
        self.stage.requests(verb)
    }

    /// Returns the number of open uploads.
    fn open(&self) -> u64 {
        let counters = self.stage.server.counters();
        counters.multipart_open + counters.resumable_open
    }

    /// Runs the same upload again. Returns the number of parts sent and of uploads begun.
    fn again(&self) -> (u64, u64) {
        let (parts, begun) = (self.count("part"), self.count("begin"));
        let report = self.stage.copy(self.request());
        report.all_verified();
        assert_eq!(report.summary.bytes, self.bytes.len() as u64);
        assert!(self.stage.stored("big") == self.bytes, "{:?}", self.stage.kind);
        assert!(names(self.journals.path()).is_empty(), "{:?}", self.stage.kind);
        let sent = self.count("part") - parts;
        assert_eq!(report.summary.resumed_bytes > 0, sent < PARTS, "{:?}", report.summary);
        (sent, self.count("begin") - begun)
    }

    fn journal(&self) -> PathBuf {
        self.journals.path().join(&names(self.journals.path())[0])
    }

    fn age_journal(&self) {
        let journal = std::fs::File::options().write(true).open(self.journal()).unwrap();
        journal.set_modified(SystemTime::now() - Duration::from_secs(8 * 24 * 3600)).unwrap();
    }
}

#[test]
fn an_upload_that_failed_half_way_sends_only_what_is_missing() {
    at_once(&KINDS, |kind| {
        for mut upload in interrupted(kind) {
            upload.fail_half_way();
            assert_eq!(upload.again(), (PARTS - SENT, 0), "{kind:?} {}", upload.is_session);
            assert_eq!(upload.open(), 0);
        }
    });
}

#[test]
fn a_cancelled_upload_is_kept_where_that_is_asked_for() {
    at_once(&DIALECTS, |kind| {
        for keep_partial in [true, false] {
            for mut upload in interrupted(kind) {
                let job = upload.begun(upload.request().keep_partial(keep_partial));
                job.canceller().cancel();
                let summary = Report::of(job).summary;
                assert!(summary.interrupted);
                assert_eq!(summary.kept_bytes, if keep_partial { SENT * PART as u64 } else { 0 });
                assert_eq!(upload.open(), u64::from(keep_partial));
                upload.faults(&[]);
                upload.stage.renew();
                let expected = if keep_partial { (PARTS - SENT, 0) } else { (PARTS, 1) };
                assert_eq!(upload.again(), expected, "{kind:?} {}", upload.is_session);
                assert_eq!(upload.open(), 0);
            }
        }
    });
}

#[test]
fn a_changed_file_or_description_aborts_the_old_upload() {
    at_once(&DIALECTS, |kind| {
        for mut upload in interrupted(kind) {
            upload.fail_half_way();
            upload.bytes = noise(SIZE, 2);
            std::fs::write(&upload.file, &upload.bytes).unwrap();
            assert_eq!(upload.again(), (PARTS, 1), "{kind:?} {}", upload.is_session);
            assert_eq!(upload.open(), 0);
        }
        for mut upload in interrupted(kind) {
            upload.fail_half_way();
            let put = PutOptions::default().content_type("text/other");
            upload.stage.copy(upload.request().put(put)).all_verified();
            let meta = upload.stage.client.stat(&upload.stage.url("big")).unwrap();
            assert_eq!(meta.content_type.as_deref(), Some("text/other"));
            assert_eq!((upload.open(), upload.count("begin")), (0, 2), "{kind:?} {}", upload.is_session);
        }
    });
}

/// If a resumed upload has to start over, its report doesn't count it as resumed.
#[test]
fn a_resumed_upload_in_conflict_sends_and_counts_all_bytes_once() {
    let mut upload = Interrupted::new(KINDS[2], false);
    upload.fail_half_way();
    upload.faults(&["complete:1 status 409 ConditionalRequestConflict"]);
    let job = upload.stage.client.copy(upload.request().no_clobber(true));
    let progress = Arc::clone(job.progress());
    let report = Report::of(job);
    report.all_verified();
    assert_eq!(report.summary.resumed_bytes, 0);
    let all = upload.bytes.len() as u64;
    assert_eq!((progress.bytes_found(), progress.bytes_done()), (all, all));
    assert!(upload.stage.stored("big") == upload.bytes && upload.open() == 0);
}

/// Settings of the client also change the object.
#[test]
fn an_upload_begun_under_another_key_or_header_is_aborted_and_starts_over() {
    let secret = "c2VjcmV0";
    let key = |settings: ClientBuilder| settings.kms_key("keys/k");
    let header = |settings: ClientBuilder| settings.header("x-trace", secret).unwrap();
    let changes: [&(dyn Fn(ClientBuilder) -> ClientBuilder + Sync); 2] = [&key, &header];
    at_once(&DIALECTS, |kind| {
        for change in changes {
            for mut upload in interrupted(kind) {
                upload.fail_half_way();
                upload.stage.renew_with(change);
                assert_eq!(upload.again(), (PARTS, 1), "{kind:?} {}", upload.is_session);
                assert_eq!(upload.open(), 0);
                upload.stage.rm(vec![upload.stage.url("big")], false).all_done();
                // With the same settings the upload is resumed. The journal contains none of them in plain
                // text.
                upload.fail_half_way();
                let journal = std::fs::read_to_string(upload.journal()).unwrap();
                assert!(!journal.contains(secret) && !journal.contains("keys/k"), "{journal}");
                assert_eq!(upload.again(), (PARTS - SENT, 0), "{kind:?} {}", upload.is_session);
            }
        }
    });
}

/// On S3 the final request carries the precondition. On GCS, an upload with a precondition uses a resumable
/// session.
#[test]
fn a_precondition_that_comes_later_goes_on_where_the_upload_can_keep_it() {
    at_once(&DIALECTS, |kind| {
        let mut upload = Interrupted::new(kind, false);
        upload.fail_half_way();
        upload.is_session = true;
        let expected = if kind.provider == Provider::S3 { (PARTS - SENT, 0) } else { (PARTS, 1) };
        assert_eq!(upload.again(), expected, "{kind:?}");
        assert_eq!(upload.open(), 0);
    });
}

#[test]
fn an_upload_that_the_store_has_forgotten_starts_over() {
    at_once(&DIALECTS, |kind| {
        for mut upload in interrupted(kind) {
            upload.fail_half_way();
            upload.faults(&[if upload.is_session {
                "status-query status 410"
            } else {
                "status-query status 404"
            }]);
            assert_eq!(upload.again(), (PARTS, 1), "{kind:?} {}", upload.is_session);
        }
    });
}

/// The permission to send parts doesn't include the permission to list parts.
#[test]
fn an_upload_that_cannot_be_asked_for_is_aborted_and_starts_over() {
    at_once(&DIALECTS, |kind| {
        for mut upload in interrupted(kind) {
            upload.fail_half_way();
            upload.faults(&["status-query status 403"]);
            assert_eq!(upload.again(), (PARTS, 1), "{kind:?} {}", upload.is_session);
            assert_eq!(upload.open(), 0);
        }
    });
}

#[test]
fn a_part_that_is_not_as_the_journal_says_is_sent_again() {
    at_once(&DIALECTS, |kind| {
        let mut upload = Interrupted::new(kind, false);
        upload.fail_half_way();
        // The part recorded in the damaged last line is lost.
        let mut journal = std::fs::read(upload.journal()).unwrap();
        let len = journal.len();
        journal[len - 9] ^= 1;
        std::fs::write(upload.journal(), journal).unwrap();
        assert_eq!(upload.again(), (PARTS - SENT + 1, 0), "{kind:?}");
    });
}

/// The session's final answer was lost, and Laneway could not ask for the result. The object exists, so
/// nothing is sent again.
#[test]
fn a_session_that_had_finished_is_accepted_where_its_object_is_the_file() {
    for is_same in [true, false] {
        let mut upload = Interrupted::new(KINDS[0], false);
        let gcs = GcsConfig { xml: false, ..GcsConfig::default() };
        upload.stage = Stage::set_up(KINDS[0], Config { gcs, ..Config::default() }, |settings| {
            settings.upload_journals(upload.journals.path())
        });
        upload.file = upload.stage.file("big", &upload.bytes);
        let lost = format!("part:{PARTS} lose-answer");
        upload.faults(&[&lost, "status-query status 403", "head status 403"]);
        let report = upload.stage.copy(upload.request());
        assert_eq!(report.failure().0, "permission");
        assert_eq!(names(upload.journals.path()).len(), 1);
        upload.faults(&[]);
        upload.stage.renew();
        if !is_same {
            upload.stage.object("big", b"another's, since then");
        }
        let (parts, begun) = (upload.count("part"), upload.count("begin"));
        let report = upload.stage.copy(upload.request());
        if is_same {
            report.all_verified();
            assert_eq!((upload.count("part"), upload.count("begin")), (parts, begun));
        } else {
            report.all_verified();
            assert!(upload.count("part") > parts);
        }
        assert!(names(upload.journals.path()).is_empty());
    }
}

#[test]
fn an_upload_that_is_refused_at_its_beginning_leaves_no_journal() {
    for kind in DIALECTS {
        for upload in interrupted(kind) {
            upload.faults(&["begin status 403"]);
            let report = upload.stage.copy(upload.request());
            assert_eq!(report.failure().0, "permission");
            assert!(names(upload.journals.path()).is_empty(), "{kind:?}");
        }
    }
}

#[test]
fn a_journal_that_is_none_is_ignored() {
    at_once(&DIALECTS, |kind| {
        let mut upload = Interrupted::new(kind, false);
        upload.fail_half_way();
        std::fs::write(upload.journal(), noise(100_000, 3)).unwrap();
        assert_eq!(upload.again(), (PARTS, 1), "{kind:?}");
    });
}

#[test]
fn where_no_journal_can_be_written_the_upload_runs_without() {
    for kind in DIALECTS {
        let file = tempfile::NamedTempFile::new().unwrap();
        let stage = Stage::set_up(kind, Config::default(), |settings| {
            settings.upload_journals(file.path().join("below"))
        });
        let path = stage.file("big", noise(17 * MIB, 1));
        stage.cp(&path, stage.url("big")).all_verified();
    }
}

#[test]
fn two_jobs_that_send_the_same_file_share_no_upload() {
    at_once(&DIALECTS, |kind| {
        let upload = Interrupted::new(kind, false);
        upload.faults(&["part:3 stall"]);
        let first = upload.stage.client.copy(upload.request());
        upload.stage.wait_for("part", 3);
        upload.stage.copy(upload.request()).all_verified();
        assert_eq!(
            (upload.open(), names(upload.journals.path()).len()),
            (1, 1),
            "the first has its own still"
        );
        upload.faults(&[]);
        Report::of(first).all_verified();
        assert!(upload.stage.stored("big") == upload.bytes, "{kind:?}");
        assert_eq!((upload.open(), names(upload.journals.path()).len(), upload.count("begin")), (0, 0, 2));
    });
}

#[test]
fn an_upload_that_was_left_alone_for_a_week_is_aborted() {
    at_once(&DIALECTS, |kind| {
        for mut upload in interrupted(kind) {
            upload.fail_half_way();
            upload.age_journal();
            assert_eq!(upload.again(), (PARTS, 1), "{kind:?} {}", upload.is_session);
            assert_eq!(upload.open(), 0);
        }
        // An upload of another file also removes the stale upload.
        for mut upload in interrupted(kind) {
            upload.fail_half_way();
            upload.age_journal();
            let other = upload.stage.file("other", noise(17 * MIB, 4));
            upload.stage.cp(&other, upload.stage.url("other")).all_verified();
            assert_eq!((upload.open(), names(upload.journals.path()).len()), (0, 0), "{kind:?}");
        }
    });
}

#[test]
fn an_abandoned_upload_that_may_not_be_aborted_is_asked_for_once() {
    at_once(&DIALECTS, |kind| {
        for mut upload in interrupted(kind) {
            upload.fail_half_way();
            upload.age_journal();
            upload.faults(&["abort status 403"]);
            let asked = upload.count("abort");
            for name in ["one", "two"] {
                let other = upload.stage.file(name, noise(17 * MIB, 4));
                upload.stage.cp(&other, upload.stage.url(name)).all_verified();
                assert_eq!((upload.open(), names(upload.journals.path()).len()), (1, 0), "{kind:?} {name}");
                assert_eq!(upload.count("abort"), asked + 1, "{kind:?} {name}");
                upload.stage.renew();
            }
        }
    });
}

#[test]
fn abandoned_uploads_are_aborted_in_each_store() {
    at_once(&DIALECTS, |kind| {
        let mut upload = Interrupted::new(kind, false);
        upload.fail_half_way();
        upload.age_journal();
        let other = upload.stage.file("other", noise(17 * MIB, 4));
        let elsewhere = DIALECTS.iter().find(|other| other.provider != kind.provider).unwrap().provider;
        upload.stage.cp(&other, Location::object(elsewhere, BUCKET, "other")).all_verified();
        assert_eq!((upload.open(), names(upload.journals.path()).len()), (1, 1), "the other store's");
        upload.stage.cp(&other, upload.stage.url("other")).all_verified();
        assert_eq!((upload.open(), names(upload.journals.path()).len()), (0, 0), "{kind:?}");
    });
}

/// Returns a line in the format of a journal.
fn checked_line(record: &serde_json::Value) -> String {
    let json = record.to_string();
    let check = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Nvme, json.as_bytes());
    format!("{check:016x} {json}\n")
}

/// For any content of a journal, the same command writes the exact object.
#[test]
fn a_journal_that_others_have_written_leaves_the_object_exact() {
    let damages: [fn(&mut Vec<serde_json::Value>); 4] = [
        |records| *records = vec![serde_json::json!({"Begun": {"format": 1, "job": "ours"}})],
        |records| records[0]["Begun"]["subject"]["url"] = "s3://other/one".into(),
        |records| {
            // These records claim that nothing is left to do.
            let (size, part) = (u64::MAX, records[1].clone());
            for number in [0, 2, 3, 4, u32::MAX] {
                let mut part = part.clone();
                (part["Part"]["number"], part["Part"]["size"]) = (number.into(), size.into());
                records.push(part);
            }
        },
        |records| {
            let subject = &mut records[0]["Begun"]["subject"];
            (subject["part_len"], subject["file"]["size"]) = (0.into(), u64::MAX.into());
        },
    ];
    at_once(&DIALECTS, |kind| {
        for damage in damages {
            let mut upload = Interrupted::new(kind, false);
            upload.fail_half_way();
            let text = std::fs::read_to_string(upload.journal()).unwrap();
            let records = text.lines().filter_map(|line| serde_json::from_str(line.split_once(' ')?.1).ok());
            let mut records: Vec<serde_json::Value> = records.collect();
            assert_eq!(records.len() as u64, 1 + SENT);
            damage(&mut records);
            std::fs::write(upload.journal(), records.iter().map(checked_line).collect::<String>()).unwrap();
            upload.again();
        }
    });
}
