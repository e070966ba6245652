//! Cancelled jobs.

use laneway::{Canceller, CopyRequest, Event, Job, Location, Provider, Summary};

use crate::stage::{DIALECTS, MIB, Place, Stage, at_once, names, noise};

fn finish(mut job: Job) -> Summary {
    let mut last = None;
    while let Some(event) = job.next_blocking() {
        last = Some(event);
    }
    match last {
        Some(Event::Done(summary)) => summary,
        other => panic!("the last event is {other:?}"),
    }
}

#[test]
fn a_cancelled_download_leaves_no_file() {
    at_once(&DIALECTS, |kind| {
        let stage = Stage::with_faults(kind, &["get stall@2MiB"]);
        stage.object("big", &noise(60 * MIB, 1));
        let job =
            stage.client.copy(CopyRequest::new(vec![stage.url("big")], Place::from(stage.path("out/big")).0));
        stage.wait_for("get", 2);
        job.canceller().cancel();
        assert!(finish(job).interrupted);
        assert!(names(&stage.path("out")).is_empty(), "{kind:?}: {:?}", names(&stage.path("out")));
    });
}

#[test]
fn a_cancelled_upload_is_aborted_in_the_store() {
    for kind in DIALECTS {
        let stage = Stage::with_faults(kind, &["part:2-9 stall@1MiB"]);
        let path = stage.file("big", noise(60 * MIB, 1));
        let job = stage.client.copy(CopyRequest::new(vec![Place::from(&path).0], stage.url("big")));
        stage.wait_for("part", 2);
        job.canceller().cancel();
        assert!(finish(job).interrupted);
        assert!(stage.keys().is_empty());
        assert_eq!(stage.server.counters().multipart_open, 0, "{kind:?}");
    }
}

#[test]
fn a_cancelled_composition_leaves_no_upload_and_no_temporary_object() {
    at_once(&DIALECTS, |kind| {
        let (rule, verb, count, size) = match kind.provider {
            Provider::Gcs => ("compose:1-2 delay 1s", "compose", 40, 1),
            _ => ("copy:2-9 stall", "copy", 3, 5 * MIB),
        };
        let stage = Stage::with_faults(kind, &[rule]);
        let keys: Vec<_> = (0..count).map(|i| format!("p/{i:02}")).collect();
        keys.iter().for_each(|key| stage.object(key, &noise(size, 1)));
        let sources: Vec<_> = keys.iter().map(|key| stage.url(key)).collect();
        let canceller = Canceller::default();
        let error = std::thread::scope(|scope| {
            let to = stage.url("all");
            let put = laneway::PutOptions::default();
            let (client, sources, canceller) = (&stage.client, &sources, &canceller);
            let composing = scope.spawn(move || client.compose_until(canceller, sources, &to, put));
            stage.wait_for(verb, 2);
            canceller.cancel();
            composing.join().unwrap().unwrap_err()
        });
        assert!(error.is_cancelled(), "{error}");
        assert_eq!(stage.keys(), keys);
        assert_eq!(stage.server.counters().multipart_open, 0, "{kind:?}");
    });
}

#[test]
fn a_cancelled_session_and_a_cancelled_pipe_are_aborted_in_the_store() {
    at_once(&DIALECTS, |kind| {
        // On GCS a condition requires a resumable session. A pipe has no known length.
        for is_pipe in [false, true] {
            let stage = Stage::with_faults(kind, &["part:2-9 stall@1MiB"]);
            let bytes = noise(60 * MIB, 1);
            let path = stage.file("big", &bytes);
            let fifo = stage.fifo("fifo");
            let writer = is_pipe.then(|| {
                let fifo = fifo.clone();
                // The write fails once the pipe has no reader.
                std::thread::spawn(move || std::fs::write(fifo, bytes).is_ok())
            });
            let source = if is_pipe { &fifo } else { &path };
            let request = CopyRequest::new(vec![Place::from(source).0], stage.url("big"));
            let job = stage.client.copy(request.no_clobber(true));
            stage.wait_for("part", 2);
            job.canceller().cancel();
            assert!(finish(job).interrupted);
            assert!(stage.keys().is_empty());
            let counters = stage.server.counters();
            assert_eq!((counters.multipart_open, counters.resumable_open), (0, 0), "{kind:?} {is_pipe}");
            if let Some(writer) = writer {
                writer.join().unwrap();
            }
        }
    });
}

#[test]
fn a_cancelled_tree_ends_and_every_file_is_whole_or_absent() {
    at_once(&DIALECTS, |kind| {
        let stage = Stage::with_faults(kind, &["get:40-9999 stall"]);
        for i in 0..200 {
            stage.object(&format!("t/{i}"), &noise(1000, i));
        }
        let mut request = CopyRequest::new(vec![stage.url("t")], Place::from(stage.path("out")).0);
        request.recursive = true;
        let mut job = stage.client.copy(request);
        let first = job.next_blocking();
        assert!(matches!(first, Some(Event::Item(_))), "{first:?}");
        job.canceller().cancel();
        let summary = finish(job);
        assert!(summary.interrupted && summary.failed == 0, "{summary:?}");
        for name in names(&stage.path("out")) {
            assert_eq!(std::fs::read(stage.path("out").join(&name)).unwrap().len(), 1000, "{name}");
        }
    });
}

#[test]
fn what_was_under_way_when_a_job_was_cancelled_is_counted() {
    for kind in DIALECTS {
        let stage = Stage::with_faults(kind, &["put delay 50ms", "get delay 50ms"]);
        let files: Vec<_> = (0..3).map(|i| Location::Local(stage.file(&format!("{i}"), "x"))).collect();
        let job = stage.client.copy(CopyRequest::new(files, stage.url("p/")));
        stage.wait_for("put", 3);
        job.canceller().cancel();
        let summary = finish(job);
        assert_eq!((summary.files, summary.interrupted), (3, true), "{kind:?}: {summary:?}");
        assert_eq!(stage.keys().len(), 3);

        let mut request = CopyRequest::new(vec![stage.url("p")], Place::from(stage.path("out")).0);
        request.recursive = true;
        let job = stage.client.copy(request);
        stage.wait_for("get", 3);
        job.canceller().cancel();
        let summary = finish(job);
        assert_eq!((summary.files, summary.interrupted), (3, true), "{kind:?}: {summary:?}");
        assert_eq!(names(&stage.path("out")).len(), 3);
    }
}

#[test]
fn dropping_a_job_cancels_it_and_the_client_goes_on() {
    for kind in DIALECTS {
        let stage = Stage::with_faults(kind, &["get:1 stall"]);
        stage.object("k", b"x");
        let to = || Location::Local(stage.path("k"));
        let job = stage.client.copy(CopyRequest::new(vec![stage.url("k")], to()));
        stage.wait_for("get", 1);
        drop(job);
        stage.cp(stage.url("k"), stage.path("k2")).all_verified();
        assert!(!stage.path("k").exists());
    }
}
