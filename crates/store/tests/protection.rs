//! Encryption, access, tags, locks and archives, in both dialects against the embedded server.

use std::path::PathBuf;

use bytes::Bytes;
use laneway_lanes::{Lanes, LanesConfig, Trust};
use laneway_server::S3Config;
use laneway_store::{
    AccessKey, Body, Checksums, Condition, CustomerKey, Encryption, Error, ErrorKind, Get, ObjectId,
    ObjectMeta, Provider, PutOptions, Retention, RetentionMode, Settings, SseAlgorithm, Store,
};
use laneway_testkit::{Endpoint, Wire};

const BOTH: [Provider; 2] = [Provider::Gcs, Provider::S3];

fn settings(endpoint: &Endpoint, encryption: Encryption) -> Settings {
    let keys = S3Config::default();
    Settings {
        gcs_endpoint: Some(endpoint.url()),
        s3_endpoint: Some(endpoint.url()),
        access_key: Some(AccessKey::new(keys.access_key, keys.secret_key)),
        region: Some(keys.region),
        encryption,
        ..Settings::default()
    }
}

fn try_store(endpoint: &Endpoint, provider: Provider, settings: &Settings) -> Result<Store, Error> {
    let ca: Vec<PathBuf> = endpoint.ca_file().map(PathBuf::from).into_iter().collect();
    let lanes = Lanes::start(LanesConfig { trust: Trust { extra_ca_files: ca }, ..LanesConfig::default() });
    Store::new(provider, settings, lanes.expect("lanes"))
}

fn store(endpoint: &Endpoint, provider: Provider, encryption: Encryption) -> Store {
    try_store(endpoint, provider, &settings(endpoint, encryption)).expect("a store")
}

fn run(scenario: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(scenario);
}

fn own_key(byte: u8) -> Option<CustomerKey> {
    Some(CustomerKey::parse(&[byte; CustomerKey::LEN]).expect("a key"))
}

fn keyed(byte: u8) -> Encryption {
    Encryption { customer_key: own_key(byte), ..Encryption::default() }
}

fn id(key: &str) -> ObjectId {
    ObjectId::new(Endpoint::BUCKET, key)
}

fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

async fn put(store: &Store, key: &str, options: &PutOptions) -> Result<ObjectMeta, Error> {
    let bytes = Bytes::from_static(b"123456789");
    store.put(&id(key), Body::from(bytes.clone()), &Checksums::crc32c(crc32c(&bytes)), options).await
}

fn plain() -> PutOptions {
    PutOptions::default()
}

#[test]
fn an_object_of_a_customers_key_is_read_with_that_key_only() {
    for provider in BOTH {
        let endpoint = Endpoint::start(Wire::TlsH1);
        let of = |encryption| store(&endpoint, provider, encryption);
        run(async {
            let ours = of(keyed(1));
            put(&ours, "k", &plain()).await.expect("it is written");
            let meta = ours.head(&id("k"), None).await.expect("its key shows it");
            assert_eq!(meta.encryption.as_deref(), Some("customer AES256"), "{provider:?}");
            assert!(meta.customer_key.is_some() && meta.checksums.crc32c.is_some(), "{provider:?}");
            assert_eq!(ours.get(Get::new(&id("k"))).await.expect("its key opens it").body, "123456789");
            let k = id("k");
            let range = Get { range: Some((2..5).into()), ..Get::new(&k) };
            assert_eq!(ours.get(range).await.expect("a range too").body, "345");
            for other in [keyed(2), Encryption::default()] {
                let error = of(other).get(Get::new(&id("k"))).await.expect_err("another key opens nothing");
                assert!(matches!(error.kind(), ErrorKind::Permission | ErrorKind::Invalid), "{error}");
            }
        });
    }
}

/// Returns true if the server refuses to read an object that was encrypted with another key. GCS says that the key is
/// wrong, and S3 denies access.
async fn is_closed_to(store: &Store, key: &str) -> bool {
    let error = store.get(Get::new(&id(key))).await.expect_err("it has another key");
    match store.provider() {
        Provider::Gcs => error.is_invalid(),
        _ => error.is_permission(),
    }
}

#[test]
fn parts_and_sessions_take_the_customers_key_along() {
    for provider in BOTH {
        let endpoint = Endpoint::start(Wire::TlsH1);
        let ours = store(&endpoint, provider, keyed(1));
        run(async {
            let bytes = Bytes::from_static(b"123456789");
            let sums = Checksums::crc32c(crc32c(&bytes));
            let upload = ours.begin(&id("parts"), &plain()).await.expect("an upload");
            let part =
                ours.part(&upload, 1, Body::from(bytes.clone()), crc32c(&bytes)).await.expect("a part");
            let stranger = store(&endpoint, provider, keyed(2));
            let refused = stranger.part(&upload, 2, Body::from(bytes.clone()), crc32c(&bytes)).await;
            assert_eq!(refused.expect_err("a part with another key").kind(), ErrorKind::Invalid);
            ours.complete(&upload, &[part], &sums, &Condition::None).await.expect("an object");
            assert_eq!(ours.get(Get::new(&id("parts"))).await.expect("it opens").body, bytes);
            assert!(is_closed_to(&stranger, "parts").await);
            if provider == Provider::Gcs {
                let session = ours.resumable_begin(&id("session"), Some(9), &plain(), Some(&sums)).await;
                let session = session.expect("a session");
                ours.resumable_append(&session, 0, Body::from(bytes.clone()), true).await.expect("an object");
                assert_eq!(ours.get(Get::new(&id("session"))).await.expect("it opens").body, bytes);
                assert!(is_closed_to(&stranger, "session").await);
            }
        });
    }
}

#[test]
fn a_copy_takes_the_key_of_its_source_and_its_own() {
    for provider in BOTH {
        let endpoint = Endpoint::start(Wire::TlsH1);
        let of = |encryption| store(&endpoint, provider, encryption);
        run(async {
            put(&of(keyed(1)), "from", &plain()).await.expect("it is written");
            let both = of(Encryption { source_customer_key: own_key(1), ..keyed(2) });
            both.copy(&id("from"), &id("to"), &plain(), &Condition::None).await.expect("a copy");
            let source = both.as_source().head(&id("from"), None).await.expect("the source's key");
            assert!(source.checksums.crc32c.is_some());
            assert_eq!(
                of(keyed(2)).get(Get::new(&id("to"))).await.expect("the copy's key").body,
                "123456789"
            );
            assert!(is_closed_to(&of(keyed(1)), "to").await);
            let decrypted = of(Encryption { source_customer_key: own_key(1), ..Encryption::default() });
            decrypted.copy(&id("from"), &id("open"), &plain(), &Condition::None).await.expect("a copy");
            assert!(of(Encryption::default()).get(Get::new(&id("open"))).await.is_ok());
        });
    }
}

#[test]
fn managed_encryption_is_asked_for_and_shown_and_its_tag_is_no_md5() {
    let endpoint = Endpoint::start(Wire::Plain);
    run(async {
        let kms = Settings {
            kms_key: Some("arn:aws:kms:us-east-1:1:key/k".into()),
            ..settings(
                &endpoint,
                Encryption {
                    bucket_key: Some(true),
                    context: [("team".to_owned(), "a".to_owned())].into(),
                    ..Encryption::default()
                },
            )
        };
        let kms = try_store(&endpoint, Provider::S3, &kms).expect("a store");
        put(&kms, "kms", &plain()).await.expect("it is written");
        let meta = kms.head(&id("kms"), None).await.expect("it is there");
        assert_eq!(meta.encryption.as_deref(), Some("aws:kms"));
        assert_eq!(meta.kms_key.as_deref(), Some("arn:aws:kms:us-east-1:1:key/k"));
        assert!(meta.bucket_key);
        assert_eq!(meta.checksums.md5, None);
        for algorithm in [SseAlgorithm::Aes256, SseAlgorithm::KmsDsse] {
            let encryption = Encryption { algorithm: Some(algorithm), ..Encryption::default() };
            let store = store(&endpoint, Provider::S3, encryption);
            put(&store, algorithm.name(), &plain()).await.expect("it is written");
            let meta = store.head(&id(algorithm.name()), None).await.expect("it is there");
            assert_eq!(meta.encryption.as_deref(), Some(algorithm.name()));
        }
    });
}

#[test]
fn refuses_contradicting_keys_and_sends_no_key_over_plain_http() {
    let endpoint = Endpoint::start(Wire::Plain);
    for provider in BOTH {
        let both = Settings { kms_key: Some("k".into()), ..settings(&endpoint, keyed(1)) };
        assert!(try_store(&endpoint, provider, &both).is_err_and(|e| e.is_invalid()));
        let clear = Settings {
            s3_endpoint: Some("http://store.example".into()),
            gcs_endpoint: Some("http://store.example".into()),
            ..settings(&endpoint, keyed(1))
        };
        run(async {
            let refused = match try_store(&endpoint, provider, &clear) {
                Ok(store) => store.head(&id("k"), None).await.map(drop),
                Err(error) => Err(error),
            };
            assert!(refused.is_err_and(|e| e.is_invalid() && e.to_string().contains("unencrypted")));
        });
    }
}

#[test]
fn another_customers_key_is_another_fingerprint_and_is_not_in_it() {
    let endpoint = Endpoint::start(Wire::TlsH1);
    for provider in BOTH {
        let of = |encryption| store(&endpoint, provider, encryption).fingerprint();
        assert_eq!(of(keyed(1)), of(keyed(1)));
        assert_ne!(of(keyed(1)), of(keyed(2)));
        assert_ne!(of(keyed(1)), of(Encryption::default()));
    }
}

fn in_an_hour() -> std::time::SystemTime {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    std::time::UNIX_EPOCH + std::time::Duration::from_secs(now.as_secs() + 3600)
}

#[test]
fn locks_and_holds_are_asked_for_and_shown() {
    let retention = Retention::new(RetentionMode::Compliance, in_an_hour());
    let options = plain().retention(retention).legal_hold(true).acl("private");
    for provider in BOTH {
        let endpoint = Endpoint::start(Wire::Plain);
        let store = store(&endpoint, provider, Encryption::default());
        endpoint.server().store().allow_locks(Endpoint::BUCKET).expect("it has locks");
        run(async {
            put(&store, "k", &options).await.expect("it is written");
            let meta = store.head(&id("k"), None).await.expect("it is there");
            assert_eq!((meta.retention, meta.legal_hold), (Some(retention), true), "{provider:?}");
            let begun = store.begin(&id("large"), &options).await;
            match provider {
                // On GCS a resumable session takes the place of this upload, and supports retention and holds.
                Provider::Gcs => assert!(begun.is_err_and(|e| e.is_unsupported())),
                _ => assert!(begun.is_ok()),
            }
        });
        let written = endpoint.server().store().object(Endpoint::BUCKET, "k").expect("it is there");
        assert_eq!(written.attributes.options.acl.as_deref(), Some("private"), "{provider:?}");
    }
}

#[test]
fn tags_are_written_counted_read_and_kept_by_copies() {
    let tagged = plain().tag("team", "a b").tag("x=y", "1/2");
    let endpoint = Endpoint::start(Wire::Plain);
    run(async {
        let s3 = store(&endpoint, Provider::S3, Encryption::default());
        put(&s3, "k", &tagged).await.expect("it is written");
        assert_eq!(s3.head(&id("k"), None).await.expect("it is there").tags, Some(2));
        assert_eq!(s3.tags(&id("k")).await.expect("its tags"), tagged.tags);
        s3.copy(&id("k"), &id("copy"), &plain(), &Condition::None).await.expect("a copy");
        assert_eq!(s3.tags(&id("copy")).await.expect("its tags"), tagged.tags);
        let other = plain().tag("n", "1");
        s3.copy(&id("k"), &id("retagged"), &other, &Condition::None).await.expect("a copy");
        assert_eq!(s3.tags(&id("retagged")).await.expect("its tags"), other.tags);

        let gcs = store(&endpoint, Provider::Gcs, Encryption::default());
        let refused = put(&gcs, "g", &tagged).await.expect_err("GCS has no tags");
        assert!(refused.is_invalid() && refused.to_string().contains("no tags"), "{refused}");
    });
}

#[test]
fn an_archived_object_is_named_as_such() {
    let endpoint = Endpoint::start(Wire::Plain);
    run(async {
        let s3 = store(&endpoint, Provider::S3, Encryption::default());
        for class in ["GLACIER", "DEEP_ARCHIVE"] {
            put(&s3, class, &plain().storage_class(class)).await.expect("it is written");
            assert!(s3.head(&id(class), None).await.expect("it is there").archived);
            let error = s3.get(Get::new(&id(class))).await.expect_err("its bytes aren't");
            assert_eq!(error.kind(), ErrorKind::Archived, "{error}");
            assert!(
                error.to_string().contains(&format!("is archived in {class} and must be restored")),
                "{error}"
            );
            let copied = s3.copy(&id(class), &id("copy"), &plain(), &Condition::None).await;
            assert!(copied.is_err_and(|e| e.is_archived()));
        }
    });
}
