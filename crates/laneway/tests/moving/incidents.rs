//! Failures of other tools that must not occur here. docs/incidents.md lists the tools, and the tests in other files.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use laneway::{Client, CopyRequest, Engine, Location, Outcome, Provider, SyncRequest, Verified};
use laneway_server::Config;
use laneway_testkit::{Asked, Scripted, answer};

use crate::objects::bucket;
use crate::stage::{BUCKET, DIALECTS, KINDS, MIB, Report, Stage, at_once, names, noise};

/// Returns a client without retries for a scripted store.
fn client(scripted: &Scripted) -> Client {
    Client::builder()
        .anonymous(true)
        .gcs_endpoint(scripted.url())
        .s3_endpoint(scripted.url())
        .retry_for(Duration::ZERO)
        .engine(Engine::builder().build())
        .build()
        .unwrap()
}

fn s3(key: &str) -> Location {
    Location::object(Provider::S3, BUCKET, key)
}

/// Returns S3's description of an object of 5 bytes.
fn described(headers: &[(&str, &str)]) -> Vec<u8> {
    let mut head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nETag: \"e\"\r\n".to_owned();
    headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
    format!("{head}\r\n").into_bytes()
}

/// Bodies of answers that have status 200 but don't confirm that the request succeeded.
const NO_ANSWERS: [&str; 3] = [
    "<?xml version=\"1.0\"?>\n<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>",
    "<Error><Code>InternalError</Code><Message>We encountered an internal error.</Message></Error>",
    "<html><head></head><body>Please sign in to this network.</body></html>",
];

/// aws-sdk-java-v2 #7068.
#[test]
fn an_error_that_comes_with_a_200_is_no_copy_and_a_move_keeps_its_source() {
    for body in NO_ANSWERS {
        let scripted = Scripted::serve(move |asked| match asked.method.as_str() {
            "HEAD" => described(&[]),
            _ => answer(200, &[], body),
        });
        for is_move in [false, true] {
            let request = CopyRequest::new(vec![s3("k")], s3("c")).remove_source(is_move);
            let report = Report::of(client(&scripted).copy(request));
            report.failure();
            assert_eq!(report.summary.files, 0, "{body}: {report:?}");
        }
        assert!(scripted.asked().iter().all(|asked| asked.method != "DELETE"), "{:?}", scripted.asked());
    }
}

#[test]
fn an_error_that_comes_with_a_200_completes_no_upload() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    std::fs::write(&path, noise(20 * MIB, 1)).unwrap();
    for body in NO_ANSWERS {
        // The existing object has the right size. Laneway must not mistake it for the upload.
        let scripted = Scripted::serve(move |asked| match asked.method.as_str() {
            "HEAD" => format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nETag: \"old\"\r\n\r\n", 20 * MIB)
                .into_bytes(),
            "POST" if asked.target.contains("uploads") => answer(
                200,
                &[],
                "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>",
            ),
            "PUT" => answer(200, &[("ETag", "\"p\"")], ""),
            _ => answer(200, &[], body),
        });
        let report = Report::of(
            client(&scripted).copy(CopyRequest::new(vec![Location::from(path.as_path())], s3("k"))),
        );
        report.failure();
        assert_eq!(report.summary.files, 0, "{body}");
    }
}

#[test]
fn an_error_that_comes_with_a_200_removes_nothing() {
    for body in NO_ANSWERS {
        let scripted = Scripted::serve(move |asked| match asked.method.as_str() {
            "POST" => answer(200, &[], body),
            _ => answer(403, &[], "<Error><Code>AccessDenied</Code></Error>"),
        });
        let bucket = client(&scripted).bucket(&format!("s3://{BUCKET}/")).unwrap();
        let mut removed = bucket.delete_many(futures_util::stream::iter(["a", "b", "c"].map(str::to_owned)));
        for key in ["a", "b", "c"] {
            let (of, outcome) = removed.next_blocking().unwrap();
            assert!(of == key && outcome.is_err(), "{body}: {key} counts as removed");
        }
        assert!(scripted.asked().iter().any(|asked| asked.method == "POST"));
    }
}

#[test]
fn an_error_that_comes_with_a_200_removes_no_single_object() {
    for (provider, is_there) in
        DIALECTS.map(|kind| kind.provider).into_iter().flat_map(|p| [(p, true), (p, false)])
    {
        for body in NO_ANSWERS.into_iter().chain([r#"{"message":"x"}"#]) {
            let scripted = Scripted::serve(move |asked| match (asked.method.as_str(), is_there) {
                ("DELETE", _) => answer(200, &[], body),
                ("HEAD", true) => described(&[]),
                ("GET", true) => answer(
                    200,
                    &[("Content-Type", "application/json")],
                    r#"{"bucket":"bucket","name":"k","size":"5","generation":"7"}"#,
                ),
                _ => answer(404, &[], ""),
            });
            let scheme = if provider == Provider::S3 { "s3" } else { "gs" };
            let bucket = client(&scripted).bucket(&format!("{scheme}://{BUCKET}/")).unwrap();
            let removed = bucket.delete("k").call();
            assert_eq!(removed.is_err(), is_there, "{provider:?} {body}: {removed:?}");
            assert_eq!(scripted.asked().len(), 2, "{provider:?} {body}: {:?}", scripted.asked());
        }
    }
}

/// If the answer to a put doesn't come from the store, only the object itself proves that the put succeeded. A
/// proxy's page may have an ETag.
#[test]
fn an_error_that_comes_with_a_200_is_no_put_even_with_an_etag() {
    let answers = NO_ANSWERS.map(|body| (&[("ETag", "\"page\"")][..], body)).into_iter();
    for (headers, body) in answers.chain([(&[][..], "")]) {
        for (crc32c, is_ours) in [("yZRlqg==", false), ("4waSgw==", true)] {
            let scripted = Scripted::serve(move |asked| {
                match asked.method.as_str() {
                "HEAD" => format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nETag: \"e\"\r\nx-amz-checksum-crc32c: {crc32c}\r\n\r\n"
                )
                .into_bytes(),
                _ => answer(200, headers, body),
            }
            });
            let bucket = client(&scripted).bucket(&format!("s3://{BUCKET}/")).unwrap();
            let put = bucket.put("k", b"123456789".to_vec()).call();
            assert_eq!(put.is_ok(), is_ours, "{headers:?} {body}: {put:?}");
        }
    }
}

/// A page that isn't a listing must not count as an empty listing. Otherwise a sync would remove all objects
/// that the page doesn't show.
#[test]
fn an_error_that_comes_with_a_200_is_no_empty_listing() {
    const PAGE: &str = "<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>\
         <Contents><Key>p/a</Key><Size>1</Size><ETag>&quot;e&quot;</ETag></Contents></ListBucketResult>";
    let of_gcs = [
        r#"{"error":{"code":500,"message":"Backend Error"}}"#,
        r#"{"message":"x"}"#,
        r#"{"fault":{}}"#,
        "{}",
        "[]",
        NO_ANSWERS[2],
    ];
    let cases = NO_ANSWERS.map(|body| (Provider::S3, body)).into_iter();
    for (provider, body) in cases.chain(of_gcs.map(|body| (Provider::Gcs, body))) {
        for pages in [0, 1] {
            let scripted = Scripted::serve(move |asked: &Asked| {
                let is_next =
                    asked.target.contains("continuation-token") || asked.target.contains("pageToken");
                match (asked.target.contains("list-type") || asked.target.contains("/o?"), provider) {
                    (true, Provider::S3) if pages == 1 && !is_next => answer(200, &[], PAGE),
                    (true, Provider::Gcs) if pages == 1 && !is_next => answer(
                        200,
                        &[],
                        r#"{"kind":"storage#objects","nextPageToken":"t","items":[{"name":"p/a","size":"1","generation":"1","crc32c":"AAAAAA=="}]}"#,
                    ),
                    (true, _) => answer(200, &[], body),
                    (false, Provider::S3) => answer(200, &[("ETag", "\"e\"")], "x"),
                    (false, _) => {
                        answer(200, &[("x-goog-generation", "1"), ("x-goog-stored-content-length", "1")], "x")
                    }
                }
            });
            let dir = tempfile::tempdir().unwrap();
            let folder = dir.path().join("tree");
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join("b"), "mine").unwrap();
            let source = Location::object(provider, BUCKET, "p");
            let request = SyncRequest::new(source, Location::from(folder.as_path()));
            let report = Report::of(client(&scripted).sync(request.delete(true).allow_empty(true)));
            assert!(report.summary.failed > 0, "{provider:?} {body}: {report:?}");
            assert_eq!((report.summary.removed, folder.join("b").exists()), (0, true), "{provider:?} {body}");
        }
    }
}

/// s3fs-fuse and other tools have reported success for files with a hole in place of a range that never arrived.
#[test]
fn a_range_that_never_comes_leaves_no_file_with_a_gap() {
    at_once(&KINDS, |kind| {
        let stage = Stage::with_faults(kind, &["get:1 reset@3MiB", "get:2 status 403"]);
        stage.object("k", &noise(40 * MIB, 1));
        stage.file("out/k", "old");
        let report = stage.cp(stage.url("k"), stage.path("out/k"));
        assert_eq!((report.failure().0, report.summary.files), ("permission", 0), "{kind:?}");
        assert_eq!(std::fs::read(stage.path("out/k")).unwrap(), b"old", "{kind:?}");
    });
}

/// aws-sdk-go-v2 #3526: every part was written at the offset it would have if all parts had the first one's size.
#[test]
fn an_object_of_unequal_parts_comes_whole() {
    at_once(&KINDS, |kind| {
        let stage = Stage::new(kind);
        let upload = bucket(&stage, "").begin_multipart("k").call().unwrap();
        let bytes = noise(32 * MIB, 2);
        let (mut parts, mut at) = (Vec::new(), 0);
        for (number, mib) in [(1, 6), (2, 5), (3, 12), (4, 8), (5, 1)] {
            let part = bytes[at..at + mib * MIB].to_vec();
            at += mib * MIB;
            parts.push(upload.part(number, part).call().unwrap());
        }
        upload.complete(parts).call().unwrap();
        stage.cp(stage.url("k"), stage.path("k")).all_done();
        assert!(std::fs::read(stage.path("k")).unwrap() == bytes, "{kind:?}");
    });
}

/// A body breaks off in the middle, and the answer that resumes it begins at another offset.
#[test]
fn bytes_from_a_wrong_offset_are_not_written() {
    let bytes = noise(300_000, 3);
    let whole = bytes.clone();
    let to = |stage: &Path| Location::from(stage);
    for (case, is_done) in [("in place", true), ("from the start as 200", false), ("another range", false)] {
        let bytes = whole.clone();
        let scripted = Scripted::serve(move |asked: &Asked| {
            let total = bytes.len();
            let head = |status: &str, range: Option<(usize, usize)>, length: usize| {
                let range = range.map(|(a, b)| format!("Content-Range: bytes {a}-{}/{total}\r\n", b - 1));
                format!(
                    "HTTP/1.1 {status}\r\nETag: \"e\"\r\nConnection: close\r\nContent-Length: {length}\r\n{}\r\n",
                    range.unwrap_or_default()
                )
                .into_bytes()
            };
            let from = asked
                .header("range")
                .and_then(|range| range.strip_prefix("bytes=")?.split('-').next()?.parse().ok());
            match from {
                _ if asked.method == "HEAD" => head("200 OK", None, total),
                None | Some(0) => [head("200 OK", None, total), bytes[..100_000].to_vec()].concat(),
                Some(from) if case == "in place" => {
                    [head("206 Partial Content", Some((from, total)), total - from), bytes[from..].to_vec()]
                        .concat()
                }
                Some(_) if case == "another range" => {
                    [head("206 Partial Content", Some((7, total)), total - 7), bytes[7..].to_vec()].concat()
                }
                Some(_) => [head("200 OK", None, total), bytes.clone()].concat(),
            }
        });
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("k");
        let settings =
            Client::builder().anonymous(true).s3_endpoint(scripted.url()).retry_for(Duration::from_secs(2));
        let client = settings.engine(Engine::builder().build()).build().unwrap();
        let report = Report::of(client.copy(CopyRequest::new(vec![s3("k")], to(&path))));
        match is_done {
            true => {
                report.all_done();
                assert!(std::fs::read(&path).unwrap() == whole, "{case}");
            }
            false => {
                report.failure();
                assert!(!path.exists() && names(dir.path()).is_empty(), "{case}: {:?}", names(dir.path()));
            }
        }
    }
}

/// Starts a server with a resumable GCS session, and returns it with the bytes that it stores. After each request, the session reports that
/// it has kept as many bytes as `kept` returns.
fn session(kept: impl Fn(usize, usize) -> usize + Send + Sync + 'static) -> (Scripted, Arc<Mutex<Vec<u8>>>) {
    let stored = Arc::<Mutex<Vec<u8>>>::default();
    let (kept_bytes, url) = (Arc::clone(&stored), Arc::new(Mutex::new(String::new())));
    let own = Arc::clone(&url);
    let scripted = Scripted::serve(move |asked: &Asked| {
        let object = |size: usize| {
            let described = format!(r#"{{"bucket":"bucket","name":"k","size":"{size}","generation":"7"}}"#);
            answer(200, &[("Content-Type", "application/json")], described)
        };
        if asked.method == "GET" {
            return match kept_bytes.lock().unwrap().len() {
                0 => answer(404, &[], r#"{"error":{"message":"No such object"}}"#),
                size => object(size),
            };
        }
        if asked.method == "DELETE" {
            return answer(499, &[], "");
        }
        if asked.method == "POST" {
            let location = format!("{}/session", own.lock().unwrap());
            return answer(200, &[("Location", &location)], "");
        }
        let mut stored = kept_bytes.lock().unwrap();
        let range = asked.header("content-range").and_then(|range| range.strip_prefix("bytes ")).unwrap();
        let (range, total) = range.split_once('/').unwrap();
        if let Some((from, _)) = range.split_once('-') {
            let from: usize = from.parse().unwrap();
            let new = stored.len().checked_sub(from).and_then(|known| asked.body.get(known..));
            let Some(new) = new else { return answer(400, &[], "bytes are missing") };
            let keep = kept(new.len(), stored.len()).min(new.len());
            stored.extend_from_slice(&new[..keep]);
        }
        match total.parse::<usize>() {
            Ok(total) if stored.len() == total => object(total),
            _ => {
                let claimed = kept(0, stored.len()).max(stored.len());
                answer(308, &[("Range", &format!("bytes=0-{}", claimed.saturating_sub(1)))], "")
            }
        }
    });
    *url.lock().unwrap() = scripted.url();
    (scripted, stored)
}

/// google-cloud-cpp #2980: the uncommitted part of a chunk was skipped, or sent twice.
#[test]
fn an_upload_continues_at_its_sessions_offset() {
    let dir = tempfile::tempdir().unwrap();
    let (path, bytes) = (dir.path().join("f"), noise(40 * MIB, 4));
    std::fs::write(&path, &bytes).unwrap();
    let request = || {
        let to = Location::object(Provider::Gcs, BUCKET, "k");
        CopyRequest::new(vec![Location::from(path.as_path())], to).no_clobber(true)
    };
    // The session keeps only the first half of each chunk, so the next offset is unaligned.
    let (scripted, stored) = session(|came, _| if came > MIB { came / 2 + 1001 } else { came });
    Report::of(client(&scripted).copy(request())).all_done();
    assert!(*stored.lock().unwrap() == bytes);
    // The session claims bytes that it never received.
    let (scripted, stored) = session(|came, has| if came == 0 { has + 3 * MIB } else { came });
    let report = Report::of(client(&scripted).copy(request()));
    assert!(report.failure().1.contains("lost bytes"), "{report:?}");
    assert!(stored.lock().unwrap().len() < bytes.len());
}

/// A time limit for the whole request ends transfers that are slow but healthy. object_store's clients have a limit of 30 s.
#[test]
fn what_moves_slowly_for_many_times_the_timeout_is_not_given_up() {
    at_once(&KINDS, |kind| {
        let config = Config { bandwidth: Some(MIB as u64), ..Config::default() };
        let stage = Stage::with_no_progress(kind, config, Duration::from_millis(500));
        let bytes = noise(2 * MIB, 5);
        let path = stage.file("f", &bytes);
        let up = stage.cp(&path, stage.url("k"));
        let down = stage.cp(stage.url("k"), stage.path("back"));
        up.all_done();
        down.all_done();
        assert!(std::fs::read(stage.path("back")).unwrap() == bytes, "{kind:?}");
    });
}

/// aws-sdk-go-v2 #3396: two dots are a parent folder only if they are the whole name.
#[test]
fn names_with_two_dots_in_them_go_up_and_come_back() {
    let awkward = ["file..txt", "..a", "a..", "a..b/c..d", "...", "..../x", ". ./y", ".. /z"];
    for kind in DIALECTS {
        let stage = Stage::new(kind);
        for name in awkward {
            stage.file(&format!("tree/{name}"), name);
        }
        stage.cp_r(stage.path("tree"), stage.url("t")).all_verified();
        stage.cp_r(stage.url("t"), stage.path("copied")).all_verified();
        let request = SyncRequest::new(stage.url("t"), Location::Local(stage.path("synced")));
        Report::of(stage.client.sync(request)).all_done();
        std::fs::create_dir(stage.path("named")).unwrap();
        stage.cp(stage.url("t/file..txt"), stage.path("named")).all_verified();
        assert_eq!(names(&stage.path("named")), ["file..txt"]);
        for name in awkward {
            for folder in ["copied", "synced"] {
                let read = std::fs::read(stage.path(&format!("{folder}/{name}")));
                assert_eq!(read.unwrap(), name.as_bytes(), "{kind:?} {folder}");
            }
        }
    }
}

/// R2 has reported wrong checksums for copies. If a copy's checksum differs from its source's, the copy isn't verified, and the
/// source stays. A checksum of another algorithm proves nothing.
#[test]
fn a_copy_with_a_wrong_checksum_is_unverified_and_its_source_stays() {
    for (header, claimed, is_done) in [
        ("x-amz-checksum-crc32c", "AAAAAA==", false),
        ("x-amz-checksum-sha256", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", true),
    ] {
        let scripted =
            Scripted::serve(move |asked| match (asked.method.as_str(), asked.target.ends_with("/c")) {
                ("HEAD", true) => described(&[(header, claimed)]),
                ("HEAD", false) => described(&[("x-amz-checksum-crc32c", "yZRlqg==")]),
                ("DELETE", _) => answer(204, &[], ""),
                _ => answer(200, &[], "<CopyObjectResult><ETag>&quot;e&quot;</ETag></CopyObjectResult>"),
            });
        let request = CopyRequest::new(vec![s3("k")], s3("c")).remove_source(true);
        let report = Report::of(client(&scripted).copy(request));
        let is_removed = scripted.asked().iter().any(|asked| asked.method == "DELETE");
        assert_eq!(is_removed, is_done, "{header}: {report:?}");
        match is_done {
            true => assert!(
                matches!(report.items[0].outcome, Outcome::Done { verified: Verified::NotApplicable }),
                "{report:?}"
            ),
            false => assert_eq!(report.failure().0, "integrity"),
        }
    }
}

/// The variable that sets the duration of the large transfers in each direction, in seconds, for a soak.
const SOAK_VARIABLE: &str = "LANEWAY_SOAK_LONG_JOB_S";

/// The parameters that determine a job's duration.
struct Length {
    /// The server closes a connection that is idle for this long.
    idle_max: Duration,
    /// The limit in bytes per second.
    bandwidth: u64,
    /// The size of each of two large files, in MiB.
    large_mib: usize,
}

impl Length {
    /// Returns a job of a few seconds at a server with a short idle timeout. In a soak the job lasts a minute or more, and
    /// the timeout is 5 s.
    fn asked() -> Self {
        match std::env::var(SOAK_VARIABLE) {
            Err(_) => Self { idle_max: Duration::from_millis(700), bandwidth: 12 << 20, large_mib: 20 },
            Ok(seconds) => {
                let seconds: usize = seconds.parse().expect("seconds");
                Self { idle_max: Duration::from_secs(5), bandwidth: 3 << 20, large_mib: seconds * 3 / 2 }
            }
        }
    }
}

/// Imitates a burst of small files and some large ones that take minutes, at a server that closes idle connections after 30 s.
/// In this test all times are shorter. `LANEWAY_SOAK_LONG_JOB_S` makes the job last for minutes.
#[test]
fn a_long_job_avoids_connections_closed_while_idle() {
    let Length { idle_max, bandwidth, large_mib } = Length::asked();
    at_once(&DIALECTS, |kind| {
        let config = Config { rtt: Duration::from_millis(60), idle_max: Some(idle_max), ..Config::default() };
        let stage =
            Stage::set_up_on(Engine::builder().bandwidth_limit(bandwidth), kind, config, |settings| settings);
        for i in 0..80 {
            stage.file(&format!("tree/small/{i}"), format!("file {i}"));
        }
        for i in 0..2 {
            stage.file(&format!("tree/large/{i}"), vec![i; large_mib * MIB]);
        }
        stage.cp_r(stage.path("tree"), stage.url("up")).all_done();
        let counters = stage.client.counters();
        assert_eq!(counters.retries, 0, "{kind:?}: a connection closed while idle costs no attempt");
        assert!(counters.connections_peak > 8, "{kind:?}: the burst needs many connections: {counters:?}");
        // Copy the tree back. By now the server has closed all connections except the last ones in use.
        stage.cp_r(stage.url("up"), stage.path("down")).all_done();
        assert_eq!(stage.client.counters().retries, 0, "{kind:?}");
    });
}
