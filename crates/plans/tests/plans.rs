//! Plans over the embedded store: made, interrupted, run, checked, repeated, and spoiled.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use laneway::{Client, Error, ErrorKind, Location, SyncRequest};
use laneway_plans::{
    KeyRange, PartState, Plan, PlanCheck, PlanRequest, PlanStatus, RowOutcome, RunEvent, Runner, Stop, retry,
    with_share, write_report,
};
use laneway_server::{Config, Server};

/// A server with a bucket `from` of 250 objects below `t/`, and an empty bucket `into`.
struct Place {
    server: Server,
    client: Client,
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let server = Server::start(Config::default()).unwrap();
        ["from", "into", "plans"].iter().for_each(|bucket| server.create_bucket(bucket).unwrap());
        for n in 0..250 {
            server.store().put("from", &format!("t/{n:04}"), format!("object {n}").as_bytes()).unwrap();
        }
        let builder = Client::builder().anonymous(true).s3_endpoint(server.url()).gcs_endpoint(server.url());
        Self { client: builder.build().unwrap(), server, folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn at(&self, name: &str) -> Location {
        Location::from(self.path(name))
    }

    /// Makes a plan of a copy with parts of 100 rows, and opens it.
    fn copy_plan(&self, name: &str) -> Plan {
        self.copy_request().plan(&self.client, &self.at(name), &|_| {}).unwrap();
        self.open(name).unwrap()
    }

    fn copy_request(&self) -> PlanRequest {
        let mut request = PlanRequest::copy(url("s3://from/t"), url("gs://into/u/"));
        request.part_rows = 100;
        request
    }

    /// Brings a plan's folder into the state before the index was written.
    fn interrupt(&self, name: &str) {
        let index = self.path(name).join("index.json");
        let mut header: serde_json::Value = serde_json::from_slice(&fs::read(&index).unwrap()).unwrap();
        header["rows"] = 0.into();
        header["bytes"] = 0.into();
        header["parts"] = serde_json::json!([]);
        header["crc32c"] = "".into();
        fs::remove_file(&index).unwrap();
        fs::write(self.path(name).join("planning.json"), header.to_string()).unwrap();
    }

    fn open(&self, name: &str) -> Result<Plan, Error> {
        Plan::open(&self.client, &self.at(name))
    }

    fn run_all(&self, plan: &Plan) -> Result<BTreeMap<String, RowOutcome>, Error> {
        let rows = Mutex::new(BTreeMap::new());
        let runner = Runner::new(&self.client, plan)?;
        let note = |event: RunEvent<'_>| {
            if let RunEvent::Row(row) = event {
                let before = rows.lock().unwrap().insert(row.url.clone(), row.outcome);
                assert_eq!(before, None, "{} has two outcomes", row.url);
            }
        };
        while runner.run_next(&note)?.is_some() {}
        Ok(rows.into_inner().unwrap())
    }

    /// Returns the bytes of an object of the destination.
    fn read(&self, key: &str) -> Option<Vec<u8>> {
        let bucket = self.client.bucket("gs://into/").unwrap();
        Some(bucket.get(key).call().ok()?.bytes_blocking().unwrap().to_vec())
    }

    fn check(&self, plan: &Plan) -> PlanCheck {
        let mut whole = PlanCheck::default();
        for part in 0..plan.parts().len() {
            whole.add(&PlanCheck::of_part(plan, part, &mut |_| {}).unwrap());
        }
        whole
    }
}

fn url(text: &str) -> Location {
    text.parse().unwrap()
}

#[test]
fn planning_that_is_stopped_leaves_no_plan_and_continues_later() {
    let place = Place::new();
    let mut request = place.copy_request();
    request.stop.stop();
    let stopped = request.plan(&place.client, &place.at("p"), &|_| {}).unwrap_err();
    assert_eq!(stopped.kind(), ErrorKind::Cancelled);
    assert!(place.open("p").is_err());
    request.stop = Stop::default();
    assert_eq!(request.plan(&place.client, &place.at("p"), &|_| {}).unwrap().objects, 250);
    assert_eq!(place.open("p").unwrap().index().rows, 250);
}

#[test]
fn a_copy_is_planned_run_and_proven() {
    let place = Place::new();
    for folder in [place.at("plan"), url("s3://plans/one"), url("gs://plans/two/")] {
        place.copy_request().plan(&place.client, &folder, &|_| {}).unwrap();
        let plan = Plan::open(&place.client, &folder).unwrap();
        assert_eq!(plan.parts().iter().map(|part| part.rows).collect::<Vec<_>>(), [100, 100, 50]);
        assert_eq!(plan.index().destination.as_deref(), Some("gs://into/u/t/"));
        assert!(!PlanStatus::read(&plan).unwrap().is_clean());
        let rows = place.run_all(&plan).unwrap();
        assert_eq!(rows.len(), 250);
        assert!(rows.values().all(|outcome| *outcome == RowOutcome::Done));
        let status = PlanStatus::read(&plan).unwrap();
        assert!(status.is_clean() && status.rows_done == 250, "{status:?}");
        let check = place.check(&plan);
        assert!(check.is_clean() && check.same == 250 && check.extra == 0, "{check:?}");
    }
    assert_eq!(place.read("u/t/0249").as_deref(), Some(&b"object 249"[..]));
}

#[test]
fn planning_that_was_interrupted_goes_on_after_its_last_part() {
    let place = Place::new();
    let whole = place.copy_plan("plan");
    place.interrupt("plan");
    fs::remove_file(place.path("plan/parts/000002.json")).unwrap();
    let unfinished = place.open("plan").unwrap_err();
    assert!(unfinished.to_string().contains("isn't finished"), "{unfinished}");

    let mut other = place.copy_request();
    other.options.no_clobber = true;
    let error = other.plan(&place.client, &place.at("plan"), &|_| {}).unwrap_err();
    assert!(error.to_string().contains("another plan was begun"), "{error}");

    let totals = place.copy_request().plan(&place.client, &place.at("plan"), &|_| {}).unwrap();
    assert_eq!((totals.resumed_rows, totals.objects), (200, 250));
    let again = place.open("plan").unwrap();
    assert_eq!(again.parts()[..2], whole.parts()[..2]);
    assert_eq!(place.run_all(&again).unwrap().len(), 250);
}

#[test]
fn a_plan_whose_index_alone_is_missing_lists_nothing_again() {
    let place = Place::new();
    let whole = place.copy_plan("plan");
    place.interrupt("plan");
    let totals = place.copy_request().plan(&place.client, &place.at("plan"), &|_| {}).unwrap();
    assert_eq!((totals.resumed_rows, totals.objects), (250, 250));
    assert_eq!(place.open("plan").unwrap().parts(), whole.parts());
}

#[test]
fn a_plan_that_another_process_makes_is_left_alone() {
    let place = Place::new();
    place.copy_plan("plan");
    place.interrupt("plan");
    let lease = r#"{"runner":"another","attempt":1,"term_s":60,"renewals":0}"#;
    fs::write(place.path("plan/claims/planning.json"), lease).unwrap();
    let error = place.copy_request().plan(&place.client, &place.at("plan"), &|_| {}).unwrap_err();
    assert!(error.to_string().contains("another process makes this plan"), "{error}");
    let given_up = lease.replace("60", "0");
    fs::write(place.path("plan/claims/planning.json"), given_up).unwrap();
    place.copy_request().plan(&place.client, &place.at("plan"), &|_| {}).unwrap();
}

#[test]
fn ranges_without_objects_have_a_part_that_lists_the_destination() {
    let place = Place::new();
    place.server.store().put("into", "t/9", b"extra").unwrap();
    let mut request = PlanRequest::verify(url("s3://from/t"), url("gs://into/t"));
    for (after, through) in [(None, Some("5")), (Some("5"), None)] {
        request.range = KeyRange::new(after.map(str::to_owned), through.map(str::to_owned));
        request.plan(&place.client, &place.at("plan"), &|_| {}).unwrap();
    }
    let plan = place.open("plan").unwrap();
    place.run_all(&plan).unwrap();
    let status = PlanStatus::read(&plan).unwrap();
    assert_eq!((status.failures["missing"], status.failures["extra"]), (250, 1));
}

#[test]
fn ranges_are_planned_apart_and_run_together() {
    let place = Place::new();
    let mut request = place.copy_request();
    request.range = KeyRange::new(Some("0120".to_owned()), None);
    request.plan(&place.client, &place.at("plan"), &|_| {}).unwrap();
    let error = place.open("plan").unwrap_err();
    assert!(error.to_string().contains("up to \"0120\" isn't planned"), "{error}");
    let twice = place.copy_request().plan(&place.client, &place.at("plan"), &|_| {}).unwrap_err();
    assert!(twice.to_string().contains("already has a plan of these names"), "{twice}");
    request.range = KeyRange::new(None, Some("0120".to_owned()));
    request.plan(&place.client, &place.at("plan"), &|_| {}).unwrap();
    let plan = place.open("plan").unwrap();
    assert_eq!(plan.parts().iter().map(|part| part.rows).collect::<Vec<_>>(), [100, 21, 100, 29]);
    assert_eq!(place.run_all(&plan).unwrap().len(), 250);
    assert_eq!(place.check(&plan).same, 250);
}

#[test]
fn a_sync_removes_only_once_every_copy_has_succeeded() {
    let place = Place::new();
    let store = place.server.store();
    store.put("into", "t/0000", b"object 0").unwrap();
    store.put("into", "t/0001", b"changed").unwrap();
    store.put("into", "t/old", b"old").unwrap();
    let sync = SyncRequest::new(url("s3://from/t"), url("gs://into/t")).delete(true).checksum(true);
    let mut request = PlanRequest::sync(sync);
    request.part_rows = 100;
    let totals = request.plan(&place.client, &place.at("plan"), &|_| {}).unwrap();
    assert_eq!((totals.objects, totals.removed), (249, 1));
    let plan = place.open("plan").unwrap();
    let removal = plan.parts().len() - 1;

    assert!(store.remove("from", "t/0007"));
    let runner = Runner::new(&place.client, &plan).unwrap();
    let early = runner.run_part(removal, &|_| {}).unwrap_err();
    assert!(early.to_string().contains("nothing is removed"), "{early}");
    let failed = place.run_all(&plan).unwrap_err();
    assert!(failed.to_string().contains("1 of the copies of part 0 have failed"), "{failed}");
    assert!(place.read("t/old").is_some());
    let again = retry(&place.client, &plan, &place.at("again")).unwrap().unwrap();
    assert_eq!(again.rows, 1, "the object is gone, and the removal is left");
    assert_eq!(place.run_all(&place.open("again").unwrap()).unwrap().len(), 1);
    assert!(place.read("t/old").is_none());

    let place = Place::new();
    place.server.store().put("into", "t/old", b"old").unwrap();
    request.plan(&place.client, &place.at("plan"), &|_| {}).unwrap();
    let plan = place.open("plan").unwrap();
    assert_eq!(place.run_all(&plan).unwrap().len(), 251);
    assert!(place.read("t/old").is_none());
    assert!(place.check(&plan).is_clean());
}

#[test]
fn a_sync_of_an_empty_source_removes_nothing() {
    let place = Place::new();
    place.server.store().put("into", "t/old", b"old").unwrap();
    let sync = SyncRequest::new(url("s3://from/none"), url("gs://into/t")).delete(true);
    let error = PlanRequest::sync(sync).plan(&place.client, &place.at("plan"), &|_| {}).unwrap_err();
    assert!(place.open("plan").is_err(), "{error}");
}

#[test]
fn a_removal_spares_objects_that_were_replaced() {
    let place = Place::new();
    let mut request = PlanRequest::remove(url("s3://from/t"));
    request.part_rows = 100;
    request.plan(&place.client, &place.at("plan"), &|_| {}).unwrap();
    let plan = place.open("plan").unwrap();
    let store = place.server.store();
    store.put("from", "t/0003", b"new").unwrap();
    assert!(store.remove("from", "t/0004"));
    let rows = place.run_all(&plan).unwrap();
    assert_eq!(rows["s3://from/t/0003"], RowOutcome::Failed);
    assert_eq!(rows["s3://from/t/0004"], RowOutcome::Done, "a missing object counts as removed");
    assert_eq!(store.keys("from"), ["t/0003"]);
    let check = place.check(&plan);
    assert!(check.is_clean() && check.replaced == 1 && check.same == 249, "{check:?}");
}

#[test]
fn the_marker_of_a_folder_is_a_row_like_others() {
    let place = Place::new();
    place.server.store().put("from", "t/", b"").unwrap();
    let plan = place.copy_plan("copy");
    assert_eq!(place.run_all(&plan).unwrap().len(), 251);
    assert!(place.read("u/t/").is_some() && place.check(&plan).is_clean());
    PlanRequest::remove(url("s3://from/t")).plan(&place.client, &place.at("remove"), &|_| {}).unwrap();
    let plan = place.open("remove").unwrap();
    place.server.store().put("from", "t/", b"new").unwrap();
    assert_eq!(place.run_all(&plan).unwrap()["s3://from/t/"], RowOutcome::Failed);
    assert_eq!(place.server.store().keys("from"), ["t/"]);
}

#[test]
fn a_check_of_a_copy_that_spares_objects_looks_for_them_only() {
    let place = Place::new();
    place.server.store().put("into", "u/t/0001", b"older").unwrap();
    let mut request = place.copy_request();
    request.options.no_clobber = true;
    request.plan(&place.client, &place.at("plan"), &|_| {}).unwrap();
    let plan = place.open("plan").unwrap();
    assert_eq!(place.run_all(&plan).unwrap()["s3://from/t/0001"], RowOutcome::Skipped);
    assert!(place.check(&plan).is_clean());
}

#[test]
fn failed_rows_are_repeated_in_a_plan_of_their_own() {
    let place = Place::new();
    let plan = place.copy_plan("plan");
    let store = place.server.store();
    assert!(store.remove("from", "t/0005"));
    store.put("from", "t/0120", b"newer").unwrap();
    let rows = place.run_all(&plan).unwrap();
    let failed: Vec<_> =
        rows.iter().filter(|(_, outcome)| **outcome == RowOutcome::Failed).map(|(url, _)| url).collect();
    assert!(failed.contains(&&"s3://from/t/0005".to_owned()), "{failed:?}");
    let mut report = Vec::new();
    assert_eq!(write_report(&plan, &mut report).unwrap(), 250);
    let report = String::from_utf8(report).unwrap();
    assert!(report.lines().any(|line| line.starts_with("from,t/0005,,failed,")), "{report}");
    assert!(report.lines().any(|line| line == "from,t/0006,,succeeded,,200,"), "{report}");

    store.put("from", "t/0005", b"back again").unwrap();
    let index = retry(&place.client, &plan, &place.at("again")).unwrap().unwrap();
    assert_eq!(index.rows, failed.len() as u64);
    let again = place.open("again").unwrap();
    assert!(place.run_all(&again).unwrap().values().all(|outcome| *outcome == RowOutcome::Done));
    assert_eq!(place.read("u/t/0005").as_deref(), Some(&b"back again"[..]));
    assert!(place.check(&again).is_clean());
    assert_eq!(retry(&place.client, &again, &place.at("third")).unwrap(), None);
}

#[test]
fn a_check_names_what_is_missing_different_and_extra() {
    let place = Place::new();
    let plan = place.copy_plan("plan");
    place.run_all(&plan).unwrap();
    let store = place.server.store();
    assert!(store.remove("into", "u/t/0100"));
    store.put("into", "u/t/0150", b"object xyz").unwrap();
    store.put("into", "u/t/0099-and-more", b"extra").unwrap();
    let mut found = Vec::new();
    for part in 0..3 {
        PlanCheck::of_part(&plan, part, &mut |row| {
            found.push(format!("{} {}", row.class.as_deref().unwrap(), row.url));
        })
        .unwrap();
    }
    assert_eq!(
        found,
        ["extra gs://into/u/t/0099-and-more", "missing s3://from/t/0100", "different s3://from/t/0150"]
    );

    PlanRequest::verify(url("s3://from/t"), url("gs://into/u/t"))
        .plan(&place.client, &place.at("verify"), &|_| {})
        .unwrap();
    let verify = place.open("verify").unwrap();
    place.run_all(&verify).unwrap();
    let status = PlanStatus::read(&verify).unwrap();
    assert_eq!((status.rows_done, status.rows_failed), (248, 3));
    assert_eq!(status.failures.keys().collect::<Vec<_>>(), ["different", "extra", "missing"]);
}

#[test]
fn two_runners_share_a_plan_and_no_row_is_there_twice() {
    let place = Place::new();
    let mut request = place.copy_request();
    request.part_rows = 10;
    request.plan(&place.client, &place.at("plan"), &|_| {}).unwrap();
    let plan = place.open("plan").unwrap();
    let rows = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let runner = Runner::new(&place.client, &plan).unwrap().term(Duration::from_secs(6));
                let note = |event: RunEvent<'_>| {
                    if let RunEvent::Row(row) = event {
                        rows.lock().unwrap().push(row.url.clone());
                    }
                };
                while runner.run_next(&note).unwrap().is_some() {}
            });
        }
    });
    let mut rows = rows.into_inner().unwrap();
    rows.sort();
    rows.dedup();
    assert_eq!(rows.len(), 250);
    assert_eq!(PlanStatus::read(&plan).unwrap().rows_done, 250);
}

#[test]
fn a_runner_that_is_stopped_gives_its_part_up() {
    let place = Place::new();
    let plan = place.copy_plan("plan");
    let stop = Stop::default();
    let runner = Runner::new(&place.client, &plan).unwrap().stop(stop.clone());
    let stopping = |event: RunEvent<'_>| {
        if let RunEvent::Begun(..) = event {
            stop.stop();
        }
    };
    assert_eq!(runner.run_next(&stopping).unwrap_err().kind(), ErrorKind::Cancelled);
    let status = PlanStatus::read(&plan).unwrap();
    assert!(status.parts.iter().all(|part| *part == PartState::Waiting), "{:?}", status.parts);
    assert_eq!(place.run_all(&plan).unwrap().len(), 250);
}

#[test]
fn shares_of_the_bandwidth_are_leases() {
    let place = Place::new();
    let mut request = place.copy_request();
    (request.options.bandwidth_limit, request.options.runners) = (Some(1000), Some(2));
    request.plan(&place.client, &place.at("plan"), &|_| {}).unwrap();
    let plan = place.open("plan").unwrap();
    let term = Duration::from_secs(600);
    let stop = Stop::default();
    let shares = with_share(&plan, term, &stop, |first| {
        let second = with_share(&plan, term, &stop, |second| {
            let none = Stop::default();
            none.stop();
            (second, with_share(&plan, term, &none, |third| third).unwrap())
        });
        (first, second.unwrap().unwrap())
    });
    assert_eq!(shares.unwrap(), Some((Some(500), (Some(500), None))));
    assert_eq!(with_share(&plan, term, &stop, |again| again).unwrap(), Some(Some(500)), "they were given up");
}

/// Changes a byte in the middle of a file.
fn spoil(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[test]
fn files_that_were_changed_or_are_missing_are_named() {
    let place = Place::new();
    let plan = place.copy_plan("plan");
    let runner = Runner::new(&place.client, &plan).unwrap();
    let refused = |number: usize, why: &str| {
        let error = runner.run_part(number, &|_| {}).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(error.to_string().contains(why), "{error}");
    };
    spoil(&place.path("plan").join(&plan.parts()[0].name));
    refused(0, "was changed or is damaged");
    fs::remove_file(place.path("plan").join(&plan.parts()[1].name)).unwrap();
    refused(1, "is missing");
    let result = runner.run_part(2, &|_| {}).unwrap();
    spoil(&place.path("plan").join(&result.data));
    let error = retry(&place.client, &plan, &place.at("again")).unwrap_err();
    assert!(error.to_string().contains("part 0 hasn't ended"), "{error}");
    assert_eq!(place.server.store().keys("into").len(), 50);

    // A result of another part.
    let results: Vec<_> =
        fs::read_dir(place.path("plan/results")).unwrap().map(|entry| entry.unwrap().path()).collect();
    let json = results.iter().find(|path| path.extension().is_some_and(|end| end == "json")).unwrap();
    let stem =
        Path::new(&plan.parts()[0].name).file_name().unwrap().to_str().unwrap().split('.').next().unwrap();
    fs::copy(json, place.path("plan/results").join(format!("{stem}.json"))).unwrap();
    refused(0, "result of another part");
}

#[test]
fn requests_that_make_no_sense_are_refused_by_name() {
    let place = Place::new();
    let refused = |request: PlanRequest, why: &str| {
        let error = request.plan(&place.client, &place.at("plan"), &|_| {}).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
        assert!(!place.path("plan").exists());
    };
    refused(PlanRequest::copy(place.at("tree"), url("s3://into/")), "must be prefixes of buckets");
    refused(PlanRequest::copy(url("s3://from/t/*"), url("s3://into/")), "needs a prefix");
    refused(PlanRequest::remove(url("s3://")), "names no bucket");
    let mut empty = place.copy_request();
    empty.range = KeyRange::new(Some("b".to_owned()), Some("a".to_owned()));
    refused(empty, "is empty");
    for folder in ["s3://from/t/plan", "gs://into/", "gs://into/u/t/x"] {
        let error = place.copy_request().plan(&place.client, &url(folder), &|_| {}).unwrap_err();
        assert!(error.to_string().contains("overlap"), "{error}");
    }
    let none = place.open("nothing").unwrap_err();
    assert!(none.to_string().contains("no plan in this folder"), "{none}");

    let plan = place.copy_plan("plan");
    assert!(plan.part(3).unwrap_err().to_string().contains("has 3 parts"));
    let twice = place.copy_request().plan(&place.client, &place.at("plan"), &|_| {}).unwrap_err();
    assert!(twice.to_string().contains("already has a plan"), "{twice}");

    let missing = PlanRequest::copy(url("s3://from/none"), url("s3://into/"));
    missing.plan(&place.client, &place.at("again"), &|_| {}).unwrap_err();
    place.copy_request().plan(&place.client, &place.at("again"), &|_| {}).unwrap();
}
