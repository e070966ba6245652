//! What is S3's own: its clock, its silent HEADs, its 503s.

use bytes::Bytes;
use laneway_lanes::{Config as LanesConfig, Lanes};
use laneway_server::{Config, S3Config, parse_fault};
use laneway_store::{
    AccessKey, Body, Checksums, Get, ObjectId, ObjectMeta, Provider, PutOptions, Settings, Store,
};
use laneway_testkit::{Endpoint, Wire};

fn faulty(rules: &[&str]) -> Config {
    let mut config = Config::default();
    config.faults.rules = rules.iter().map(|rule| parse_fault(rule).expect("a rule")).collect();
    config
}

fn settings(endpoint: &Endpoint) -> Settings {
    let keys = S3Config::default();
    Settings {
        s3_endpoint: Some(endpoint.url()),
        access_key: Some(AccessKey { id: keys.access_key, secret: keys.secret_key, session_token: None }),
        region: Some(keys.region),
        ..Settings::default()
    }
}

/// Runs a scenario against a server of this configuration.
fn against<F: Future<Output = ()>>(config: Config, scenario: impl FnOnce(Store, ObjectId) -> F) {
    let endpoint = Endpoint::start_with(Wire::Plain, config);
    let lanes = Lanes::start(LanesConfig::default()).expect("lanes");
    let store = Store::new(Provider::S3, &settings(&endpoint), lanes).expect("a store");
    let scenario = scenario(store, ObjectId::new(Endpoint::BUCKET, "folder/key"));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.expect("a runtime").block_on(scenario);
}

async fn put(store: &Store, id: &ObjectId) -> Result<ObjectMeta, laneway_store::Error> {
    let sums = Checksums::crc32c(crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, b"bytes") as u32);
    store.put(id, Body::from(Bytes::from_static(b"bytes")), &sums, &PutOptions::default()).await
}

#[test]
fn a_lone_503_is_tried_again_and_throttles_nothing() {
    let rules = ["put:1 status 503 ServiceUnavailable", "get:1 status 408", "head:1 status 500"];
    against(faulty(&rules), async |store, id| {
        put(&store, &id).await.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(store.get(Get::new(&id)).await.unwrap_or_else(|e| panic!("{e}")).attempts, 2);
        store.head(&id, None).await.unwrap_or_else(|e| panic!("{e}"));
        let counters = store.lanes().counters();
        assert_eq!((counters.retries, counters.throttles), (3, 0));
    });
}

#[test]
fn a_wrong_clock_is_corrected_once_by_what_the_store_says() {
    for ahead_s in [3600, -3600] {
        let s3 = S3Config { clock_ahead_s: ahead_s, ..S3Config::default() };
        against(Config { s3, ..Config::default() }, async |store, id| {
            put(&store, &id).await.unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(store.lanes().counters().requests, 2);
            store.get(Get::new(&id)).await.unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(store.lanes().counters().requests, 3, "it is remembered");
        });
    }
}

#[test]
fn a_head_that_is_refused_without_a_word_for_its_time_corrects_the_clock_too() {
    let s3 = S3Config { clock_ahead_s: 7200, ..S3Config::default() };
    against(Config { s3, ..Config::default() }, async |store, id| {
        let absent = store.head(&id, None).await.expect_err("there is none");
        assert!(absent.is_not_found() && absent.attempts() == 2, "{absent}");
    });
}

#[test]
fn a_silent_400_to_a_head_is_credentials_that_have_expired() {
    against(faulty(&["head:1 status 400"]), async |store, id| {
        put(&store, &id).await.unwrap_or_else(|e| panic!("{e}"));
        store.head(&id, None).await.unwrap_or_else(|e| panic!("{e}"));
    });
    against(faulty(&["head status 400"]), async |store, id| {
        let error = store.head(&id, None).await.expect_err("refused");
        assert!(error.is_unauthenticated() && error.to_string().contains("expired"), "{error}");
    });
}
