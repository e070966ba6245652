//! Directory buckets: sessions, copies with the caller's own credentials, listings without order.

use std::path::PathBuf;

use bytes::Bytes;
use laneway_lanes::{Lanes, LanesConfig, Trust};
use laneway_server::{Config, S3Config};
use laneway_store::{
    AccessKey, Body, Checksums, Condition, Deletion, Error, Get, List, ObjectId, ObjectMeta, Provider,
    PutOptions, Settings, Store,
};
use laneway_testkit::{Endpoint, Wire};

const BUCKET: &str = "fast--use1-az4--x-s3";

fn settings(endpoint: &Endpoint) -> Settings {
    let keys = S3Config::default();
    Settings {
        s3_endpoint: Some(endpoint.url()),
        access_key: Some(AccessKey::new(keys.access_key, keys.secret_key)),
        region: Some("us-east-1".to_owned()),
        ..Settings::default()
    }
}

fn store(endpoint: &Endpoint, settings: &Settings) -> Store {
    let ca: Vec<PathBuf> = endpoint.ca_file().map(PathBuf::from).into_iter().collect();
    let lanes = Lanes::start(LanesConfig { trust: Trust { extra_ca_files: ca }, ..LanesConfig::default() });
    Store::new(Provider::S3, settings, lanes.expect("lanes")).expect("a store")
}

/// Returns a server with a directory bucket.
fn endpoint(wire: Wire) -> Endpoint {
    let endpoint = Endpoint::start(wire);
    endpoint.server().create_bucket(BUCKET).expect("a directory bucket");
    endpoint
}

fn run(scenario: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(scenario);
}

fn id(key: &str) -> ObjectId {
    ObjectId::new(BUCKET, key)
}

fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

async fn put(store: &Store, key: &str) -> Result<ObjectMeta, Error> {
    let bytes = Bytes::copy_from_slice(key.as_bytes());
    let sums = Checksums::crc32c(crc32c(&bytes));
    store.put(&id(key), Body::from(bytes), &sums, &PutOptions::default()).await
}

#[test]
fn verbs_share_one_session_and_copies_use_the_callers_credentials() {
    for wire in Wire::ALL {
        let endpoint = endpoint(wire);
        let store = store(&endpoint, &settings(&endpoint));
        run(async {
            let (first, second) = tokio::join!(put(&store, "d/a"), put(&store, "d/b c"));
            first.and(second).expect("they are written");
            let meta = store.head(&id("d/a"), None).await.expect("it is there");
            assert_eq!(meta.storage_class.as_deref(), Some("EXPRESS_ONEZONE"));
            assert_eq!((meta.checksums.crc32c, meta.checksums.md5), (Some(crc32c(b"d/a")), None));
            assert_eq!(store.get(Get::new(&id("d/b c"))).await.expect("its bytes").body, "d/b c");

            let bytes = Bytes::from_static(b"part");
            let upload = store.begin(&id("d/parts"), &PutOptions::default()).await.expect("an upload");
            let part =
                store.part(&upload, 1, Body::from(bytes.clone()), crc32c(&bytes)).await.expect("a part");
            assert_eq!(store.list_parts(&upload).await.expect("parts").len(), 1);
            let whole = Checksums::crc32c(crc32c(&bytes));
            store.complete(&upload, &[part], &whole, &Condition::None).await.expect("an object");

            store
                .copy(&id("d/a"), &id("d/copy"), &PutOptions::default(), &Condition::None)
                .await
                .expect("a copy, which no session may make");
            let keys = ["d/a", "d/b c", "d/copy", "d/parts"].map(Deletion::any);
            for deleted in store.delete_many(BUCKET, &keys).await {
                deleted.expect("deleted, without Content-MD5");
            }
        });
        assert!(endpoint.server().store().keys(BUCKET).is_empty());
        assert_eq!(endpoint.server().directory_sessions(), 1, "{wire:?}");
    }
}

#[test]
fn a_listing_without_order_is_whole_and_within_its_bounds() {
    let endpoint = endpoint(Wire::Plain);
    for key in ["p/a", "p/ab", "p/b", "p/c/d", "q"] {
        endpoint.server().store().put(BUCKET, key, b"x").expect("stored");
    }
    let store = store(&endpoint, &settings(&endpoint));
    run(async {
        let store = &store;
        let keys = |list: List| async move {
            let page = store.list(&list).await.expect("a page");
            let mut keys: Vec<String> = page.objects.into_iter().map(|object| object.id.key).collect();
            keys.extend(page.prefixes);
            keys
        };
        assert_eq!(
            keys(List::new(BUCKET, "p/")).await,
            ["p/c/d", "p/b", "p/ab", "p/a"],
            "as the store has them"
        );
        assert_eq!(keys(List::new(BUCKET, "p/a")).await, ["p/ab", "p/a"], "a prefix that is no folder");
        let one_level = List { delimiter: Some("/".into()), ..List::new(BUCKET, "p/") };
        assert_eq!(keys(one_level).await, ["p/b", "p/ab", "p/a", "p/c/"]);
        let bounded = List {
            start_after: Some("p/a".into()),
            end_before: Some("p/c".into()),
            ..List::new(BUCKET, "p/")
        };
        assert_eq!(keys(bounded).await, ["p/b", "p/ab"]);
    });
}

#[test]
fn how_new_objects_are_encrypted_is_said_by_the_session_alone() {
    let endpoint = endpoint(Wire::Plain);
    let kms = Settings { kms_key: Some("key-1".to_owned()), ..settings(&endpoint) };
    let store = store(&endpoint, &kms);
    run(async {
        put(&store, "k").await.expect("a put without encryption headers");
    });
}

#[test]
fn a_wrong_clock_is_corrected_before_a_session_is_opened() {
    let s3 = S3Config { clock_ahead_s: 3600, ..S3Config::default() };
    let endpoint = Endpoint::start_with(Wire::Plain, Config { s3, ..Config::default() });
    endpoint.server().create_bucket(BUCKET).expect("a directory bucket");
    let store = store(&endpoint, &settings(&endpoint));
    run(async {
        put(&store, "k").await.expect("it is written");
    });
}

#[test]
fn who_may_open_no_session_is_told_so() {
    let endpoint = endpoint(Wire::Plain);
    let wrong = AccessKey::new("laneway", "wrong");
    let store = store(&endpoint, &Settings { access_key: Some(wrong), ..settings(&endpoint) });
    run(async {
        let error = put(&store, "k").await.expect_err("no session");
        assert!(error.is_unauthenticated(), "{error}");
        assert!(error.to_string().contains("didn't open a session"), "{error}");
    });
}
