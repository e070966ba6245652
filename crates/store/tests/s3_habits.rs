//! What is S3's own: its clock, its silent HEADs, its 503s, its regions.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use bytes::Bytes;
use laneway_lanes::{Config as LanesConfig, Lanes, Trust};
use laneway_server::{Config, S3Config, Server, Tls, parse_fault};
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
    run(scenario(store, ObjectId::new(Endpoint::BUCKET, "folder/key")));
}

fn run(scenario: impl Future<Output = ()>) {
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

/// A bucket of a region that has to be opted in to: the error doesn't name it.
#[test]
fn a_bucket_in_an_opt_in_region_is_asked_for_once_and_remembered() {
    let mut s3 = S3Config::default();
    s3.bucket_regions.insert(Endpoint::BUCKET.to_owned(), "me-central-1".to_owned());
    s3.opt_in_regions.insert("me-central-1".to_owned());
    against(Config { s3, ..Config::default() }, async |store, id| {
        let other = ObjectId::new(Endpoint::BUCKET, "other");
        let (one, two) = futures_util::future::join(put(&store, &id), put(&store, &other)).await;
        one.and(two).unwrap_or_else(|e| panic!("{e}"));
        let requests = store.lanes().counters().requests;
        // Each was refused once at most, and one asked where the bucket is.
        assert!((4..=5).contains(&requests), "{requests}");
        store.head(&id, None).await.unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(store.lanes().counters().requests, requests + 1);
    });
}

/// A proxy that leads every host to `server`.
fn tunnel_to(server: SocketAddr) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            thread::spawn(move || tunnel(client, server));
        }
    });
    url
}

fn tunnel(mut client: TcpStream, server: SocketAddr) -> std::io::Result<()> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        client.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let mut server = TcpStream::connect(server)?;
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
    let (mut from, mut to) = (server.try_clone()?, client.try_clone()?);
    thread::spawn(move || std::io::copy(&mut from, &mut to));
    std::io::copy(&mut client, &mut server).map(drop)
}

#[test]
fn without_a_region_one_head_bucket_goes_ahead_of_a_burst_of_puts() {
    let folder = tempfile::tempdir().expect("a folder");
    let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    let hosts = ["us-east-1", "eu-west-3"].map(|region| format!("s3.{region}.amazonaws.com"));
    let made = rcgen::generate_simple_self_signed(hosts).expect("a certificate");
    std::fs::write(&cert, made.cert.pem()).expect("it is written");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("it is written");
    let mut s3 = S3Config::default();
    s3.bucket_regions.insert(Endpoint::BUCKET.to_owned(), "eu-west-3".to_owned());
    let tls = Some(Tls::Files { cert: cert.clone(), key });
    let server = Server::start(Config { tls, s3, ..Config::default() }).expect("the server starts");
    server.create_bucket(Endpoint::BUCKET).expect("the bucket is made");
    let keys = S3Config::default();
    let settings = Settings {
        access_key: Some(AccessKey { id: keys.access_key, secret: keys.secret_key, session_token: None }),
        s3_path_style: Some(true),
        ..Settings::default()
    };
    let lanes = LanesConfig {
        https_proxy: Some(tunnel_to(server.addr())),
        trust: Trust { extra_ca_files: vec![cert] },
        ..LanesConfig::default()
    };
    let store = Store::new(Provider::S3, &settings, Lanes::start(lanes).expect("lanes")).expect("a store");
    run(async {
        let ids: Vec<_> = (0..20).map(|n| ObjectId::new(Endpoint::BUCKET, format!("k{n}"))).collect();
        let puts = ids.iter().map(|id| put(&store, id));
        for written in futures_util::future::join_all(puts).await {
            written.unwrap_or_else(|e| panic!("{e}"));
        }
        let seen = server.counters().requests_by_verb;
        assert_eq!((seen["bucket"], seen["put"]), (1, 20));
    });
}
