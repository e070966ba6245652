//! Tests of the store with failing servers and networks, by the embedded server's faults.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use laneway_lanes::{Lanes, LanesConfig, Trust};
use laneway_server::{Attributes, Config, GcsConfig, S3Config, parse_fault};
use laneway_store::{
    AccessKey, Body, Checksums, Condition, Deletion, ErrorKind, Get, GetSink, MetaChange, ObjectId,
    ObjectMeta, Provider, PutOptions, Restoration, RestoreOptions, Route, Settings, SinkError, Store,
    Version,
};
use laneway_testkit::{Endpoint, Wire};

const BOTH: [Provider; 2] = [Provider::Gcs, Provider::S3];

fn faulty(rules: &[&str]) -> Config {
    let mut config = Config::default();
    config.faults.rules = rules.iter().map(|rule| parse_fault(rule).expect("a rule")).collect();
    config
}

fn settings(endpoint: &Endpoint) -> Settings {
    let keys = S3Config::default();
    Settings {
        gcs_endpoint: Some(endpoint.url()),
        s3_endpoint: Some(endpoint.url()),
        access_key: Some(AccessKey::new(keys.access_key, keys.secret_key)),
        region: Some(keys.region),
        ..Settings::default()
    }
}

fn store(endpoint: &Endpoint, provider: Provider, settings: &Settings) -> Store {
    let ca: Vec<PathBuf> = endpoint.ca_file().map(PathBuf::from).into_iter().collect();
    let lanes = Lanes::start(LanesConfig {
        trust: Trust { extra_ca_files: ca },
        retry_for: std::time::Duration::from_secs(4),
        ..LanesConfig::default()
    });
    Store::new(provider, settings, lanes.expect("lanes")).expect("a store")
}

/// Runs a scenario in both dialects, each against its own server.
fn in_both_dialects<F: Future<Output = ()>>(rules: &[&str], scenario: impl Fn(Store, ObjectId) -> F) {
    for provider in BOTH {
        let endpoint = Endpoint::start_with(Wire::Plain, faulty(rules));
        let store = store(&endpoint, provider, &settings(&endpoint));
        run(scenario(store, ObjectId::new(Endpoint::BUCKET, "a/key")));
    }
}

fn run(scenario: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(scenario);
}

fn sums(bytes: &[u8]) -> Checksums {
    Checksums::crc32c(crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32)
}

async fn put(
    store: &Store,
    id: &ObjectId,
    bytes: &'static [u8],
    condition: Condition,
) -> Result<ObjectMeta, laneway_store::Error> {
    let options = PutOptions::default().condition(condition);
    store.put(id, Body::from(Bytes::from_static(bytes)), &sums(bytes), &options).await
}

#[test]
fn a_server_error_passes_by_itself() {
    in_both_dialects(
        &["put:1 status 500", "get:1-2 status 522", "delete:1 status 504"],
        async |store, id| {
            put(&store, &id, b"bytes", Condition::None).await.unwrap_or_else(|e| panic!("{e}"));
            let got = store.get(Get::new(&id)).await.unwrap_or_else(|e| panic!("{e}"));
            assert_eq!((got.attempts, &got.body[..]), (3, &b"bytes"[..]));
            store.delete(&id, &Condition::None).await.unwrap_or_else(|e| panic!("{e}"));
        },
    );
}

#[test]
fn a_throttle_is_waited_for() {
    in_both_dialects(&["put:1 status 503 SlowDown", "get:1 status 429"], async |store, id| {
        put(&store, &id, b"bytes", Condition::None).await.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(store.get(Get::new(&id)).await.unwrap_or_else(|e| panic!("{e}")).attempts, 2);
        assert_eq!(store.lanes().counters().throttles, 2);
    });
}

/// When the bucket throttles, Laneway builds the requests again that wait for the only connection. They don't count,
/// because they were never sent.
#[test]
fn only_what_was_sent_is_counted() {
    for provider in BOTH {
        let endpoint =
            Endpoint::start_with(Wire::Plain, faulty(&["put:1 status 503 SlowDown", "put delay 20ms"]));
        let config = LanesConfig { connections_max: Some(1), ..LanesConfig::default() };
        let lanes = Lanes::start(config).expect("lanes");
        let store = Store::new(provider, &settings(&endpoint), lanes).expect("a store");
        run(async {
            let ids: Vec<_> = (0..3).map(|n| ObjectId::new(Endpoint::BUCKET, format!("k{n}"))).collect();
            let puts = ids.iter().map(|id| put(&store, id, b"bytes", Condition::None));
            for outcome in futures_util::future::join_all(puts).await {
                outcome.unwrap_or_else(|e| panic!("{e}"));
            }
            let seen = endpoint.server().counters().requests_by_verb["put"];
            assert_eq!((store.requests().writes, seen), (seen, 4), "{provider:?}");
        });
    }
}

#[test]
fn a_rate_limit_that_gcs_answers_with_403_is_a_throttle() {
    let endpoint = Endpoint::start_with(Wire::Plain, faulty(&["put:1 status 403 rateLimitExceeded"]));
    let store = store(&endpoint, Provider::Gcs, &settings(&endpoint));
    run(async {
        let id = ObjectId::new(Endpoint::BUCKET, "k");
        put(&store, &id, b"bytes", Condition::None).await.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(store.lanes().counters().throttles, 1);
    });
}

#[test]
fn a_permission_is_asked_for_once() {
    for provider in BOTH {
        let mut config = Config::default();
        config.denied_buckets.insert(Endpoint::BUCKET.to_owned());
        let endpoint = Endpoint::start_with(Wire::Plain, config);
        let store = store(&endpoint, provider, &settings(&endpoint));
        run(async {
            let id = ObjectId::new(Endpoint::BUCKET, "k");
            let error = put(&store, &id, b"bytes", Condition::None).await.expect_err("denied");
            assert!(error.is_permission() && !error.is_retryable(), "{error}");
            assert_eq!(error.attempts(), 1);
        });
    }
}

#[test]
fn a_write_whose_answer_was_lost_is_made_again() {
    in_both_dialects(&["put:1 lose-answer"], async |store, id| {
        put(&store, &id, b"bytes", Condition::None).await.unwrap_or_else(|e| panic!("{e}"));
    });
}

#[test]
fn a_conditional_write_whose_answer_was_lost_is_read_back() {
    in_both_dialects(&["put:1 lose-answer"], async |store, id| {
        let meta = put(&store, &id, b"bytes", Condition::Absent).await.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((meta.size, meta.checksums.crc32c), (5, sums(b"bytes").crc32c));
        let error = put(&store, &id, b"other", Condition::Absent).await.expect_err("there is one");
        assert!(error.is_precondition(), "{error}");
    });
}

#[test]
fn a_conditional_write_that_lost_against_another_is_not_taken_for_its_own() {
    in_both_dialects(&["put:2 status 500"], async |store, id| {
        put(&store, &id, b"theirs", Condition::None).await.unwrap_or_else(|e| panic!("{e}"));
        let error = put(&store, &id, b"ours", Condition::Absent).await.expect_err("there is one");
        assert!(error.is_precondition(), "{error}");
    });
}

#[test]
fn a_delete_whose_answer_was_lost_has_happened() {
    in_both_dialects(&["delete:1 lose-answer"], async |store, id| {
        put(&store, &id, b"bytes", Condition::None).await.unwrap_or_else(|e| panic!("{e}"));
        store.delete(&id, &Condition::None).await.unwrap_or_else(|e| panic!("{e}"));
        assert!(store.head(&id, None).await.is_err_and(|e| e.is_not_found()));
    });
}

#[test]
fn a_conditional_delete_whose_answer_was_lost_has_happened() {
    in_both_dialects(&["delete:1 lose-answer"], async |store, id| {
        let meta = put(&store, &id, b"bytes", Condition::None).await.unwrap_or_else(|e| panic!("{e}"));
        let state = Condition::Matches(meta.version.expect("a version"));
        store.delete(&id, &state).await.unwrap_or_else(|e| panic!("{e}"));
        assert!(store.head(&id, None).await.is_err_and(|e| e.is_not_found()));
    });
}

#[test]
fn a_conditional_patch_whose_answer_was_lost_has_happened() {
    for (rule, happened) in [("patch:1 lose-answer", true), ("patch:1 status 412", false)] {
        let endpoint = Endpoint::start_with(Wire::Plain, faulty(&[rule]));
        let store = store(&endpoint, Provider::Gcs, &settings(&endpoint));
        run(async {
            let id = ObjectId::new(Endpoint::BUCKET, "k");
            put(&store, &id, b"bytes", Condition::None).await.unwrap_or_else(|e| panic!("{e}"));
            // Only a change that clears metadata carries a condition.
            let change = MetaChange::default().clears_metadata(true).metadata("a", "1");
            match store.set_meta(&id, &change).await {
                Ok(meta) => assert!(happened && meta.metadata == Some([("a".into(), "1".into())].into())),
                Err(error) => assert!(!happened && error.is_precondition(), "{error}"),
            }
        });
    }
}

#[test]
fn what_a_batch_is_not_authorized_to_delete_is_deleted_by_itself() {
    let endpoint = Endpoint::start_with(Wire::Plain, faulty(&["delete:1-2 status 401"]));
    let store = store(&endpoint, Provider::Gcs, &settings(&endpoint));
    run(async {
        let keys = ["a", "b", "c"];
        for key in keys {
            let id = ObjectId::new(Endpoint::BUCKET, key);
            put(&store, &id, b"bytes", Condition::None).await.unwrap_or_else(|e| panic!("{e}"));
        }
        let results = store.delete_many(Endpoint::BUCKET, &keys.map(Deletion::any)).await;
        assert!(results.iter().all(Result::is_ok), "{results:?}");
    });
}

#[test]
fn a_copy_with_another_description_keeps_its_custom_time() {
    let endpoint = Endpoint::start(Wire::Plain);
    let time =
        || Attributes { custom_time: Some("2026-01-31T00:00:00Z".to_owned()), ..Attributes::default() };
    endpoint.server().store().put_with(Endpoint::BUCKET, "from", b"bytes", time()).expect("it is stored");
    let store = store(&endpoint, Provider::Gcs, &settings(&endpoint));
    run(async {
        let [from, to] = ["from", "to"].map(|key| ObjectId::new(Endpoint::BUCKET, key));
        let options = PutOptions::default().content_type("text/plain");
        store.copy(&from, &to, &options, &Condition::None).await.unwrap_or_else(|e| panic!("{e}"));
    });
    let copied = endpoint.server().store().object(Endpoint::BUCKET, "to").expect("a copy");
    let Attributes { custom_time, content_type, .. } = &*copied.attributes;
    assert_eq!((custom_time, content_type.as_deref()), (&time().custom_time, Some("text/plain")));
}

#[test]
fn a_conditional_delete_that_leaves_an_object_is_no_success() {
    in_both_dialects(&["delete:1 status 500"], async |store, id| {
        let old = put(&store, &id, b"old", Condition::None).await.unwrap_or_else(|e| panic!("{e}"));
        put(&store, &id, b"newer", Condition::None).await.unwrap_or_else(|e| panic!("{e}"));
        let state = Condition::Matches(old.version.expect("a version"));
        let error = store.delete(&id, &state).await.expect_err("it is another");
        assert!(error.is_precondition(), "{error}");
    });
}

#[test]
fn a_completed_upload_whose_answer_was_lost_is_read_back() {
    in_both_dialects(&["complete:1 lose-answer"], async |store, id| {
        let upload = store.begin(&id, &PutOptions::default()).await.unwrap_or_else(|e| panic!("{e}"));
        let whole = sums(b"bytes");
        let crc32c = whole.crc32c.expect("a checksum");
        let part =
            store.part(&upload, 1, Body::from("bytes"), crc32c).await.unwrap_or_else(|e| panic!("{e}"));
        let meta = store.complete(&upload, &[part], &whole, &Condition::None).await;
        assert_eq!(meta.unwrap_or_else(|e| panic!("{e}")).size, 5);
    });
}

#[test]
fn a_completion_that_succeeds_but_leaves_no_object_is_a_store_failure() {
    in_both_dialects(&["complete error-in-200"], async |store, id| {
        let upload = store.begin(&id, &PutOptions::default()).await.unwrap_or_else(|e| panic!("{e}"));
        let whole = sums(b"bytes");
        let crc32c = whole.crc32c.expect("a checksum");
        let part =
            store.part(&upload, 1, Body::from("bytes"), crc32c).await.unwrap_or_else(|e| panic!("{e}"));
        let error = store.complete(&upload, &[part], &whole, &Condition::None).await.expect_err("not done");
        assert_eq!(error.kind(), ErrorKind::Server, "{error}");
        assert!(error.to_string().starts_with("complete upload "), "{error}");
    });
}

#[test]
fn a_part_whose_connection_broke_is_sent_again() {
    in_both_dialects(&["part:1 reset"], async |store, id| {
        let upload = store.begin(&id, &PutOptions::default()).await.unwrap_or_else(|e| panic!("{e}"));
        let whole = sums(b"bytes");
        let crc32c = whole.crc32c.expect("a checksum");
        let part =
            store.part(&upload, 1, Body::from("bytes"), crc32c).await.unwrap_or_else(|e| panic!("{e}"));
        store.complete(&upload, &[part], &whole, &Condition::None).await.unwrap_or_else(|e| panic!("{e}"));
    });
}

#[test]
fn a_chunk_of_a_session_whose_answer_was_lost_is_not_sent_twice() {
    assert_eq!(in_two_chunks(&["part:1-2 lose-answer"]), (2, 2));
}

/// After each failure the store requests the session's state, even if that request fails as well.
#[test]
fn a_chunk_that_a_server_fails_to_take_is_sent_again() {
    let rules = ["part:1 status 408", "status-query:1 status 503", "part:2 status 500", "part:4 status 408"];
    assert_eq!(in_two_chunks(&rules), (5, 4));
}

/// Sends an object through a session in two chunks. Returns the number of requests with bytes, and of requests for the
/// state.
fn in_two_chunks(rules: &[&str]) -> (u64, u64) {
    let endpoint = Endpoint::start_with(Wire::Plain, faulty(rules));
    let store = store(&endpoint, Provider::Gcs, &settings(&endpoint));
    run(async {
        let id = ObjectId::new(Endpoint::BUCKET, "k");
        let bytes = laneway_testkit::random_bytes(1, (256 << 10) + 5);
        let begun = store.resumable_begin(&id, Some(bytes.len() as u64), &PutOptions::default(), None).await;
        let session = begun.unwrap_or_else(|e| panic!("{e}"));
        let (mut offset, mut finished) = (0, None);
        while finished.is_none() {
            let end = (offset + (256 << 10)).min(bytes.len());
            let body = Body::from(Bytes::copy_from_slice(&bytes[offset..end]));
            match store.resumable_append(&session, offset as u64, body, end == bytes.len()).await {
                Ok(laneway_store::Appended::Continue { next_offset }) => offset = next_offset as usize,
                Ok(laneway_store::Appended::Finished(meta)) => finished = Some(meta),
                Ok(laneway_store::Appended::Ended) => panic!("it can't be read"),
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(finished.map(|meta| meta.checksums.crc32c), Some(sums(&bytes).crc32c));
    });
    let requests = endpoint.server().counters().requests_by_verb;
    (requests["part"], requests["status-query"])
}

struct Counting(Arc<Mutex<Vec<usize>>>);

impl GetSink for Counting {
    fn begin(&mut self, _: &ObjectMeta, _: Range<u64>) -> Result<Route, SinkError> {
        self.0.lock().expect("a lock").push(0);
        Ok(Route::Stay)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<Route, SinkError> {
        *self.0.lock().expect("a lock").last_mut().expect("it has begun") += bytes.len();
        Ok(Route::Stay)
    }
}

#[test]
fn a_body_that_breaks_after_bytes_were_delivered_is_handed_back() {
    in_both_dialects(&["get:1 reset@64KiB"], async |store, id| {
        let bytes = laneway_testkit::random_bytes(1, 1 << 20);
        let written = store.put(&id, Body::from(bytes.clone()), &sums(&bytes), &PutOptions::default()).await;
        written.unwrap_or_else(|e| panic!("{e}"));
        let seen = Arc::new(Mutex::new(Vec::new()));
        let maker = || -> Box<dyn GetSink> { Box::new(Counting(Arc::clone(&seen))) };
        let error = store.get(Get { sink: Some(&maker), ..Get::new(&id) }).await.expect_err("it broke");
        assert!(error.is_interrupted() && error.is_transport() && error.is_retryable(), "{error}");
        assert_eq!(error.attempts(), 1);
        let delivered = seen.lock().expect("a lock").clone();
        assert!(delivered.len() == 1 && delivered[0] > 0 && delivered[0] < 1 << 20, "{delivered:?}");
    });
}

#[test]
fn a_collected_body_that_breaks_is_read_again() {
    in_both_dialects(&["get:1 reset@64KiB", "get:2 truncate@64KiB"], async |store, id| {
        let bytes = laneway_testkit::random_bytes(1, 1 << 20);
        let written = store.put(&id, Body::from(bytes.clone()), &sums(&bytes), &PutOptions::default()).await;
        written.unwrap_or_else(|e| panic!("{e}"));
        let got = store.get(Get::new(&id)).await.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(got.attempts, 3);
        assert!(got.body == bytes);
    });
}

#[test]
fn a_bucket_in_another_region_is_found_and_remembered() {
    let mut config = Config::default();
    config.s3.bucket_regions.insert(Endpoint::BUCKET.to_owned(), "eu-west-3".to_owned());
    let endpoint = Endpoint::start_with(Wire::Plain, config);
    let store = store(&endpoint, Provider::S3, &settings(&endpoint));
    run(async {
        let id = ObjectId::new(Endpoint::BUCKET, "k");
        put(&store, &id, b"bytes", Condition::None).await.unwrap_or_else(|e| panic!("{e}"));
        let requests = store.lanes().counters().requests;
        assert_eq!(requests, 2);
        store.head(&id, None).await.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(store.lanes().counters().requests, requests + 1);
    });
    let other = self::store(&endpoint, Provider::S3, &settings(&endpoint));
    run(async {
        let head = other.head(&ObjectId::new(Endpoint::BUCKET, "k"), None).await;
        assert_eq!(head.unwrap_or_else(|e| panic!("{e}")).size, 5, "a HEAD's answer has no body to tell it");
    });
}

#[test]
fn a_wrong_key_is_told_as_such() {
    let endpoint = Endpoint::start(Wire::Plain);
    let key = AccessKey::new(S3Config::default().access_key, "wrong");
    let settings = Settings { access_key: Some(key), ..settings(&endpoint) };
    let store = store(&endpoint, Provider::S3, &settings);
    run(async {
        let id = ObjectId::new(Endpoint::BUCKET, "k");
        let error = put(&store, &id, b"bytes", Condition::None).await.expect_err("refused");
        assert!(error.is_unauthenticated(), "{error}");
        assert!(!error.to_string().contains("wrong"), "{error}");
    });
}

#[test]
fn anonymous_requests_are_not_signed() {
    let endpoint = Endpoint::start(Wire::Plain);
    for provider in BOTH {
        let settings = Settings { anonymous: true, access_key: None, ..settings(&endpoint) };
        let store = store(&endpoint, provider, &settings);
        run(async {
            let id = ObjectId::new(Endpoint::BUCKET, "k");
            put(&store, &id, b"bytes", Condition::None).await.unwrap_or_else(|e| panic!("{e}"));
        });
    }
}

#[test]
fn a_server_without_xml_uploads_is_remembered() {
    let config = Config { gcs: GcsConfig { xml: false, ..GcsConfig::default() }, ..Config::default() };
    let endpoint = Endpoint::start_with(Wire::Plain, config);
    let store = store(&endpoint, Provider::Gcs, &settings(&endpoint));
    run(async {
        let id = ObjectId::new(Endpoint::BUCKET, "k");
        assert!(store.supports_multipart());
        let error = store.begin(&id, &PutOptions::default()).await.expect_err("it has none");
        assert!(error.is_unsupported() && !store.supports_multipart(), "{error}");
        let requests = store.lanes().counters().requests;
        assert!(store.begin(&id, &PutOptions::default()).await.is_err_and(|e| e.is_unsupported()));
        assert_eq!(store.lanes().counters().requests, requests);
    });
}

#[test]
fn a_server_without_batches_gets_single_deletes() {
    let config = Config { gcs: GcsConfig { batch: false, ..GcsConfig::default() }, ..Config::default() };
    let endpoint = Endpoint::start_with(Wire::Plain, config);
    let store = store(&endpoint, Provider::Gcs, &settings(&endpoint));
    run(async {
        let keys: Vec<String> = (0..5).map(|n| format!("k{n}")).collect();
        for key in &keys {
            let id = ObjectId::new(Endpoint::BUCKET, key);
            put(&store, &id, b"bytes", Condition::None).await.unwrap_or_else(|e| panic!("{e}"));
        }
        let objects: Vec<_> = keys.into_iter().map(Deletion::any).collect();
        let results = store.delete_many(Endpoint::BUCKET, &objects).await;
        assert!(results.iter().all(Result::is_ok), "{results:?}");
        assert!(
            store.head(&ObjectId::new(Endpoint::BUCKET, "k0"), None).await.is_err_and(|e| e.is_not_found())
        );
    });
}

#[test]
fn a_copy_is_gone_on_with_until_it_is_done() {
    let config = Config {
        gcs: GcsConfig { rewrite_bytes_max: Some(1 << 20), ..GcsConfig::default() },
        ..Config::default()
    };
    let endpoint = Endpoint::start_with(Wire::Plain, config);
    let store = store(&endpoint, Provider::Gcs, &settings(&endpoint));
    run(async {
        let bytes = laneway_testkit::random_bytes(1, (3 << 20) + 1);
        let (from, to) = (ObjectId::new(Endpoint::BUCKET, "from"), ObjectId::new(Endpoint::BUCKET, "to"));
        let written =
            store.put(&from, Body::from(bytes.clone()), &sums(&bytes), &PutOptions::default()).await;
        written.unwrap_or_else(|e| panic!("{e}"));
        let copied = store.copy(&from, &to, &PutOptions::default(), &Condition::None).await;
        assert_eq!(copied.unwrap_or_else(|e| panic!("{e}")).checksums.crc32c, sums(&bytes).crc32c);
    });
}

#[test]
fn a_restore_is_done_only_if_the_live_object_has_the_deleted_bytes() {
    for (rule, is_named, live, expected) in [
        ("other:1 lose-answer", false, None, Restoration::Readable),
        ("other:1 lose-answer", true, None, Restoration::Readable),
        ("other:1 status 503", false, None, Restoration::Readable),
        ("other:1 status 503", true, None, Restoration::Readable),
        ("other:1 status 503", false, Some("another object"), Restoration::NotNeeded),
    ] {
        let endpoint = Endpoint::start_with(Wire::Plain, faulty(&[rule]));
        let objects = endpoint.server().store();
        objects.keep_deleted(Endpoint::BUCKET).expect("there is the bucket");
        let store = store(&endpoint, Provider::Gcs, &settings(&endpoint));
        let id = ObjectId::new(Endpoint::BUCKET, "k");
        run(async {
            let put = put(&store, &id, b"deleted", Condition::None).await.unwrap_or_else(|e| panic!("{e}"));
            store.delete(&id, &Condition::None).await.unwrap_or_else(|e| panic!("{e}"));
            if let Some(live) = live {
                objects.put(Endpoint::BUCKET, "k", live.as_bytes()).expect("stored");
            }
            let id = match put.version {
                Some(Version::Generation(generation)) if is_named => id.at_version(generation.to_string()),
                _ => id,
            };
            let restored = store.restore(&id, &RestoreOptions::default()).await;
            assert_eq!(restored.unwrap_or_else(|e| panic!("{e}")), expected, "{rule}");
        });
        let now = objects.read(Endpoint::BUCKET, "k").expect("it is there");
        assert_eq!(now, live.unwrap_or("deleted").as_bytes(), "{rule}");
    }
}

#[test]
fn a_restore_of_a_missing_generation_fails_although_a_live_object_exists() {
    let endpoint = Endpoint::start_with(Wire::Plain, faulty(&["other:1 status 503"]));
    endpoint.server().store().keep_deleted(Endpoint::BUCKET).expect("there is the bucket");
    endpoint.put("k", b"live");
    let store = store(&endpoint, Provider::Gcs, &settings(&endpoint));
    let id = ObjectId::new(Endpoint::BUCKET, "k").at_version("1");
    run(async {
        let restored = store.restore(&id, &RestoreOptions::default().overwrite(true)).await;
        assert!(restored.expect_err("no such generation").is_not_found());
    });
}
