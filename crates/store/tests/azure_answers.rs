//! Habits of Azure Blob Storage that no other store has, against the embedded store.

use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use laneway_lanes::{Lanes, LanesConfig, Trust};
use laneway_server::{AzureConfig, Config, Habits, parse_fault};
use laneway_store::{
    Body, Checksums, Condition, Deletion, Environment, ErrorKind, Get, List, ObjectId, Part, Provider,
    PutOptions, Restoration, RestoreOptions, Settings, SignOptions, Store,
};
use laneway_testkit::{Endpoint, Wire};

/// Returns a store with these variables in addition to the account.
fn store(endpoint: &Endpoint, variables: &[(&str, &str)]) -> Store {
    let settings = Settings {
        azure_endpoint: Some(format!("{}/devstoreaccount1", endpoint.url())),
        environment: Environment::of(variables.iter().copied()),
        ..Settings::default()
    };
    let ca: Vec<PathBuf> = endpoint.ca_file().map(PathBuf::from).into_iter().collect();
    let lanes = Lanes::start(LanesConfig { trust: Trust { extra_ca_files: ca }, ..LanesConfig::default() });
    Store::new(Provider::Azure, &settings, lanes.expect("lanes")).expect("a store")
}

/// Runs a test's requests. The embedded store has a runtime of its own, so it begins outside of this one.
fn run(requests: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.expect("a runtime").block_on(requests);
}

fn with_key(endpoint: &Endpoint) -> Store {
    store(endpoint, &[("AZURE_STORAGE_KEY", &AzureConfig::default().key)])
}

fn id(key: &str) -> ObjectId {
    ObjectId::new(Endpoint::BUCKET, key)
}

fn faulty(rules: &[&str]) -> Config {
    let mut config = Config::default();
    config.faults.rules = rules.iter().map(|rule| parse_fault(rule).expect("a rule")).collect();
    config
}

async fn put(store: &Store, key: &str, bytes: &'static [u8]) -> laneway_store::ObjectMeta {
    let body = Body::from(Bytes::from_static(bytes));
    let put = store.put(&id(key), body, &Checksums::default(), &PutOptions::default()).await;
    put.unwrap_or_else(|e| panic!("{e}"))
}

async fn get(store: &Store, key: &str) -> Bytes {
    store.get(Get::new(&id(key))).await.unwrap_or_else(|e| panic!("{e}")).body
}

fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

#[test]
fn a_copy_that_is_pending_is_awaited() {
    let azure = AzureConfig { copies_take: Duration::from_millis(150), ..AzureConfig::default() };
    let endpoint = Endpoint::start_with(Wire::Plain, Config { azure, ..Config::default() });
    run(async {
        let store = with_key(&endpoint);
        put(&store, "from", b"bytes").await;
        let copied = store.copy(&id("from"), &id("to"), &PutOptions::default(), &Condition::None).await;
        assert_eq!(copied.unwrap_or_else(|e| panic!("{e}")).size, 5);
        assert_eq!(get(&store, "to").await, "bytes");
    });
}

#[test]
fn a_service_without_structured_bodies_sends_the_md5_of_a_range() {
    let habits = Habits::named("azurite").expect("habits");
    let endpoint = Endpoint::start_with(Wire::Plain, Config { habits, ..Config::default() });
    run(async {
        let store = with_key(&endpoint);
        put(&store, "key", b"0123456789").await;
        let id = id("key");
        let range = Get { range: Some((2..5).into()), ..Get::new(&id) };
        let first = store.get(range.clone()).await.unwrap_or_else(|e| panic!("{e}"));
        assert!(!first.checked, "the service hasn't shown yet that it lacks structured bodies");
        let got = store.get(range.clone()).await.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((got.checked, &got.body[..]), (true, &b"234"[..]));
        endpoint.set_faults(&["get corrupt"]);
        let error = store.get(range).await.expect_err("a flipped bit");
        assert!(error.kind() == ErrorKind::Integrity && error.is_retryable(), "{error}");
    });
}

#[test]
fn a_service_that_refuses_structured_bodies_is_asked_for_plain_ones() {
    let endpoint = Endpoint::start_with(Wire::Plain, faulty(&["get:1 status 400 InvalidHeaderValue"]));
    run(async {
        let store = with_key(&endpoint);
        put(&store, "key", b"0123456789").await;
        let id = id("key");
        for _ in 0..2 {
            let got = store.get(Get::new(&id)).await.unwrap_or_else(|e| panic!("{e}"));
            assert_eq!((got.checked, &got.body[..]), (false, &b"0123456789"[..]));
        }
        assert_eq!(endpoint.server().counters().requests_by_verb.get("get"), Some(&3));
    });
}

#[test]
fn the_bytes_of_a_structured_body_are_checked_with_or_without_a_sink() {
    let endpoint = Endpoint::start(Wire::Plain);
    run(async {
        let store = with_key(&endpoint);
        put(&store, "key", b"0123456789").await;
        let id = id("key");
        for range in [None, Some((2..5).into())] {
            let got = store.get(Get { range, ..Get::new(&id) }).await.unwrap_or_else(|e| panic!("{e}"));
            assert!(got.checked && got.meta.size == 10);
            assert_eq!(got.body, b"0123456789"[got.range.start as usize..got.range.end as usize]);
        }
        endpoint.set_faults(&["get corrupt@25"]);
        let error = store.get(Get::new(&id)).await.expect_err("a flipped bit");
        assert!(error.kind() == ErrorKind::Integrity && error.is_retryable(), "{error}");
    });
}

#[test]
fn a_deleted_blob_is_listed_and_brought_back() {
    let endpoint = Endpoint::start(Wire::Plain);
    endpoint.server().store().keep_deleted(Endpoint::BUCKET).expect("the bucket exists");
    run(async {
        let store = with_key(&endpoint);
        let deleted = List { versions: true, soft_deleted: true, ..List::new(Endpoint::BUCKET, "") };
        let listed = async || {
            let page = store.list(&deleted).await.unwrap_or_else(|e| panic!("{e}"));
            let keys = page.objects.iter().map(|meta| meta.id.key.clone());
            (keys.collect::<Vec<_>>(), page.objects.iter().all(|meta| meta.soft_deleted.is_some()))
        };
        for (key, bytes) in [("a", &b"old"[..]), ("a", b"new"), ("b", b"other"), ("live", b"x")] {
            put(&store, key, bytes).await;
        }
        for key in ["a", "b"] {
            store.delete(&id(key), &Condition::None).await.unwrap_or_else(|e| panic!("{e}"));
        }
        assert_eq!(listed().await, (vec!["a".to_owned(), "b".to_owned()], true));
        let found = store.find_deleted(&id("a")).await.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(found.size, 3);
        let restored = store.restore(&id("a"), &RestoreOptions::default()).await;
        assert_eq!(restored.unwrap_or_else(|e| panic!("{e}")), Restoration::Readable);
        assert_eq!(get(&store, "a").await, "new");
        assert_eq!(listed().await.0, ["b"]);
        let again = store.restore(&id("a"), &RestoreOptions::default()).await;
        assert_eq!(again.unwrap_or_else(|e| panic!("{e}")), Restoration::NotNeeded);
        let none = store.restore(&id("none"), &RestoreOptions::default()).await;
        assert!(none.is_err_and(|error| error.is_not_found()));
    });
}

#[test]
fn a_pending_copy_whose_answer_was_lost_is_awaited() {
    let azure = AzureConfig { copies_take: Duration::from_millis(1500), ..AzureConfig::default() };
    let endpoint = Endpoint::start_with(Wire::Plain, Config { azure, ..faulty(&["copy:1 lose-answer"]) });
    run(async {
        let store = with_key(&endpoint);
        put(&store, "from", b"bytes").await;
        let absent = PutOptions::default().condition(Condition::Absent);
        let copied = store.copy(&id("from"), &id("to"), &absent, &Condition::None).await;
        assert_eq!(copied.unwrap_or_else(|e| panic!("{e}")).size, 5);
        assert_eq!(get(&store, "to").await, "bytes");
    });
}

#[test]
fn a_page_of_a_proxy_completes_no_upload_and_no_copy() {
    let endpoint = Endpoint::start_with(Wire::Plain, faulty(&["complete error-in-200", "copy error-in-200"]));
    run(async {
        let store = with_key(&endpoint);
        let options = PutOptions::default();
        let upload = store.begin(&id("k"), &options).await.unwrap_or_else(|e| panic!("{e}"));
        let bytes = b"bytes".as_slice();
        let sent = store.part(&upload, 1, Body::from(Bytes::from_static(bytes)), crc32c(bytes)).await;
        let parts = [sent.unwrap_or_else(|e| panic!("{e}"))];
        let made = store.complete(&upload, &parts, &Checksums::default(), &Condition::None).await;
        assert!(made.is_err(), "{made:?}");
        assert!(store.head(&id("k"), None).await.is_err_and(|e| e.is_not_found()));
        put(&store, "from", b"bytes").await;
        let copied = store.copy(&id("from"), &id("to"), &options, &Condition::None).await;
        assert!(copied.is_err(), "{copied:?}");
    });
}

#[test]
fn a_batch_keeps_the_condition_of_each_delete() {
    let endpoint = Endpoint::start(Wire::Plain);
    run(async {
        let store = with_key(&endpoint);
        let old = put(&store, "a b/%+", b"old").await.version;
        let new = put(&store, "a b/%+", b"new").await.version;
        let other = put(&store, "other", b"other").await.version;
        let delete = |key: &str, version| Deletion { key: key.to_owned(), version, id: None };
        let first = [delete("a b/%+", old), delete("other", other), delete("missing", None)];
        let results = store.delete_many(Endpoint::BUCKET, &first).await;
        let kinds: Vec<_> = results.iter().map(|result| result.as_ref().err().map(|e| e.kind())).collect();
        assert_eq!(kinds, [Some(ErrorKind::Precondition), None, Some(ErrorKind::NotFound)]);
        assert!(store.delete_many(Endpoint::BUCKET, &[delete("a b/%+", new)]).await[0].is_ok());
    });
}

#[test]
fn an_upload_goes_on_with_the_metadata_of_its_beginning() {
    let endpoint = Endpoint::start(Wire::Plain);
    run(async {
        let options = PutOptions::default().content_type("text/x-kept").metadata("a", "b");
        let (first, second) = (b"hello ".as_slice(), b"world".as_slice());
        let begun = with_key(&endpoint);
        let upload = begun.begin(&id("k"), &options).await.unwrap_or_else(|e| panic!("{e}"));
        let part = async |store: &Store, number, bytes: &'static [u8]| -> Part {
            let body = Body::from(Bytes::from_static(bytes));
            store.part(&upload, number, body, crc32c(bytes)).await.unwrap_or_else(|e| panic!("{e}"))
        };
        let one = part(&begun, 1, first).await;
        // A program that runs later knows only the upload's id.
        let later = with_key(&endpoint);
        let listed = later.list_parts(&upload).await.unwrap_or_else(|e| panic!("{e}"));
        assert!(listed.len() == 1 && listed[0].is_same(&one), "{listed:?}");
        let two = part(&later, 2, second).await;
        let whole = Checksums::default();
        let made = later.complete(&upload, &[one, two], &whole, &Condition::Absent).await;
        let made = made.unwrap_or_else(|e| panic!("{e}"));
        let crc64 = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc64Nvme, b"hello world");
        assert_eq!((made.size, made.checksums.crc64nvme), (11, Some(crc64)));
        let head = later.head(&id("k"), None).await.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(head.content_type.as_deref(), Some("text/x-kept"));
        assert_eq!(head.metadata, Some(options.metadata));
    });
}

#[test]
fn a_signed_url_grants_what_its_holder_needs_and_no_more() {
    let endpoint = Endpoint::start(Wire::Plain);
    run(async {
        let store = with_key(&endpoint);
        put(&store, "a b", b"bytes").await;
        let options = SignOptions { expires: Duration::from_secs(600), ..SignOptions::default() };
        let signed = store.sign(&id("a b"), &options, std::time::SystemTime::now()).await;
        let url = signed.unwrap_or_else(|e| panic!("{e}")).url;
        let sas = url.split_once('?').expect("a query").1;
        let holder = self::store(&endpoint, &[("AZURE_STORAGE_SAS_TOKEN", sas)]);
        assert_eq!(get(&holder, "a b").await, "bytes");
        let refused = holder.delete(&id("a b"), &Condition::None).await.expect_err("only reads are signed");
        assert!(refused.is_permission(), "{refused}");
        let elsewhere = holder.head(&id("other"), None).await.expect_err("another blob");
        assert!(elsewhere.is_permission() || elsewhere.is_unauthenticated(), "{elsewhere}");
        let signature = sas.rsplit_once("sig=").expect("a signature").1;
        assert!(!format!("{refused:?} {elsewhere}").contains(signature));
    });
}

#[test]
fn a_container_is_removed_only_when_it_is_empty() {
    let endpoint = Endpoint::start(Wire::Plain);
    run(async {
        let store = with_key(&endpoint);
        store
            .create_bucket("another", &laneway_store::NewBucket::default())
            .await
            .unwrap_or_else(|e| panic!("{e}"));
        let again = store.create_bucket("another", &laneway_store::NewBucket::default()).await;
        assert_eq!(again.map_err(|e| e.kind()), Err(ErrorKind::AlreadyExists));
        let inside = ObjectId::new("another", "k");
        let body = Body::from(Bytes::from_static(b"x"));
        let put = store.put(&inside, body, &Checksums::default(), &PutOptions::default()).await;
        put.unwrap_or_else(|e| panic!("{e}"));
        assert!(store.delete_bucket("another").await.is_err_and(|e| e.is_invalid()));
        store.delete(&inside, &Condition::None).await.unwrap_or_else(|e| panic!("{e}"));
        store.delete_bucket("another").await.unwrap_or_else(|e| panic!("{e}"));
        assert!(store.head(&inside, None).await.is_err_and(|e| e.is_not_found()));
    });
}

#[test]
fn a_container_with_old_versions_is_not_empty() {
    let endpoint = Endpoint::start_with(Wire::Plain, Config { versions: true, ..Config::default() });
    run(async {
        let store = with_key(&endpoint);
        let new = laneway_store::NewBucket::default();
        store.create_bucket("another", &new).await.unwrap_or_else(|e| panic!("{e}"));
        let inside = ObjectId::new("another", "k");
        let body = Body::from(Bytes::from_static(b"x"));
        let put = store.put(&inside, body, &Checksums::default(), &PutOptions::default()).await;
        put.unwrap_or_else(|e| panic!("{e}"));
        store.delete(&inside, &Condition::None).await.unwrap_or_else(|e| panic!("{e}"));
        assert!(store.head(&inside, None).await.is_err_and(|e| e.is_not_found()));
        assert!(store.delete_bucket("another").await.is_err_and(|e| e.is_invalid()));
    });
}

#[test]
fn the_live_version_can_be_deleted_by_its_id() {
    let endpoint = Endpoint::start_with(Wire::Plain, Config { versions: true, ..Config::default() });
    run(async {
        let store = with_key(&endpoint);
        for (key, is_alone) in [("one", true), ("two", false)] {
            let old = put(&store, key, b"old").await.version_id;
            let live = put(&store, key, b"new").await.version_id;
            let delete =
                |id: Option<String>| Deletion { key: key.to_owned(), version: None, id: id.map(Into::into) };
            let deletions =
                if is_alone { vec![delete(live)] } else { vec![delete(live), delete(old.clone())] };
            for deleted in store.delete_many(Endpoint::BUCKET, &deletions).await {
                deleted.unwrap_or_else(|e| panic!("{e}"));
            }
            assert!(store.head(&id(key), None).await.is_err_and(|e| e.is_not_found()), "{key}");
            let old = id(key).at_version(old.expect("an id"));
            assert_eq!(store.head(&old, None).await.is_ok(), is_alone, "{key}");
        }
    });
}
