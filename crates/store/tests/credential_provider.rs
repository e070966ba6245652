//! Keys from the caller's own provider, against the embedded server, which checks signatures.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use laneway_lanes::{Lanes, LanesConfig, Trust};
use laneway_server::S3Config;
use laneway_store::{
    AccessKey, Checksums, CredentialProvider, ExpiringKey, ObjectId, Provided, Provider, PutOptions,
    Settings, Store,
};
use laneway_testkit::{Endpoint, Wire};

struct Broker {
    secret: Result<String, String>,
    asked: AtomicU32,
}

impl CredentialProvider for Broker {
    fn name(&self) -> &str {
        "our broker"
    }

    fn access_key(&self) -> Provided<'_, ExpiringKey> {
        Box::pin(async {
            self.asked.fetch_add(1, Ordering::Relaxed);
            let secret = self.secret.clone()?;
            let key = AccessKey::new(S3Config::default().access_key, secret);
            Ok(ExpiringKey::new(key).expires_at(SystemTime::now() + Duration::from_secs(3600)))
        })
    }
}

/// Puts twenty objects at once with the broker's keys. Returns the result of the last put and the number of requests to
/// the broker.
fn put(secret: Result<&str, &str>) -> (Result<(), laneway_store::Error>, u32) {
    let endpoint = Endpoint::start(Wire::TlsH2);
    let secret = secret.map(str::to_owned).map_err(str::to_owned);
    let broker = Arc::new(Broker { secret, asked: AtomicU32::new(0) });
    let settings = Settings {
        s3_endpoint: Some(endpoint.url()),
        region: Some(S3Config::default().region),
        credential_provider: Some(Arc::clone(&broker) as Arc<dyn CredentialProvider>),
        ..Settings::default()
    };
    assert!(format!("{settings:?}").contains("our broker"));
    let extra_ca_files = endpoint.ca_file().map(PathBuf::from).into_iter().collect();
    let lanes = Lanes::start(LanesConfig { trust: Trust { extra_ca_files }, ..LanesConfig::default() })
        .expect("lanes");
    let store = Store::new(Provider::S3, &settings, lanes).expect("a store");
    let puts = (0..20).map(|n| {
        let store = &store;
        async move {
            let id = ObjectId::new(Endpoint::BUCKET, format!("{n}"));
            store.put(&id, "hello".into(), &Checksums::default(), &PutOptions::default()).await.map(|_| ())
        }
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let mut outcomes = runtime.expect("a runtime").block_on(futures_util::future::join_all(puts));
    (outcomes.pop().expect("an outcome"), broker.asked.load(Ordering::Relaxed))
}

#[test]
fn a_providers_keys_sign_and_are_asked_for_once() {
    let (outcome, asked) = put(Ok(&S3Config::default().secret_key));
    outcome.expect("it is stored");
    assert_eq!(asked, 1);
}

#[test]
fn a_providers_wrong_key_is_refused_by_the_store() {
    let error = put(Ok("wrong")).0.expect_err("a wrong signature");
    assert!(error.to_string().contains("SignatureDoesNotMatch"), "{error}");
}

#[test]
fn a_providers_failure_names_it_and_its_cause() {
    let (outcome, asked) = put(Err("the badge has expired"));
    let error = outcome.expect_err("no key");
    assert!(error.is_unauthenticated(), "{error}");
    assert!(error.to_string().contains("our broker: the badge has expired"), "{error}");
    assert_eq!(asked, 1);
}
