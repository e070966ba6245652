//! object_store's own clients over Laneway's lanes: its suite, against both dialects of the embedded server.
#![cfg(feature = "http-connector")]

use std::error::Error as _;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::thread;

use futures_util::StreamExt as _;
use laneway::{Client, Engine};
use laneway_object_store::connector::LanewayConnector;
use laneway_server::{Config, Server};
use laneway_testkit::random_bytes;
use object_store::aws::{AmazonS3, AmazonS3Builder, S3CopyIfNotExists};
use object_store::client::{ClientConfigKey, HttpConnector as _, HttpError, HttpErrorKind, HttpRequestBody};
use object_store::gcp::{GoogleCloudStorage, GoogleCloudStorageBuilder};
use object_store::multipart::MultipartStore;
use object_store::path::Path;
use object_store::{ClientOptions, GetOptions, ObjectStore, ObjectStoreExt as _, integration};
use object_store_0_14 as object_store;

struct Stage {
    /// The server runs until this is dropped.
    _server: Server,
    client: Client,
    s3: AmazonS3,
    gcs: GoogleCloudStorage,
}

fn client() -> Client {
    // Each test has its own engine, because it compares the engine's counters.
    Client::builder().engine(Engine::builder().build()).build().expect("a client")
}

/// Returns both of object_store's clients over the lanes of one Laneway client.
fn stage() -> Stage {
    let server = Server::start(Config::default()).expect("a server");
    server.create_bucket("bucket").expect("a bucket");
    let client = client();
    let connector = || LanewayConnector::new(client.clone());
    let s3 = AmazonS3Builder::new()
        .with_http_connector(connector())
        .with_endpoint(server.url())
        .with_allow_http(true)
        .with_region("us-east-1")
        .with_bucket_name("bucket")
        .with_skip_signature(true)
        .with_copy_if_not_exists(S3CopyIfNotExists::Multipart)
        .build()
        .expect("a store");
    // A service account that tells object_store to send requests without credentials.
    let account = format!(
        r#"{{"gcs_base_url": "{}", "disable_oauth": true, "client_email": "", "private_key": "", "private_key_id": ""}}"#,
        server.url()
    );
    let gcs = GoogleCloudStorageBuilder::new()
        .with_http_connector(connector())
        .with_service_account_key(account)
        .with_client_options(ClientOptions::new().with_allow_http(true))
        .with_bucket_name("bucket")
        .build()
        .expect("a store");
    Stage { _server: server, client, s3, gcs }
}

fn run(scenario: impl Future<Output = ()>) {
    // The connector needs no I/O and no timers from the caller's runtime. object_store's retries need timers.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(scenario);
}

/// Makes a test for each function of the suite, with both clients.
macro_rules! suite {
    ($($name:ident: |$store:ident| $asked:expr;)*) => {
        $(#[test]
        fn $name() {
            async fn asked<S: ObjectStore + MultipartStore>($store: S) {
                $asked
            }
            let Stage { _server, s3, .. } = stage();
            run(asked(s3));
            let Stage { _server, gcs, .. } = stage();
            run(asked(gcs));
        })*
    };
}

suite! {
    put_get_delete_list: |store| integration::put_get_delete_list(&store).await;
    put_get_attributes: |store| integration::put_get_attributes(&store).await;
    stream_get: |store| integration::stream_get(&store).await;
    list_uses_directories_correctly: |store| integration::list_uses_directories_correctly(&store).await;
    list_with_delimiter: |store| integration::list_with_delimiter(&store).await;
    rename_and_copy: |store| integration::rename_and_copy(&store).await;
    copy_rename_nonexistent_object: |store| integration::copy_rename_nonexistent_object(&store).await;
    multipart: |store| integration::multipart(&store, &store).await;
    multipart_out_of_order: |store| integration::multipart_out_of_order(&store).await;
    multipart_race_condition: |store| integration::multipart_race_condition(&store, true).await;
    put_opts: |store| integration::put_opts(&store, true).await;
}

#[test]
fn get_opts() {
    // This function of the suite doesn't run for GCS. It needs buckets that keep replaced generations, and the
    // embedded server's buckets don't keep them.
    let Stage { _server, s3, .. } = stage();
    run(integration::get_opts(&s3));
}

#[test]
fn streams_a_large_object_and_frees_the_connection_of_a_dropped_body() {
    let Stage { _server, client, s3, .. } = stage();
    run(async {
        let (path, bytes) = (Path::from("large"), random_bytes(1, 20 << 20));
        s3.put(&path, bytes.clone().into()).await.expect("written");
        for _ in 0..8 {
            let mut half = s3.get(&path).await.expect("an answer").into_stream();
            half.next().await.expect("a chunk").expect("bytes");
        }
        assert!(s3.get(&path).await.expect("an answer").bytes().await.expect("bytes") == bytes);
        let ranged = GetOptions { range: Some((5..3 << 20).into()), ..GetOptions::default() };
        let part = s3.get_opts(&path, ranged).await.expect("an answer").bytes().await.expect("bytes");
        assert!(part == bytes[5..3 << 20]);
    });
    assert!(client.counters().bytes_received < 60 << 20, "{:?}", client.counters());
}

#[test]
fn broken_answers_and_refused_connections_are_errors_that_are_retried() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/k", listener.local_addr().expect("an address"));
    let served = thread::spawn(move || {
        let (mut connection, _) = listener.accept().expect("a connection");
        let _ = connection.read(&mut [0; 4096]).expect("a request");
        connection.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf ").expect("an answer");
    });
    let options = ClientOptions::new().with_allow_http(true);
    let http = LanewayConnector::new(client()).connect(&options).expect("a client");
    let get = || {
        let body = HttpRequestBody::empty();
        http.execute(http::Request::get(&url).body(body).expect("a request"))
    };
    run(async {
        let broken = match get().await {
            Ok(answer) => answer.into_body().bytes().await.map(drop).map_err(source),
            Err(error) => Err(source(error)),
        };
        assert_eq!(broken.expect_err("it broke off"), HttpErrorKind::Interrupted);
        served.join().expect("served");
        assert_eq!(
            get().await.map(drop).map_err(source).expect_err("nobody listens"),
            HttpErrorKind::Connect
        );
    });
}

/// Returns the kind of an error, and checks that its source is the engine's error.
fn source(error: HttpError) -> HttpErrorKind {
    assert!(error.source().is_some_and(|source| source.is::<laneway_lanes::Error>()), "{error}");
    error.kind()
}

#[test]
fn options_that_the_engine_alone_can_have_are_refused() {
    let connector = LanewayConnector::new(client());
    let options = [
        ClientOptions::new().with_proxy_url("http://127.0.0.1:1"),
        ClientOptions::new().with_allow_invalid_certificates(true),
        ClientOptions::new().with_config(ClientConfigKey::Http2Only, "true"),
    ];
    for options in options {
        let refused = connector.connect(&options).expect_err("it can't be had");
        assert!(matches!(refused, object_store::Error::NotSupported { .. }), "{refused}");
    }
    let plain = Arc::new(connector.connect(&ClientOptions::new()).expect("a client"));
    run(async {
        let body = HttpRequestBody::empty();
        let request = http::Request::get("http://127.0.0.1:1/k").body(body).expect("a request");
        let refused = plain.execute(request).await.map(drop).expect_err("it isn't https");
        assert!(refused.to_string().contains("allow_http"), "{refused}");
    });
}
